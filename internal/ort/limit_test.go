package ort

import (
	"errors"
	"testing"

	"github.com/swagwrap/swagwrap/onnxio"
)

// A run that asks for more than the limit fails and names its node; a model that is
// larger is not loaded. One that asks for less runs, before and after.
func TestLimit(t *testing.T) {
	const limit = 64 << 20
	t.Cleanup(func() {
		if err := rt.Limit(0); err != nil {
			t.Error(err)
		}
	})
	if err := rt.Limit(limit); err != nil {
		t.Fatal(err)
	}
	bomb := func(name string) *Session {
		t.Helper()
		m, err := onnxio.Open("../../cmd/swagwrap/testdata/bombs/" + name)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { m.Close() })
		filled, err := m.Runtime()
		if err != nil {
			t.Fatal(err)
		}
		s, err := rt.NewFilledSession(t.Context(), filled, Options{Threads: 1})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		return s
	}
	small := load(t, "linear.onnx", Options{})
	input := Tensor{Shape: []int64{1, 3}, F32: []float32{1, 2, 3}}
	for name, want := range map[string]MemoryError{
		"pad.onnx":  {"Pad", "big", 17180918016, 0, limit},
		"loop.onnx": {"Concat", "double", 32 << 20, 0, limit},
	} {
		_, err := bomb(name).Run(t.Context(), []Tensor{input})
		var got *MemoryError
		if !errors.As(err, &got) {
			t.Errorf("%s: %v", name, err)
			continue
		}
		left := got.Left
		if got.Left = 0; *got != want || left > limit {
			t.Errorf("%s: %+v with %d left, want %+v", name, *got, left, want)
		}
		run(t, small, input)
	}
	var memory *MemoryError
	if err := rt.room(limit); !errors.As(err, &memory) || memory.Bytes != limit*3/2 {
		t.Errorf("a model as large as the limit: %v", err)
	}
	if err := rt.room(limit / 4); err != nil {
		t.Errorf("a model of a quarter of the limit: %v", err)
	}
	// Data files are mapped: of a table of 72 MiB a run takes the rows that it reads.
	mapped, err := table(t, 1, counted(72, 1)).Runtime()
	if err != nil {
		t.Fatal(err)
	}
	s, err := rt.NewFilledSession(t.Context(), mapped, Options{Threads: 1})
	if err != nil {
		t.Fatalf("a model with more data than the limit: %v", err)
	}
	defer s.Close()
	run(t, s, Tensor{Shape: []int64{2}, I64: []int64{1, 0}})
}
