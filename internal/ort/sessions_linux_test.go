package ort_test

import (
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"

	"github.com/swagwrap/swagwrap/fixtures/infertest"
	"github.com/swagwrap/swagwrap/fixtures/reliability"
	"github.com/swagwrap/swagwrap/internal/ort"
)

// TestManySessions: what a session takes is given back when it closes. Of a thousand, one after the other, hardly
// anything is left.
func TestManySessions(t *testing.T) {
	rt := infertest.Runtime(t)
	model, err := infertest.Open(t, infertest.Path(infertest.MNIST, "checkpoints", "epoch-30.onnx")).Runtime()
	if err != nil {
		t.Fatal(err)
	}
	images := make([]float32, 32*28*28)
	session := func() {
		s, err := rt.NewFilledSession(t.Context(), model, ort.Options{Threads: 1})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Run(t.Context(), []ort.Tensor{{Shape: []int64{32, 1, 28, 28}, F32: images}}); err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	const first = 20 // fill the pools
	for range first {
		session()
	}
	n, before := reliability.Figure(200, 1_000), resident(t)
	if testing.Short() {
		n = 50
	}
	for range n - first {
		session()
	}
	grown := resident(t) - before
	t.Logf("%d sessions: %d kB more than after %d", n, grown>>10, first)
	if grown > 50<<20 {
		t.Errorf("%d bytes more after %d sessions than after %d", grown, n, first)
	}
}

// resident is how much memory the process holds now, in bytes.
func resident(t *testing.T) int64 {
	t.Helper()
	debug.FreeOSMemory()
	b, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Fatal(err)
	}
	pages, err := strconv.ParseInt(strings.Fields(string(b))[1], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return pages * int64(os.Getpagesize())
}
