package console

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/swagwrap/swagwrap/internal/file"
	"github.com/swagwrap/swagwrap/internal/step"
	"github.com/swagwrap/swagwrap/internal/tempfile"
	"github.com/swagwrap/swagwrap/weights"
)

// Together puts all outputs of a command in their places, or none of them. All files are complete and on disk before
// the first one gets its name. If a later file cannot get its name, Together takes back the names of the earlier ones
// and restores the files that they replaced. Only a process that is killed between two renames leaves some of the
// files.
type Together struct {
	// Print prints the result on standard output, and may be nil. If it fails, no file appears. There is one
	// exception: if the reader of standard output has gone, the files appear and Commit returns the error.
	Print func() error
	// Check examines the files in their places, and may be nil. If it fails, the files are removed.
	Check func() error
}

// Commit is like [Together.Commit], without Print and Check.
func Commit(outputs ...*Output) error { return Together{}.Commit(outputs...) }

// Commit copies outputs for standard output, calls Print, puts the files in their places in the given order, and calls
// Check. It ignores nil outputs. It fails if an input changed while it was read.
func (t Together) Commit(outputs ...*Output) (err error) {
	var files []*Output
	shows := []func() error{}
	for _, o := range outputs {
		switch {
		case o == nil:
			continue
		case o.stdout != nil:
			shows = append(shows, o.copyOut)
		default:
			files = append(files, o)
		}
		defer o.Abort()
	}
	if err := weights.Changed(); err != nil {
		return err
	}
	for _, o := range files {
		if err := o.ready(); err != nil {
			return err
		}
	}
	if t.Print != nil {
		shows = append(shows, t.Print)
	}
	step.Reached(step.Synced)
	var lost error
	for _, p := range shows {
		if lost = errors.Join(lost, BadOutput(p())); lost != nil && !gone(lost) {
			return lost
		}
	}
	for i, o := range files {
		if err := o.place(len(files) > 1 || t.Check != nil); err != nil {
			undo(files[:i])
			return err
		}
	}
	if t.Check != nil {
		if err := t.Check(); err != nil {
			undo(files)
			return err
		}
	}
	for _, o := range files {
		o.settle()
	}
	return lost
}

// Commit puts one file in its place.
func (o *Output) Commit() error { return Commit(o) }

// ready writes the content to disk, and checks the place again.
func (o *Output) ready() error {
	if err := o.Sync(); err != nil {
		return BadOutput(fmt.Errorf("%s: %w", o.Path, file.Cause(err)))
	}
	if o.force {
		return checkPlace(o.Path, true, o.ours) // it may have changed
	}
	return nil
}

// place gives the file its name. With keep, the file that it replaces gets a second name, so that undo can restore it.
func (o *Output) place(keep bool) error {
	place := tempfile.Place
	if o.force {
		place = tempfile.Replace
		if keep {
			o.before, _ = tempfile.Backup(o.Path) // there may be none, or no hard links
		}
	}
	err := place(o.Name(), o.Path)
	if err == nil {
		return nil
	}
	if o.before != "" {
		tempfile.Remove(o.before)
	}
	if errors.Is(err, fs.ErrExist) {
		return BadOutput(fmt.Errorf("%s: appeared while this command ran", o.Path),
			"another run may have written it: look at it, or --force overwrites it")
	}
	return BadOutput(fmt.Errorf("%s: %w", o.Path, err))
}

// undo takes back the names that place gave, the last one first.
func undo(placed []*Output) {
	for i := len(placed) - 1; i >= 0; i-- {
		o := placed[i]
		here, err1 := os.Lstat(o.Path)
		mine, err2 := o.Stat()
		switch {
		case err1 != nil || err2 != nil || !os.SameFile(here, mine): // another process has replaced it
			if o.before != "" {
				tempfile.Remove(o.before)
			}
		case o.before != "":
			tempfile.Replace(o.before, o.Path)
		default:
			os.Remove(o.Path)
		}
	}
}

// settle removes the second name of a replaced file, and writes the folder to disk.
func (o *Output) settle() {
	if o.before != "" {
		tempfile.Remove(o.before)
	}
	file.Written(o.Path)
	if dir, err := os.Open(filepath.Dir(o.Path)); err == nil {
		defer dir.Close()
		dir.Sync() // some file systems cannot do this; the file itself is already safe
	}
}
