package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// output is a file that appears whole or not at all: it is written under
// another name beside its place, and takes its own name once it is complete
// and on disk.
type output struct {
	*os.File
	path  string
	force bool
}

// createOutput opens a temporary file for path. It refuses a path that exists,
// unless force is set, and one that is any of the inputs.
func createOutput(path string, force bool, inputs ...string) (*output, error) {
	if path == "" {
		return nil, usagef("say where the result goes: -o FILE", "no output file")
	}
	if fi, err := os.Stat(path); err == nil {
		for _, in := range inputs {
			if ifi, err := os.Stat(in); err == nil && os.SameFile(fi, ifi) {
				return nil, usagef("choose another name for the output", "%s: is an input of this command too", path)
			}
		}
		if fi.IsDir() {
			return nil, usagef("name a file in it", "%s: is a folder", path)
		}
		if !force {
			return nil, usagef("--force overwrites it", "%s: exists already", path)
		}
	}
	host, _ := os.Hostname()
	prefix := filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".swagwrap-"+host+"-")
	removeStale(prefix)
	f, err := os.OpenFile(prefix+strconv.Itoa(os.Getpid())+".tmp", os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o666)
	if err != nil {
		return nil, badOutput(fmt.Errorf("%s: cannot be written: %w", path, errors.Unwrap(err)), "does its folder exist, and may you write there?")
	}
	return &output{File: f, path: path, force: force}, nil
}

// removeStale removes what earlier processes on this machine left behind when
// they were killed.
func removeStale(prefix string) {
	found, _ := filepath.Glob(prefix + "*.tmp")
	for _, name := range found {
		pid, err := strconv.Atoi(strings.TrimSuffix(strings.TrimPrefix(name, prefix), ".tmp"))
		if err == nil && errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
			os.Remove(name)
		}
	}
}

// Write and WriteAt name the file as the user knows it.
func (o *output) Write(p []byte) (int, error) {
	n, err := o.File.Write(p)
	return n, badOutput(o.named(err))
}

func (o *output) WriteAt(p []byte, off int64) (int, error) {
	n, err := o.File.WriteAt(p, off)
	return n, badOutput(o.named(err))
}

func (o *output) named(err error) error {
	var at *fs.PathError
	if errors.As(err, &at) {
		return fmt.Errorf("%s: %w", o.path, at.Err)
	}
	return err
}

// commit puts the file in its place.
func (o *output) commit() error {
	err := o.Sync()
	if cerr := o.Close(); err == nil {
		err = cerr
	}
	if err == nil && !o.force {
		if _, serr := os.Stat(o.path); !errors.Is(serr, fs.ErrNotExist) {
			err = errors.New("appeared while this command ran")
		}
	}
	if err == nil {
		err = os.Rename(o.Name(), o.path)
	}
	if err != nil {
		os.Remove(o.Name())
		return badOutput(fmt.Errorf("%s: %w", o.path, err))
	}
	if dir, err := os.Open(filepath.Dir(o.path)); err == nil {
		defer dir.Close()
		dir.Sync() // some file systems cannot; the file itself is safe by now
	}
	return nil
}

// abort removes the unfinished file. After commit it does nothing.
func (o *output) abort() {
	if o.Close() == nil {
		os.Remove(o.Name())
	}
}
