package weights

import (
	"fmt"
	"os"
	"sync"
	"time"
)

// A ChangedError says that another program wrote to a file while it was read. Results may mix the old and the new
// content.
type ChangedError struct {
	Path string
	What string // what has changed
}

func (e *ChangedError) Error() string { return e.Path + ": changed while it was read: " + e.What }

// A Watch remembers the state of an open file when reading began. If another file replaces it under its name, it has
// not changed: the old file is still open and whole.
type Watch struct {
	file     *os.File
	size     int64
	modified time.Time
}

// NewWatch starts to watch f, which must stay open.
func NewWatch(f *os.File) (Watch, error) {
	fi, err := f.Stat()
	if err != nil {
		return Watch{}, err
	}
	return Watch{f, fi.Size(), fi.ModTime()}, nil
}

// Changed returns a [*ChangedError] if the size or modification time of the file differs from when the Watch began.
// It does not compare the time of the last change of status, which a new name for the file changes too.
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

// live holds the files that this process has mapped.
var live registry

type registry struct {
	mu     sync.Mutex
	files  map[*Mapping]bool
	closed []gone // files that had changed when they were closed
}

// gone is a mapped file that changed, and the place of its bytes.
type gone struct {
	data []byte // must not be read
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

// remove removes a mapping, and reports whether it was registered.
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

// Changed returns a [*ChangedError] if another program changed a file while this process had it mapped. It checks the
// files that are still mapped, and those closed since the last call of Changed. Call it before keeping a result: some
// of it may come from the old content and some from the new.
func Changed() error {
	r := &live
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
