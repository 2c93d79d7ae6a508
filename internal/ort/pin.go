package ort

import "runtime"

const (
	// Version is the release of ONNX Runtime that Install fetches. All figures of swagwrap were measured with it.
	Version = "1.30.0"
	// MinVersion is the oldest release that Open accepts. Earlier ones have heap overflows that a hostile model can
	// exploit.
	MinVersion = "1.28.3"

	// OpenVINOVersion is the release of ONNX Runtime with OpenVINO that [InstallOpenVINO] fetches, and the oldest
	// that is accepted. There is no later one, so it lacks the fixes of MinVersion.
	OpenVINOVersion = "1.24.1"

	npmPackage      = "onnxruntime-node"
	pipPackage      = "onnxruntime"
	openVINOPackage = "onnxruntime-openvino"
	// pipPython is the Python version whose wheel is fetched, whichever version runs pip. On macOS the library
	// differs from wheel to wheel.
	pipPython = "3.12"
)

// A library is one shared library inside a published package.
type library struct {
	member string // path inside the archive
	size   int64
	sha256 string
}

// A pin says where the library of one platform comes from. The ONNX Runtime project builds both packages from the
// same source with different options.
type pin struct {
	npm, pip library
	wheelTag string // pip's --platform
}

// verify returns an error unless the file at path is one of the two libraries: see the function verify.
func (p pin) verify(path string, fresh bool) error {
	return verify(path, fresh, p.npm.sha256, p.pip.sha256)
}

// pins lists the known libraries by GOOS/GOARCH.
var pins = map[string]pin{
	"linux/amd64": {
		npm: library{"package/bin/napi-v6/linux/x64/libonnxruntime.so.1", 45828512,
			"ffb75a925ba05e47b235bb66e3e3911714a80b328a9c9425539feb204aa32a23"},
		pip: library{"onnxruntime/capi/libonnxruntime.so.1.30.0", 28985152,
			"c902c70b3003c0e99fada202f37478c515ae9bba7944c2b2abd0017bae0c82ed"},
		wheelTag: "manylinux_2_28_x86_64",
	},
	"linux/arm64": {
		npm: library{"package/bin/napi-v6/linux/arm64/libonnxruntime.so.1", 25135496,
			"1f549d46250b005580b597f4164984aaf75b3bcb9f3aeb07c7f8a8fe60b23c76"},
		pip: library{"onnxruntime/capi/libonnxruntime.so.1.30.0", 25135496,
			"8a218e1e446880131115c368ec7005969a5022af9a15a26173de648fef0b7789"},
		wheelTag: "manylinux_2_28_aarch64",
	},
	"darwin/arm64": {
		npm: library{"package/bin/napi-v6/darwin/arm64/libonnxruntime.1.dylib", 44589928,
			"685d2be5dba1309c89d3a5324b7fd06a5c42f1a61bfea32d14c4cc28d072121d"},
		pip: library{"onnxruntime/capi/libonnxruntime.1.30.0.dylib", 33209560,
			"b46713ea6a25a5227541c21001f6422c1ccdeaecc369aa026a61b752520325c3"},
		wheelTag: "macosx_14_0_arm64",
	},
}

// A wheelPin lists the shared libraries of a wheel that form a runtime.
type wheelPin struct {
	wheelTag  string    // pip's --platform
	libraries []library // the last one is opened
}

// openVINOPins lists the libraries that OpenVINO's CPU plugin needs. They are about half of the wheel, which also has
// plugins for other devices and copies of some libraries.
var openVINOPins = map[string]wheelPin{
	"linux/amd64": {"manylinux_2_28_x86_64", []library{
		{"onnxruntime/capi/libtbb.so.12", 367649, "6781dc6aa8b2ca237d0164258e70266a44667756c02a9a039782ec1d1a67b653"},
		{"onnxruntime/capi/libopenvino.so.2541", 25284089, "ac9634b715a242a61644c77bc38f17508fe73f517e418027e2410f4bee004943"},
		{"onnxruntime/capi/libopenvino_onnx_frontend.so.2541", 7006249, "f426710881d8c1a01d5ed6d7eaa076d923b19983d3ab3a18bb19d25dba7d8923"},
		{"onnxruntime/capi/libopenvino_intel_cpu_plugin.so", 67008289, "034df890550ae9199fe5f8608c0df8fd0fe355f303bad56bea10bae14c14c3cb"},
		{"onnxruntime/capi/libonnxruntime_providers_shared.so", 15776, "5e02c1ff90e7d71365264dbb6767c00f04a8b57a96cddbc0085c61fa1393250d"},
		{"onnxruntime/capi/libonnxruntime_providers_openvino.so", 2000856, "b19cae6eb713f35427a8427f141ffc8fc2471ae0532f57e52d84fa9a66799c30"},
		{"onnxruntime/capi/libonnxruntime.so.1.24.1", 31260360, "c7b0590c7825f7029ba17e20a5dea27f7f570d8241d60584caacd363648aa8e2"},
	}},
}

func platform() string { return runtime.GOOS + "/" + runtime.GOARCH }

// libraryName returns the file name of the cached library on this platform.
func libraryName() string {
	if runtime.GOOS == "darwin" {
		return "libonnxruntime.dylib"
	}
	return "libonnxruntime.so"
}
