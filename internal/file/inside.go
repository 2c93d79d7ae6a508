package file

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// ErrOutside is the error of a link that leads out of the folder in which it is.
var ErrOutside = errors.New("a link out of the folder")

// Inside opens the regular file of the given name in a folder that a user named, for what goes into an output. The user did not name the
// file, so a link may not lead out of the folder. The cache of Hugging Face's hub keeps files outside the folder of
// a snapshot: there links may lead to all that it has of the same repository.
func Inside(dir, name string) (*os.File, fs.FileInfo, error) {
	if OnOpen != nil {
		OnOpen(filepath.Join(dir, name))
	}
	at, under := rooted(dir)
	root, err := os.OpenRoot(at)
	if err != nil {
		return nil, nil, err
	}
	defer root.Close()
	name = filepath.Join(under, name)
	fail := func(err error) (*os.File, fs.FileInfo, error) {
		return nil, nil, &fs.PathError{Op: "open", Path: filepath.Join(at, name), Err: Cause(err)}
	}
	info, err := root.Stat(name) // opening a device may do something
	if link, lErr := root.Lstat(name); err != nil && lErr == nil && link.Mode()&fs.ModeSymlink != 0 && !errors.Is(err, fs.ErrNotExist) {
		err = ErrOutside
	}
	if err != nil {
		return fail(err)
	}
	if !info.Mode().IsRegular() {
		return fail(ErrNotRegular)
	}
	f, err := root.OpenFile(name, os.O_RDONLY|nonblock, 0)
	if err != nil {
		return fail(err)
	}
	if info, err = f.Stat(); err == nil && !info.Mode().IsRegular() { // another took its place
		err = ErrNotRegular
	}
	if err != nil {
		f.Close()
		return fail(err)
	}
	return f, info, nil
}

// rooted returns the folder that links in dir may not leave, and the path of dir in it.
func rooted(dir string) (root, under string) {
	full, err := filepath.Abs(dir)
	if err != nil {
		return dir, ""
	}
	snapshots := filepath.Dir(full)
	repository := filepath.Dir(snapshots)
	if info, err := os.Lstat(filepath.Join(repository, "blobs")); filepath.Base(snapshots) == "snapshots" && err == nil && info.IsDir() {
		return repository, filepath.Join("snapshots", filepath.Base(full))
	}
	return dir, ""
}

// ReadInside reads a file that [Inside] opens, of at most the given number of bytes.
func ReadInside(dir, name string, most int64) ([]byte, error) {
	f, info, err := Inside(dir, name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info.Size() > most {
		return nil, Error(filepath.Join(dir, name), fmt.Errorf("%d bytes, want at most %d", info.Size(), most))
	}
	return io.ReadAll(io.LimitReader(f, most))
}
