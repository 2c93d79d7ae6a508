package listing

import (
	"hash/maphash"
	"os"
	"path/filepath"

	"github.com/swagwrap/swagwrap/internal/file"
)

// Example is an image file, or an image in a tar.
type Example struct {
	in    *place
	name  string // the path below the place, with the separators of the system
	at    int32  // index in place.entries or place.listed
	label int32  // index into Listing.labels, or -1
}

// place is a folder or a tar that contains examples.
type place struct {
	path    string
	tar     bool
	entries []entry // entries of a tar
	size    int64   // size of a tar, in bytes
	pipe    bool    // path is a command that writes the tar
	ext     string  // of the images that a list names without it
	err     error   // why it could not be listed; the place is then an example itself

	spooled *os.File // a copy of the pictures in a Parquet file
	listed  []listed // of the existing listing at path; names of examples are then full names
	spool   *spool   // outputs of its commands
}

// unlisted returns the error of an example that stands for an unreadable folder, or nil.
func (e *Example) unlisted() error {
	switch in := e.in; {
	case in == nil:
		return nil
	case in.listed != nil:
		return in.listed[e.at].err
	}
	return e.in.err
}

// Unlisted reports whether the example stands for an unreadable folder.
func (e *Example) Unlisted() bool { return e.unlisted() != nil }

// entry is the position of an image in a tar.
type entry struct{ off, size int64 }

// Path returns the name of the example.
func (e *Example) Path() string {
	switch {
	case e.in == nil || e.in.listed != nil:
		return e.name
	case e.in.tar:
		return e.in.path + "/" + e.name // with slashes, as in the tar
	case e.in.spooled != nil:
		return e.in.path + e.name // files.parquet[7]
	}
	return filepath.Join(e.in.path, e.name)
}

// Open opens the file that holds the example's bytes, and returns their offset and their number. The caller must call
// release.
func (e *Example) Open() (f *os.File, release func(), off, size int64, err error) {
	if err := e.unlisted(); err != nil {
		return nil, nil, 0, 0, err
	}
	if e.in != nil && e.in.listed != nil {
		r := &e.in.listed[e.at]
		f, release, err = r.open(e.name, e.in.spool)
		return f, release, r.off, r.size, err
	}
	if e.in != nil && e.in.spooled != nil {
		at := e.in.entries[e.at]
		return e.in.spooled, func() {}, at.off, at.size, nil
	}
	path := e.Path()
	if e.in != nil && e.in.tar {
		path = e.in.path
	}
	if f, size, err = file.OpenListed(path, "an image"); err != nil {
		return nil, nil, 0, 0, err
	}
	if e.in != nil && e.in.tar {
		in := e.in.entries[e.at]
		off, size = in.off, in.size
	}
	return f, func() { f.Close() }, off, size, nil
}

// Block is the number of bytes at the start, in the middle and at the end of an example that identify it, together with
// its size.
const Block = 16 << 10

// Print adds what identifies the content of the example to a hash.
func (e *Example) Print(h *maphash.Hash) error {
	f, release, off, size, err := e.Open()
	if err != nil {
		return err
	}
	defer release()
	for _, at := range Blocks(size) {
		b := make([]byte, at[1]-at[0])
		if _, err := f.ReadAt(b, off+at[0]); err != nil {
			return err
		}
		h.Write(b)
	}
	return nil
}

// Blocks returns the begin and end of each block of so many bytes.
func Blocks(size int64) (all [][2]int64) {
	if size <= 3*Block {
		return [][2]int64{{0, size}}
	}
	for _, at := range []int64{0, (size - Block) / 2, size - Block} {
		all = append(all, [2]int64{at, at + Block})
	}
	return all
}
