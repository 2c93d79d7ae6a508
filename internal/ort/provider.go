package ort

import "cmp"

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
