package infer

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/swagwrap/swagwrap/internal/ort"
	"github.com/swagwrap/swagwrap/onnxio"
)

// A batch that stays inside a network is told of, again and again, with what may be
// the cause; it ends with its context.
func TestSlow(t *testing.T) {
	was := slowAfter
	defer func() { slowAfter = was }()
	slowAfter = 10 * time.Millisecond
	library, err := ort.Provider{}.Find("")
	if err != nil {
		t.Fatal(err)
	}
	runtime, err := ort.Provider{}.Open(library)
	if err != nil {
		t.Fatal(err)
	}
	m, err := onnxio.Open("../ort/testdata/endless.onnx")
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	filled, err := m.Runtime()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	told := make(chan time.Duration, 16)
	e := NewEngine(runtime, EngineOptions{Slow: func(inside time.Duration, loops bool) {
		if !loops {
			t.Error("its Loop is not told of")
		}
		told <- inside
		if inside >= 4*slowAfter {
			cancel()
		}
	}})
	s, err := e.Open(t.Context(), nil, filled)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.Run(ctx, []ort.Tensor{{Shape: []int64{64, 64}, F32: make([]float32, 64*64)}}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	for _, want := range []time.Duration{1, 2, 4} {
		if got := <-told; got != want*slowAfter {
			t.Errorf("told after %v, want %v", got, want*slowAfter)
		}
	}
}
