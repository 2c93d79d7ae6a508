package ort

/*
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>

// free_memory asks CUDA's runtime, which is open already, how much memory a GPU has left.
static int free_memory(int device, size_t *left, size_t *all) {
	int (*choose)(int) = (int (*)(int))dlsym(RTLD_DEFAULT, "cudaSetDevice");
	int (*ask)(size_t *, size_t *) = (int (*)(size_t *, size_t *))dlsym(RTLD_DEFAULT, "cudaMemGetInfo");
	return choose == NULL || ask == NULL || choose(device) != 0 || ask(left, all) != 0;
}
*/
import "C"

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"github.com/swagwrap/swagwrap/internal/setting"
	binding "github.com/yalue/onnxruntime_go"
)

// nvidia lists the libraries that CUDA's provider needs, in the order in which they need each other. ONNX Runtime finds a
// library that is open already by its name, so LD_LIBRARY_PATH is not needed. The provider names the first ones; it and
// cuDNN load the others when a node needs them.
var nvidia = []nvidiaLibrary{
	{"libcuda.so.1", ""},
	{"libcudart.so.13", "nvidia-cuda-runtime"},
	{"libnvJitLink.so.13", "nvidia-nvjitlink"},
	{"libnvrtc.so.13", "nvidia-cuda-nvrtc"},
	{"libcublasLt.so.13", "nvidia-cublas"},
	{"libcublas.so.13", "nvidia-cublas"},
	{"libcurand.so.10", "nvidia-curand"},
	{"libcufft.so.12", "nvidia-cufft"},
	{"libcudnn_graph.so.9", "nvidia-cudnn-cu13"},
	{"libcudnn_ops.so.9", "nvidia-cudnn-cu13"},
	{"libcudnn_cnn.so.9", "nvidia-cudnn-cu13"},
	{"libcudnn_adv.so.9", "nvidia-cudnn-cu13"},
	{"libcudnn_heuristic.so.9", "nvidia-cudnn-cu13"},
	{"libcudnn_engines_precompiled.so.9", "nvidia-cudnn-cu13"},
	{"libcudnn_engines_runtime_compiled.so.9", "nvidia-cudnn-cu13"},
	{"libcudnn.so.9", "nvidia-cudnn-cu13"},
}

type nvidiaLibrary struct {
	name string
	from string // the wheel that has it; "" is NVIDIA's driver
}

// nvidiaFolders lists where these libraries may be, the user's PyTorch first: in the Python environment that is active or
// that started the program, in LD_LIBRARY_PATH, and in the system.
func nvidiaFolders() (dirs []string) {
	add := func(pattern string) {
		found, _ := filepath.Glob(pattern) // the patterns are good
		dirs = append(dirs, found...)
	}
	var sites []string
	if lib := os.Getenv(PythonEnv); lib != "" { // site-packages/onnxruntime/capi/libonnxruntime.so
		sites = append(sites, filepath.Dir(filepath.Dir(filepath.Dir(lib))))
	}
	for _, name := range []string{"VIRTUAL_ENV", "CONDA_PREFIX"} {
		if root := os.Getenv(name); root != "" {
			found, _ := filepath.Glob(filepath.Join(root, "lib", "python3*", "site-packages"))
			sites = append(sites, found...)
			dirs = append(dirs, filepath.Join(root, "lib")) // conda's own packages of CUDA
		}
	}
	if home, err := os.UserHomeDir(); err == nil {
		found, _ := filepath.Glob(filepath.Join(home, ".local", "lib", "python3*", "site-packages"))
		sites = append(sites, found...)
	}
	for _, pattern := range []string{"/usr/local/lib/python3*/dist-packages", "/usr/local/lib/python3*/site-packages"} {
		found, _ := filepath.Glob(pattern)
		sites = append(sites, found...)
	}
	for _, site := range sites {
		add(filepath.Join(site, "nvidia", "*", "lib"))
		add(filepath.Join(site, "torch", "lib"))
	}
	dirs = append(dirs, filepath.SplitList(os.Getenv("LD_LIBRARY_PATH"))...)
	for _, pattern := range []string{"/usr/local/cuda/lib64", "/usr/local/cuda-13*/lib64", "/usr/lib/x86_64-linux-gnu", "/usr/lib64",
		"/usr/lib/wsl/lib"} {
		add(pattern)
	}
	return dirs
}

// A library of NVIDIA's that could not be opened, and why; "" if no folder has it.
type missingLibrary struct{ name, from, why string }

// openNVIDIA opens NVIDIA's libraries from the folders, or as the linker finds them. They stay open.
func openNVIDIA(dirs []string) (missing []missingLibrary) {
	for _, l := range nvidia {
		why, opened := "", false
		for _, dir := range append(dirs, "") {
			path := filepath.Join(dir, l.name)
			if _, err := os.Stat(path); dir != "" && err != nil {
				continue
			}
			err := open(path)
			if opened = err == nil; opened {
				break
			}
			if dir != "" {
				why = err.Error()
			}
		}
		if !opened {
			missing = append(missing, missingLibrary{l.name, l.from, why})
		}
	}
	return missing
}

// open opens a library for the whole process.
func open(path string) error {
	runtime.LockOSThread() // dlerror is of the thread
	defer runtime.UnlockOSThread()
	c := C.CString(path)
	defer C.free(unsafe.Pointer(c))
	if C.dlopen(c, C.RTLD_NOW|C.RTLD_GLOBAL) == nil {
		return errors.New(shorten(C.GoString(C.dlerror())))
	}
	return nil
}

// nvidiaGPUs describes each GPU by name, driver and memory, as nvidia-smi of the driver prints them.
func nvidiaGPUs() string {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	out, _ := exec.CommandContext(ctx, "nvidia-smi", "--query-gpu=name,driver_version,memory.total", "--format=csv,noheader").Output()
	return strings.Join(strings.Split(strings.TrimSpace(string(out)), "\n"), "; ")
}

// cuda is the provider for NVIDIA's GPUs.
func cuda() *kind {
	return &kind{
		name:     CUDA,
		memory:   "Cuda",
		doubles:  true,
		own:      "CUDAExecutionProvider",
		oldest:   MinVersion,
		low:      []string{F16, TF32},
		gpu:      true,
		explicit: true,
		device:   true,
		untested: "swagwrap was tested on two GPUs, an H200 and an H100, so each run is compared with the CPU",
		libraries: packaged{"ONNX Runtime " + DeviceVersion + " with CUDA, 247 MB,", "onnxruntime-cuda-" + DeviceVersion, func() []source {
			return cudaPins[platform()]
		}},
		devices: nvidiaGPUs,
		hint:    (*LibraryError).hintCUDA,
		ready:   readyCUDA,
		room:    roomCUDA,
		hold:    (*Runtime).holdCUDA,
		add:     (*Runtime).appendCUDA,
	}
}

// readyCUDA opens NVIDIA's libraries for the library of CUDA at path, before ONNX Runtime is loaded. So another provider can
// be taken if one is missing.
func readyCUDA(path string) error {
	missing := openNVIDIA(nvidiaFolders())
	if missing == nil {
		return nil
	}
	var names []string
	for _, m := range missing {
		if m.why != "" {
			m.name += " (" + m.why + ")"
		}
		names = append(names, m.name)
	}
	if n := len(names); n > 4 { // the hint has all that is to be installed
		names = append(names[:3], fmt.Sprintf("and %d more libraries", n-3))
	}
	return &LibraryError{Path: path, Reason: "CUDA lacks " + strings.Join(names, ", "), Err: lacking(missing), Provider: CUDA}
}

// holdCUDA runs a tiny network, so that a failure has its cause. ONNX Runtime's own message names none.
func (r *Runtime) holdCUDA(p Provider) error {
	if r.cuda {
		return nil
	}
	if err := r.try(context.Background(), p); err != nil {
		return r.unusableCUDA(p, err)
	}
	r.cuda = true
	return nil
}

// unusableCUDA is the error for CUDA that cannot run a tiny network.
func (r *Runtime) unusableCUDA(p Provider, err error) error {
	why := shorten(err.Error())
	if lost, ok := errors.AsType[*GPULostError](err); ok {
		why = lost.Why
	} else if m := cudaFailure.FindStringSubmatch(why); m != nil {
		why = m[1]
	} else if cause := open(filepath.Join(filepath.Dir(r.name), "libonnxruntime_providers_cuda.so")); cause != nil {
		why = cause.Error()
	}
	return p.unusable(r.path, "CUDA: "+why, err)
}

// cudaFailure finds what the driver says in ONNX Runtime's message.
var cudaFailure = regexp.MustCompile(`CUDA failure \d+: ([^;]*\w)`)

// lacking is the error for libraries that are missing.
type lacking []missingLibrary

func (l lacking) Error() string { return "libraries are missing" }

// hintCUDA says what to install.
func (e *LibraryError) hintCUDA() string {
	var l lacking
	switch {
	case errors.As(e.Err, &l):
		var hint, wheels string
		for _, m := range l {
			if m.from == "" {
				hint = "install NVIDIA's driver for CUDA 13, which has " + m.name
			} else if !strings.Contains(wheels+" ", " "+m.from+" ") {
				wheels += " " + m.from
			}
		}
		if wheels != "" && hint != "" {
			hint += "; "
		}
		if wheels != "" {
			hint += "PyTorch for CUDA 13 has most of NVIDIA's libraries, and pip the others: pip install" + wheels
		}
		return hint + ". swagwrap looks in the active Python environment, in LD_LIBRARY_PATH and in /usr/local/cuda"
	case errors.Is(e.Err, errNoNode):
		return onCPU() + " runs it"
	case strings.Contains(e.Reason, "driver version is insufficient"):
		return "update NVIDIA's driver: CUDA 13 needs 580 or later; `nvidia-smi` shows it"
	case strings.Contains(e.Reason, "no CUDA-capable device"), strings.Contains(e.Reason, "invalid device ordinal"):
		return "`nvidia-smi` lists the GPUs, from 0: " + setting.Device.With("N") + "; CUDA_VISIBLE_DEVICES may hide them"
	case cudaPins[platform()] == nil:
		return "leave " + setting.Provider.String() + " out: CUDA is offered for linux/amd64"
	}
	return fmt.Sprintf("%s fetches ONNX Runtime %s with CUDA with pip, 247 MB; NVIDIA's libraries come from PyTorch, CUDA 13 or pip",
		e.setup(), DeviceVersion)
}

// appendCUDA makes CUDA compute the nodes of a session that it supports. TensorFloat-32 is off unless it is asked for, since
// its 10 bits of mantissa are no float32. Convolutions take the same algorithm in every session: an exhaustive search would
// not. Tensor cores want the channels last, but 1.30.0 takes a weight that is an input for one with its channels last already:
// only constant weights are turned. The option fuse_conv_bias would be faster still, but gives wrong scores in
// 1.30.0: probabilities of MNIST change by 1.
func (r *Runtime) appendCUDA(so *binding.SessionOptions, opts Options) error {
	o, err := binding.NewCUDAProviderOptions()
	if err != nil {
		return &LibraryError{Path: r.path, Reason: shorten(err.Error()), Err: err, Provider: CUDA}
	}
	defer o.Destroy()
	settings := map[string]string{
		"device_id":              strconv.Itoa(opts.Provider.Device),
		"use_tf32":               "0",
		"cudnn_conv_algo_search": "HEURISTIC",
		"arena_extend_strategy":  "kSameAsRequested",
	}
	if opts.Provider.Precision == TF32 {
		settings["use_tf32"] = "1"
	}
	if !opts.bound && (opts.Provider.Precision == TF32 || opts.Provider.Precision == F16) {
		settings["prefer_nhwc"] = "1"
	}
	if limit := r.limit.Load(); limit > 0 {
		settings["gpu_mem_limit"] = strconv.FormatInt(limit, 10)
	}
	if err = o.Update(settings); err == nil {
		err = so.AppendExecutionProviderCUDA(o)
	}
	if err != nil {
		return &LibraryError{Path: r.path, Reason: shorten(err.Error()), Err: err, Provider: CUDA}
	}
	return nil
}

// DeviceMemory returns the bytes that the device of a provider has left, as far as that can be asked.
func (r *Runtime) DeviceMemory(p Provider) (free int64, ok bool) {
	ask := p.kind().room
	if ask == nil {
		return 0, false
	}
	free, ok = ask(p.Device)
	if limit := r.limit.Load(); limit > 0 {
		free = min(free, limit)
	}
	return free, ok
}

// roomCUDA returns the bytes that a GPU has left.
func roomCUDA(device int) (free int64, ok bool) {
	runtime.LockOSThread() // CUDA's choice of a device is of the thread
	defer runtime.UnlockOSThread()
	var left, all C.size_t
	if C.free_memory(C.int(device), &left, &all) != 0 {
		return 0, false
	}
	return int64(left), true
}
