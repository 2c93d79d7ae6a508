// Package store keeps the outputs of networks in files, each under a key of all its inputs. So each output is
// computed only once, by jobs on several machines or by a command that is run again.
//
// An entry is a safetensors file with checksums, DIR/ab/cdef….safetensors, named by the SHA-256 of its key. The key,
// in its metadata, is everything that the content depends on. See docs/formats.md.
//
// # Invariants
//
// Get returns an entry only if it was put under an equal key. An entry that is damaged, or of another key, counts as
// missing. It appears whole or not at all.
//
// # Concurrency
//
// Goroutines and processes may use a folder at the same time. Two that compute the same entry write the same content,
// and the later one replaces the earlier.
package store

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/swagwrap/swagwrap/internal/file"
	"github.com/swagwrap/swagwrap/internal/tempfile"
	"github.com/swagwrap/swagwrap/weights"
)

// Kind and Version identify an entry's file.
const (
	Kind    = "swagwrap.store"
	Version = 1
)

// Store is a folder of entries.
type Store struct {
	dir, producer, machine string

	mu             sync.Mutex
	found, missing int
	machines       map[string]bool
}

// Open opens the folder dir, and makes it if it does not exist. producer is the program and its version, which is
// part of every key. machine is the processor. It is not part of the key, but is noted in the entries.
func Open(dir, producer, machine string) (*Store, error) {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, &Error{dir, err}
	}
	return &Store{dir: dir, producer: producer, machine: machine, machines: make(map[string]bool)}, nil
}

// Key holds everything that an entry depends on: values that encoding/json writes.
type Key map[string]any

// Array is an array of an entry, of float32, float64 or int64.
type Array struct {
	Name   string
	Shape  []int64
	Values any
}

// Entry is the stored content.
type Entry struct {
	Note   json.RawMessage
	Arrays map[string]Array
}

// path returns the path of the entry of a key, and text, the key as its metadata holds it.
func (s *Store) path(k Key) (path, text string, err error) {
	k = maps.Clone(k)
	k["producer"] = s.producer
	js, err := json.Marshal(k) // in the order of the names
	sum := sha256.Sum256(js)
	name := hex.EncodeToString(sum[:])
	return filepath.Join(s.dir, name[:2], name[2:]+".safetensors"), string(js), err
}

// Get returns the entry of a key, or nil if there is no whole entry.
func (s *Store) Get(k Key) (*Entry, error) {
	path, text, err := s.path(k)
	if err != nil {
		return nil, err
	}
	e, machine, err := read(path, text)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		s.missing++
		if errors.Is(err, fs.ErrPermission) {
			return nil, &Error{path, err}
		}
		return nil, nil
	}
	s.found++
	s.machines[machine] = true
	return e, nil
}

// Counts returns how many entries Get has returned, and how often there was none.
func (s *Store) Counts() (found, missing int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.found, s.missing
}

// Machines lists the processors that computed the entries returned by Get. It includes this machine if an entry was
// missing. Results of different processors may differ in the last bits.
func (s *Store) Machines() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := maps.Clone(s.machines)
	if s.missing > 0 {
		all[s.machine] = true
	}
	return slices.Sorted(maps.Keys(all))
}

// read reads an entry whole and checks it.
func read(path, key string) (e *Entry, machine string, err error) {
	st, err := weights.OpenSafetensors(path)
	if err != nil {
		return nil, "", err
	}
	defer st.Close()
	if err := st.CheckKind(Kind, Version); err != nil {
		return nil, "", err
	}
	if st.Metadata["key"] != key {
		return nil, "", fmt.Errorf("%s: is of another key", path)
	}
	if err := st.Verify(); err != nil {
		return nil, "", err
	}
	const most = 1 << 17 // values in a note
	if err := st.FewMetadata(most); err != nil {
		return nil, "", err
	}
	e = &Entry{Arrays: make(map[string]Array)}
	if err := st.DecodeMetadata(map[string]any{"note": &e.Note, "processor": &machine}); err != nil {
		return nil, "", err
	}
	err = weights.Guarded(func() error {
		for _, section := range st.Sections {
			v, _ := st.View(section.Name)
			a := Array{Name: section.Name, Shape: section.Shape}
			switch section.DType {
			case weights.F32:
				x := make([]float32, v.Len())
				v.Float32s(x, 0)
				a.Values = x
			case weights.F64:
				x := make([]float64, v.Len())
				v.Float64s(x, 0)
				a.Values = x
			case weights.I64:
				x := make([]int64, v.Len())
				binary.Decode(v.Data, binary.LittleEndian, x) // x has the same length
				a.Values = x
			default:
				return fmt.Errorf("%s: section %q: %v", path, section.Name, section.DType)
			}
			e.Arrays[a.Name] = a
		}
		return nil
	})()
	return e, machine, err
}

// Put stores arrays under a key, with a note that is not part of the key. Values are written unchanged,
// little-endian.
func (s *Store) Put(k Key, note any, arrays ...Array) error {
	path, text, err := s.path(k)
	if err != nil {
		return err
	}
	meta, err := weights.NewMetadata(Kind, Version, s.producer, map[string]any{"key": json.RawMessage(text), "note": note, "processor": s.machine})
	if err != nil {
		return err
	}
	var sections []weights.Section
	for _, a := range arrays {
		section := weights.Section{Name: a.Name, Shape: a.Shape}
		switch a.Values.(type) {
		case []float32:
			section.DType = weights.F32
		case []float64:
			section.DType = weights.F64
		case []int64:
			section.DType = weights.I64
		default:
			return fmt.Errorf("store: array %q: %T", a.Name, a.Values)
		}
		sections = append(sections, section)
	}
	if err := write(path, sections, meta, arrays); err != nil {
		return &Error{path, err}
	}
	return nil
}

// Error is a failure to read or write an entry.
type Error struct {
	Path string
	Err  error
}

func (e *Error) Error() string { return file.Error(e.Path, e.Err).Error() }
func (e *Error) Unwrap() error { return e.Err }

// write writes a file that appears only when it is whole.
func write(path string, sections []weights.Section, meta map[string]string, arrays []Array) error {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	f, err := tempfile.File(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	if err = fill(f, sections, meta, arrays); err == nil {
		err = f.Sync()
	}
	if err == nil {
		err = tempfile.Replace(f.Name(), path)
	}
	if err != nil {
		tempfile.Remove(f.Name())
	}
	return err
}

func fill(f *os.File, sections []weights.Section, meta map[string]string, arrays []Array) error {
	w, err := weights.NewSafetensorsWriter(f, sections, meta)
	if err != nil {
		return err
	}
	for i, a := range arrays {
		switch v := a.Values.(type) {
		case []float32:
			err = weights.WriteFloats(w.Section(i), v)
		case []float64:
			err = weights.WriteFloats(w.Section(i), v)
		case []int64:
			var b bytes.Buffer
			binary.Write(&b, binary.LittleEndian, v) // to memory
			_, err = w.Section(i).Write(b.Bytes())
		}
		if err != nil {
			return err
		}
	}
	return w.Close()
}
