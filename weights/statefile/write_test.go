package statefile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/swagwrap/swagwrap/weights"
)

// entriesOf are the tensors of a checkpoint, to be written again.
func entriesOf(sd *StateDict) (entries []Entry) {
	for _, x := range sd.All() {
		e := Entry{Name: x.Name, DType: x.DType, Shape: x.Shape, Elements: func(w io.Writer) error { _, err := w.Write(x.Bytes()); return err }}
		for _, o := range sd.All() {
			if o == x {
				break
			}
			if o.Tied(x) {
				e.Of = o.Name
				break
			}
		}
		entries = append(entries, e)
	}
	return entries
}

// What PyTorch has written, and this package has read, comes back the same from both formats: names, shapes, types, bits and
// ties, also of integers, scalars and empty tensors.
func TestWrite(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"zip.pt", "dtypes.pt", "tied.pt", "views.pt", "big-endian.pt", "averaged.pt", "module.pt", "plain.safetensors", "shards-safetensors", "legacy.pth"} {
		f, err := Open(filepath.Join("testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		want := f.StateDicts()[0]
		entries := entriesOf(want)
		var pt bytes.Buffer
		if err := Write(&pt, "swa", entries, `{"kind":"x"}`); err != nil {
			t.Fatal(name, err)
		}
		st := filepath.Join(t.TempDir(), "x.safetensors")
		out, err := os.Create(st)
		if err != nil {
			t.Fatal(err)
		}
		if err := WriteSafetensors(out, entries, nil, `{"kind":"x"}`); err != nil {
			t.Fatal(name, err)
		}
		out.Close()
		written, err := os.ReadFile(st)
		if err != nil {
			t.Fatal(err)
		}
		for _, data := range [][]byte{pt.Bytes(), written} {
			got, err := Parse("back", data)
			if err != nil {
				t.Fatal(name, err)
			}
			if got.Origin != `{"kind":"x"}` {
				t.Errorf("%s: origin %q", name, got.Origin)
			}
			sd := got.StateDicts()[0]
			if err := sd.Verify(); err != nil {
				t.Error(err)
			}
			same(t, name, want, sd, &data[0] == &pt.Bytes()[0])
		}
	}
}

// same compares two state_dicts. Only the zip format keeps the order and the ties.
func same(t *testing.T, name string, want, got *StateDict, zipped bool) {
	t.Helper()
	if len(want.All()) != len(got.All()) || len(want.All()) == 0 {
		t.Fatalf("%s: %d tensors, want %d", name, len(got.All()), len(want.All()))
	}
	for i, x := range want.All() {
		k := slices.IndexFunc(got.All(), func(y *Tensor) bool { return y.Name == x.Name })
		if k < 0 || zipped && k != i {
			t.Fatalf("%s: tensor %q is at %d, want %d", name, x.Name, k, i)
		}
		y := got.All()[k]
		if !slices.Equal(x.Shape, y.Shape) || x.DType != y.DType || !bytes.Equal(x.Bytes(), y.Bytes()) {
			t.Errorf("%s: tensor %q: %v %v, want %v %v with the same bits", name, x.Name, y.DType, y.Shape, x.DType, x.Shape)
		}
		for j := range i {
			if tied := x.Tied(want.All()[j]); zipped && x.Len() > 0 && tied != y.Tied(got.All()[j]) {
				t.Errorf("%s: %q and %q: tied %v, want %v", name, x.Name, want.All()[j].Name, !tied, tied)
			}
		}
	}
}

// Elements begin at multiples of 64 bytes, so that torch.load(mmap=True) needs no copies.
func TestWriteAligned(t *testing.T) {
	t.Parallel()
	var entries []Entry
	for i := range 40 {
		n := int64(i * i)
		entries = append(entries, Entry{Name: strings.Repeat("n", i+1), DType: weights.F32, Shape: []int64{n}, Elements: func(w io.Writer) error {
			return binary.Write(w, binary.LittleEndian, slices.Repeat([]float32{math.Float32frombits(0x41424344)}, int(n)))
		}})
	}
	var b bytes.Buffer
	if err := Write(&b, "x", entries, ""); err != nil {
		t.Fatal(err)
	}
	for i := range entries {
		if n := i * i; n > 0 {
			at := bytes.Index(b.Bytes(), bytes.Repeat([]byte("DCBA"), n))
			if at%alignment != 0 {
				t.Errorf("storage %d begins at byte %d", i, at)
			}
		}
	}
}

func TestWriteErrors(t *testing.T) {
	t.Parallel()
	short := Entry{Name: "w", DType: weights.F32, Shape: []int64{2}, Elements: func(w io.Writer) error { _, err := w.Write(make([]byte, 4)); return err }}
	if err := Write(io.Discard, "x", []Entry{short}, ""); err == nil || !strings.Contains(err.Error(), `tensor "w": 4 bytes written, want 8`) {
		t.Error(err)
	}
	full := errors.New("disk full")
	short.Elements = func(io.Writer) error { return full }
	if err := Write(io.Discard, "x", []Entry{short}, ""); !errors.Is(err, full) {
		t.Error(err)
	}
}
