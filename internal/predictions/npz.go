package predictions

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/swagwrap/swagwrap/internal/numpy"
	"github.com/swagwrap/swagwrap/internal/task"
)

// npzWriter writes rows as the arrays of an .npz, which come one after the other
// in it: each is held back in a section until all rows are there. An example with
// an error has −1 in place of classes, and NaN in place of other numbers.
type npzWriter struct {
	archive *Archive
	spool   spool
	arrays  []*array
	rows    int
}

// array is one of them.
type array struct {
	leaf
	section
	width int // of the longest text, 0 for numbers
}

func newNPZ(w io.Writer, s *Schema, dir string) *npzWriter {
	z := &npzWriter{archive: NewArchive(w), spool: spool{dir: dir}}
	for _, l := range s.leaves() {
		a := &array{leaf: l, section: section{spool: &z.spool}}
		if l.text != nil {
			a.width = 1 // NumPy has no empty strings
		}
		if !l.class {
			z.arrays = append(z.arrays, a)
		}
	}
	if s.Labels { // which stand behind what is one number
		label, at := z.arrays[1], 1
		z.arrays = slices.Delete(z.arrays, 1, 2)
		for at < len(z.arrays) && z.arrays[at].shape == nil && z.arrays[at].text == nil {
			at++
		}
		z.arrays = slices.Insert(z.arrays, at, label)
	}
	return z
}

func (z *npzWriter) Write(r *Row) error {
	z.rows++
	for _, a := range z.arrays {
		if a.text != nil {
			a.appendText(r)
		} else {
			a.appendNumbers(r)
		}
		if err := a.grown(); err != nil {
			return err
		}
	}
	return nil
}

// appendText appends a text with its length in front. In NumPy all take as many
// characters as the longest, which is known at the end.
func (a *array) appendText(r *Row) {
	text, _ := a.text(r)
	n := utf8.RuneCountInString(text)
	a.width = max(a.width, n)
	a.pending = binary.LittleEndian.AppendUint32(a.pending, uint32(n))
	for _, c := range text {
		a.pending = binary.LittleEndian.AppendUint32(a.pending, uint32(c))
	}
}

func (a *array) appendNumbers(r *Row) {
	values, none := a.values(r), math.NaN()
	if a.kind == task.Class {
		none = -1
	}
	if values == nil {
		values = slices.Repeat([]float64{none}, task.Column{Shape: a.shape}.Len())
	}
	for _, v := range values {
		switch a.kind {
		case task.Class:
			a.pending = binary.LittleEndian.AppendUint64(a.pending, uint64(int64(v)))
		case task.Float32:
			a.pending = binary.LittleEndian.AppendUint32(a.pending, math.Float32bits(float32(v)))
		default:
			a.pending = binary.LittleEndian.AppendUint64(a.pending, math.Float64bits(v))
		}
	}
}

func (z *npzWriter) Close() error {
	for _, a := range z.arrays {
		dtype := map[task.Kind]string{task.Class: "<i8", task.Float32: "<f4", task.Float64: "<f8"}[a.kind]
		if a.width > 0 {
			dtype = fmt.Sprintf("<U%d", a.width)
		}
		out, err := z.archive.begin(a.name, dtype, append([]int{z.rows}, a.shape...)...)
		if err != nil {
			return err
		}
		if a.width > 0 {
			err = a.pad(out, z.rows)
		} else {
			_, err = io.CopyBuffer(out, a.reader(), make([]byte, 1<<16))
		}
		if err != nil {
			return err
		}
	}
	return z.archive.Close()
}

// pad writes the texts of a section, with zeros behind them up to the width.
func (a *array) pad(w io.Writer, rows int) error {
	in, out := bufio.NewReader(a.reader()), bufio.NewWriter(w)
	b := make([]byte, 4*a.width)
	for range rows {
		var length [4]byte
		if _, err := io.ReadFull(in, length[:]); err != nil {
			return err
		}
		n := 4 * int(binary.LittleEndian.Uint32(length[:]))
		if _, err := io.ReadFull(in, b[:n]); err != nil {
			return err
		}
		clear(b[n:])
		out.Write(b) // a bufio.Writer keeps its error for Flush
	}
	return out.Flush()
}

// discard lets go of what is held back.
func (z *npzWriter) discard() { z.spool.close() }

var predictionRole = numpy.Role{
	What: "predictions",
	Want: "float32 or float64",
	OK:   func(t numpy.Type) bool { return t.Kind == 'f' },
}

// readArrays reads a .npy or .npz.
func readArrays(path, key string) (table, error) {
	f, err := numpy.Open(path)
	if err != nil {
		return table{}, err
	}
	defer f.Close()
	if key, err = pickPredictions(f.Keys, key); err != nil {
		return table{}, fmt.Errorf("%s: %w", path, err)
	}
	x, err := f.Read(key, predictionRole)
	if err != nil {
		return table{}, err
	}
	if len(x.Shape) != 2 {
		return table{}, fmt.Errorf("%s: shape %d, want [n classes]", f.Where(key), x.Shape)
	}
	t := table{from: "the array", named: meaning(key), classes: x.Shape[1], values: x.Float64s()}
	if key != "" {
		t.from = fmt.Sprintf("array %q", key)
	}
	labels, err := f.Pick("", numpy.Labels, key)
	if err == nil && labels != "" {
		t.labels, err = f.ReadLabels(labels, x.Shape[0], path)
	}
	return t, err
}

// pickPredictions chooses an array by name, or the only one there is. There are no
// keys where the file is a bare array.
func pickPredictions(keys []string, wanted string) (string, error) {
	switch {
	case keys == nil && wanted == "" || slices.Contains(keys, wanted):
		return wanted, nil
	case keys == nil:
		return "", fmt.Errorf("no arrays with names, want an .npz file for key %q", wanted)
	case wanted != "":
		return "", fmt.Errorf("no array %q, want one of %s", wanted, numpy.Quote(keys))
	}
	for _, name := range predictionNames {
		if i := slices.IndexFunc(keys, func(k string) bool { return strings.EqualFold(k, name) }); i >= 0 {
			return keys[i], nil
		}
	}
	others := slices.DeleteFunc(slices.Clone(keys), isLabelName)
	if len(others) == 1 {
		return others[0], nil
	}
	return "", fmt.Errorf("cannot tell which array holds the predictions, want \"probs\" or \"logits\", or a key that names one of %s", numpy.Quote(keys))
}
