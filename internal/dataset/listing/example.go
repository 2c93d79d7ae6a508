package listing

import (
	"os"
	"path/filepath"

	"github.com/swagwrap/swagwrap/internal/file"
)

// Example is an image file, or one in a tar.
type Example struct {
	in    *place
	name  string // below the place, with the system's separators
	at    int32  // in place.entries or place.listed
	label int32  // index into Listing.labels, or -1
}

// place is a folder or a tar that holds examples.
type place struct {
	path    string
	tar     bool
	entries []entry // of a tar
	size    int64   // of a tar
	pipe    bool    // path is a command, which writes the tar
	err     error   // that it could not be listed, which makes it an example itself

	listed []listed // of a listing made before, whose path this is; examples' names are whole
	spool  *spool   // of commands in it
}

// unlisted is the error of an example that stands for a folder that could not be read.
func (e *Example) unlisted() error {
	switch in := e.in; {
	case in == nil:
		return nil
	case in.listed != nil:
		return in.listed[e.at].err
	}
	return e.in.err
}

// entry is where the bytes of an image lie in a tar.
type entry struct{ off, size int64 }

// Path names the example.
func (e *Example) Path() string {
	switch {
	case e.in == nil || e.in.listed != nil:
		return e.name
	case e.in.tar:
		return e.in.path + "/" + e.name // as tar writes it
	}
	return filepath.Join(e.in.path, e.name)
}

// Open opens the file that holds the example's bytes, and returns where they begin
// and how many they are. The caller releases it.
func (e *Example) Open() (f *os.File, release func(), off, size int64, err error) {
	if err := e.unlisted(); err != nil {
		return nil, nil, 0, 0, err
	}
	if e.in != nil && e.in.listed != nil {
		r := &e.in.listed[e.at]
		f, release, err = r.open(e.name, e.in.spool)
		return f, release, r.off, r.size, err
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
