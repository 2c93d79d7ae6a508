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
	at    int32  // in place.entries, in a tar
	label int32  // index into listing.labels, or -1
}

// place is a folder or a tar that holds examples.
type place struct {
	path    string
	tar     bool
	entries []entry // of a tar
	err     error   // that it could not be listed, which makes it an example itself
}

// unlisted is the error of an example that stands for a folder that could not be read.
func (e *example) unlisted() error {
	if e.in == nil {
		return nil
	}
	return e.in.err
}

// entry is where the bytes of an image lie in a tar.
type entry struct{ off, size int64 }

func (e *example) path() string {
	switch {
	case e.in == nil:
		return e.name
	case e.in.tar:
		return e.in.path + "/" + e.name // as tar writes it
	}
	return filepath.Join(e.in.path, e.name)
}

// openImages opens the images that inputs list. They are read and decoded when
// they are asked for; only their names are kept, some 100 bytes an image.
func openImages(inputs []string, opts Options) (Dataset, error) {
	l, err := list(inputs, opts.ClassNames == nil, opts.Unlabelled)
	if err != nil {
		return nil, err
	}
	files := l.examples
	e := &examples{n: len(files), sources: l.sources, classNames: opts.ClassNames, name: func(i int) string { return files[i].path() }}
	if opts.Labels != "" {
		if err = e.readLabels(opts.Labels, opts.LabelsKey, "", inputs[0]); err == nil {
			err = checkLabels(e.labels, e.classNames, opts.Labels)
		}
	} else if !opts.Unlabelled {
		e.labels, e.classNames, err = l.classes(opts.ClassNames)
	}
	if err != nil {
		return nil, err
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
		return files[i].decode(budget, p.Channels == "grey", use)
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", inputs[0], err)
	}
	return d, nil
}

// decode reads and decodes an example, and calls use with the picture.
func (e *example) decode(b *budget, grey bool, use func(picture.Picture) error) error {
	if err := e.unlisted(); err != nil {
		return err
	}
	f, off, size, err := e.open()
	if err != nil {
		return err
	}
	defer f.Close()
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
// and how many they are.
func (e *example) open() (f *os.File, off, size int64, err error) {
	if e.in == nil || !e.in.tar {
		f, size, err = file.OpenListed(e.path(), "an image")
		return f, 0, size, err
	}
	in := e.in.entries[e.at]
	f, _, err = file.OpenListed(e.in.path, "an image")
	return f, in.off, in.size, err
}
