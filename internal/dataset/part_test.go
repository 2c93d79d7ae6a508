package dataset

import (
	"slices"
	"testing"
)

// A part has the examples, names and labels of its range, of floats and of bytes, and the
// sources of all.
func TestPart(t *testing.T) {
	for _, tc := range []struct {
		path string
		opts Options
	}{
		{td("f32.npy"), Options{}},
		{td("t10k-images-idx3-ubyte"), Options{}},
	} {
		all, err := Open([]string{tc.path}, tc.opts)
		if err != nil {
			t.Fatal(err)
		}
		first, end := 1, all.Len()-1
		p := Part(all, first, end)
		if p.Len() != end-first || !slices.Equal(p.Shape(), all.Shape()) || !slices.Equal(p.Sources(), all.Sources()) {
			t.Errorf("%s: %d examples of %d, sources %v", tc.path, p.Len(), all.Len(), p.Sources())
		}
		if labels := all.Labels().Classes; labels != nil && !slices.Equal(p.Labels().Classes, labels[first:end]) || labels == nil && !p.Labels().None() {
			t.Errorf("%s: labels %v of %v", tc.path, p.Labels(), labels)
		}
		got, want := make([]float32, examplesIn(all).elems), make([]float32, examplesIn(all).elems)
		for i := range p.Len() {
			if err := all.Read(Floats(want), first+i); err != nil {
				t.Fatal(err)
			}
			if err := p.Read(Floats(got), i); err != nil || !slices.Equal(got, want) || p.Name(i) != all.Name(first+i) {
				t.Errorf("%s: example %d is not %s: %v", tc.path, i, all.Name(first+i), err)
			}
			b, isBytes := p.(Bytes)
			if _, should := all.(Bytes); isBytes != should {
				t.Fatalf("%s: bytes: %v", tc.path, isBytes)
			}
			if isBytes {
				pixels := make([]byte, len(got))
				err := b.Pixels(pixels, i)
				clear(got)
				if b.Normalize(got, pixels); err != nil || !slices.Equal(got, want) {
					t.Errorf("%s: pixels of example %d are others: %v", tc.path, i, err)
				}
			}
		}
		for _, bad := range [][2]int{{-1, 1}, {1, 1}, {0, all.Len() + 1}} {
			if !panics(func() { Part(all, bad[0], bad[1]) }) {
				t.Errorf("%s: part %d: no panic", tc.path, bad)
			}
		}
		if !panics(func() { p.Read(Floats(got), p.Len()) }) {
			t.Errorf("%s: an example behind the part: no panic", tc.path)
		}
	}
}

func panics(f func()) (yes bool) {
	defer func() { yes = recover() != nil }()
	f()
	return false
}
