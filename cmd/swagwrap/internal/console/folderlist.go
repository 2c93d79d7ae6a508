package console

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/swagwrap/swagwrap/internal/file"
)

// listName is the file of a folder that lists the files which a command wrote there, with their SHA-256, as sha256sum reads
// it. By it the next command knows what it may replace.
const listName = "files.sha256"

const listHead = "# The files that swagwrap wrote to this folder. --force replaces these, and no others.\n"

// listed is a file of a folder that its list names, with the content that the list says.
type listed struct {
	name string // in the folder
	info fs.FileInfo
}

// survey returns the files in a folder that its list names, and the names of others. Those are files that the list does not
// have, changed ones, links, devices, and folders in which no file is listed. It returns at most four of the others.
func survey(dir string) (own []listed, others []string, err error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, nil, file.Cause(err)
	}
	defer root.Close()
	sums := readList(root)
	folders := map[string]bool{".": true}
	for name := range sums {
		for up := filepath.Dir(name); !folders[up]; up = filepath.Dir(up) {
			folders[up] = true
		}
	}
	other := func(name string, next error) error {
		if others = append(others, name); len(others) == 4 {
			return fs.SkipAll
		}
		return next
	}
	err = fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		want, known := sums[name]
		switch {
		case d.IsDir() && folders[name]:
			return nil
		case d.IsDir():
			return other(name+"/", fs.SkipDir)
		case !known || !info.Mode().IsRegular():
			return other(name, nil)
		}
		sum, err := sumOf(root, name)
		if err != nil {
			return err
		}
		if want != "" && sum != want {
			return other(name+" (changed)", nil)
		}
		own = append(own, listed{name, info})
		return nil
	})
	return own, others, file.Cause(err)
}

// readList returns the SHA-256 of the files that a folder's list names. That of the list itself is "". Without a list of this
// program there are none.
func readList(root *os.Root) map[string]string {
	f, err := root.Open(listName)
	if err != nil {
		return nil
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return nil
	}
	const most = 1 << 20 // far above any list that writeList makes
	text, err := io.ReadAll(io.LimitReader(f, most))
	rest, ours := strings.CutPrefix(string(text), listHead)
	if err != nil || !ours {
		return nil
	}
	sums := map[string]string{listName: ""}
	for line := range strings.Lines(rest) {
		if sum, name, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "  "); ok && len(sum) == 2*sha256.Size && filepath.IsLocal(name) {
			sums[filepath.Clean(name)] = sum
		}
	}
	return sums
}

func sumOf(root *os.Root, name string) (string, error) {
	f, err := root.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	_, err = io.Copy(h, f)
	return hex.EncodeToString(h.Sum(nil)), err
}

// writeList lists all files in a folder, and writes the list to disk.
func writeList(dir string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	var text bytes.Buffer
	text.WriteString(listHead)
	err = fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		sum, err := sumOf(root, name)
		fmt.Fprintf(&text, "%s  %s\n", sum, name)
		return err
	})
	if err != nil {
		return err
	}
	f, err := root.OpenFile(listName, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return err
	}
	_, err = f.Write(text.Bytes())
	return errors.Join(err, f.Sync(), f.Close())
}

// same reports whether a folder still has exactly the files that survey found.
func same(dir string, own []listed) bool {
	var now []listed
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		now = append(now, listed{name, info})
		return err
	})
	return err == nil && slices.EqualFunc(now, own, func(a, b listed) bool {
		return a.name == b.name && os.SameFile(a.info, b.info) && a.info.Size() == b.info.Size() && a.info.ModTime().Equal(b.info.ModTime())
	})
}

// discard removes the files that survey found, and the folders that are empty then. What it did not find stays.
func discard(dir string, own []listed) error {
	folders := []string{dir}
	for _, f := range own {
		path := filepath.Join(dir, f.name)
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		for up := filepath.Dir(path); up != dir; up = filepath.Dir(up) {
			folders = append(folders, up)
		}
	}
	slices.SortFunc(folders, func(a, b string) int { return len(b) - len(a) }) // a folder after those in it
	for _, path := range folders {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}
