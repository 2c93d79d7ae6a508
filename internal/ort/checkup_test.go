package ort

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestCheck(t *testing.T) {
	c, err := Check(context.Background(), Provider{}, "")
	if err != nil || c.Problem != "" || !strings.HasPrefix(c.Run, "right, in ") {
		t.Errorf("%v; problem %q, run %q", err, c.Problem, c.Run)
	}
	if c.Version != rt.Version() || c.Library != rt.Path() || c.Found == "" || !slices.Contains(c.Providers, "CPUExecutionProvider") {
		t.Errorf("%+v, want ONNX Runtime %s of %s", c, rt.Version(), rt.Path())
	}
	// Every machine that these tests run on has some of them.
	if len(c.Features) == 0 || c.System == "" || c.Cores < 1 || !strings.HasSuffix(c.Temp, "can be written") {
		t.Errorf("%+v", c)
	}
}

func TestCheckOfNone(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "missing.so")
	t.Setenv(LibraryEnv, missing)
	c, err := Check(context.Background(), Provider{}, "")
	if _, ok := errors.AsType[*LibraryError](err); !ok || c.Problem != err.Error() {
		t.Errorf("%v, problem %q", err, c.Problem)
	}
	if c.Library != missing || c.Found != LibraryEnv || c.Run != "" || c.Version != "" || !slices.Contains(c.Environment, LibraryEnv+"="+missing) {
		t.Errorf("%+v", c)
	}

	none := t.TempDir() // neither a cache nor a folder for temporary files
	t.Setenv(LibraryEnv, "")
	t.Setenv("XDG_CACHE_HOME", none)
	t.Setenv("HOME", none)
	t.Setenv("TMPDIR", filepath.Join(none, "nowhere"))
	c, err = Check(context.Background(), Provider{}, "")
	if err == nil || !strings.HasSuffix(c.Cache, "nothing in it") || !strings.Contains(c.Temp, "cannot be written") {
		t.Errorf("%v: %+v", err, c)
	}

	file := filepath.Join(none, "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	t.Setenv("XDG_CACHE_HOME", file)
	t.Setenv("HOME", file)
	if c, _ := Check(context.Background(), Provider{}, ""); !strings.HasSuffix(c.Cache, ": cannot be written: not a directory") {
		t.Errorf("%+v", c)
	}
	t.Setenv("XDG_CACHE_HOME", none)
	t.Setenv("HOME", none)

	b, folder, err := Provider{}.cached()
	if err != nil {
		t.Fatal(err)
	}
	cached := b.main(folder)
	if err := errors.Join(os.MkdirAll(filepath.Dir(cached), 0o755), os.WriteFile(cached, nil, 0o644)); err != nil {
		t.Fatal(err)
	}
	if c, _ := Check(context.Background(), Provider{}, ""); !strings.Contains(c.Cache, ": damaged: libonnxruntime") {
		t.Errorf("%+v", c)
	}
}

func TestCheckInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Check(ctx, Provider{}, ""); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
