package ort

import (
	"cmp"
	"slices"

	binding "github.com/yalue/onnxruntime_go"
	"golang.org/x/sys/cpu"
)

// Names and precisions of a [Provider].
const (
	CPU      = "cpu"      // ONNX Runtime's own kernels
	OpenVINO = "openvino" // Intel's; see [Provider.Install]
	WebGPU   = "webgpu"   // any GPU with Vulkan or Metal
	CUDA     = "cuda"     // NVIDIA's GPUs
	Auto     = "auto"     // a GPU if it is faster than the CPU, and agrees with it

	F32  = "f32"
	BF16 = "bf16" // bfloat16: the range of float32, with 8 of its 24 bits
	F16  = "f16"  // float16: up to 65504, with 11 of the 24 bits
	TF32 = "tf32" // TensorFloat-32: float32, with 11 of the 24 bits inside convolutions and products of matrices
)

// A Provider is the engine that computes inside ONNX Runtime, and its precision. The zero value is ONNX Runtime's own
// kernels in float32.
type Provider struct {
	Name      string // CPU, OpenVINO, WebGPU, CUDA
	Precision string // F32, BF16, F16, TF32
	// Parameterized is for tests: the processor takes weights as inputs, too, as GPUs do. See [Provider.Feeds].
	Parameterized bool
	Device        int // number of the GPU, of CUDA; results do not depend on it
}

// A kind is what the program knows of one provider. A new provider is a file with its kind, and a line in kinds.
type kind struct {
	name      string   // for [Provider.Name]
	own       string   // ONNX Runtime's name for it
	oldest    string   // the oldest release of ONNX Runtime that has it
	low       []string // the precisions below float32, the fastest first
	gpu       bool
	explicit  bool                       // see [Provider.Explicit]
	device    bool                       // see [Provider.ChoosesDevice]
	compiles  bool                       // see [Provider.Compiles]
	turns     bool                       // runs must not be at the same time
	misread   bool                       // see [Provider.MisreadsChannels]
	doubles   bool                       // see [Provider.AddsUp]
	memory    string                     // ONNX Runtime's name of the device's memory, if weights are inputs: see [Provider.Feeds]
	fuses     bool                       // fuses batch norm into convolutions itself
	untested  string                     // see [Provider.Untested]
	software  func() bool                // see [Provider.Software]; nil is no
	devices   func() string              // describes the devices of this machine; nil for the processor
	hint      func(*LibraryError) string // what to do about an error; nil for the usual hint
	libraries packaged

	// ready prepares the machine before the library at path is loaded. hold prepares a loaded library. add makes the provider
	// compute the nodes of a session that it supports. Each may be nil.
	ready func(path string) error
	hold  func(r *Runtime, p Provider) error
	room  func(device int) (free int64, ok bool) // memory that a device has left; nil if that cannot be asked
	add   func(r *Runtime, so *binding.SessionOptions, opts Options) error
}

// packaged says which libraries setup fetches.
type packaged struct {
	title, folder string
	sources       func() []source // for this platform; none is nil
}

// kinds are all providers, with the default first. A kind calls functions that look into kinds, so init sets them.
var kinds []*kind

// Names lists the valid values of Provider.Name, with the default first.
var Names []string

func init() {
	kinds = []*kind{processor(), openVINO(), webGPU(), cuda()}
	for _, k := range kinds {
		Names = append(Names, k.name)
	}
}

// processor is ONNX Runtime's own provider.
func processor() *kind {
	return &kind{name: CPU, own: "CPUExecutionProvider", oldest: MinVersion,
		libraries: packaged{"ONNX Runtime", "onnxruntime-" + Version, func() []source { return pins[platform()] }}}
}

// kind returns the kind of the provider. A name that is no provider's has a kind with the processor's libraries.
func (p Provider) kind() *kind {
	if p.Name == Web {
		return web()
	}
	for _, k := range kinds {
		if k.name == cmp.Or(p.Name, CPU) {
			return k
		}
	}
	return &kind{oldest: MinVersion, libraries: processor().libraries}
}

// GPUs lists the providers that compute on a GPU. The one that is faster where both can be used comes first.
func GPUs() (names []string) {
	for _, k := range slices.Backward(kinds) {
		if k.gpu {
			names = append(names, k.name)
		}
	}
	return names
}

// Explicit reports whether batch-norm passes must be written out in operators, because the provider has no batch norm in
// training mode.
func (p Provider) Explicit() bool { return p.kind().explicit }

// GPU reports whether the provider computes on a GPU. Its results are always compared with those of the CPU.
func (p Provider) GPU() bool { return p.kind().gpu }

// ChoosesDevice reports whether Device chooses one of several GPUs.
func (p Provider) ChoosesDevice() bool { return p.kind().device }

// MisreadsChannels reports whether the provider computes convolutions wrong that it reads three channels at a time: see
// [onnxio.MisreadByWebGPU].
func (p Provider) MisreadsChannels() bool { return p.kind().misread }

// Compiles reports whether a session compiles its network, and keeps what its runs compute.
func (p Provider) Compiles() bool { return p.kind().compiles }

// Partial reports whether nodes that the provider lacks run on the CPU provider.
func (p Provider) Partial() bool { return p.Explicit() }

// Untested says how little the provider was tested; "" for the processor's.
func (p Provider) Untested() string { return p.kind().untested }

// Software reports whether the provider has no other device than llvmpipe, Mesa's software renderer. With Mesa 25.0.7 and
// LLVM 15 it crashed in Sigmoid, Softmax, Tanh and Erf of float16.
func (p Provider) Software() bool {
	software := p.kind().software
	return software != nil && software()
}

// OneShape reports whether each new shape of the inputs costs much time: shaders are compiled for it, and graphs prepared.
// So the last batch is filled up.
func (p Provider) OneShape() bool { return p.GPU() || p.Parameterized }

// Exact returns the provider that results are compared with: float32 of the same kernels, or of the CPU's for a GPU.
func (p Provider) Exact() Provider {
	if p.GPU() {
		return Provider{}
	}
	return Provider{Name: p.Name, Precision: F32}
}

// Low returns the provider's precisions below float32, the fastest first. That of [Auto] is one of all GPUs.
func (p Provider) Low() []string {
	if p.Name == Auto {
		return []string{F16}
	}
	return p.kind().low
}

// disabled lists the optimizers of ONNX Runtime that must not run.
func (p Provider) disabled() []string {
	names := []string{"EliminateDropout"} // it also removes Dropout in training mode, which must stay
	if p.Precision == F16 {
		// It crashes the process on float16 weights of fixtures/exporters/transformer-tied, in 1.30.0 and 1.31.1.
		names = append(names, "FuseFp16InitializerToFp32NodeTransformer")
	}
	if p.kind().fuses {
		names = append(names, "ConvBNFusion") // it writes all weights once more
	}
	return names
}

// String identifies the provider in files: "cpu f32", "openvino bf16".
func (p Provider) String() string {
	return cmp.Or(p.Name, CPU) + " " + cmp.Or(p.Precision, F32)
}

// in returns an error if the library lacks the provider. Otherwise it prepares the provider.
func (p Provider) in(r *Runtime) error {
	k := p.kind()
	switch {
	case k.name == CPU:
		return nil
	case !slices.Contains(r.Providers(), k.own):
		return &LibraryError{Path: r.path, Reason: "has no provider " + p.Name, Provider: p.Name}
	case k.hold == nil:
		return nil
	}
	return k.hold(r, p)
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
