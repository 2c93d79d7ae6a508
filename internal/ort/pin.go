package ort

import "runtime"

const (
	// Version is the release of ONNX Runtime that Install fetches and that all
	// of swagwrap's figures were measured with.
	Version = "1.30.0"
	// MinVersion is the oldest release that Open accepts: earlier ones have
	// heap overflows that a hostile model can reach.
	MinVersion = "1.28.3"

	npmPackage = "onnxruntime-node"
	pipPackage = "onnxruntime"
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

func platform() string { return runtime.GOOS + "/" + runtime.GOARCH }

// libraryName is the cached library's file name on this platform.
func libraryName() string {
	if runtime.GOOS == "darwin" {
		return "libonnxruntime.dylib"
	}
	return "libonnxruntime.so"
}
