package ort

import (
	"cmp"
	"slices"

	"golang.org/x/sys/cpu"
)

// Names and precisions of a [Provider].
const (
	CPU      = "cpu"      // ONNX Runtime's own kernels
	OpenVINO = "openvino" // Intel's; see [InstallOpenVINO]

	F32  = "f32"
	BF16 = "bf16" // bfloat16: the range of float32, with 8 of its 24 bits
)

// A Provider is what computes inside ONNX Runtime, and how precisely. The zero value
// is ONNX Runtime's own kernels in float32.
type Provider struct {
	Name      string // CPU, OpenVINO
	Precision string // F32, BF16
}

// Names lists what Provider.Name may be, the default first.
var Names = []string{CPU, OpenVINO}

// String identifies the provider in files: "cpu f32", "openvino bf16".
func (p Provider) String() string {
	return cmp.Or(p.Name, CPU) + " " + cmp.Or(p.Precision, F32)
}

// ownNames are ONNX Runtime's names of providers.
var ownNames = map[string]string{"": "CPUExecutionProvider", CPU: "CPUExecutionProvider", OpenVINO: "OpenVINOExecutionProvider"}

// Find is the function [Find] for the library with the provider. For OpenVINO that is
// explicit, or what [InstallOpenVINO] put into the user's cache folder: the environment
// names libraries for the default.
func (p Provider) Find(explicit string) (Library, error) {
	if p.Name == OpenVINO {
		return findOpenVINO(explicit)
	}
	return Find(explicit)
}

// oldest is the oldest release that is accepted.
func (p Provider) oldest() string {
	if p.Name == OpenVINO {
		return OpenVINOVersion
	}
	return MinVersion
}

// in fails if the library does not have the provider, and readies it.
func (p Provider) in(r *Runtime) error {
	switch {
	case p.Name == "" || p.Name == CPU:
		return nil
	case slices.Contains(r.Providers(), ownNames[p.Name]):
		return r.holdOpenVINO()
	}
	return &LibraryError{Path: r.path, Reason: "has no provider " + p.Name, Provider: p.Name}
}

// FastBF16 names the feature by which this processor multiplies bfloat16 faster than
// float32; "" if it has none, and would emulate it.
func FastBF16() string {
	switch {
	case cpu.X86.HasAMXBF16:
		return "amx_bf16"
	case cpu.X86.HasAVX512BF16:
		return "avx512_bf16"
	}
	return ""
}
