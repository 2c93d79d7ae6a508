package ort

/*
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

// The first fields of Vulkan's structures (https://registry.khronos.org/vulkan/specs/latest/man/html/).
typedef struct { int32_t type; const void *next; uint32_t flags; const void *app; uint32_t layers; const char *const *layer; uint32_t extensions; const char *const *extension; } instance_info;
typedef struct { int32_t type; const void *next; const char *app; uint32_t app_version; const char *engine; uint32_t engine_version, api; } app_info;
typedef struct { int32_t type; void *next; int32_t id; char name[256], info[256]; uint8_t conformance[4]; } driver_properties;
typedef struct { int32_t type; void *next; struct { uint32_t api, driver, vendor, device, kind; char name[256]; uint64_t rest[256]; } p; } properties2;

// vulkan_devices writes "name, driver info" of each Vulkan device, a line each.
static void vulkan_devices(char *out, size_t size) {
	void *lib = dlopen("libvulkan.so.1", RTLD_NOW | RTLD_LOCAL), *instance = NULL;
	if (!lib)
		return;
	int32_t (*create)(const instance_info *, const void *, void **) = dlsym(lib, "vkCreateInstance");
	int32_t (*enumerate)(void *, uint32_t *, void **) = dlsym(lib, "vkEnumeratePhysicalDevices");
	void (*describe)(void *, properties2 *) = dlsym(lib, "vkGetPhysicalDeviceProperties2");
	void (*destroy)(void *, const void *) = dlsym(lib, "vkDestroyInstance");
	app_info app = {.api = 1 << 22 | 2 << 12}; // Vulkan 1.2
	instance_info info = {.type = 1, .app = &app};
	void *devices[16];
	uint32_t n = 16;
	if (create && enumerate && describe && destroy && create(&info, NULL, &instance) == 0) {
		if (enumerate(instance, &n, devices) < 0)
			n = 0;
		for (uint32_t i = 0; i < n; i++) {
			driver_properties d = {.type = 1000196000};
			properties2 p = {.type = 1000059001, .next = &d};
			describe(devices[i], &p);
			size_t used = strlen(out);
			snprintf(out + used, size - used, "%.255s, %.255s %.255s\n", p.p.name, d.name, d.info);
		}
		destroy(instance, NULL);
	}
	dlclose(lib);
}
*/
import "C"

import (
	"runtime"
	"slices"
	"strings"
)

// gpus describes the devices that WebGPU may choose from: their names and drivers. On macOS it is Metal's default.
func gpus() string {
	if runtime.GOOS == "darwin" {
		return "Metal's default device"
	}
	out := make([]C.char, 16<<10)
	C.vulkan_devices(&out[0], C.size_t(len(out)))
	return strings.Join(strings.Split(strings.TrimSpace(C.GoString(&out[0])), "\n"), "; ")
}

// onlySoftware reports whether llvmpipe is the only device.
func onlySoftware() bool {
	return !slices.ContainsFunc(strings.Split(gpus(), "; "), func(d string) bool { return !strings.Contains(d, "llvmpipe") })
}
