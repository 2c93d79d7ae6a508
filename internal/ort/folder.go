package ort

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"

	"github.com/swagwrap/swagwrap/internal/tempfile"
	"github.com/swagwrap/swagwrap/onnxio"
)

// NewFilledSession is NewSession for a model that has not been assembled yet. A model with data files is written to a
// temporary folder, and ONNX Runtime maps the files from there. So the session needs hardly more memory than a run
// touches. The folder is removed before NewFilledSession returns, because mapped files need no name. If ctx ends, the
// writing stops.
func (r *Runtime) NewFilledSession(ctx context.Context, f onnxio.Filled, opts Options) (*Session, error) {
	if opts.Provider.Feeds() {
		if s, err := r.feed(ctx, f, opts); !errors.Is(err, onnxio.ErrNotFed) {
			return s, err
		}
	}
	if opts.Provider.Precision == F16 {
		half, err := f.Half()
		if err != nil {
			return nil, err
		}
		f = half
	}
	sig, err := f.Template.Signature()
	if err != nil {
		return nil, err
	}
	if len(f.Template.Files()) == 1 {
		model, err := f.Template.Render(f.Layout, f.Parameters, f.Statistics)
		if err != nil {
			return nil, err
		}
		return r.load(ctx, model, sig, "", int64(len(model)), opts)
	}
	dir, err := tempfile.Folder()
	if err != nil {
		return nil, err
	}
	defer tempfile.Remove(dir)
	model, err := writeFolder(ctx, dir, f)
	if err != nil {
		return nil, err
	}
	return r.load(ctx, model, sig, dir, f.Template.Size(), opts)
}

// writeFolder writes the data files of the model to dir and returns the model.
func writeFolder(ctx context.Context, dir string, f onnxio.Filled) (model []byte, err error) {
	root, err := os.OpenRoot(dir) // the file names come from a posterior, which is untrusted
	if err != nil {
		return nil, tempfile.Temp(err)
	}
	defer root.Close()
	var main bytes.Buffer
	var files []*os.File
	defer func() {
		for _, file := range files {
			err = cmp.Or(err, tempfile.Temp(file.Close()))
		}
		if err != nil {
			model, err = nil, fmt.Errorf("temporary copy of a model of %d bytes: %w", f.Template.Size(), err)
		}
	}()
	name := f.Template.Files()[0]
	err = f.Template.Write(name, func(file string) (io.Writer, error) {
		if file == name {
			return &main, nil
		}
		if err := root.MkdirAll(path.Dir(file), 0o700); err != nil {
			return nil, tempfile.Temp(err)
		}
		out, err := root.Create(file)
		if err != nil {
			return nil, tempfile.Temp(err)
		}
		files = append(files, out)
		return until{ctx.Err, out}, nil
	}, f.Layout, f.Parameters, f.Statistics)
	return main.Bytes(), err
}

// until is a temporary file whose writes fail as soon as ended returns an error.
type until struct {
	ended func() error
	file  *os.File
}

func (u until) Write(p []byte) (int, error) {
	if err := u.ended(); err != nil {
		return 0, err
	}
	n, err := u.file.Write(p)
	return n, tempfile.Temp(err)
}
