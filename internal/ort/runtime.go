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
	name    string // by which the linker opened it: see [verified.hold]
	version string
	api     unsafe.Pointer // the C function OrtGetApiBase
	limit   atomic.Int64   // 0: none
	base    atomic.Int64   // memory in use when the limit was set

	copied copied
	shares shares // sessions that serve all members of a network
	infos  struct {
		sync.Mutex
		of map[string]unsafe.Pointer // see memoryInfo
	}

	openVINO *Session // see holdOpenVINO; guarded by loaded
	gpu      *Session // see holdGPU; guarded by loaded
	cuda     bool     // NVIDIA's libraries are open and work; guarded by loaded
}

// loaded holds the process's only Runtime, because the binding supports a single environment.
var loaded struct {
	sync.Mutex
	rt *Runtime
}

// Open loads a library of Find, which must have the provider. A library of the cache must be the published one: see
// [bundle.verify]. Whoever names a library answers for its content. If the same library is loaded already, Open returns
// its Runtime. Another loaded library is an error. Open also switches ONNX Runtime's
// telemetry off, and configures the C heap of the process so that closed sessions return their memory.
//
// An error is a *LibraryError, unless the machine lacks memory, threads or open files.
func (p Provider) Open(l Library) (*Runtime, error) {
	loaded.Lock()
	defer loaded.Unlock()
	if ready := p.kind().ready; ready != nil {
		if err := ready(l.Path); err != nil {
			return nil, err
		}
	}
	rt := loaded.rt
	var err error
	if rt == nil || !rt.is(l.Path) {
		rt, err = p.load(l)
	} else if !atLeast(rt.version, p.kind().oldest) {
		err = p.unusable(l.Path, tooOld(rt.version, p.kind().oldest).Error(), nil)
	}
	if err != nil {
		return nil, err
	}
	loaded.rt = rt
	return rt, p.in(rt)
}

// Loaded returns the Runtime of this process, or nil.
func Loaded() *Runtime {
	loaded.Lock()
	defer loaded.Unlock()
	return loaded.rt
}

// is reports whether r was loaded from path. Another file may be there now, for example after another setup.
func (r *Runtime) is(path string) bool {
	full, err := filepath.Abs(path)
	return err == nil && full == r.path || sameFile(r.path, path)
}

// load verifies a library of the cache, and loads it.
func (p Provider) load(l Library) (*Runtime, error) {
	full, err := filepath.Abs(l.Path) // the linker would search its path for a bare name
	if err != nil {
		return nil, p.unusable(l.Path, err.Error(), err)
	}
	name := full
	if l.cache.sources != nil {
		v, err := l.cache.verify(filepath.Dir(full))
		if err == nil {
			name, err = v.hold()
		}
		if err != nil {
			return nil, l.cache.failure(filepath.Dir(full), err)
		}
	}
	rt, err := start(name, full, p.kind().oldest)
	if err != nil {
		return nil, p.unusable(l.Path, err.Error(), err)
	}
	return rt, nil
}

// start loads the library at path, which the linker finds by a name.
func start(name, path, oldest string) (*Runtime, error) {
	// Since 1.29 ONNX Runtime sends data about every session to its makers, including model names and hashes. An
	// environment variable switches this off if it is set before the initialisation (microsoft/onnxruntime#27379).
	if err := os.Setenv("ORT_DISABLE_TELEMETRY", "1"); err != nil {
		return nil, err
	}
	rt, err := probe(name, oldest)
	if err != nil {
		return nil, err
	}
	if loaded.rt != nil {
		return nil, errors.New("this process has loaded another one, " + loaded.rt.path)
	}
	rt.path = path
	returnFreedMemory()
	binding.SetSharedLibraryPath(name)
	// Errors are returned, so ONNX Runtime does not have to print them.
	err = binding.InitializeEnvironment(binding.WithLogLevelFatal())
	if err == nil {
		err = shareMemory(0)
	}
	if err != nil {
		return nil, rt.failure("version "+rt.version, "", err)
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
