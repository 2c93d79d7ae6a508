package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/swagwrap/swagwrap/internal/ort"
)

// A library that another program put into the cache is never loaded, whatever its time and the provider are. With
// --provider auto the processor computes.
func TestPlanted(t *testing.T) {
	library, err := ort.Provider{}.Find("")
	if err != nil {
		t.Fatal(err)
	}
	code := plantedLibrary(t)
	c := small(t)
	run := executable(t, t.TempDir())
	if out, err := exec.Command(run, "fit", "-q", "--task", "classes", "-o", c.at("p"), c.paths[0], c.paths[1], c.paths[2]).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	cache := t.TempDir()
	for _, folder := range []string{ort.Version, "openvino-" + ort.OpenVINOVersion, "webgpu-" + ort.DeviceVersion, "cuda-" + ort.DeviceVersion} {
		plant(t, filepath.Join(cache, "swagwrap", "onnxruntime-"+folder), code, library.Path)
	}
	for _, tt := range []struct {
		provider, named string // the library that SWAGWRAP_ORT_LIB names
		code, hint      string
	}{
		{ort.CPU, "", "69", "\nhint: `swagwrap setup` "},
		{ort.OpenVINO, library.Path, "69", "\nhint: `swagwrap setup --provider openvino` "},
		{ort.WebGPU, library.Path, "69", "\nhint: `swagwrap setup --provider webgpu` "},
		{ort.CUDA, library.Path, "69", "\nhint: "}, // NVIDIA's libraries are sought first
		{ort.Auto, library.Path, "0", ""},
	} {
		if runtime.GOOS+runtime.GOARCH != "linuxamd64" && tt.hint != "" && tt.named != "" {
			continue // not offered
		}
		for _, args := range [][]string{
			{"doctor"},
			{"sample", "-q", "--force", "-n", "2", "-o", c.at("e"), "--bn-data", filepath.Join("testdata", "images.npz"), c.at("p")},
		} {
			if tt.provider == ort.Auto && args[0] == "doctor" {
				continue // it tries one
			}
			cmd := exec.Command("sh", slices.Concat([]string{"-c", `"$@"; echo $?`, "", run}, args[:1], []string{"--provider", tt.provider}, args[1:])...)
			cmd.Env = append(os.Environ(), "XDG_CACHE_HOME="+cache, "HOME="+cache, ort.PythonEnv+"=", ort.LibraryEnv+"="+tt.named)
			b, _ := cmd.CombinedOutput()
			out := strings.TrimSpace(string(b))
			if strings.Contains(out, "PLANTED") || !strings.HasSuffix(out, tt.code) || !strings.Contains(out, tt.hint) {
				t.Errorf("%s of %s: %s, want %s and %q", args[0], tt.provider, out, tt.code, tt.hint)
			}
		}
	}
}

// plantedLibrary returns a library that writes PLANTED when it is loaded.
func plantedLibrary(t *testing.T) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "planted.so")
	cc := exec.Command("sh", "-c", `$(go env CC) -shared -fPIC -o "$0" -x c -`, path)
	cc.Stdin = strings.NewReader(`#include <unistd.h>
		__attribute__((constructor)) static void f(void) { ssize_t n = write(2, "PLANTED\n", 8); (void)n; }`)
	if out, err := cc.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	code, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return code
}

// plant makes a folder whose libraries are all planted ones, with the time and size of a good one.
func plant(t *testing.T, dir string, code []byte, good string) {
	t.Helper()
	info, err := os.Stat(good)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"libonnxruntime.so", "libonnxruntime.dylib", "libonnxruntime.so.1.24.1", "libonnxruntime.so.1.30.0", "libonnxruntime.so.1.32.0", "libonnxruntime_providers_shared.so",
		"libonnxruntime_providers_cuda.so", "libonnxruntime_providers_openvino.so", "libtbb.so.12", "libopenvino.so.2541", "libopenvino_onnx_frontend.so.2541", "libopenvino_intel_cpu_plugin.so"} {
		path := filepath.Join(dir, name)
		err := os.WriteFile(path, code, 0o755)
		if err == nil {
			err = os.Truncate(path, info.Size())
		}
		if err == nil {
			err = os.Chtimes(path, info.ModTime(), info.ModTime())
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// A network that the ONNX Runtime at hand does not take is named before anything is written.
func TestNotTaken(t *testing.T) {
	c := small(t)
	run, out := executable(t, t.TempDir()), filepath.Join(t.TempDir(), "posterior")
	for _, path := range c.paths[:3] {
		data, err := os.ReadFile(path)
		if err != nil || data[0] != 8 { // the field of the IR version
			t.Fatal(err)
		}
		data[1] = 99
		if err := os.WriteFile(path, data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range [][]string{{"inspect"}, {"fit", "-q", "--task", "classes", "-o", out}} {
		text, err := exec.Command(run, append(args, c.paths[:3]...)...).CombinedOutput()
		if exit := (*exec.ExitError)(nil); !errors.As(err, &exit) || exit.ExitCode() != 65 || !strings.Contains(string(text), "does not take this network") ||
			!strings.Contains(string(text), "model.ir_version = ") {
			t.Errorf("%s: %v: %s", args[0], err, text)
		}
	}
	if _, err := os.Lstat(out); err == nil {
		t.Error("fit wrote a file")
	}
}

// Where ONNX Runtime has no kernel for the types of a node, the node is named: another opset would not help.
func TestNoKernel(t *testing.T) {
	type field struct {
		number protowire.Number
		value  any // an int, a string, or fields
	}
	var encode func(fields ...field) []byte
	encode = func(fields ...field) (b []byte) {
		for _, f := range fields {
			switch v := f.value.(type) {
			case int:
				b = protowire.AppendVarint(protowire.AppendTag(b, f.number, protowire.VarintType), uint64(v))
			case string:
				b = protowire.AppendString(protowire.AppendTag(b, f.number, protowire.BytesType), v)
			case []field:
				b = protowire.AppendBytes(protowire.AppendTag(b, f.number, protowire.BytesType), encode(v...))
			}
		}
		return b
	}
	one, two := field{1, []field{{2, "n"}}}, field{1, []field{{1, 2}}}
	value := func(name string) []field {
		return []field{{1, name}, {2, []field{{1, []field{{1, 1}, {2, []field{one, two}}}}}}}
	}
	dir := t.TempDir()
	run, out, paths := executable(t, dir), filepath.Join(dir, "posterior"), []string{filepath.Join(dir, "1.onnx"), filepath.Join(dir, "2.onnx")}
	for i, weight := range []string{"\x00\x00\x80\x3f", "\x00\x00\x00\x40"} { // 1 and 2
		network := encode(field{1, 11}, field{8, []field{{2, 23}}}, field{7, []field{
			{1, []field{{1, "q"}, {2, "f"}, {3, "unpack"}, {4, "Cast"}, {5, []field{{1, "to"}, {3, 1}, {20, 2}}}}},
			{1, []field{{1, "x"}, {1, "w"}, {2, "m"}, {4, "MatMul"}}},
			{1, []field{{1, "m"}, {1, "f"}, {2, "y"}, {4, "Add"}}},
			{2, "g"},
			{5, []field{{1, 2}, {2, 23}, {8, "q"}, {9, "1"}}},
			{5, []field{{1, 2}, {1, 2}, {2, 1}, {8, "w"}, {9, strings.Repeat(weight, 4)}}},
			{11, value("x")},
			{12, value("y")},
		}})
		if err := os.WriteFile(paths[i], network, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range [][]string{{"inspect"}, {"fit", "-q", "--task", "classes", "-o", out}} {
		text, err := exec.Command(run, append(args, paths...)...).CombinedOutput()
		if exit := (*exec.ExitError)(nil); !errors.As(err, &exit) || exit.ExitCode() != 65 ||
			!strings.Contains(string(text), `it has no Cast for the types of node "unpack"`) || strings.Contains(string(text), "export again for an opset") {
			t.Errorf("%s: %v: %s", args[0], err, text)
		}
	}
	if _, err := os.Lstat(out); err == nil {
		t.Error("fit wrote a file")
	}
}
