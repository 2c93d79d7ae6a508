package ort

import "runtime"

const (
	// Version is the release of ONNX Runtime that Install fetches and that all
	// of swagwrap's figures were measured with.
	Version = "1.30.0"
	// MinVersion is the oldest release that Open accepts: earlier ones have
	// heap overflows that a hostile model can reach.
	MinVersion = "1.28.3"

	// OpenVINOVersion is the release of ONNX Runtime with OpenVINO that
	// [InstallOpenVINO] fetches, and the oldest that is accepted: there is no later
	// one, so that it lacks what MinVersion is for.
	OpenVINOVersion = "1.24.1"

	npmPackage      = "onnxruntime-node"
	pipPackage      = "onnxruntime"
	openVINOPackage = "onnxruntime-openvino"
	// pipPython is the interpreter whose wheel is fetched, whichever one runs
	// pip: on macOS every wheel holds a library of other bytes.
	pipPython = "3.12"
)

// A library is one shared library inside a published package.
type library struct {
	member string // path inside the archive
	size   int64
	sha256 string
}

// A pin says where the library of one platform comes from. Both packages are
// built by the ONNX Runtime project, from the same source with other options.
type pin struct {
	npm, pip library
	wheelTag string // pip's --platform
}

// pins is the one place that knows the libraries, by GOOS/GOARCH.
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

// A wheelPin says which shared libraries of a wheel make up a runtime.
type wheelPin struct {
	wheelTag  string    // pip's --platform
	libraries []library // the one to open last
}

// openVINOPins are what OpenVINO's plugin for processors needs of the wheel, which is as
// large again: it has plugins for other devices, and some libraries under three names.
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

// libraryName is the cached library's file name on this platform.
func libraryName() string {
	if runtime.GOOS == "darwin" {
		return "libonnxruntime.dylib"
	}
	return "libonnxruntime.so"
}
