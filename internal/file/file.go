// Package file opens the files that a user names and reports errors in the program's own words.
package file

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// Open opens a regular file as an [Input] and returns its size in bytes. Errors do not contain the path. If path is
// not a regular file, the error says that it should be want.
func Open(path, want string) (*os.File, int64, error) {
	if err := Input(path); err != nil {
		return nil, 0, err
	}
	return OpenListed(path, want)
}

// OpenListed is Open for one of very many files. It compares the file with the outputs as [Listed] does.
func OpenListed(path, want string) (*os.File, int64, error) {
	f, info, err := Regular(path)
	if errors.Is(err, ErrNotRegular) {
		return nil, 0, fmt.Errorf("%w, want %s", ErrNotRegular, want)
	}
	if err != nil {
		return nil, 0, Cause(err)
	}
	if err := Listed(info); err != nil {
		f.Close()
		return nil, 0, err
	}
	return f, info.Size(), nil
}

// With opens a file as [Open] does, and calls f with it and its size in bytes. Errors begin with the path. A panic of f
// is the error of a damaged file: the Parquet library panics on some.
func With(path, want string, f func(f *os.File, size int64) error) (err error) {
	in, size, err := Open(path, want)
	if err != nil {
		return Error(path, err)
	}
	defer in.Close()
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("damaged: %v", r)
		}
		err = Error(path, err)
	}()
	return f(in, size)
}

// ErrNotRegular is the error of a folder, pipe, socket or device where a file should be.
var ErrNotRegular = errors.New("not a regular file")

// OnOpen, if not nil, is called with the path of each file that [Regular] opens, from several goroutines. A test counts
// with it how often a command opens a file.
var OnOpen func(path string)

// Regular opens the regular file at path. All files from outside are opened by it, since
// opening or reading a pipe would wait for its writer. An error is a [*fs.PathError].
func Regular(path string) (*os.File, fs.FileInfo, error) {
	if OnOpen != nil {
		OnOpen(path)
	}
	info, err := os.Stat(path) // opening a device may do something
	if err != nil {
		return nil, nil, &fs.PathError{Op: "open", Path: path, Err: Cause(err)}
	}
	if !info.Mode().IsRegular() {
		return nil, nil, &fs.PathError{Op: "open", Path: path, Err: ErrNotRegular}
	}
	f, err := os.OpenFile(path, os.O_RDONLY|nonblock, 0)
	if err != nil {
		return nil, nil, err
	}
	if info, err = f.Stat(); err == nil && !info.Mode().IsRegular() { // another took its place
		err = &fs.PathError{Op: "open", Path: path, Err: ErrNotRegular}
	}
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	return f, info, nil
}

// Read reads a file of settings or text as an [Input], of at most the given number
// of bytes.
func Read(path string, most int64) ([]byte, error) {
	if err := Input(path); err != nil {
		return nil, err
	}
	return Content(path, most)
}

// Content is Read for a file that is no input, such as one of an earlier run that this one may replace.
func Content(path string, most int64) ([]byte, error) {
	f, info, err := Regular(path)
	if errors.Is(err, ErrNotRegular) || err == nil && info.Size() > most {
		err = fmt.Errorf("want a regular file of at most %d bytes", most)
	}
	if f != nil {
		defer f.Close()
	}
	if err != nil {
		return nil, Error(path, err)
	}
	b, err := io.ReadAll(io.LimitReader(f, most))
	return b, Error(path, err)
}

// Same reports whether the file at path has the bytes of f.
func Same(f *os.File, path string) (bool, error) {
	other, info, err := Regular(path)
	if err != nil {
		return false, err
	}
	defer other.Close()
	own, err := f.Stat()
	if err != nil || own.Size() != info.Size() {
		return false, err
	}
	a, b := bufio.NewReader(io.NewSectionReader(f, 0, own.Size())), bufio.NewReader(other)
	for {
		x, errA := a.ReadByte()
		y, errB := b.ReadByte()
		switch {
		case errA == io.EOF && errB == io.EOF:
			return true, nil
		case errA != nil || errB != nil:
			return false, cmp.Or(errA, errB)
		case x != y:
			return false, nil
		}
	}
}

// Error puts the path before err, without the "open x.npy:" that package os puts there. It returns nil for nil.
func Error(path string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", path, Cause(err))
}

// Cause removes the operation and the paths that package os puts before an error.
func Cause(err error) error {
	if at, ok := errors.AsType[*fs.PathError](err); ok {
		return at.Err
	}
	if at, ok := errors.AsType[*os.LinkError](err); ok {
		return at.Err
	}
	return err
}

// Truncated replaces "EOF" and "unexpected EOF" with a clearer error. It returns other errors unchanged.
func Truncated(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("truncated: %w", io.ErrUnexpectedEOF)
	}
	return err
}
