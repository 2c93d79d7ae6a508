package store

import (
	"fmt"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/swagwrap/swagwrap/fixtures/reliability"
	"github.com/swagwrap/swagwrap/fixtures/reliability/forge"
)

// entry is a store with one entry: its folder and its file, parsed.
func entry(t testing.TB) (s *Store, path string, f *forge.Rows) {
	t.Helper()
	s, err := Open(t.TempDir(), "", "")
	if err == nil {
		err = s.put(key(), map[string]any{"of": "x", "scores": 3})
	}
	if err != nil {
		t.Fatal(err)
	}
	if path, _, err = s.path(key()); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if err == nil {
		f, err = forge.OpenRows(b)
	}
	if err != nil {
		t.Fatal(err)
	}
	return s, path, f
}

// get gets an entry of which the file is b. It reports whether there is one.
func get(t testing.TB, s *Store, path string, b []byte) (found bool) {
	t.Helper()
	if err := os.WriteFile(path, b, 0o666); err != nil {
		t.Fatal(err)
	}
	reliability.Heap(t, len(b), func() {
		rows, _, err := s.get(key())
		if found = rows != nil; err != nil {
			t.Errorf("%v", err)
		}
	})
	return found
}

// Whatever stands in an entry whose checksums are right, it is as if it were not there, or it is what it says.
func TestMutatedEntries(t *testing.T) {
	r := rand.New(rand.NewPCG(28, 4))
	s, path, whole := entry(t)
	accepted := 0
	for range reliability.Figure(400, 40_000) {
		m := whole.Mutated(r)
		if get(t, s, path, m.Bytes()) {
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

func FuzzEntry(f *testing.F) {
	s, path, whole := entry(f)
	f.Add(whole.Head, whole.Frames[0])
	f.Fuzz(func(t *testing.T, head, frame []byte) {
		get(t, s, path, (&forge.Rows{Magic: whole.Magic, Head: head, Frames: [][]byte{frame}}).Bytes())
	})
}
