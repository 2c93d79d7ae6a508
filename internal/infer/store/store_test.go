package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/swagwrap/swagwrap/internal/records"
)

func open(t *testing.T, dir, producer, machine string) *Store {
	t.Helper()
	s, err := Open(dir, producer, machine)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// entries are the paths of all files in a store.
func entries(t *testing.T, dir string) []string {
	t.Helper()
	var paths []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			paths = append(paths, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return paths
}

var stored = [][]float64{{0.1, 0.2, 0.7, -1}, {1, -1 << 63, 5e-324, 0.5}}

// put stores these rows under a key.
func (s *Store) put(k Key, note any) error {
	return s.Put(k, note, len(stored), func(i int, r *records.Row) { r.Values = stored[i] })
}

// get returns the rows and the note of the entry of a key.
func (s *Store) get(k Key) (rows [][]float64, note string, err error) {
	found, err := s.Get(k, func(h *records.Head) (func(*records.Row) error, error) {
		note = string(h.About)
		return func(r *records.Row) error { rows = append(rows, slices.Clone(r.Values)); return nil }, nil
	})
	if !found {
		return nil, "", err
	}
	return rows, note, err
}

func key() Key { return Key{"kind": "outcomes", "batch": 128} }

// What was put comes back, bit by bit, to any process with an equal key and to no other.
func TestRoundTrip(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "store")
	s := open(t, dir, "swagwrap 1", "one")
	if e, _, err := s.get(key()); e != nil || err != nil {
		t.Fatalf("of an empty store: %v, %v", e, err)
	}
	if err := s.put(key(), "a note"); err != nil {
		t.Fatal(err)
	}
	other := open(t, dir, "swagwrap 1", "two")
	e, note, err := other.get(key())
	if err != nil || !reflect.DeepEqual(e, stored) || note != `"a note"` {
		t.Fatalf("%v, %s, %v", e, note, err)
	}
	if got := other.Machines(); !slices.Equal(got, []string{"one"}) {
		t.Errorf("machines %v", got)
	}
	for name, k := range map[string]Key{"another value": {"kind": "outcomes", "batch": 64}, "a further one": {"kind": "outcomes", "batch": 128, "x": ""}, "one less": {"kind": "outcomes"}} {
		if e, _, err := other.get(k); e != nil || err != nil {
			t.Errorf("%s: %v, %v", name, e, err)
		}
	}
	if e, _, _ := open(t, dir, "swagwrap 2", "one").get(key()); e != nil {
		t.Error("another version has the entry")
	}
	if got := other.Machines(); !slices.Equal(got, []string{"one", "two"}) { // which computes what was missing
		t.Errorf("machines %v", got)
	}
	if found, missing := other.Counts(); found != 1 || missing != 3 {
		t.Errorf("%d found, %d missing", found, missing)
	}
}

// An entry with any byte changed, or cut short anywhere, is as if it were not there, and
// can be put again.
func TestDamage(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, "", "")
	if err := s.put(key(), nil); err != nil {
		t.Fatal(err)
	}
	paths := entries(t, dir)
	if len(paths) != 1 {
		t.Fatal(paths)
	}
	whole, err := os.ReadFile(paths[0])
	if err != nil {
		t.Fatal(err)
	}
	try := func(what string, b []byte) {
		if err := os.WriteFile(paths[0], b, 0o666); err != nil {
			t.Fatal(err)
		}
		if e, _, err := s.get(key()); e != nil || err != nil {
			t.Errorf("%s: %v, %v", what, e, err)
		}
	}
	for i := range whole {
		b := slices.Clone(whole)
		b[i] ^= 1
		try(fmt.Sprintf("byte %d of %d", i, len(whole)), b)
		try(fmt.Sprintf("cut at %d", i), whole[:i])
	}
	if err := s.put(key(), nil); err != nil {
		t.Fatal(err)
	}
	if e, _, err := s.get(key()); e == nil || err != nil {
		t.Errorf("put again: %v, %v", e, err)
	}
	// An entry under another's name.
	if err := s.put(Key{"other": 1}, nil); err != nil {
		t.Fatal(err)
	}
	for _, p := range entries(t, dir) {
		if p != paths[0] {
			if err := os.Rename(p, paths[0]); err != nil {
				t.Fatal(err)
			}
		}
	}
	if e, _, err := s.get(key()); e != nil || err != nil {
		t.Errorf("another's entry: %v, %v", e, err)
	}
}

// Many put and get the same at once: nobody sees half of it, and nothing else is left.
func TestTogether(t *testing.T) {
	dir := t.TempDir()
	var wg sync.WaitGroup
	for range 8 {
		s := open(t, dir, "", "")
		wg.Go(func() {
			for range 25 {
				err := s.put(key(), nil)
				e, _, err2 := s.get(key())
				if err = errors.Join(err, err2); err != nil || !reflect.DeepEqual(e, stored) {
					t.Errorf("%v, %v", e, err)
				}
			}
		})
	}
	wg.Wait()
	if paths := entries(t, dir); len(paths) != 1 {
		t.Error(paths)
	}
}

// What cannot be written is an Error that names the place.
func TestError(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	var e *Error
	if _, err := Open(file, "", ""); !errors.As(err, &e) || e.Path != file {
		t.Errorf("a file: %v", err)
	}
	s := open(t, filepath.Join(filepath.Dir(file), "store"), "", "")
	path, _, err := s.path(key())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Dir(path), nil, 0o666); err != nil { // in the place of a folder
		t.Fatal(err)
	}
	if err := s.put(key(), nil); !errors.As(err, &e) || e.Path != path {
		t.Errorf("Put: %v", err)
	}
}

// Trim leaves the newest entries, and a store with fewer as it is.
func TestTrim(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := open(t, dir, "test", "machine")
	for i := range 5 {
		if err := s.put(Key{"i": i}, nil); err != nil {
			t.Fatal(err)
		}
		path, _, err := s.path(Key{"i": i})
		if err == nil {
			err = os.Chtimes(path, time.Unix(int64(i), 0), time.Unix(int64(i), 0))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	s.Trim(5)
	s.Trim(2)
	for i := range 5 {
		if s.Has(Key{"i": i}) != (i > 2) {
			t.Errorf("entry %d of 5 after Trim(2): %v", i, s.Has(Key{"i": i}))
		}
	}
}
