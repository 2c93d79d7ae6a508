package ort

import (
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
)

const (
	// Version is the release of ONNX Runtime that Install fetches for CPU, with pip. It gives the bits of DeviceVersion, with which
	// most figures of swagwrap were measured.
	Version = "1.32.0"
	// DeviceVersion is the release of the builds for GPUs and browsers, and of the one for CPU that npm has: npm's last.
	DeviceVersion = "1.30.0"
	// MinVersion is the oldest release that Open accepts. Earlier ones have heap overflows that a hostile model can
	// exploit.
	MinVersion = "1.28.3"

	// OpenVINOVersion is the release of ONNX Runtime with OpenVINO that Install fetches, and the oldest that is
	// accepted. There is no later one, so it lacks the fixes of MinVersion.
	OpenVINOVersion = "1.24.1"
)

// A library is one shared library inside a published package.
type library struct {
	member string // path inside the archive
	size   int64  // 0: an empty file in the place of a library that is not needed
	sha256 string
}

// A source is a published package with the libraries of a runtime.
type source struct {
	manager   string    // pip or npm, or [ownArchive]
	release   string    // what the manager calls package and version, or the path of the archive
	tag       string    // pip's --platform
	libraries []library // the last one is opened
}

// ownArchive is the manager of an archive that the user has already.
const ownArchive = "archive"

// A bundle is the libraries of one runtime in the user's cache. The ONNX Runtime project builds the packages of all
// sources, which may be of different releases. Each source has the same libraries in the same order.
type bundle struct {
	provider string // provider of the runtime; "" is CPU
	title    string
	sources  []source // the first one is tried first
}

// cached returns the bundle of the provider, and its folder in the user's cache.
func (p Provider) cached() (b bundle, dir string, err error) {
	fail := func(reason string, err error) (bundle, string, error) {
		return b, "", &LibraryError{Reason: reason, Err: err, Provider: p.Name}
	}
	libraries := p.kind().libraries
	b = bundle{p.Name, libraries.title, libraries.sources()}
	if b.sources == nil {
		return fail("no pinned library for "+platform(), nil)
	}
	if dir, err = os.UserCacheDir(); err != nil {
		return fail("no cache folder: "+err.Error(), cacheError{err})
	}
	return b, filepath.Join(dir, "swagwrap", libraries.folder), nil
}

// path returns the path of library k in a folder.
func (b bundle) path(dir string, k int) string {
	libraries := b.sources[0].libraries
	if len(libraries) > 1 {
		return filepath.Join(dir, path.Base(libraries[k].member))
	}
	if runtime.GOOS == "darwin" {
		return filepath.Join(dir, "libonnxruntime.dylib")
	}
	return filepath.Join(dir, "libonnxruntime.so")
}

// main returns the path of the library to open.
func (b bundle) main(dir string) string { return b.path(dir, len(b.sources[0].libraries)-1) }

// pins lists the known libraries by GOOS/GOARCH. pip's download is one fifth of npm's.
var pins = map[string][]source{
	"linux/amd64": {
		{"pip", "onnxruntime==" + Version, "manylinux_2_28_x86_64", []library{{"onnxruntime/capi/libonnxruntime.so.1.32.0", 34824680,
			"6c1585d1bbf45b0712ea4a21b705c5fcb4ba04ff2e30f1fbf81a49faf658638f"}}},
		{"npm", "onnxruntime-node@" + DeviceVersion, "", []library{{"package/bin/napi-v6/linux/x64/libonnxruntime.so.1", 45828512,
			"ffb75a925ba05e47b235bb66e3e3911714a80b328a9c9425539feb204aa32a23"}}},
	},
	"linux/arm64": {
		{"pip", "onnxruntime==" + Version, "manylinux_2_28_aarch64", []library{{"onnxruntime/capi/libonnxruntime.so.1.32.0", 27165936,
			"49852228a93995158b2a813d4df487d47a1b76b0eaa894507ef49e91b6d7954a"}}},
		{"npm", "onnxruntime-node@" + DeviceVersion, "", []library{{"package/bin/napi-v6/linux/arm64/libonnxruntime.so.1", 25135496,
			"1f549d46250b005580b597f4164984aaf75b3bcb9f3aeb07c7f8a8fe60b23c76"}}},
	},
	"darwin/arm64": {
		{"pip", "onnxruntime==" + Version, "macosx_14_0_arm64", []library{{"onnxruntime/capi/libonnxruntime.1.32.0.dylib", 35272344,
			"fa585fabbea65b823b9a8f7e27d46aee3989d1be7e36b528203d3a1fd613aae7"}}},
		{"npm", "onnxruntime-node@" + DeviceVersion, "", []library{{"package/bin/napi-v6/darwin/arm64/libonnxruntime.1.dylib", 44589928,
			"685d2be5dba1309c89d3a5324b7fd06a5c42f1a61bfea32d14c4cc28d072121d"}}},
	},
}

// openVINOPins lists the libraries that OpenVINO's CPU plugin needs. They are about half of the wheel, which also has
// plugins for other devices and copies of some libraries. OpenVINO tries each plugin. If its own folder lacks one, it
// loads that from the working directory, where a stranger may have put it. So the folder has an empty file for each.
var openVINOPins = map[string][]source{
	"linux/amd64": {{"pip", "onnxruntime-openvino==" + OpenVINOVersion, "manylinux_2_28_x86_64", []library{
		{"onnxruntime/capi/libopenvino_auto_plugin.so", 0, empty},
		{"onnxruntime/capi/libopenvino_auto_batch_plugin.so", 0, empty},
		{"onnxruntime/capi/libopenvino_hetero_plugin.so", 0, empty},
		{"onnxruntime/capi/libopenvino_intel_gpu_plugin.so", 0, empty},
		{"onnxruntime/capi/libopenvino_intel_npu_plugin.so", 0, empty},
		{"onnxruntime/capi/libtbb.so.12", 367649, "6781dc6aa8b2ca237d0164258e70266a44667756c02a9a039782ec1d1a67b653"},
		{"onnxruntime/capi/libopenvino.so.2541", 25284089, "ac9634b715a242a61644c77bc38f17508fe73f517e418027e2410f4bee004943"},
		{"onnxruntime/capi/libopenvino_onnx_frontend.so.2541", 7006249, "f426710881d8c1a01d5ed6d7eaa076d923b19983d3ab3a18bb19d25dba7d8923"},
		{"onnxruntime/capi/libopenvino_intel_cpu_plugin.so", 67008289, "034df890550ae9199fe5f8608c0df8fd0fe355f303bad56bea10bae14c14c3cb"},
		{"onnxruntime/capi/libonnxruntime_providers_shared.so", 15776, "5e02c1ff90e7d71365264dbb6767c00f04a8b57a96cddbc0085c61fa1393250d"},
		{"onnxruntime/capi/libonnxruntime_providers_openvino.so", 2000856,
			"b19cae6eb713f35427a8427f141ffc8fc2471ae0532f57e52d84fa9a66799c30"},
		{"onnxruntime/capi/libonnxruntime.so.1.24.1", 31260360, "c7b0590c7825f7029ba17e20a5dea27f7f570d8241d60584caacd363648aa8e2"},
	}}},
}

// empty is the SHA-256 of no bytes.
const empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

// cudaPins lists the libraries with CUDA 13. NVIDIA's own libraries are not among them.
var cudaPins = map[string][]source{
	"linux/amd64": {{"pip", "onnxruntime-gpu==" + DeviceVersion, "manylinux_2_28_x86_64", []library{
		{"onnxruntime/capi/libonnxruntime_providers_shared.so", 14632, "086ec1d5388f64153d9c63470d126693db9a182c8ce236d3a1119068471b8a0d"},
		{"onnxruntime/capi/libonnxruntime_providers_cuda.so", 272049904,
			"35da2e7ed0dd0d1aec5cdb16ce11a51d06c0c48cf62d1b1c9332946a4fae14fc"},
		{"onnxruntime/capi/libonnxruntime.so.1.30.0", 29062976, "5a140dc17c8b60b35b2ceab0bb533e65ac54f06a208948417c1f9c31df6afc4c"},
	}}},
}

// gpuPins lists the libraries with WebGPU: those of npm, for two platforms. pip's lack it.
func gpuPins() map[string][]source {
	of := func(platform string) []source {
		return slices.DeleteFunc(slices.Clone(pins[platform]), func(s source) bool { return s.manager != "npm" })
	}
	return map[string][]source{"linux/amd64": of("linux/amd64"), "darwin/arm64": of("darwin/arm64")}
}

func platform() string { return runtime.GOOS + "/" + runtime.GOARCH }
