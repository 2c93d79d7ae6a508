package ort

import (
	"cmp"
	"encoding/json"
	"runtime"
	"slices"

	binding "github.com/yalue/onnxruntime_go"
	"golang.org/x/sys/cpu"

	"github.com/swagwrap/swagwrap/weights"
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
)

// A Provider is the engine that computes inside ONNX Runtime, and its precision. The zero value is ONNX Runtime's own
// kernels in float32.
type Provider struct {
	Name      string // CPU, OpenVINO, WebGPU, CUDA
	Precision string // F32, BF16, F16
	Device    int    // number of the GPU, of CUDA; results do not depend on it
}

// Names lists the valid values of Provider.Name, with the default first.
var Names = []string{CPU, OpenVINO, WebGPU, CUDA}

// Explicit reports whether batch-norm passes must be written out in operators, because the provider has no batch norm in
// training mode.
func (p Provider) Explicit() bool { return p.Name == OpenVINO || p.GPU() }

// GPU reports whether the provider computes on a GPU. Its results are always compared with those of the CPU.
func (p Provider) GPU() bool { return p.Name == WebGPU || p.Name == CUDA }

// Partial reports whether nodes that the provider lacks run on the CPU provider.
func (p Provider) Partial() bool { return p.Explicit() }

// Untested says how little the provider was tested; "" for the processor's.
func (p Provider) Untested() string {
	switch p.Name {
	case WebGPU:
		return "swagwrap was tested on a software device only, so each run is compared with the CPU"
	case CUDA:
		return "swagwrap was tested on one GPU, an H200, so each run is compared with the CPU"
	}
	return ""
}

// OneShape reports whether each new shape of the inputs costs much time: shaders are compiled for it. So the last batch
// is filled up.
func (p Provider) OneShape() bool { return p.GPU() }

// Exact returns the provider that results are compared with: float32 of the same kernels, or of the CPU's for a GPU.
func (p Provider) Exact() Provider {
	if p.GPU() {
		return Provider{}
	}
	return Provider{Name: p.Name, Precision: F32}
}

// Low returns the provider's precision below float32, or "".
func (p Provider) Low() string {
	switch p.Name {
	case OpenVINO:
		return BF16
	case WebGPU, CUDA, Auto:
		return F16
	}
	return ""
}

// String identifies the provider in files: "cpu f32", "openvino bf16".
func (p Provider) String() string {
	return cmp.Or(p.Name, CPU) + " " + cmp.Or(p.Precision, F32)
}

// ownNames maps a provider to ONNX Runtime's name for it.
var ownNames = map[string]string{"": "CPUExecutionProvider", CPU: "CPUExecutionProvider", OpenVINO: "OpenVINOExecutionProvider", WebGPU: "WebGpuExecutionProvider", CUDA: "CUDAExecutionProvider"}

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
	case slices.Contains(r.Providers(), ownNames[p.Name]) && p.Name == WebGPU:
		return r.holdGPU()
	case slices.Contains(r.Providers(), ownNames[p.Name]) && p.Name == CUDA:
		return r.holdCUDA(p)
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

// appendOpenVINO makes OpenVINO compute the nodes of a session that it supports.
func (r *Runtime) appendOpenVINO(so *binding.SessionOptions, opts Options) error {
	callers := max(1, opts.Callers)
	config, err := json.Marshal(map[string]any{"CPU": map[string]any{
		"INFERENCE_PRECISION_HINT": cmp.Or(opts.Provider.Precision, F32),
		"INFERENCE_NUM_THREADS":    callers * cmp.Or(opts.Threads, runtime.GOMAXPROCS(0)),
		"NUM_STREAMS":              callers, // with one stream, concurrent runs wait for each other
	}})
	if err == nil {
		err = so.AppendExecutionProviderOpenVINO(map[string]string{"device_type": "CPU", "load_config": string(config)})
	}
	if err != nil {
		return &LibraryError{Path: r.path, Reason: "has no provider openvino: " + shorten(err.Error()), Err: err, Provider: OpenVINO}
	}
	return nil
}

// holdOpenVINO loads OpenVINO's plugin and keeps it until the process ends. The plugin installs a signal stack on the
// thread that loads it. When the last session closes, any thread may unmap that stack, and Go's next signal to the
// loading thread then crashes the process. So a session stays open, and the loading thread ends here.
func (r *Runtime) holdOpenVINO() error {
	if r.openVINO != nil {
		return nil
	}
	done := make(chan error)
	go weights.Guarded(func() (err error) {
		runtime.LockOSThread() // never unlocked, so the thread ends with the goroutine
		r.openVINO, err = r.NewSession(tiny, Options{Threads: 1, Provider: Provider{Name: OpenVINO}, onThisThread: true})
		done <- err
		return nil
	})()
	if err := <-done; err != nil {
		return Provider{Name: OpenVINO}.unusable(r.path, "OpenVINO: "+err.Error(), err)
	}
	return nil
}
