//go:build cuda

package ort

func init() { tested = Provider{Name: CUDA} }
