// Package file opens the files that a user names, and says what is wrong with
// them in the program's words.
package file

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// Open opens a regular file as an [Input] and returns its size in bytes. Errors say
// nothing of the path, and of what is no regular file that it should be what want
// says.
func Open(path, want string) (*os.File, int64, error) {
	if err := Input(path); err != nil {
		return nil, 0, err
	}
	return OpenListed(path, want)
}

// OpenListed is Open for one of very many files, which are held against the outputs
// as by [Listed].
func OpenListed(path, want string) (*os.File, int64, error) {
	// Stat first: opening a FIFO would block.
	info, err := os.Stat(path)
	if err != nil {
		return nil, 0, Cause(err)
	}
	if !info.Mode().IsRegular() {
		return nil, 0, fmt.Errorf("not a regular file, want %s", want)
	}
	if err := Listed(info); err != nil {
		return nil, 0, err
	}
	f, err := os.Open(path)
	return f, info.Size(), Cause(err)
}

// Read reads a file of settings or text as an [Input], of at most the given number
// of bytes.
func Read(path string, most int64) ([]byte, error) {
	if err := Input(path); err != nil {
		return nil, err
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, Error(path, err)
	}
	if !info.Mode().IsRegular() || info.Size() > most {
		return nil, fmt.Errorf("%s: want a regular file of at most %d bytes", path, most)
	}
	b, err := os.ReadFile(path)
	return b, Error(path, err)
}

// Error puts the path in front of err, as all our errors have it; package os
// would write "open x.npy: no such file". Without an error there is none.
func Error(path string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", path, Cause(err))
}

// Cause takes off what package os says before the cause.
func Cause(err error) error {
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		return pe.Err
	}
	return err
}

// Truncated says in our words what "EOF" and "unexpected EOF" mean for a file.
// Other errors stay as they are.
func Truncated(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("truncated: %w", io.ErrUnexpectedEOF)
	}
	return err
}
