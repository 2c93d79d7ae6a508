// Package store keeps the outputs of networks in files, each under a key of all its inputs. So each output is
// computed only once, by jobs on several machines or by a command that is run again.
//
// An entry is a file of package records, DIR/ab/cdef….rows, named by the SHA-256 of its key. The key, which the file
// also has, is everything that the content depends on. See docs/formats.md.
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
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/swagwrap/swagwrap/internal/file"
	"github.com/swagwrap/swagwrap/internal/records"
	"github.com/swagwrap/swagwrap/internal/step"
	"github.com/swagwrap/swagwrap/internal/tempfile"
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

// Again opens the same folder. Its counts begin at 0.
func (s *Store) Again() *Store {
	return &Store{dir: s.dir, producer: s.producer, machine: s.machine, machines: make(map[string]bool)}
}

// Key holds everything that an entry depends on: values that encoding/json writes.
type Key map[string]any

// path returns the path of the entry of a key, and the key as the head of the file has it.
func (s *Store) path(k Key) (path string, p records.Parameters, err error) {
	k = maps.Clone(k)
	k["producer"] = s.producer
	if p, err = records.NewParameters(k); err != nil {
		return "", nil, err
	}
	js, err := json.Marshal(p) // in the order of the names
	sum := sha256.Sum256(js)
	name := hex.EncodeToString(sum[:])
	return filepath.Join(s.dir, name[:2], name[2:]+suffix), p, err
}

// Entries returns the paths of the entries in a folder. It does not read them.
func Entries(dir string) []string {
	paths, _ := filepath.Glob(filepath.Join(dir, "??", "*"+suffix)) // the pattern is valid
	return paths
}

// suffix ends the names of entries.
const suffix = ".rows"

// Get reads the entry of a key, and reports whether there is a whole one. check gets its head and all its rows. The
// rows are invalid if Get returns false.
func (s *Store) Get(k Key, check records.Check) (bool, error) {
	path, p, err := s.path(k)
	if err != nil {
		return false, err
	}
	e, err := records.Read(path, records.Stored, func(h *records.Head) (func(*records.Row) error, error) {
		if len(h.Parameters) != len(p) || h.Parameters.Differences(p) != nil {
			return nil, errors.New("is of another key")
		}
		return check(h)
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		s.missing++
		if errors.Is(err, fs.ErrPermission) {
			return false, &Error{path, err}
		}
		return false, nil
	}
	s.found++
	s.machines[e.Processor] = true
	return true, nil
}

// Has reports whether there is an entry of a key. It does not read it.
func (s *Store) Has(k Key) bool {
	path, _, err := s.path(k)
	if err == nil {
		_, err = os.Stat(path)
	}
	return err == nil
}

// Counts returns how many entries Get has found, and how often there was none.
func (s *Store) Counts() (found, missing int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.found, s.missing
}

// Machines lists the processors that computed the entries found by Get. It includes this machine if an entry was
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

// Put stores n rows under a key, with a note that is not part of the key. row fills in the row with the given index.
func (s *Store) Put(k Key, note any, n int, row func(i int, r *records.Row)) error {
	path, p, err := s.path(k)
	if err != nil {
		return err
	}
	h := &records.Head{Parameters: p, Part: records.Part{Of: 1, End: n, All: n}, Processor: s.machine}
	if h.About, err = json.Marshal(note); err != nil {
		return err
	}
	if err := write(path, h, row); err != nil {
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
func write(path string, h *records.Head, row func(i int, r *records.Row)) error {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	f, err := tempfile.File(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	if err = records.Write(f, records.Stored, h, h.Part.Rows(), row); err == nil {
		err = f.Sync()
	}
	if err == nil {
		step.Reached(step.Synced)
		err = tempfile.Replace(f.Name(), path)
	}
	if err != nil {
		tempfile.Remove(f.Name())
	}
	return err
}

// Trim removes the oldest entries if there are more than most. What others removed already counts as removed.
func (s *Store) Trim(most int) {
	all := Entries(s.dir)
	if len(all) <= most {
		return
	}
	age := func(path string) int64 {
		if info, err := os.Stat(path); err == nil {
			return info.ModTime().UnixNano()
		}
		return 0
	}
	slices.SortFunc(all, func(a, b string) int { return cmp.Compare(age(a), age(b)) })
	for _, path := range all[:len(all)-most] {
		os.Remove(path)
	}
}

// mostFindings is the number of entries that a store of findings keeps, of some kilobytes each.
const mostFindings = 1000

// Recall reads a finding, and reports whether there is one. What cannot be read is found again.
func (s *Store) Recall(k Key, finding any) bool {
	found, err := s.Get(k, func(h *records.Head) (func(*records.Row) error, error) {
		return func(*records.Row) error { return nil }, json.Unmarshal(h.About, finding)
	})
	return found && err == nil
}

// Remember keeps a finding for later commands, and removes the oldest of many. A folder that cannot be written, such as a full
// one, costs later commands their time only.
func (s *Store) Remember(k Key, finding any) {
	if s.Put(k, finding, 1, func(_ int, r *records.Row) { r.Values = r.Values[:0] }) == nil {
		s.Trim(mostFindings)
	}
}
