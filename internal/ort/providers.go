package ort

/*
#cgo LDFLAGS: -ldl
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>
#ifdef __GLIBC__
#include <gnu/libc-version.h>
#endif

typedef struct {
	const void *(*GetApi)(uint32_t version);
	const char *(*GetVersionString)(void);
} ort_api_base;

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

import "unsafe"

// Providers returns ONNX Runtime's names of the providers in this build, in its order of preference, such as
// "CPUExecutionProvider". It returns nil if the library does not report them.
func (r *Runtime) Providers() []string {
	path, symbol := C.CString(r.path), C.CString("OrtGetApiBase")
	defer C.free(unsafe.Pointer(path))
	defer C.free(unsafe.Pointer(symbol))
	handle := C.dlopen(path, C.RTLD_LAZY|C.RTLD_NOLOAD)
	if handle == nil {
		return nil
	}
	defer C.dlclose(handle)
	table := C.ort_table(C.dlsym(handle, symbol))
	if table == nil {
		return nil
	}
	var n C.int
	list := C.providers(table, &n)
	if list == nil {
		return nil
	}
	defer C.free_providers(table, list, n)
	var names []string
	for _, name := range unsafe.Slice(list, n) {
		names = append(names, C.GoString(name))
	}
	return names
}

// libc returns the version of glibc, or "" for other C libraries.
func libc() string { return C.GoString(C.libc_version()) }
