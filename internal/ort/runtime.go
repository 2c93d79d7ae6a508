package ort

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"

	binding "github.com/yalue/onnxruntime_go"
)

// A Runtime is the ONNX Runtime library that this process has loaded.
type Runtime struct {
	path    string
	version string
	limit   atomic.Int64 // 0: none
	base    atomic.Int64 // what was taken when the limit was set

	openVINO *Session // see holdOpenVINO; guarded by loaded
}

// loaded is the process's one Runtime: the binding holds a single environment.
var loaded struct {
	sync.Mutex
	rt *Runtime
}

// Open loads the library at path, as returned by Locate. Opening the library
// that is loaded already returns the same Runtime; opening another one is an
// error. All errors are *LibraryError. Open also sets up the C heap, once for
// the process, so that closed sessions return their memory, and switches ONNX
// Runtime's telemetry off.
func Open(path string) (*Runtime, error) { return Provider{}.Open(path) }

// Open is the function Open for a library that must have the provider.
func (p Provider) Open(path string) (*Runtime, error) {
	loaded.Lock()
	defer loaded.Unlock()
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
	full, err := filepath.Abs(path) // else a bare name is searched for in the linker's path
	if err != nil {
		return nil, err
	}
	// Since 1.29 ONNX Runtime reports every session, model names and hashes
	// included, to its makers, unless the environment says no before it is
	// initialised (microsoft/onnxruntime#27379).
	if err := os.Setenv("ORT_DISABLE_TELEMETRY", "1"); err != nil {
		return nil, err
	}
	version, err := probe(full, oldest)
	if err != nil {
		return nil, err
	}
	if loaded.rt != nil {
		return nil, errors.New("this process has loaded another one, " + loaded.rt.path)
	}
	returnFreedMemory()
	binding.SetSharedLibraryPath(full)
	// What goes wrong is returned as an error; ONNX Runtime need not print it too.
	err = binding.InitializeEnvironment(binding.WithLogLevelFatal())
	if err == nil {
		err = shareMemory(0)
	}
	if err != nil {
		return nil, fmt.Errorf("version %s: %s", version, shorten(err.Error()))
	}
	return &Runtime{path: full, version: version}, nil
}

// Version returns the library's version, such as "1.30.0".
func (r *Runtime) Version() string { return r.version }

// Path returns the absolute path of the loaded library.
func (r *Runtime) Path() string { return r.path }

// Limit bounds the memory of all sessions that are opened from now on, together and
// in bytes: weights, and what runs compute. What asks for more fails with a
// [*MemoryError]. Sessions that are open keep the limit they were opened with.
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

// shareMemory gives all sessions one pool of memory for what their runs compute,
// of at most limit bytes (0: as many as there are), which keeps its size from run
// to run. ONNX Runtime's default is a pool for each session: four of a ResNet-18
// that two threads ran with batches of 16 took 885 MB, and with one pool 410.
// Without any pool, the system's clearing of fresh pages costs some per cent of
// the time.
func shareMemory(limit int64) error {
	info, err := binding.GetMemoryInfo()
	if err != nil {
		return err
	}
	const sameAsRequested = 1 // the default strategy doubles the pool each time
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
