package ort

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// tested is the provider whose library the tests load. A process can load one only.
var tested Provider

// rt is the real ONNX Runtime; these tests never skip.
var rt *Runtime

func TestMain(m *testing.M) {
	library, err := tested.Find("")
	if err == nil {
		rt, err = tested.Open(library)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "%v\nrun make setup first\n", err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

func load(t testing.TB, name string, opts Options) *Session {
	t.Helper()
	if opts.Threads == 0 {
		opts.Threads = 1
	}
	s, err := rt.NewSession(read(t, name), opts)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func read(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func run(t testing.TB, s *Session, inputs ...Tensor) []Tensor {
	t.Helper()
	out, err := s.Run(context.Background(), inputs)
	if err != nil {
		t.Fatal(err)
	}
	return out
}
