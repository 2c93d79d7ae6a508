package ort

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"unsafe"

	binding "github.com/yalue/onnxruntime_go"
)

// A Runtime is the ONNX Runtime library of this process.
type Runtime struct {
	path    string
	version string
	api     unsafe.Pointer // the C function OrtGetApiBase
	limit   atomic.Int64   // 0: none
	base    atomic.Int64   // memory in use when the limit was set

	openVINO *Session // see holdOpenVINO; guarded by loaded
	gpu      *Session // see holdGPU; guarded by loaded
	cuda     bool     // NVIDIA's libraries are open and work; guarded by loaded
}

// loaded holds the process's only Runtime, because the binding supports a single environment.
var loaded struct {
	sync.Mutex
	rt *Runtime
}

// Open loads the library at path, as returned by Find, which must have the provider. If the same library is loaded
// already, Open returns its Runtime. Another loaded library is an error. All errors are *LibraryError. Open also
// switches ONNX Runtime's telemetry off, and configures the C heap of the process so that closed sessions return their
// memory.
func (p Provider) Open(path string) (*Runtime, error) {
	loaded.Lock()
	defer loaded.Unlock()
	if err := p.ready(path); err != nil {
		return nil, err
	}
	rt, err := loaded.rt, error(nil)
	if rt == nil || !sameFile(rt.path, path) {
		rt, err = loadLibrary(path, p.oldest())
	} else if !atLeast(rt.version, p.oldest()) {
		err = tooOld(rt.version, p.oldest())
	}
	if err != nil {
		return nil, &LibraryError{Path: path, Reason: err.Error(), Err: err, Provider: p.Name}
	}
	loaded.rt = rt
	return rt, p.in(rt)
}

func loadLibrary(path, oldest string) (*Runtime, error) {
	full, err := filepath.Abs(path) // the linker would search its path for a bare name
	if err != nil {
		return nil, err
	}
	// Since 1.29 ONNX Runtime sends data about every session to its makers, including model names and hashes. An
	// environment variable switches this off if it is set before the initialisation (microsoft/onnxruntime#27379).
	if err := os.Setenv("ORT_DISABLE_TELEMETRY", "1"); err != nil {
		return nil, err
	}
	rt, err := probe(full, oldest)
	if err != nil {
		return nil, err
	}
	if loaded.rt != nil {
		return nil, errors.New("this process has loaded another one, " + loaded.rt.path)
	}
	returnFreedMemory()
	binding.SetSharedLibraryPath(full)
	// Errors are returned, so ONNX Runtime does not have to print them.
	err = binding.InitializeEnvironment(binding.WithLogLevelFatal())
	if err == nil {
		err = shareMemory(0)
	}
	if err != nil {
		return nil, fmt.Errorf("version %s: %s", rt.version, shorten(err.Error()))
	}
	return rt, nil
}

// Version returns the library's version, such as "1.30.0".
func (r *Runtime) Version() string { return r.version }

// Path returns the absolute path of the loaded library.
func (r *Runtime) Path() string { return r.path }

// Limit bounds the total memory, in bytes, of all sessions that are opened from now on: weights and results of runs.
// Exceeding it gives a [*MemoryError]. Open sessions keep their old limit.
func (r *Runtime) Limit(bytes int64) error {
	loaded.Lock()
	defer loaded.Unlock()
	if r.limit.Load() == bytes {
		return nil
	}
	info, err := binding.GetMemoryInfo()
	if err == nil {
		err = binding.UnregisterAllocator(info)
	}
	if err == nil {
		err = shareMemory(bytes)
	}
	if err != nil {
		return fmt.Errorf("ONNX Runtime: %s", shorten(err.Error()))
	}
	r.limit.Store(bytes)
	r.base.Store(foreign())
	return nil
}

// shareMemory gives all sessions one memory pool for the computations of their runs. The pool has at most limit bytes
// (0: no limit) and keeps its size between runs. By default ONNX Runtime has one pool per session. Four sessions of a
// ResNet-18 on two threads with batches of 16 took 885 MB by default, and 410 MB with one pool. Without a pool, the
// system spends a few per cent of the time on clearing fresh pages.
func shareMemory(limit int64) error {
	info, err := binding.GetMemoryInfo()
	if err != nil {
		return err
	}
	const sameAsRequested = 1 // the default strategy doubles the pool each time it grows
	pool, err := binding.NewArenaCfg(int(limit), sameAsRequested, -1, -1)
	if err != nil {
		return err
	}
	defer pool.Destroy()
	return binding.CreateAndRegisterAllocator(info, pool)
}

func sameFile(a, b string) bool {
	ai, aerr := os.Stat(a)
	bi, berr := os.Stat(b)
	return aerr == nil && berr == nil && os.SameFile(ai, bi)
}
