package console

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/swagwrap/swagwrap/internal/file"
	"github.com/swagwrap/swagwrap/internal/kind"
	"github.com/swagwrap/swagwrap/internal/step"
	"github.com/swagwrap/swagwrap/internal/tempfile"
)

// Output is a file that appears completely or not at all. It is written under another name in the same folder. It takes
// its own name when it is complete and on disk; see [Together]. Output for standard output is written to a temporary
// file, and copied when it is complete.
type Output struct {
	*os.File
	Path   string
	force  bool
	ours   func(path string) bool // whether an existing file may be replaced
	stdout io.Writer              // nil for a file
	before string                 // a second name of the file that this one replaced; see [Together]
}

// underWay holds the absolute paths of unfinished outputs.
var underWay sync.Map

// CreateOutput opens a temporary file for path. It fails if path is not a regular file, or if it exists and force is
// false. With force it replaces only what this program wrote: see [kind.Written]. It also fails if path is an input or
// another output of this command.
func CreateOutput(path string, force bool) (*Output, error) {
	return CreateCompanion(path, force, kind.Written)
}

// CreateCompanion is [CreateOutput] for a file that itself does not show who wrote it. ours says whether this program did.
func CreateCompanion(path string, force bool, ours func(path string) bool) (*Output, error) {
	if path == "" {
		return nil, Usagef("say where the result goes: -o FILE", "no output file")
	}
	if err := checkPlace(path, force, ours); err != nil {
		return nil, err
	}
	if _, twice := underWay.LoadOrStore(file.Absolute(path), true); twice {
		return nil, Usagef("choose another name for one of them", "%s: is two outputs of this command", path)
	}
	f, err := tempfile.File(filepath.Dir(path))
	if err != nil {
		underWay.Delete(file.Absolute(path))
		return nil, BadOutput(fmt.Errorf("%s: cannot be written: %w", path, file.Cause(err)),
			"does its folder exist, and may you write there?")
	}
	return &Output{File: f, Path: path, force: force, ours: ours}, nil
}

// checkPlace returns an error if no output can have this path.
func checkPlace(path string, force bool, ours func(path string) bool) error {
	info, err := os.Lstat(path)
	if err != nil {
		return nil // creating the file reports the error
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
	switch mine := ours(path); {
	case !mine:
		return Usagef("choose another name, or remove the file yourself: --force replaces only files that swagwrap wrote",
			"%s: exists already, and is not a file that swagwrap wrote", path)
	case !force:
		return Usagef("--force overwrites it", "%s: exists already", path)
	}
	return nil
}

// CreateResult is like [CreateOutput] for -o, which may be standard output. Only a text result may go to a terminal.
func (a *Env) CreateResult(path string, force, text bool) (*Output, error) {
	if !file.IsStdout(path) {
		return CreateOutput(path, force)
	}
	if err := a.Stdout.Ready(); err != nil {
		return nil, err
	}
	if !text && a.Stdout.Terminal() {
		return nil, Usagef("name a file, or send it somewhere: -o - > FILE", "%s: is a terminal, and the result is not text", path)
	}
	a.Streamed = true
	f, err := tempfile.Temporary()
	if err != nil {
		return nil, err
	}
	return &Output{File: f, Path: path, stdout: a.Stdout}, nil
}

// Write and WriteAt name the file in errors by the path that the user gave.
func (o *Output) Write(p []byte) (int, error) {
	n, err := o.File.Write(p)
	step.Reached(step.Wrote)
	return n, BadOutput(o.named(err))
}

func (o *Output) WriteAt(p []byte, off int64) (int, error) {
	n, err := o.File.WriteAt(p, off)
	step.Reached(step.Wrote)
	return n, BadOutput(o.named(err))
}

func (o *Output) named(err error) error {
	var at *fs.PathError
	if errors.As(err, &at) {
		return fmt.Errorf("%s: %w", o.Path, at.Err)
	}
	return err
}

// Unlike fails if the output would replace a file that this program may not have written, and that has other bytes. Call it
// when the output is complete.
func (o *Output) Unlike() error {
	if _, err := os.Lstat(o.Path); err != nil || kind.Written(o.Path) {
		return nil
	}
	same, err := file.Same(o.File, o.Path)
	if err != nil {
		return BadOutput(file.Error(o.Path, err))
	}
	if !same {
		return Usagef("choose another name, or remove the file yourself",
			"%s: holds another array, and nothing in it shows that swagwrap wrote it", o.Path)
	}
	return nil
}

// copyOut copies the file to standard output.
func (o *Output) copyOut() error {
	_, err := o.File.Seek(0, io.SeekStart)
	if err == nil {
		_, err = io.Copy(o.stdout, o.File)
	}
	return BadOutput(err)
}

// Abort removes the unfinished file. It does nothing after Commit, and for a nil Output.
func (o *Output) Abort() {
	if o == nil {
		return
	}
	// Close the file last: without its lock, others would take it for a dead process's file. After Commit the name is
	// gone, or belongs to another process.
	if _, err := o.Stat(); err == nil {
		tempfile.Remove(o.Name())
		underWay.Delete(file.Absolute(o.Path))
		o.Close()
	}
}

// WriteJSON writes v as indented JSON.
func WriteJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}
