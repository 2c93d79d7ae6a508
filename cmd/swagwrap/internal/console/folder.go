package console

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/swagwrap/swagwrap/internal/file"
	"github.com/swagwrap/swagwrap/internal/tempfile"
)

// Folder is a folder of results that appears completely or not at all. A command works in a new folder next to it. At the
// end the new folder takes the name. With force it replaces a folder in which every file was written by such a command. A
// folder with other files is refused, so that no file is lost.
//
// One process at a time makes a folder. A process that is killed leaves the old folder whole, and its new folder next to
// it. The next process removes that.
type Folder struct {
	Path string // as the user named it
	Work string // where it is until Commit. Messages call it Path; see [file.Named]

	real   string // Path without symbolic links
	made   []string
	old    []listed // the files that it replaces
	unlock func()
}

// CreateFolder makes the folder to work in. The caller calls Commit or Abort.
func CreateFolder(path string, force bool) (*Folder, error) {
	f := &Folder{unlock: func() {}}
	if err := f.begin(path, force); err != nil {
		f.Abort()
		return nil, err
	}
	file.Name(f.Work, f.Path)
	return f, nil
}

func (f *Folder) begin(path string, force bool) (err error) {
	if f.Path, f.real, err = folderPlace(path); err != nil {
		return err
	}
	if err := f.makeParents(); err != nil {
		return f.cannot(err)
	}
	if err := f.lock(); err != nil {
		return err
	}
	if err := f.restore(); err != nil {
		return err
	}
	if err := f.look(force); err != nil {
		return err
	}
	if f.Work, err = tempfile.Sibling(filepath.Dir(f.Path)); err != nil {
		return f.cannot(err)
	}
	return nil
}

// Replaces reports whether the folder takes the place of an older one.
func (f *Folder) Replaces() bool { return f.old != nil }

func (f *Folder) cannot(err error) error {
	return BadOutput(fmt.Errorf("%s: cannot be written: %w", f.Path, file.Cause(err)),
		"results are made in a new folder next to it: may you write to "+filepath.Dir(f.Path)+"?")
}

// makeParents makes the folders above, and remembers them for Abort.
func (f *Folder) makeParents() error {
	var missing []string
	for dir := filepath.Dir(f.real); ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
			break
		}
		missing = append(missing, dir)
	}
	for _, dir := range slices.Backward(missing) {
		err := os.Mkdir(dir, 0o777)
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		if err == nil {
			f.made = append(f.made, dir)
		}
	}
	return nil
}

// lock makes this process the only one that makes the folder.
func (f *Folder) lock() error {
	unlock, err := tempfile.Lock(f.beside("lock"))
	switch {
	case errors.Is(err, tempfile.ErrLocked):
		return BadOutput(fmt.Errorf("%s: another command is writing it", f.Path),
			"try again when it has ended, or -o FOLDER takes another folder")
	case err != nil:
		return f.cannot(err)
	}
	f.unlock = unlock
	return nil
}

// beside returns the path of a file or folder that stands next to the folder while it is replaced. All processes that make
// the folder use the same names.
func (f *Folder) beside(what string) string {
	of := sha256.Sum256([]byte(filepath.Base(f.real)))
	return filepath.Join(filepath.Dir(f.real), ".swagwrap-folder-"+hex.EncodeToString(of[:8])+"."+what)
}

// restore ends what a killed process began. If it was killed between two renames, the old folder gets its name again.
func (f *Folder) restore() error {
	if _, err := os.Lstat(f.real); errors.Is(err, fs.ErrNotExist) {
		if err := os.Rename(f.beside("old"), f.real); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return f.cannot(err)
		}
	}
	for _, what := range []string{"old", "new"} {
		left := f.beside(what)
		if _, err := os.Lstat(left); err != nil {
			continue
		}
		if err := removeOld(left); err != nil {
			return BadOutput(fmt.Errorf("%s: %w", left, err),
				"a command that was killed left this folder: move your files out of it, and remove it")
		}
	}
	return nil
}

// removeOld removes a folder whose files were all written by a command.
func removeOld(dir string) error {
	own, others, err := survey(dir)
	if err == nil && others != nil {
		err = errors.New("holds files that swagwrap did not write: " + naming(others))
	}
	if err == nil {
		err = file.Cause(discard(dir, own))
	}
	return err
}

// look finds the files that stand where the folder will be. It fails if they must not be replaced.
func (f *Folder) look(force bool) error {
	entries, err := os.ReadDir(f.real)
	switch {
	case errors.Is(err, fs.ErrNotExist) || err == nil && len(entries) == 0:
		return nil
	case err != nil:
		return f.cannot(err)
	case !force:
		return Usagef("--force replaces the results in it, and -o FOLDER takes another folder",
			"%s: exists already, and is not empty", f.Path)
	}
	tempfile.Sweep(f.real)
	own, others, err := survey(f.real)
	if err != nil {
		return f.cannot(err)
	}
	if others != nil {
		return Usagef("move them to another place, or -o FOLDER takes another folder",
			"%s: holds files that swagwrap did not write there: %s", f.Path, naming(others))
	}
	f.old = own
	return nil
}

// naming lists names. survey returns at most four.
func naming(names []string) string {
	if len(names) > 3 {
		return strings.Join(names[:3], ", ") + " and others"
	}
	return strings.Join(names, ", ")
}

// Contains reports whether path lies in the folder, or is it, by whatever name.
func (f *Folder) Contains(path string) bool {
	if at, err := resolve(path); err == nil && liesIn(at, f.real) {
		return true
	}
	to, err := filepath.EvalSymlinks(path)
	if err == nil {
		to, err = resolve(to)
	}
	return err == nil && liesIn(to, f.real)
}

// Commit gives the folder its name. It fails if the old folder has changed since CreateFolder.
func (f *Folder) Commit() error {
	if err := writeList(f.Work); err != nil {
		return f.cannot(err)
	}
	if old, err := os.Stat(f.real); err == nil {
		os.Chmod(f.Work, old.Mode().Perm()) // on a file system without modes there is nothing to keep
	}
	if err := f.place(); err != nil {
		return err
	}
	f.Work = ""
	f.made = nil
	if dir, err := os.Open(filepath.Dir(f.real)); err == nil {
		defer dir.Close()
		dir.Sync() // some file systems cannot do this
	}
	f.unlock()
	return nil
}

// place gives the new folder its name, and removes the old one.
func (f *Folder) place() error {
	if f.old == nil {
		err := tempfile.PlaceFolder(f.Work, f.real)
		if errors.Is(err, fs.ErrExist) || errors.Is(err, syscall.ENOTDIR) {
			return f.changed()
		}
		return f.outcome(err)
	}
	if !same(f.real, f.old) {
		return f.changed()
	}
	// Nobody removes a folder of this name as a temporary one. After the exchange it is the old folder.
	beside := f.beside("new")
	if err := tempfile.PlaceFolder(f.Work, beside); err != nil {
		return f.outcome(err)
	}
	f.Work = beside
	reached("beside")
	old, undo, err := swap(beside, f.real, f.beside("old"))
	if err != nil {
		return f.outcome(err)
	}
	f.Work = "" // it has its name
	reached("swapped")
	if !same(old, f.old) {
		if undo() == nil {
			f.Work = beside
		}
		return f.changed()
	}
	discard(old, f.old) // what it leaves, the next command removes or names
	return nil
}

// exchange is [tempfile.Exchange]. Tests put a file system that cannot do it in its place.
var exchange = tempfile.Exchange

// swap gives the folder from the name of to. It returns where the old folder is, and a function that takes the step back. On a
// file system without exchange the old folder gets the name spare, in two steps. If the process is killed between them, restore
// takes the first one back.
func swap(from, to, spare string) (old string, undo func() error, err error) {
	if err = exchange(from, to); err == nil {
		return from, func() error { return exchange(from, to) }, nil
	}
	if !errors.Is(err, errors.ErrUnsupported) {
		return "", nil, err
	}
	if err := os.Rename(to, spare); err != nil {
		return "", nil, err
	}
	reached("between")
	if err := os.Rename(from, to); err != nil {
		return "", nil, errors.Join(err, os.Rename(spare, to))
	}
	return spare, func() error { return errors.Join(os.Rename(to, from), os.Rename(spare, to)) }, nil
}

// reached is called at points where tests kill the process.
var reached = func(point string) {}

func (f *Folder) changed() error {
	return BadOutput(fmt.Errorf("%s: changed while this command ran", f.Path),
		"another command may have written to it: look at it, and try again")
}

func (f *Folder) outcome(err error) error {
	if err == nil {
		return nil
	}
	return f.cannot(err)
}

// Abort removes the unfinished folder. After Commit it does nothing.
func (f *Folder) Abort() {
	if f.Work != "" {
		tempfile.Remove(f.Work)
	}
	f.unlock()
	for _, dir := range slices.Backward(f.made) {
		os.Remove(dir) // only if it is empty
	}
	f.Work, f.made, f.unlock = "", nil, func() {}
}
