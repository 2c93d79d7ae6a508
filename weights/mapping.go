package weights

import (
	"fmt"
	"os"
	"syscall"
)

// Mapping is a file's bytes, mapped read-only into memory.
type Mapping struct {
	Path string
	// Data is valid until Close. A file that another program cuts short while
	// it is mapped takes this process down with it (SIGBUS), so files must not
	// be changed in place while they are read; swagwrap itself never does.
	Data  []byte
	file  bool // Data is file pages, which the system can read again
	unmap func() error
}

// OnMap, if not nil, is called with each file before it is mapped, and may refuse
// it: so a program sees all files that it reads, those that others refer to among
// them. It is set before the first file is mapped.
var OnMap func(*os.File) error

// Map maps the regular file at path. Errors name the path.
func Map(path string) (*Mapping, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // opening a named pipe must not wait for a writer
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return MapFile(f)
}

// MapFile maps the regular file f, which may be closed afterwards.
func MapFile(f *os.File) (*Mapping, error) {
	fi, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !fi.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: not a regular file", f.Name())
	}
	if OnMap != nil {
		if err := OnMap(f); err != nil {
			return nil, err
		}
	}
	if fi.Size() == 0 { // mmap refuses a length of 0
		return &Mapping{Path: f.Name()}, nil
	}
	data, unmap, err := mapFile(f, fi.Size())
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.Name(), err)
	}
	return &Mapping{Path: f.Name(), Data: data, file: true, unmap: unmap}, nil
}

// Release takes the file's pages out of this process's memory; what is read
// again comes back from the system's cache. Readers of Data may go on
// meanwhile. A pass over large files calls it now and then, or all that it has
// read counts as its memory.
func (m *Mapping) Release() {
	if m.file && len(m.Data) > 0 {
		release(m.Data)
	}
}

// Close unmaps the file. It may be called twice.
func (m *Mapping) Close() error {
	unmap := m.unmap
	m.Data, m.unmap = nil, nil
	if unmap == nil {
		return nil
	}
	return unmap()
}
