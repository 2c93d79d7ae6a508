package weights

import (
	"errors"
	"fmt"
	"os"
	"sync/atomic"

	"github.com/swagwrap/swagwrap/internal/file"
)

// Mapping is a file's bytes, mapped read-only into memory.
type Mapping struct {
	Path string
	// Data is valid until Close. If another program cuts the file short meanwhile, reading the lost part is a fault.
	// The fault ends the process unless the reading goroutine is [Guarded].
	Data []byte

	watch Watch
	unmap func() error
}

// OnMap, if not nil, is called with each file before it is mapped, and may refuse it. So a program sees all files
// that it reads, including files that other files refer to. Set it before the first file is mapped.
var OnMap func(*os.File) error

// Map maps the regular file at path. Errors name the path.
func Map(path string) (*Mapping, error) {
	f, _, err := file.Regular(path)
	if errors.Is(err, file.ErrNotRegular) {
		return nil, file.Error(path, err)
	}
	if err != nil {
		return nil, err
	}
	return MapFile(f)
}

// MapFile maps the regular file f. It keeps f open until Close, to see whether it changes: see [Changed]. If MapFile
// fails, it has closed f.
func MapFile(f *os.File) (*Mapping, error) {
	if OnMap != nil {
		if err := OnMap(f); err != nil {
			f.Close()
			return nil, err
		}
	}
	return mapOpen(f)
}

// Peek is [Map] without [OnMap]: for a file that a program looks at, to see what it is, and does not use.
func Peek(path string) (*Mapping, error) {
	f, _, err := file.Regular(path)
	if err != nil {
		return nil, file.Error(path, err)
	}
	return mapOpen(f)
}

func mapOpen(f *os.File) (m *Mapping, err error) {
	defer func() {
		if err != nil {
			f.Close()
		}
	}()
	fi, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !fi.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: not a regular file", f.Name())
	}
	m = &Mapping{Path: f.Name(), watch: Watch{f, fi.Size(), fi.ModTime()}}
	if fi.Size() > 0 { // mmap refuses a length of 0
		if m.Data, m.unmap, err = mapFile(f, fi.Size()); err != nil {
			return nil, fmt.Errorf("%s: %w", f.Name(), err)
		}
	}
	live.add(m)
	return m, nil
}

// Release takes the file's pages out of this process's memory. Pages that are read again come back from the system's
// cache. Readers of Data may continue meanwhile. A pass over large files calls Release from time to time: see
// [Unreleased].
func (m *Mapping) Release() {
	if len(m.Data) > 0 {
		release(m.Data)
	}
}

// Close unmaps the file. It may be called twice.
func (m *Mapping) Close() error {
	if !live.remove(m) {
		return nil
	}
	m.watch.file.Close() // read only: nothing can be lost
	unmap := m.unmap
	m.Data, m.unmap = nil, nil
	if unmap == nil {
		return nil
	}
	return unmap()
}

// releaseBytes is how many bytes of mapped files are read before their memory is given back.
const releaseBytes = 64 << 20

// Unreleased counts the bytes of mapped files that were read since their memory was given back. A pass over large files
// needs one, because otherwise all pages that it has read count as its memory. Several goroutines may use it.
type Unreleased struct{ bytes atomic.Int64 }

// Read notes that n bytes were read. It calls release, if not nil, once there are many.
func (u *Unreleased) Read(n int64, release func()) {
	if u.bytes.Add(n) < releaseBytes {
		return
	}
	u.bytes.Store(0)
	if release != nil {
		release()
	}
}
