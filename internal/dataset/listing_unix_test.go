//go:build unix

package dataset

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/swagwrap/swagwrap/internal/dataset/listing"
	"golang.org/x/sys/unix"
)

// TestFIFO: opening one would wait for ever, as an input, in a folder, and where
// an image was before.
func TestFIFO(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.png")
	if err := unix.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open([]string{path}, any24); err == nil || err.Error() != path+": not a regular file, want images or arrays" {
		t.Error(err)
	}
	if _, err := listing.ReadClassNames(path); err == nil {
		t.Error("class names from a FIFO")
	}
	d, err := Open([]string{filepath.Dir(path)}, any24)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Read(Floats(make([]float32, 3*24*24)), 0); err == nil || err.Error() != path+": not a regular file, want an image" {
		t.Error(err)
	}
	os.Remove(path)
}
