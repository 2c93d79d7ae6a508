package console

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/swagwrap/swagwrap/internal/file"
	"github.com/swagwrap/swagwrap/internal/kind"
)

// Filled is a folder that a command fills with files of many names, such as the maps of pictures. The files are made in a
// subfolder, and move to their places when all are complete. A [kind.Marker] shows that the program fills the folder. A
// folder with other files and without the marker is refused, whatever the flags.
type Filled struct {
	Path string
	work string // the subfolder of unfinished files
	made bool   // this command made the folder
	New  bool   // no earlier run left unfinished files
	lock *os.File
}

// unfinished begins the names of the subfolders in which runs make their files.
const unfinished = ".unfinished"

// CheckFilled returns an error if a command must not fill the folder at path. again allows files of an earlier run. inputs
// are the files and folders that the command reads, or "": none of them may hold the folder, or lie in it.
func CheckFilled(path string, again bool, inputs ...string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return BadOutput(file.Error(path, err))
	case info.Mode()&fs.ModeSymlink != 0:
		return Usagef("name the folder itself", "%s: is a symbolic link, want a folder", path)
	case !info.IsDir():
		return Usagef("name a folder", "%s: is not a folder", path)
	}
	for _, input := range inputs {
		if input == "" {
			continue
		}
		if Nested(path, input) || Nested(input, path) {
			return Usagef("choose a new folder next to it", "%s: holds inputs of this command, or lies among them: %s", path, input)
		}
	}
	entries, err := os.ReadDir(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return BadOutput(file.Error(path, err))
	}
	marked, visible := false, ""
	for _, e := range entries {
		switch name := e.Name(); {
		case name == kind.Marker:
			marked = true
		case !strings.HasPrefix(name, unfinished):
			visible = cmp.Or(visible, name)
		}
		if err := file.Output(filepath.Join(path, e.Name())); err != nil {
			return err
		}
	}
	switch {
	case visible != "" && !marked:
		return Usagef("name a new folder: swagwrap replaces only files that it wrote",
			"%s: exists already, and swagwrap did not make it: it holds %s", path, visible)
	case visible != "" && !again:
		return Usagef("--force overwrites files of its own in it", "%s: exists already, and is not empty", path)
	}
	return nil
}

// Nested reports whether the file or folder at inner is that at outer, or lies below it. Links are followed.
func Nested(inner, outer string) bool {
	rel, err := filepath.Rel(unlinked(outer), unlinked(inner))
	return err == nil && filepath.IsLocal(rel)
}

// unlinked returns the path without links, also where its end does not exist yet.
func unlinked(path string) string {
	path = file.Absolute(path)
	for end := ""; ; path, end = filepath.Dir(path), filepath.Join(filepath.Base(path), end) {
		if to, err := filepath.EvalSymlinks(path); err == nil {
			return filepath.Join(to, end)
		}
		if path == filepath.Dir(path) {
			return filepath.Join(path, end)
		}
	}
}

// claim creates the folder at path and its marker.
func claim(path string) (made bool, err error) {
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		made = true
	}
	if err := os.MkdirAll(path, 0o777); err != nil {
		return false, BadOutput(file.Error(path, err))
	}
	at := filepath.Join(path, kind.Marker)
	if _, err := os.Lstat(at); err == nil {
		return made, nil
	}
	const says = "swagwrap fills this folder. With --force it replaces files here that have the names of its own. Keep your files " +
		"elsewhere.\n"
	if err := os.WriteFile(at, []byte(says), 0o666); err != nil {
		os.Remove(at)
		os.Remove(path) // only if it is empty
		return false, BadOutput(file.Error(at, err))
	}
	return made, nil
}

// unclaim undoes claim, if the folder has no other files.
func unclaim(path string, made bool) {
	if entries, err := os.ReadDir(path); err != nil || len(entries) > 1 {
		return
	}
	os.Remove(filepath.Join(path, kind.Marker))
	if made {
		os.Remove(path)
	}
}

// OpenFilled begins to fill the folder at path, which [CheckFilled] has allowed. which distinguishes runs that fill it together,
// such as parts. It keeps the unfinished files of an earlier run if resumed is true.
func OpenFilled(path, which string, resumed bool) (*Filled, error) {
	made, err := claim(path)
	if err != nil {
		return nil, err
	}
	f := &Filled{Path: path, work: filepath.Join(path, unfinished+which), made: made}
	if err := f.begin(resumed); err != nil {
		unclaim(path, made)
		return nil, err
	}
	return f, nil
}

// begin locks the subfolder, and empties it unless an earlier run is resumed.
func (f *Filled) begin(resumed bool) error {
	err := os.Mkdir(f.work, 0o777)
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return BadOutput(file.Error(f.work, err))
	}
	f.New = err == nil
	if f.lock, err = os.Open(f.work); err != nil {
		return BadOutput(file.Error(f.work, err))
	}
	if err := syscall.Flock(int(f.lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); errors.Is(err, syscall.EWOULDBLOCK) {
		f.lock.Close()
		return BadOutput(fmt.Errorf("%s: another run fills it", f.Path), "wait for that run, or name another folder")
	}
	if resumed {
		return nil
	}
	old, err := os.ReadDir(f.work)
	for _, e := range old {
		err = errors.Join(err, os.RemoveAll(filepath.Join(f.work, e.Name())))
	}
	return BadOutput(err)
}

// Create makes an unfinished file. name is relative to the folder, with slashes.
func (f *Filled) Create(name string, write func(io.Writer) error) error {
	path := filepath.Join(f.work, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return BadOutput(file.Error(filepath.Join(f.Path, name), err))
	}
	out, err := os.Create(path)
	if err == nil {
		err = errors.Join(write(out), out.Sync(), out.Close())
	}
	return BadOutput(file.Error(filepath.Join(f.Path, name), err))
}

// Unfinished returns the path of a file that Create made.
func (f *Filled) Unfinished(name string) string {
	return filepath.Join(f.work, filepath.FromSlash(name))
}

// Has reports whether the folder has a file: unfinished, or in its place.
func (f *Filled) Has(name string) bool {
	for _, path := range []string{f.Unfinished(name), filepath.Join(f.Path, filepath.FromSlash(name))} {
		if info, err := os.Lstat(path); err == nil && info.Mode().IsRegular() {
			return true
		}
	}
	return false
}

// Finish moves all files to their places, or none if one of them cannot move. A nil Filled has none.
func (f *Filled) Finish() error {
	if f == nil {
		return nil
	}
	var moved []string
	err := filepath.WalkDir(f.work, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(f.work, path)
		if err != nil {
			return err
		}
		to := filepath.Join(f.Path, rel)
		if e.IsDir() {
			return os.MkdirAll(to, 0o777)
		}
		if err := os.Rename(path, to); err != nil {
			return err
		}
		moved = append(moved, rel)
		return nil
	})
	if err != nil {
		for _, rel := range moved {
			os.Rename(filepath.Join(f.Path, rel), filepath.Join(f.work, rel))
		}
		return BadOutput(file.Error(f.Path, err))
	}
	f.lock.Sync() // some file systems cannot do this
	f.drop()
	return nil
}

// drop removes the subfolder, and ends the lock.
func (f *Filled) drop() {
	os.RemoveAll(f.work)
	f.lock.Close()
	f.lock = nil
}

// Abort removes the unfinished files, and the folder if nothing else is in it. keep leaves them for a run that goes on.
// After Finish, and for a nil Filled, it does nothing.
func (f *Filled) Abort(keep bool) {
	if f == nil || f.lock == nil {
		return
	}
	if keep {
		f.lock.Close()
		f.lock = nil
		return
	}
	f.drop()
	unclaim(f.Path, f.made)
}
