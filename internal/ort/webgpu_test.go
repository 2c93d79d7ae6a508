//go:build webgpu

package ort

func init() { tested = Provider{Name: WebGPU} }
