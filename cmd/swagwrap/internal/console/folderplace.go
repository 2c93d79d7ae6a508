package console

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/swagwrap/swagwrap/internal/file"

	"golang.org/x/sys/unix"

	"github.com/swagwrap/swagwrap/internal/tempfile"
)

// folderPlace returns what messages call the folder at path, and its absolute path without symbolic links. There
// may be no such folder yet. The error says why it cannot hold results.
func folderPlace(path string) (name, target string, err error) {
	unfit := func() (string, string, error) {
		return "", "", Usagef("name a folder: -o FOLDER", "%s: cannot be a folder for results", path)
	}
	if file.IsStdout(path) {
		return unfit()
	}
	if target, err = resolve(path); err != nil {
		return unfit()
	}
	name = filepath.Clean(path)
	if plain, err := resolve(name); err != nil || plain != target { // Clean does not know that .. goes back from where a link leads
		name = target
	}
	switch info, err := os.Lstat(target); {
	case errors.Is(err, fs.ErrNotExist):
		return name, target, nil
	case err == nil && info.Mode()&fs.ModeSymlink != 0:
		to, err := filepath.EvalSymlinks(target)
		if err != nil {
			to, _ = os.Readlink(target)
		}
		return "", "", Usagef("name the folder itself: "+to, "%s: is a symbolic link, want a folder", path)
	case err != nil || !info.IsDir():
		return unfit()
	}
	return name, target, replaceable(name, target)
}

// replaceable returns an error if another folder cannot take the name of the existing folder target. Results replace a folder as a
// whole, so that shells in it would lose it.
func replaceable(name, target string) error {
	here, err := resolve(".")
	if err != nil {
		return err
	}
	home, _ := os.UserHomeDir()
	home, _ = resolve(home)
	why := ""
	switch {
	case liesIn(here, target):
		why = "the folder in which you are, or holds it"
	case home != "" && liesIn(home, target):
		why = "your home folder, or holds it"
	case tempfile.IsMount(target):
		why = "a mount point"
	case unix.Access(target, unix.W_OK|unix.X_OK) != nil:
		return Usagef("-o FOLDER takes another folder", "%s: you may not write to it", name)
	default:
		return nil
	}
	return Usagef("name a new folder in it: -o "+filepath.Join(name, "swagwrap-result"),
		"%s: cannot be replaced as a whole: it is %s", name, why)
}

// resolve returns path as an absolute path without symbolic links, except for its last element. Elements that do not exist
// stay.
func resolve(path string) (string, error) {
	if path == "" {
		return "", fs.ErrInvalid
	}
	if !filepath.IsAbs(path) {
		here, err := os.Getwd()
		if err == nil {
			here, err = filepath.EvalSymlinks(here)
		}
		if err != nil {
			return "", err
		}
		path = here + "/" + path // Join would remove ".." without a look at links
	}
	dir, last := filepath.Split(strings.TrimRight(path, "/"))
	if slices.Contains([]string{"", ".", ".."}, last) {
		dir, last = path, ""
	}
	missing := []string{last}
	for {
		target, err := filepath.EvalSymlinks(dir)
		if err == nil {
			return filepath.Join(append([]string{target}, missing...)...), nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
		dir, last = filepath.Split(strings.TrimRight(dir, "/"))
		missing = slices.Insert(missing, 0, last)
	}
}

// liesIn reports whether path is the folder, or lies in it. Both are absolute.
func liesIn(path, folder string) bool {
	return path == folder || strings.HasPrefix(path, strings.TrimSuffix(folder, "/")+"/")
}
