package ort

import (
	"cmp"
	"slices"

	"golang.org/x/sys/cpu"
)

// Names and precisions of a [Provider].
const (
	CPU      = "cpu"      // ONNX Runtime's own kernels
	OpenVINO = "openvino" // Intel's; see [Provider.Install]

	F32  = "f32"
	BF16 = "bf16" // bfloat16: the range of float32, with 8 of its 24 bits
)

// A Provider is the engine that computes inside ONNX Runtime, and its precision. The zero value is ONNX Runtime's own
// kernels in float32.
type Provider struct {
	Name      string // CPU, OpenVINO
	Precision string // F32, BF16
}

// Names lists the valid values of Provider.Name, with the default first.
var Names = []string{CPU, OpenVINO}

// String identifies the provider in files: "cpu f32", "openvino bf16".
func (p Provider) String() string {
	return cmp.Or(p.Name, CPU) + " " + cmp.Or(p.Precision, F32)
}

// ownNames maps a provider to ONNX Runtime's name for it.
var ownNames = map[string]string{"": "CPUExecutionProvider", CPU: "CPUExecutionProvider", OpenVINO: "OpenVINOExecutionProvider"}

// oldest returns the oldest accepted release.
func (p Provider) oldest() string {
	if p.Name == OpenVINO {
		return OpenVINOVersion
	}
	return MinVersion
}

// in returns an error if the library lacks the provider. Otherwise it prepares the provider.
func (p Provider) in(r *Runtime) error {
	switch {
	case p.Name == "" || p.Name == CPU:
		return nil
	case slices.Contains(r.Providers(), ownNames[p.Name]):
		return r.holdOpenVINO()
	}
	return &LibraryError{Path: r.path, Reason: "has no provider " + p.Name, Provider: p.Name}
}

// FastBF16 returns the processor feature that makes bfloat16 faster than float32. It returns "" if the processor has
// none and would emulate bfloat16.
func FastBF16() string {
	switch {
	case cpu.X86.HasAMXBF16:
		return "amx_bf16"
	case cpu.X86.HasAVX512BF16:
		return "avx512_bf16"
	}
	return ""
}
