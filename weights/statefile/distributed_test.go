package statefile

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/swagwrap/swagwrap/fixtures/reliability"
)

// A distributed checkpoint of one process and of four has the tensors of the file that torch.save has written: names, shapes,
// types and bits, read from any place, and their transposes.
func TestDistributed(t *testing.T) {
	t.Parallel()
	want, err := Open(filepath.Join("testdata", "dcp.pt"))
	if err != nil {
		t.Fatal(err)
	}
	defer want.Close()
	for _, name := range []string{"dcp-one", "dcp-four"} {
		// accelerate and NeMo keep the folder in another one.
		for _, inner := range nested {
			outer := t.TempDir()
			if err := os.CopyFS(filepath.Join(outer, inner), os.DirFS(filepath.Join("testdata", name))); err != nil {
				t.Fatal(err)
			}
			if !IsFolder(outer) {
				t.Fatalf("%s in %q is no checkpoint", name, inner)
			}
			got, err := Open(outer)
			if err != nil {
				t.Fatal(err)
			}
			defer got.Close()
			if got.Epoch != 5 || !got.Distributed || len(got.StateDicts()) != 1 || got.StateDicts()[0].Key != "model" {
				t.Errorf("%s: epoch %d, %v", name, got.Epoch, got.StateDicts())
			}
			sd := got.StateDicts()[0]
			if err := sd.Verify(); err != nil {
				t.Error(err)
			}
			if len(sd.All()) != len(want.StateDicts()[0].All()) {
				t.Fatalf("%s: %d tensors", name, len(sd.All()))
			}
			for _, x := range want.StateDicts()[0].All() {
				i := slices.IndexFunc(sd.All(), func(y *Tensor) bool { return y.Name == x.Name })
				if i < 0 {
					t.Fatalf("%s: %q is missing", name, x.Name)
				}
				sameElements(t, name, x, sd.All()[i])
			}
		}
	}
}

func sameElements(t *testing.T, file string, x, y *Tensor) {
	t.Helper()
	if x.DType != y.DType || !slices.Equal(x.Shape, y.Shape) || !bytes.Equal(x.Bytes(), y.Bytes()) {
		t.Errorf("%s: %q: %v %v, want %v %v and the same bits", file, x.Name, y.DType, y.Shape, x.DType, x.Shape)
	}
	for off := range x.Len() {
		n := min(5, x.Len()-off)
		if !bytes.Equal(x.Piece.Stretch(off, n), y.Piece.Stretch(off, n)) {
			t.Fatalf("%s: %q differs at %d", file, x.Name, off)
		}
	}
	if len(x.Shape) == 2 {
		if !bytes.Equal(x.Transposed().Bytes(), y.Transposed().Bytes()) || !bytes.Equal(x.Bytes(), y.Transposed().Transposed().Bytes()) {
			t.Errorf("%s: the transpose of %q differs", file, x.Name)
		}
	}
}

// spoil copies a distributed checkpoint and changes one of its files.
func spoil(t *testing.T, name string, change func(data []byte) []byte) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(filepath.Join("testdata", "dcp-four"))); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, name)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if data = change(data); data == nil {
		err = os.Remove(path)
	} else {
		err = os.WriteFile(path, data, 0o666)
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// Hostile and damaged folders are refused, with a reason.
func TestDistributedRefused(t *testing.T) {
	t.Parallel()
	swap := func(old, new string) func([]byte) []byte {
		return func(data []byte) []byte {
			if !bytes.Contains(data, []byte(old)) || len(old) != len(new) {
				t.Fatalf("%q is not there", old)
			}
			return bytes.ReplaceAll(data, []byte(old), []byte(new))
		}
	}
	for _, tt := range []struct {
		name, file string
		change     func([]byte) []byte
		want       string
	}{
		{"no metadata", ".metadata", func([]byte) []byte { return nil }, "distributed checkpoint without .metadata"},
		{"empty metadata", ".metadata", func([]byte) []byte { return []byte{} }, "not the metadata of a distributed checkpoint"},
		{"cut metadata", ".metadata", func(b []byte) []byte { return b[:len(b)/2] }, "not the metadata of a distributed checkpoint"},
		{"another pickle", ".metadata", func([]byte) []byte { return []byte("\x80\x04}.") }, "want the metadata of a distributed checkpoint"},
		{"a missing file", "__2_0.distcp", func([]byte) []byte { return nil }, "no such file"},
		{"a cut file", "__1_0.distcp", func(b []byte) []byte { return b[:len(b)-100] }, "truncated"},
		{"an empty file", "__1_0.distcp", func([]byte) []byte { return []byte{} }, "truncated"},
		{"a file elsewhere", ".metadata", swap("__0_0.distcp", "../../../etc"), "want one in the same folder"},
		{"an absolute path", ".metadata", swap("__0_0.distcp", "/etc/passwd1"), "want one in the same folder"},
		{"another shape", ".metadata", swap("K\x0aK\x06\x86", "K\x0bK\x06\x86"), "its parts have 60 elements, want 66"},
		{"a huge shape", ".metadata", swap("K\x0aK\x06\x86", "K\xffK\x06\x86"), "its parts have 60 elements"},
		{"parts twice", ".metadata", swap("K\x03K\x00\x86", "K\x00K\x00\x86"), ""},
		{"garbage in a part", "__0_0.distcp", func(b []byte) []byte { return bytes.Repeat([]byte{0xaa}, len(b)) }, "not a readable zip file"},
	} {
		f, err := Open(spoil(t, tt.file, tt.change))
		if err == nil {
			err = f.StateDicts()[0].Err()
			f.Close()
		}
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
		if e := (*Error)(nil); tt.name != "a missing file" && !errors.As(err, &e) {
			t.Errorf("%s: %T", tt.name, err)
		}
	}
	// Damage within the weights is found by their checksums.
	dir := spoil(t, "__0_0.distcp", func(b []byte) []byte {
		f, err := Open(filepath.Join("testdata", "dcp-four"))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		w, _ := f.StateDicts()[0].Find("conv.weight")
		i := bytes.Index(b, w.Array.(*joined).parts[0].Bytes())
		b[i] ^= 1
		return b
	})
	f, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.StateDicts()[0].Verify(); err == nil || !strings.Contains(err.Error(), "CRC-32") {
		t.Errorf("a changed weight: %v", err)
	}
}

// FuzzDistributed: no metadata makes the reader crash, read outside the files or take more memory than they justify.
func FuzzDistributed(f *testing.F) {
	for _, name := range []string{"dcp-one", "dcp-four"} {
		data, err := os.ReadFile(filepath.Join("testdata", name, ".metadata"))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	files := 0
	for k := range 4 {
		info, err := os.Stat(filepath.Join("testdata", "dcp-four", fmt.Sprintf("__%d_0.distcp", k)))
		if err != nil {
			f.Fatal(err)
		}
		files += int(info.Size())
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		dir := t.TempDir()
		if err := os.CopyFS(dir, os.DirFS(filepath.Join("testdata", "dcp-four"))); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, ".metadata"), data, 0o666); err != nil {
			t.Fatal(err)
		}
		read := func() {
			c, err := Open(dir)
			if err != nil {
				return
			}
			defer c.Close()
			for _, sd := range c.StateDicts() {
				for _, x := range sd.All() {
					if n := x.Len(); n > 0 {
						x.Piece.Stretch(0, min(n, 100))
						x.Piece.Stretch(n-1, 1)
					}
				}
			}
		}
		reliability.Heap(t, len(data)+files, read)
	})
}
