package store

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/swagwrap/swagwrap/internal/promise"
	"github.com/swagwrap/swagwrap/internal/promise/forge"
	"github.com/swagwrap/swagwrap/weights"
)

// entry is a store with one entry: its folder and its file, taken apart.
func entry(t testing.TB) (s *Store, path string, f *forge.File) {
	t.Helper()
	s, err := Open(t.TempDir(), "", "")
	if err == nil {
		err = s.Put(key(), map[string]any{"of": "x", "scores": 3}, arrays...)
	}
	if err != nil {
		t.Fatal(err)
	}
	if path, _, err = s.path(key()); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if err == nil {
		f, err = forge.Open(b)
	}
	if err != nil {
		t.Fatal(err)
	}
	return s, path, f
}

// get gets an entry of which the file is b. It reports whether there is one.
func get(t testing.TB, s *Store, path string, b []byte) bool {
	t.Helper()
	if err := os.WriteFile(path, b, 0o666); err != nil {
		t.Fatal(err)
	}
	var e *Entry
	var err error
	promise.Heap(t, len(b), func() { e, err = s.Get(key()) })
	if err != nil {
		t.Errorf("%v", err)
	}
	if e == nil {
		return false
	}
	for name, a := range e.Arrays {
		n := 0
		switch v := a.Values.(type) {
		case []float32:
			n = len(v)
		case []float64:
			n = len(v)
		case []int64:
			n = len(v)
		}
		if want, err := weights.Elements(a.Shape); err != nil || want != int64(n) {
			t.Errorf("%q: %d values for %v", name, n, a.Shape)
		}
	}
	return true
}

// Whatever stands in an entry whose checksums are right, it is as if it were not there, or it is what its shapes say.
func TestMutatedEntries(t *testing.T) {
	r := rand.New(rand.NewPCG(28, 4))
	s, path, whole := entry(t)
	accepted := 0
	for range promise.Figure(1000, 40_000) {
		m := whole.Mutated(r)
		b, err := m.Bytes()
		if err != nil {
			continue // shape and data do not agree, which the tests of weights try
		}
		if get(t, s, path, b) {
			accepted++
		}
		if t.Failed() {
			t.Fatalf("%.3000q", fmt.Sprint(m))
		}
	}
	if accepted == 0 {
		t.Error("none was accepted: the test shows little")
	}
}

// A note of many values is not decoded.
func TestForgedNote(t *testing.T) {
	s, path, f := entry(t)
	js, err := json.Marshal(make([]int, 1<<18))
	if err != nil {
		t.Fatal(err)
	}
	f.Metadata["note"] = string(js)
	b, err := f.Bytes()
	if err != nil || get(t, s, path, b) {
		t.Errorf("a note of %d bytes: %v", len(js), err)
	}
}

func FuzzEntry(f *testing.F) {
	s, path, whole := entry(f)
	for name, value := range whole.Metadata {
		f.Add(name, value)
	}
	f.Fuzz(func(t *testing.T, name, value string) {
		m := &forge.File{Metadata: map[string]string{name: value}, Sections: whole.Sections, Data: whole.Data}
		for k, v := range whole.Metadata {
			if k != name {
				m.Metadata[k] = v
			}
		}
		if b, err := m.Bytes(); err == nil {
			get(t, s, path, b)
		}
	})
}
