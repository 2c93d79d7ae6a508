//go:build unix

package file

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// TestInside tests which entries of a folder may go into an output.
func TestInside(t *testing.T) {
	base := t.TempDir()
	hub := filepath.Join(base, "models--a--b", "snapshots", "0123")
	plain := filepath.Join(base, "plain")
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, dir := range []string{hub, plain, filepath.Join(base, "models--a--b", "blobs"), filepath.Join(base, "snapshots", "x")} {
		must(os.MkdirAll(dir, 0o777))
	}
	write := func(path string) { must(os.WriteFile(path, []byte("{}"), 0o666)) }
	write(filepath.Join(base, "private"))
	write(filepath.Join(base, "models--a--b", "blobs", "f00"))
	for _, dir := range []string{hub, plain} {
		write(filepath.Join(dir, "own.json"))
		must(os.Symlink("own.json", filepath.Join(dir, "alias.json")))
		must(os.Symlink(filepath.Join(base, "private"), filepath.Join(dir, "full.json")))
		must(os.Symlink("../../../private", filepath.Join(dir, "up.json")))
		must(os.Symlink("../private", filepath.Join(dir, "near.json")))
		must(os.Symlink("/dev/zero", filepath.Join(dir, "endless.json")))
		must(os.Symlink("../../blobs/f00", filepath.Join(dir, "blob.json")))
		must(os.Symlink("nothing", filepath.Join(dir, "broken.json")))
		must(os.Symlink("loop.json", filepath.Join(dir, "loop.json")))
		must(os.Mkdir(filepath.Join(dir, "folder.json"), 0o777))
		must(syscall.Mkfifo(filepath.Join(dir, "pipe.json"), 0o666))
	}
	for _, c := range []struct {
		dir, name string
		want      error
	}{
		{plain, "own.json", nil},
		{plain, "alias.json", nil},
		{plain, "full.json", ErrOutside},
		{plain, "near.json", ErrOutside},
		{plain, "endless.json", ErrOutside},
		{plain, "blob.json", ErrOutside},
		{plain, "broken.json", fs.ErrNotExist},
		{plain, "loop.json", ErrOutside},
		{plain, "folder.json", ErrNotRegular},
		{plain, "pipe.json", ErrNotRegular},
		{plain, "../private", errAny},
		{hub, "own.json", nil},
		{hub, "blob.json", nil},
		{hub, "up.json", ErrOutside},
		{hub, "full.json", ErrOutside},
		{hub, "endless.json", ErrOutside},
		{hub, "pipe.json", ErrNotRegular},
	} {
		b, err := ReadInside(c.dir, c.name, 100)
		switch {
		case c.want == errAny && err != nil:
		case !errors.Is(err, c.want), err == nil && string(b) != "{}":
			t.Errorf("%s of %s: %q, %v; want %v", c.name, filepath.Base(c.dir), b, err, c.want)
		}
	}
	if _, err := ReadInside(plain, "own.json", 1); err == nil {
		t.Error("a file of 2 bytes was read, want at most 1")
	}
}

var errAny = errors.New("any error")
