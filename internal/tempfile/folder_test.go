package tempfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// One at a time has a lock. The file of a lock whose process is gone is taken over.
func TestLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	unlock, err := Lock(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Lock(path); !errors.Is(err, ErrLocked) {
		t.Errorf("held: %v", err)
	}
	unlock()
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("after unlock: %v", err)
	}
	if err := os.WriteFile(path, nil, 0o444); err != nil {
		t.Fatal(err)
	}
	if unlock, err = Lock(path); err != nil {
		t.Fatal(err)
	}
	unlock()
	if _, err := Lock(filepath.Join(path, "lock")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no folder: %v", err)
	}
	link := path + "-link"
	if err := os.Symlink("elsewhere", link); err != nil {
		t.Fatal(err)
	}
	if _, err := Lock(link); err == nil {
		t.Error("a link was locked")
	}
}

// A folder takes the name of an empty one, and no other. What has its name is not removed any more.
func TestPlaceFolder(t *testing.T) {
	defer func() { stopped = false }()
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	full, err1 := Sibling(dir)
	empty, err2 := Sibling(dir)
	late, err3 := Sibling(dir)
	if err := errors.Join(err1, err2, err3, os.WriteFile(filepath.Join(full, "file"), nil, 0o666), os.Mkdir(at("name"), 0o777), os.WriteFile(at("file"), nil, 0o666)); err != nil {
		t.Fatal(err)
	}
	if err := PlaceFolder(full, at("name")); err != nil {
		t.Error(err)
	}
	if err := PlaceFolder(empty, at("name")); !errors.Is(err, fs.ErrExist) {
		t.Errorf("not empty: %v", err)
	}
	if err := PlaceFolder(empty, at("file")); err == nil {
		t.Error("a file was replaced")
	}
	RemoveAll()
	if err := PlaceFolder(late, at("late")); !errors.Is(err, errStopped) {
		t.Errorf("after RemoveAll: %v", err)
	}
	left, err := filepath.Glob(at("*"))
	hidden, _ := filepath.Glob(at(".*"))
	if err != nil || len(left) != 2 || len(hidden) > 0 {
		t.Errorf("left: %q and %q, %v", left, hidden, err)
	}
	if _, err := os.Stat(at("name/file")); err != nil {
		t.Error(err)
	}
	if err := errors.Join(Remove(empty), Remove(late)); err != nil {
		t.Error(err)
	}
}

// Two folders change their names, or nothing happens.
func TestExchange(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	if err := errors.Join(os.MkdirAll(at("a/in-a"), 0o777), os.MkdirAll(at("b/in-b"), 0o777)); err != nil {
		t.Fatal(err)
	}
	err := Exchange(at("a"), at("b"))
	_, swapped := os.Stat(at("a/in-b"))
	if err != nil && !errors.Is(err, errors.ErrUnsupported) || (err == nil) != (swapped == nil) {
		t.Errorf("%v, %v", err, swapped)
	}
	if err := Exchange(at("a"), at("missing")); err == nil {
		t.Error("a missing folder was exchanged")
	}
	if IsMount(dir) {
		t.Errorf("%s: a mount point", dir)
	}
}
