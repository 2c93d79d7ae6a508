package ort

import (
	"context"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	binding "github.com/yalue/onnxruntime_go"

	"github.com/swagwrap/swagwrap/internal/setting"
	"github.com/swagwrap/swagwrap/weights"
)

// queue lets one goroutine at a time use the GPU. Sessions of WebGPU that are created, run or destroyed at the same time
// crash the process (microsoft/onnxruntime#27592, #32561).
var queue = make(chan struct{}, 1)

// busy is the time in nanoseconds that the queue was in use. simulated is how much longer each use takes.
var busy, simulated atomic.Int64

// Simulate is for tests. It makes all sessions wait for their turn, and each use take longer by delay, until end is
// called. end returns how long the queue was in use.
func Simulate(delay time.Duration) (end func() time.Duration) {
	before := busy.Load()
	simulated.Store(int64(delay))
	return func() time.Duration {
		simulated.Store(0)
		return time.Duration(busy.Load() - before)
	}
}

// enter waits for the provider's turn, if it takes one call at a time. leave ends the turn.
func (p Provider) enter(ctx context.Context) (leave func(), err error) {
	delay := time.Duration(simulated.Load())
	if !p.kind().turns && delay == 0 {
		return func() {}, nil
	}
	select {
	case queue <- struct{}{}:
		began := time.Now()
		time.Sleep(delay)
		return func() {
			busy.Add(int64(time.Since(began)))
			<-queue
		}, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// webGPU is the provider for any GPU with Vulkan or Metal.
func webGPU() *kind {
	return &kind{
		name:     WebGPU,
		memory:   "WebGPU_Buf",
		own:      "WebGpuExecutionProvider",
		oldest:   MinVersion,
		low:      []string{F16},
		gpu:      true,
		explicit: true,
		turns:    true,
		misread:  true,
		untested: "swagwrap was tested on a software device only, so each run is compared with the CPU",
		libraries: packaged{"ONNX Runtime " + DeviceVersion + " with WebGPU, 114 MB,", "onnxruntime-webgpu-" + DeviceVersion,
			func() []source { return gpuPins()[platform()] }},
		software: onlySoftware,
		devices:  gpus,
		hint:     (*LibraryError).hintGPU,
		hold:     func(r *Runtime, _ Provider) error { return r.holdGPU() },
		add:      (*Runtime).appendWebGPU,
	}
}

// appendWebGPU makes WebGPU compute the nodes of a session that it supports.
func (r *Runtime) appendWebGPU(so *binding.SessionOptions, _ Options) error {
	if err := so.AppendExecutionProvider("WebGPU", nil); err != nil {
		return &LibraryError{Path: r.path, Reason: shorten(err.Error()), Err: err, Provider: WebGPU}
	}
	return nil
}

// holdGPU opens a tiny session, which stays open: the first session of a process opens the device, and that takes half a
// second. What the driver says about a failure goes to standard error. holdGPU puts it into the error.
func (r *Runtime) holdGPU() error {
	if r.gpu != nil {
		return nil
	}
	printed, err := stderrOf(func() (err error) {
		r.gpu, err = r.NewSession(tiny, Options{Threads: 1, Provider: Provider{Name: WebGPU}})
		return err
	})
	if err == nil {
		return nil
	}
	why := shorten(err.Error())
	for line := range strings.Lines(printed) {
		if strings.Contains(line, "Vulkan") || strings.Contains(line, "vk") {
			why = shorten(line)
			break
		}
	}
	return Provider{Name: WebGPU}.unusable(r.path, "WebGPU finds no usable GPU: "+why, err)
}

// stderrOf calls f, and returns what the process writes to standard error meanwhile.
func stderrOf(f func() error) (printed string, err error) {
	read, write, err := os.Pipe()
	if err != nil {
		return "", f()
	}
	defer read.Close()
	defer write.Close()
	saved, err := unix.FcntlInt(2, unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return "", f()
	}
	terminal := os.NewFile(uintptr(saved), "stderr")
	defer terminal.Close()
	debug.SetCrashOutput(terminal, debug.CrashOptions{}) // a driver may crash
	defer debug.SetCrashOutput(nil, debug.CrashOptions{})
	if dup2(int(write.Fd()), 2) != nil {
		return "", f()
	}
	all := make(chan string)
	go weights.Guarded(func() error {
		b, _ := io.ReadAll(read)
		all <- string(b)
		return nil
	})()
	failed := f()
	if err := dup2(saved, 2); err != nil {
		return "", fmt.Errorf("standard error: %w", err)
	}
	write.Close()
	return <-all, failed
}

// hintGPU says what to do about a GPU that cannot be used.
func (e *LibraryError) hintGPU() string {
	why := e.Reason
	if e.Err != nil {
		why += e.Err.Error()
	}
	switch _, pinned := gpuPins()[platform()]; {
	case e.Err == errNoNode || strings.Contains(why, "takes no node"):
		return onCPU() + " runs it"
	case strings.Contains(why, "libvulkan"):
		return "install the Vulkan loader, on Debian and Ubuntu: apt install libvulkan1; then the driver of your GPU"
	case strings.Contains(why, "libGLX_nvidia"), strings.Contains(why, "libEGL_nvidia"):
		return "NVIDIA's Vulkan driver lacks a library of the system, as in a container without a screen; on Debian and Ubuntu: apt " +
			"install libegl1 libgl1. " + setting.Provider.With(CUDA) + " needs none"
	case strings.Contains(why, "Found no drivers"), strings.Contains(why, "INCOMPATIBLE_DRIVER"):
		return "install the Vulkan driver of your GPU, for AMD and Intel on Debian and Ubuntu: apt install mesa-vulkan-drivers; for " +
			"NVIDIA its own driver"
	case strings.Contains(why, "required"), strings.Contains(why, "No supported adapters"),
		strings.Contains(why, "Failed to get a WebGPU adapter"):
		return "the Vulkan driver may be too old: Mesa 25 or later is known to work. `vulkaninfo --summary` shows it; " +
			onCPU() + " needs no driver"
	case !pinned:
		return "leave " + setting.Provider.String() + " out: WebGPU is offered for linux/amd64 and darwin/arm64"
	}
	return fmt.Sprintf("%s fetches ONNX Runtime %s with WebGPU with npm; or %s", e.setup(), DeviceVersion, e.otherLibrary())
}
