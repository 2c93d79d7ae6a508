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
	section
	name, dtype string // the type in NumPy's words, but for texts
	shape       []int  // of a row
	append      func([]byte, *Row) []byte
	width       int // of the longest text, 0 for numbers
}

func newNPZ(w io.Writer, s *Schema, dir string) *npzWriter {
	z := &npzWriter{archive: NewArchive(w), spool: spool{dir: dir}}
	z.text("path", func(r *Row) string { return r.Path })
	label := func() {
		if s.Labels {
			z.add("label", "<i8", nil, func(b []byte, r *Row) []byte {
				return binary.LittleEndian.AppendUint64(b, uint64(r.Label))
			})
		}
	}
	fields := s.fields()
	lists := slices.IndexFunc(fields, func(f field) bool { return f.Shape != nil })
	for i, f := range fields {
		if i == lists {
			label()
		}
		if f.Kind == task.Ranked {
			z.numbers(f, f.Name, task.Class, 0, 2)
			z.numbers(f, f.Name+"_probability", task.Float64, 1, 2)
		} else {
			z.numbers(f, f.Name, f.Kind, 0, 1)
		}
	}
	if lists < 0 {
		label()
	}
	if s.Errors {
		z.text("error", func(r *Row) string { return r.Error })
	}
	return z
}

func (z *npzWriter) add(name, dtype string, shape []int, add func([]byte, *Row) []byte) *array {
	a := &array{section: section{spool: &z.spool}, name: name, dtype: dtype, shape: shape, append: add}
	z.arrays = append(z.arrays, a)
	return a
}

// numbers adds an array of every so many of a column's values.
func (z *npzWriter) numbers(f field, name string, kind task.Kind, first, step int) {
	dtype := map[task.Kind]string{task.Class: "<i8", task.Float32: "<f4", task.Float64: "<f8"}[kind]
	failed := slices.Repeat([]float64{math.NaN()}, f.Len())
	if kind == task.Class {
		failed = slices.Repeat([]float64{-1}, f.Len())
	}
	z.add(name, dtype, f.Shape, func(b []byte, r *Row) []byte {
		values := failed
		if r.Error == "" {
			values = f.values(r)
		}
		for i := first; i < len(values); i += step {
			switch kind {
			case task.Class:
				b = binary.LittleEndian.AppendUint64(b, uint64(int64(values[i])))
			case task.Float32:
				b = binary.LittleEndian.AppendUint32(b, math.Float32bits(float32(values[i])))
			default:
				b = binary.LittleEndian.AppendUint64(b, math.Float64bits(values[i]))
			}
		}
		return b
	})
}

// text adds an array of texts. In NumPy all take as many characters as the longest,
// which is known at the end: until then each has its length in front.
func (z *npzWriter) text(name string, value func(*Row) string) {
	a := z.add(name, "", nil, nil)
	a.width = 1 // NumPy has no empty strings
	a.append = func(b []byte, r *Row) []byte {
		s := value(r)
		n := utf8.RuneCountInString(s)
		a.width = max(a.width, n)
		b = binary.LittleEndian.AppendUint32(b, uint32(n))
		for _, c := range s {
			b = binary.LittleEndian.AppendUint32(b, uint32(c))
		}
		return b
	}
}

func (z *npzWriter) Write(r *Row) error {
	z.rows++
	for _, a := range z.arrays {
		a.pending = a.append(a.pending, r)
		if err := a.grown(); err != nil {
			return err
		}
	}
	return nil
}

func (z *npzWriter) Flush() error { return nil }

func (z *npzWriter) Close() error {
	for _, a := range z.arrays {
		dtype := a.dtype
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
