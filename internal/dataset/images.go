package dataset

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"

	"github.com/swagwrap/swagwrap/internal/file"
	"github.com/swagwrap/swagwrap/internal/picture"
	"github.com/swagwrap/swagwrap/internal/preprocess"
)

// example is an image file, or one in a tar.
type example struct {
	in    *place
	name  string // below the place, with the system's separators
	at    int32  // in place.entries or place.listed
	label int32  // index into listing.labels, or -1
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
func (e *example) unlisted() error {
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

func (e *example) path() string {
	switch {
	case e.in == nil || e.in.listed != nil:
		return e.name
	case e.in.tar:
		return e.in.path + "/" + e.name // as tar writes it
	}
	return filepath.Join(e.in.path, e.name)
}

// openImages opens the images that inputs list. They are read and decoded when
// they are asked for; only their names are kept, some 100 bytes an image.
func openImages(inputs []string, opts Options) (Dataset, error) {
	l := opts.newListing()
	if err := l.list(inputs); err != nil {
		return nil, err
	}
	files := l.examples
	e := &examples{n: len(files), sources: l.sources, classNames: opts.ClassNames, name: func(i int) string { return files[i].path() }}
	if opts.Labels == "" && !opts.Unlabelled {
		var err error
		if e.labels, e.classNames, err = l.truth(opts.Truth, opts.ClassNames); err != nil {
			return nil, err
		}
	}
	return opts.openPictures(e, inputs[0], func(i int) (*example, error) { return &files[i], nil })
}

// openPictures returns the dataset of examples that are known one by one. of names them
// all.
func (opts Options) openPictures(e *examples, of string, at func(i int) (*example, error)) (Dataset, error) {
	if opts.Labels != "" {
		err := e.readLabels(opts.Labels, "", of, opts)
		if err == nil {
			err = checkLabels(e.labels, e.classNames, opts.Labels)
		}
		if err != nil {
			return nil, err
		}
	}
	p, err := opts.preprocess()
	if err != nil {
		return nil, err
	}
	shape := opts.Shape
	if shape == nil {
		shape = []int64{-1, -1, -1}
	}
	budget := newBudget(opts.Memory)
	d, err := opts.pictures(e, p, shape, 0, 0, func(p preprocess.Settings, i int, use func(picture.Picture) error) error {
		x, err := at(i)
		if err != nil {
			return err
		}
		return x.decode(budget, p.Channels == "grey", use)
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", of, err)
	}
	return d, nil
}

// decode reads and decodes an example, and calls use with the picture.
func (e *example) decode(b *budget, grey bool, use func(picture.Picture) error) error {
	if err := e.unlisted(); err != nil {
		return err
	}
	f, release, off, size, err := e.open()
	if err != nil {
		return err
	}
	defer release()
	if size > b.all {
		return &MemoryError{What: "reading a file of this size", Bytes: size, Limit: b.all}
	}
	// Decoding is waited for with the file in hand, never the reverse: no deadlock.
	defer b.files.take(size)()
	data := make([]byte, size)
	if _, err := io.ReadFull(io.NewSectionReader(f, off, size), data); err != nil {
		return file.Cause(file.Truncated(err))
	}
	header, err := picture.Open(data)
	if err != nil {
		return err
	}
	n := header.Memory(grey)
	if size+n > b.all {
		return &MemoryError{What: fmt.Sprintf("decoding %d×%d pixels", header.W, header.H), Bytes: size + n, Limit: b.all}
	}
	defer b.decoding.take(n)()
	if n >= b.large {
		defer runtime.GC()
	}
	p, err := header.Decode(grey)
	if err != nil {
		return err
	}
	return use(p)
}

// open opens the file that holds the example's bytes, and returns where they begin
// and how many they are. The caller releases it.
func (e *example) open() (f *os.File, release func(), off, size int64, err error) {
	if e.in != nil && e.in.listed != nil {
		r := &e.in.listed[e.at]
		f, release, err = r.open(e.name, e.in.spool)
		return f, release, r.off, r.size, err
	}
	path := e.path()
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
