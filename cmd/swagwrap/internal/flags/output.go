package flags

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/swagwrap/swagwrap/internal/unfinished"
)

// Output is a file that appears whole or not at all: it is written under
// another name beside its place, and takes its own name once it is complete
// and on disk.
type Output struct {
	*os.File
	Path  string
	force bool
}

// CreateOutput opens a temporary file for path. It refuses a path that exists,
// unless force is set, and one that is any of the inputs.
func CreateOutput(path string, force bool, inputs ...string) (*Output, error) {
	if path == "" {
		return nil, Usagef("say where the result goes: -o FILE", "no output file")
	}
	if fi, err := os.Stat(path); err == nil {
		for _, in := range inputs {
			if ifi, err := os.Stat(in); err == nil && os.SameFile(fi, ifi) {
				return nil, Usagef("choose another name for the output", "%s: is an input of this command too", path)
			}
		}
		if fi.IsDir() {
			return nil, Usagef("name a file in it", "%s: is a folder", path)
		}
		if !force {
			return nil, Usagef("--force overwrites it", "%s: exists already", path)
		}
	}
	f, err := unfinished.File(filepath.Dir(path))
	if err != nil {
		return nil, BadOutput(fmt.Errorf("%s: cannot be written: %w", path, errors.Unwrap(err)), "does its folder exist, and may you write there?")
	}
	return &Output{File: f, Path: path, force: force}, nil
}

// RemoveUnfinished removes every file and folder that is not whole yet. It is for a
// process that cannot wait for its work to end, and calls os.Exit next.
func RemoveUnfinished() { unfinished.RemoveAll() }

// Write and WriteAt name the file as the user knows it.
func (o *Output) Write(p []byte) (int, error) {
	n, err := o.File.Write(p)
	return n, BadOutput(o.named(err))
}

func (o *Output) WriteAt(p []byte, off int64) (int, error) {
	n, err := o.File.WriteAt(p, off)
	return n, BadOutput(o.named(err))
}

func (o *Output) named(err error) error {
	var at *fs.PathError
	if errors.As(err, &at) {
		return fmt.Errorf("%s: %w", o.Path, at.Err)
	}
	return err
}

// Commit puts the file in its place.
func (o *Output) Commit() error {
	err := o.Sync()
	if err == nil && !o.force {
		if _, serr := os.Stat(o.Path); !errors.Is(serr, fs.ErrNotExist) {
			err = errors.New("appeared while this command ran")
		}
	}
	if err == nil {
		err = unfinished.Rename(o.Name(), o.Path)
	}
	if err != nil {
		o.Abort()
		return BadOutput(fmt.Errorf("%s: %w", o.Path, err))
	}
	o.Close() // not before: to other processes it would be a dead one's
	if dir, err := os.Open(filepath.Dir(o.Path)); err == nil {
		defer dir.Close()
		dir.Sync() // some file systems cannot; the file itself is safe by now
	}
	return nil
}

// Abort removes the Unfinished file. After Commit it does nothing.
func (o *Output) Abort() {
	if o.Close() == nil {
		unfinished.Remove(o.Name())
	}
}

// WriteJSON writes v for people to read.
func WriteJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// RelativeTo returns path as seen from the folder of file, so that both can
// move together.
func RelativeTo(file, path string) string {
	dir, err1 := filepath.Abs(filepath.Dir(file))
	abs, err2 := filepath.Abs(path)
	rel, err3 := filepath.Rel(dir, abs)
	if err1 != nil || err2 != nil || err3 != nil {
		return path
	}
	return filepath.ToSlash(rel)
}
