package flags

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"sync"
	"syscall"

	"github.com/vbauerster/mpb/v8/cwriter"

	"github.com/swagwrap/swagwrap/internal/file"
	"github.com/swagwrap/swagwrap/internal/unfinished"
	"github.com/swagwrap/swagwrap/weights"
)

// Output is a file that appears whole or not at all: it is written under
// another name beside its place, and takes its own name once it is complete
// and on disk. What goes to standard output is written to a temporary file, and
// copied when it is complete.
type Output struct {
	*os.File
	Path   string
	force  bool
	stdout io.Writer // nil for a file
}

// underWay holds the absolute paths of the outputs that are being written.
var underWay sync.Map

// CreateOutput opens a temporary file for path. It refuses a path that is no regular
// file, one that exists, unless force is set, and one that is an input, or another
// output, of this command.
func CreateOutput(path string, force bool) (*Output, error) {
	if path == "" {
		return nil, Usagef("say where the result goes: -o FILE", "no output file")
	}
	if err := checkPlace(path, force); err != nil {
		return nil, err
	}
	if _, twice := underWay.LoadOrStore(absolute(path), true); twice {
		return nil, Usagef("choose another name for one of them", "%s: is two outputs of this command", path)
	}
	f, err := unfinished.File(filepath.Dir(path))
	if err != nil {
		underWay.Delete(absolute(path))
		return nil, BadOutput(fmt.Errorf("%s: cannot be written: %w", path, file.Cause(err)), "does its folder exist, and may you write there?")
	}
	return &Output{File: f, Path: path, force: force}, nil
}

// checkPlace says why no output can have that path.
func checkPlace(path string, force bool) error {
	info, err := os.Lstat(path)
	if err != nil {
		return nil // creating the file says why not
	}
	link := info.Mode()&fs.ModeSymlink != 0
	if to, err := os.Stat(path); err == nil {
		info = to
	}
	switch dangling := info.Mode()&fs.ModeSymlink != 0; {
	case info.IsDir():
		return Usagef("name a file in it", "%s: is a folder", path)
	case link && (dangling || info.Mode().IsRegular()):
		to, err := filepath.EvalSymlinks(path)
		if err != nil {
			to, _ = os.Readlink(path)
		}
		return Usagef("name the file itself: "+to, "%s: is a symbolic link, want a regular file", path)
	case !info.Mode().IsRegular():
		return Usagef("-o - writes to standard output", "%s: is a device, a pipe or a socket, want a regular file", path)
	}
	if err := file.Output(path); err != nil {
		return err
	}
	if !force {
		return Usagef("--force overwrites it", "%s: exists already", path)
	}
	return nil
}

// IsStdout reports whether path is one of the names of standard output.
func IsStdout(path string) bool {
	return slices.Contains([]string{"-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"}, path)
}

// CreateResult is CreateOutput for -o, which may be standard output. That must not be
// a terminal, unless the result is text.
func (a *Env) CreateResult(path string, force, text bool) (*Output, error) {
	if !IsStdout(path) {
		return CreateOutput(path, force)
	}
	if to, ok := a.Stdout.(*os.File); ok && !text && cwriter.IsTerminal(int(to.Fd())) {
		return nil, Usagef("name a file, or send it somewhere: -o - > FILE", "%s: is a terminal, and the result is not text", path)
	}
	f, err := unfinished.Temporary()
	if err != nil {
		return nil, err
	}
	return &Output{File: f, Path: path, stdout: a.Stdout}, nil
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

// Commit puts the file in its place. It fails if a file that it was made from
// changed while it was read.
func (o *Output) Commit() error {
	defer o.Abort()
	if err := weights.Changed(); err != nil {
		return err
	}
	if o.stdout != nil {
		return o.copyOut()
	}
	if err := o.Sync(); err != nil {
		return BadOutput(fmt.Errorf("%s: %w", o.Path, file.Cause(err)))
	}
	place := unfinished.Place
	if o.force {
		if err := checkPlace(o.Path, true); err != nil { // may have changed
			return err
		}
		place = unfinished.Replace
	}
	err := place(o.Name(), o.Path)
	if errors.Is(err, fs.ErrExist) {
		return BadOutput(fmt.Errorf("%s: appeared while this command ran", o.Path), "another run may have written it: look at it, or --force overwrites it")
	}
	if err != nil {
		return BadOutput(fmt.Errorf("%s: %w", o.Path, err))
	}
	file.Written(o.Path)
	if dir, err := os.Open(filepath.Dir(o.Path)); err == nil {
		defer dir.Close()
		dir.Sync() // some file systems cannot; the file itself is safe by now
	}
	return nil
}

// copyOut copies the file to standard output.
func (o *Output) copyOut() error {
	// A reader that has enough must not end the process before it has cleared away.
	signal.Ignore(syscall.SIGPIPE)
	defer signal.Reset(syscall.SIGPIPE)
	_, err := o.File.Seek(0, io.SeekStart)
	if err == nil {
		_, err = io.Copy(o.stdout, o.File)
	}
	return BadOutput(file.Error("standard output", err))
}

// Abort removes the unfinished file. After Commit it does nothing.
func (o *Output) Abort() {
	// Closed last: without its lock it would be a dead process's to others. After
	// Commit the name is gone, or another process's.
	if _, err := o.Stat(); err == nil {
		unfinished.Remove(o.Name())
		underWay.Delete(absolute(o.Path))
		o.Close()
	}
}

// absolute returns path as seen from anywhere.
func absolute(path string) string {
	abs, err := filepath.Abs(path)
	if err != nil {
		return path
	}
	return abs
}

// WriteJSON writes v for people to read.
func WriteJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// RelativeTo returns path as seen from the folder of file, so that both can
// move together. What is on standard output may go anywhere.
func RelativeTo(file, path string) string {
	abs := absolute(path)
	if IsStdout(file) {
		return filepath.ToSlash(abs)
	}
	rel, err := filepath.Rel(absolute(filepath.Dir(file)), abs)
	if err != nil {
		return path
	}
	return filepath.ToSlash(rel)
}
