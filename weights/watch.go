package weights

import (
	"fmt"
	"os"
	"sync"
	"time"
)

// A ChangedError says that another program wrote to a file while it was read.
// What was computed from it is of no file that ever was.
type ChangedError struct {
	Path string
	What string // has changed
}

func (e *ChangedError) Error() string { return e.Path + ": changed while it was read: " + e.What }

// A Watch remembers what an open file was like when reading it began. A file that
// another one takes the place of, under its name, does not change: what is open is
// the old one, whole.
type Watch struct {
	file     *os.File
	size     int64
	modified time.Time
}

// NewWatch begins to watch f, which must stay open.
func NewWatch(f *os.File) (Watch, error) {
	fi, err := f.Stat()
	if err != nil {
		return Watch{}, err
	}
	return watch(f, fi), nil
}

func watch(f *os.File, fi os.FileInfo) Watch { return Watch{f, fi.Size(), fi.ModTime()} }

// Changed returns a [*ChangedError] if the file has another size or another time
// of modification than when Watch began. It does not look at the time of the last
// change of status, which a new name for the file moves too.
func (w Watch) Changed() error {
	fi, err := w.file.Stat()
	switch {
	case err != nil:
		return err
	case fi.Size() != w.size:
		return &ChangedError{w.file.Name(), fmt.Sprintf("it has %d bytes, and had %d", fi.Size(), w.size)}
	case !fi.ModTime().Equal(w.modified):
		return &ChangedError{w.file.Name(), fmt.Sprintf("written to at %s", fi.ModTime().Format("15:04:05.000"))}
	}
	return nil
}

// live is the files that this process has mapped.
var live registry

type registry struct {
	mu     sync.Mutex
	files  map[*Mapping]bool
	closed []gone // those that had changed when they were closed
}

// gone is a file that was mapped and changed, and where its bytes were.
type gone struct {
	data []byte // not to be read
	err  error
}

func (r *registry) add(m *Mapping) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.files == nil {
		r.files = make(map[*Mapping]bool)
	}
	r.files[m] = true
}

// remove takes a mapping out, and reports whether it was in.
func (r *registry) remove(m *Mapping) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.files[m] {
		return false
	}
	delete(r.files, m)
	if err := m.watch.Changed(); err != nil {
		r.closed = append(r.closed, gone{m.Data, err})
	}
	return true
}

func (r *registry) changed() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	closed := r.closed
	r.closed = nil
	if len(closed) > 0 {
		return closed[0].err
	}
	for m := range r.files {
		if err := m.watch.Changed(); err != nil {
			return err
		}
	}
	return nil
}

// Changed returns a [*ChangedError] if another program changed a file while this
// process had it mapped: one that is mapped still, or was when Changed was last
// called. Whoever keeps a result asks before: some of it may come from the old
// content and some from the new.
func Changed() error { return live.changed() }
