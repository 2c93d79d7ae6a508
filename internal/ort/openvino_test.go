package ort

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"github.com/swagwrap/swagwrap/internal/packages"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// manyInWheel is a wheel with several libraries, and one that nobody asked for.
func manyInWheel(t *testing.T, bodies map[string]string) []byte {
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for name, body := range bodies {
		f, err := w.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write([]byte(body)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestInstallOpenVINO(t *testing.T) {
	s := newShop(t)
	dir := filepath.Join(s.cache, "openvino")
	p := bundle{OpenVINO, "OpenVINO", []source{{"pip", "ort", "anylinux", []library{lib("capi/libtbb.so", "threads"), lib("capi/libort.so", "runtime")}}}}
	goods := map[string]string{"capi/libtbb.so": "threads", "capi/libort.so": "runtime", "../libevil.so": "evil", "capi/libgpu.so": "gpu"}
	install := func() (string, error) {
		return p.main(dir), p.install(context.Background(), dir, packages.Managers{}, func(string) {})
	}
	present := func() (names []string) {
		files, _ := os.ReadDir(dir)
		for _, f := range files {
			names = append(names, f.Name())
		}
		return names
	}

	_, err := install()
	missing, ok := errors.AsType[*LibraryError](err)
	if !ok || !strings.Contains(err.Error(), "pip: not found") || !strings.HasPrefix(missing.Hint(), "the set-up with Provider openvino") {
		t.Errorf("without pip: %v", err)
	}

	broken := map[string]string{"capi/libtbb.so": "threads", "capi/libort.so": "runtima"}
	s.sell("pip", toDest, manyInWheel(t, broken))
	if _, err = install(); err == nil || !strings.Contains(err.Error(), "has SHA-256") || slices.Contains(present(), "libort.so") {
		t.Errorf("another library: %v, and there is %v", err, present())
	}

	s.sell("pip", toDest, manyInWheel(t, goods))
	path, err := install()
	if err != nil || path != filepath.Join(dir, "libort.so") || !slices.Equal(present(), []string{"libort.so", "libtbb.so"}) {
		t.Errorf("%s, %v: %v", path, err, present())
	}
	if err := os.Remove(filepath.Join(s.bin, "pip")); err != nil {
		t.Fatal(err)
	}
	if _, err := install(); err != nil {
		t.Errorf("what is there is fetched again: %v", err)
	}

	s.write(filepath.Join(dir, "libtbb.so"), []byte("threadz"))
	if err := p.check(dir); err == nil || !strings.HasPrefix(err.Error(), "damaged: libtbb.so has SHA-256 ") {
		t.Error("damage is not found")
	}
	s.sell("pip", toDest, manyInWheel(t, goods))
	if _, err := install(); err != nil || p.check(dir) != nil {
		t.Errorf("damage is not repaired: %v", err)
	}
	s.write(filepath.Join(dir, "libtbb.so"), []byte("thread"))
	if err := p.check(dir); err == nil || !strings.HasPrefix(err.Error(), "damaged: libtbb.so has SHA-256 ") {
		t.Errorf("a short library: %v", err)
	}
}

// A library without the provider is refused, and so is a folder that has none.
func TestOpenVINOMissing(t *testing.T) {
	p := Provider{Name: OpenVINO}
	if _, err := p.Open(Library{Path: rt.Path()}); err == nil || !strings.HasSuffix(err.Error(), "has no provider openvino") {
		t.Errorf("%v", err)
	}
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("HOME", t.TempDir())
	t.Setenv(LibraryEnv, rt.Path()) // names one for the default
	_, err := p.Find("")
	if missing, ok := errors.AsType[*LibraryError](err); !ok || missing.Provider != OpenVINO || missing.Hint() == "" {
		t.Errorf("%v", err)
	}
	if l, err := p.Find(rt.Path()); err != nil || l.Path != rt.Path() {
		t.Errorf("%v, %v", l, err)
	}
	if _, err := p.Find("missing.so"); err == nil || !strings.Contains(err.Error(), "named by Runtime") {
		t.Errorf("%v", err)
	}
	_, err = rt.NewSession(read(t, "linear.onnx"), Options{Provider: p})
	if _, ok := errors.AsType[*LibraryError](err); !ok {
		t.Errorf("a session on it: %v", err)
	}
}

func TestProviderString(t *testing.T) {
	for want, p := range map[string]Provider{"cpu f32": {}, "openvino f32": {Name: OpenVINO}, "openvino bf16": {Name: OpenVINO, Precision: BF16}, "cuda f32": {Name: CUDA, Device: 1}} {
		if got := p.String(); got != want {
			t.Errorf("%+v is %q, want %q", p, got, want)
		}
	}
}

func TestReadProfile(t *testing.T) {
	node := func(name, op, provider string) string {
		return `{"cat":"Node","name":"` + name + `_kernel_time","args":{"op_name":"` + op + `","provider":"` + provider + `"}},`
	}
	cpu, other := processor().own, openVINO().own
	js := `[{"cat":"Session","name":"model_run","args":{}},` + node("a", "Cast", cpu) + node("a", "Cast", cpu) + node("b", "Cast", cpu) + node("c", "NonZero", cpu) +
		node("d", "OpenVINO_1", other) + `{"cat":"Session","name":"end"}]`
	got, err := readProfile([]byte(js), other)
	if err != nil || got.Pieces != 1 || got.String() != "3 nodes run on the CPU provider, between 1 pieces (2 Cast, 1 NonZero)" {
		t.Errorf("%v, %v", got, err)
	}
	if got, err = readProfile([]byte(js), cpu); err != nil || got.Pieces != 3 {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := readProfile([]byte("["), cpu); err == nil {
		t.Error("half a profile is read")
	}
}
