package ort

/*
#cgo LDFLAGS: -ldl
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>
#ifdef __GLIBC__
#include <gnu/libc-version.h>
#endif

// The first lines of ONNX Runtime's C API; they have not changed since 1.0.
typedef struct {
	const void *(*GetApi)(uint32_t version);
	const char *(*GetVersionString)(void);
} ort_api_base;

static const char *ort_version(void *get_base) {
	const ort_api_base *base = ((const ort_api_base *(*)(void))get_base)();
	return base ? base->GetVersionString() : NULL;
}

// The places of three functions in ONNX Runtime's table, which only grows. A status
// that is not NULL is an error.
enum { release_status = 93, get_available_providers = 125, release_available_providers = 126 };

typedef void *(*get_providers)(char ***names, int *n);
typedef void *(*release_providers)(char **names, int n);
typedef void (*release)(void *status);

static void **ort_table(void *get_base) {
	const ort_api_base *base = ((const ort_api_base *(*)(void))get_base)();
	return base ? (void **)base->GetApi(24) : NULL;
}

static char **providers(void **table, int *n) {
	char **names = NULL;
	void *status = ((get_providers)table[get_available_providers])(&names, n);
	if (status != NULL) {
		((release)table[release_status])(status);
		return NULL;
	}
	return names;
}

static void free_providers(void **table, char **names, int n) {
	void *status = ((release_providers)table[release_available_providers])(names, n);
	if (status != NULL)
		((release)table[release_status])(status);
}

static const char *libc_version(void) {
#ifdef __GLIBC__
	return gnu_get_libc_version();
#else
	return "";
#endif
}
*/
import "C"

import (
	"debug/elf"
	"debug/macho"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"unsafe"

	"github.com/swagwrap/swagwrap/internal/file"
)

// probe loads the ONNX Runtime library that the linker finds by a name, which must not be older than oldest. It checks
// the file before the dynamic linker opens it. The linker's message about another architecture is misleading, and a truncated file crashes
// the process.
func probe(name, oldest string) (rt *Runtime, err error) {
	if err := checkRegular(name); err != nil {
		return nil, err
	}
	if err := checkObject(name); err != nil {
		return nil, err
	}
	// dlopen and dlerror must run on the same thread.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cname, symbol := C.CString(name), C.CString("OrtGetApiBase")
	defer C.free(unsafe.Pointer(cname))
	defer C.free(unsafe.Pointer(symbol))
	handle := C.dlopen(cname, C.RTLD_LAZY|C.RTLD_LOCAL)
	if handle == nil {
		why := strings.TrimPrefix(C.GoString(C.dlerror()), name+": ")
		if err := shortage(why); err != nil {
			return nil, err
		}
		return nil, errors.New(shorten(why))
	}
	getBase := C.dlsym(handle, symbol)
	if getBase == nil {
		C.dlclose(handle)
		return nil, errors.New("a shared library, but not ONNX Runtime: it has no symbol OrtGetApiBase")
	}
	version := C.GoString(C.ort_version(getBase))
	// The handle of a good library stays open, so that onnxruntime_go finds it loaded.
	if !atLeast(version, oldest) {
		C.dlclose(handle)
		return nil, tooOld(version, oldest)
	}
	return &Runtime{name: name, version: version, api: getBase}, nil
}

// Providers returns ONNX Runtime's names of the providers in this build, in its order of preference, such as
// "CPUExecutionProvider". It returns nil if the library does not report them.
func (r *Runtime) Providers() (names []string) {
	table := C.ort_table(r.api)
	if table == nil {
		return nil
	}
	var n C.int
	list := C.providers(table, &n)
	if list == nil {
		return nil
	}
	defer C.free_providers(table, list, n)
	for _, name := range unsafe.Slice(list, n) {
		names = append(names, C.GoString(name))
	}
	return names
}

// libc returns the version of glibc, or "" for other C libraries.
func libc() string { return C.GoString(C.libc_version()) }

func tooOld(version, oldest string) error {
	return fmt.Errorf("version %q is too old, want %s or later", version, oldest)
}

// checkObject returns an error unless path is a complete shared library for this machine.
func checkObject(path string) error {
	f, _, err := file.Regular(path)
	if err != nil {
		return file.Cause(err)
	}
	defer f.Close()
	if runtime.GOOS == "darwin" {
		return checkMachO(f)
	}
	return checkELF(f)
}

func checkELF(f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return file.Cause(err)
	}
	size := uint64(info.Size())
	want := map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}[runtime.GOARCH]
	file, err := elf.NewFile(f)
	if err != nil {
		return fmt.Errorf("not a whole shared library: %w", err)
	}
	if file.Type != elf.ET_DYN {
		return fmt.Errorf("not a shared library: ELF type %v", file.Type)
	}
	if file.Machine != want {
		return fmt.Errorf("built for %v, this program for %v", file.Machine, want)
	}
	for _, p := range file.Progs {
		if p.Off > size || p.Filesz > size-p.Off {
			return errors.New("truncated shared library")
		}
	}
	return nil
}

func checkMachO(f *os.File) error {
	want := map[string]macho.Cpu{"amd64": macho.CpuAmd64, "arm64": macho.CpuArm64}[runtime.GOARCH]
	if fat, err := macho.NewFatFile(f); err == nil {
		for _, a := range fat.Arches {
			if a.Cpu == want {
				return nil
			}
		}
		return fmt.Errorf("universal library without %v", want)
	}
	file, err := macho.NewFile(f)
	if err != nil {
		return fmt.Errorf("not a whole shared library: %w", err)
	}
	if file.Cpu != want {
		return fmt.Errorf("built for %v, this program for %v", file.Cpu, want)
	}
	return nil
}

// atLeast compares dotted versions. A version that does not begin with three numbers is too old.
func atLeast(version, minimum string) bool {
	numbers := func(s string) (v []int) {
		var x, y, z int
		if n, _ := fmt.Sscanf(s, "%d.%d.%d", &x, &y, &z); n == 3 {
			v = []int{x, y, z}
		}
		return v
	}
	return slices.Compare(numbers(version), numbers(minimum)) >= 0
}
