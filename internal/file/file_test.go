package file

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestOpen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x")
	if err := os.WriteFile(path, []byte("abc"), 0o666); err != nil {
		t.Fatal(err)
	}
	f, size, err := Open(path, "a tar")
	if err != nil || size != 3 {
		t.Fatal(size, err)
	}
	f.Close()
	if _, _, err := Open(path+"y", "a tar"); !errors.Is(err, fs.ErrNotExist) || err.Error() != "no such file or directory" {
		t.Error(err)
	}
	if _, _, err := Open(filepath.Dir(path), "a tar"); err == nil || err.Error() != "not a regular file, want a tar" {
		t.Error(err)
	}
}

func TestRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x")
	if err := os.WriteFile(path, []byte("abc"), 0o666); err != nil {
		t.Fatal(err)
	}
	if b, err := Read(path, 3); err != nil || string(b) != "abc" {
		t.Error(b, err)
	}
	for _, tt := range []struct {
		path string
		most int64
		want string
	}{
		{path, 2, "want a regular file of at most 2 bytes"},
		{filepath.Dir(path), 9, "want a regular file of at most 9 bytes"},
		{path + "y", 9, "no such file or directory"},
	} {
		if _, err := Read(tt.path, tt.most); err == nil || err.Error() != tt.path+": "+tt.want {
			t.Errorf("%v, want %s", err, tt.want)
		}
	}
}

func TestError(t *testing.T) {
	if err := Error("x", nil); err != nil {
		t.Error(err)
	}
	if err := Truncated(io.EOF); !errors.Is(err, io.ErrUnexpectedEOF) || !strings.HasPrefix(err.Error(), "truncated: ") {
		t.Error(err)
	}
	if err := Truncated(fs.ErrExist); err != fs.ErrExist {
		t.Error(err)
	}
}
