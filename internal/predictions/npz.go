package predictions

import (
	"archive/zip"
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/swagwrap/swagwrap/internal/numpy"
	"github.com/swagwrap/swagwrap/internal/setting"
	"github.com/swagwrap/swagwrap/internal/task"
	"github.com/swagwrap/swagwrap/internal/tempfile"
)

// npzWriter writes rows as the arrays of an .npz file. The file holds one array after the other, so each array is kept
// in a temporary file until all rows are there. For an example with an error, classes are −1 and other numbers are NaN. Its
// set is empty, and it abstains.
type npzWriter struct {
	archive *Archive
	arrays  []*array
	rows    int
	b       []byte // the elements of one row
}

type array struct {
	leaf
	width int      // length of the longest text, 0 for numbers
	held  *os.File // a file without a name, so nothing is left if the process dies
	out   *bufio.Writer
}

// newNPZ keeps the temporary files of the arrays in the folder dir. Call discard to close them, also after an error.
func newNPZ(w io.Writer, s *Schema, dir string) (*npzWriter, error) {
	z := &npzWriter{archive: NewArchive(w)}
	for _, l := range s.leaves() {
		a := &array{leaf: l}
		if l.text != nil {
			a.width = 1 // NumPy has no empty strings
		}
		if !l.class {
			z.arrays = append(z.arrays, a)
		}
	}
	if s.Labels { // labels come after the columns of single numbers
		label, at := z.arrays[1], 1
		z.arrays = slices.Delete(z.arrays, 1, 2)
		for at < len(z.arrays) && z.arrays[at].shape == nil && z.arrays[at].text == nil {
			at++
		}
		z.arrays = slices.Insert(z.arrays, at, label)
	}
	for _, a := range z.arrays {
		f, err := tempfile.Nameless(dir)
		if err != nil {
			return z, err
		}
		a.held, a.out = f, bufio.NewWriterSize(f, 1<<16)
	}
	return z, nil
}

func (z *npzWriter) Write(r *Row) error {
	z.rows++
	for _, a := range z.arrays {
		if a.text != nil {
			z.b = a.appendText(z.b[:0], r)
		} else {
			z.b = a.appendNumbers(z.b[:0], r)
		}
		if _, err := a.out.Write(z.b); err != nil {
			return err
		}
	}
	return nil
}

// appendText appends a text with its length in front. NumPy stores all texts of an array with the length of the
// longest, which is known only at the end.
func (a *array) appendText(b []byte, r *Row) []byte {
	text, _ := a.text(r)
	n := utf8.RuneCountInString(text)
	a.width = max(a.width, n)
	b = binary.LittleEndian.AppendUint32(b, uint32(n))
	for _, c := range text {
		b = binary.LittleEndian.AppendUint32(b, uint32(c))
	}
	return b
}

func (a *array) appendNumbers(b []byte, r *Row) []byte {
	values, none := a.values(r), math.NaN()
	switch a.kind {
	case task.Class:
		none = -1
	case task.Subset:
		none = 0
	case task.Flag:
		none = 1
	}
	if values == nil {
		values = slices.Repeat([]float64{none}, task.Column{Shape: a.shape}.Len())
	}
	for _, v := range values {
		switch a.kind {
		case task.Class:
			b = binary.LittleEndian.AppendUint64(b, uint64(int64(v)))
		case task.Subset, task.Flag:
			b = append(b, byte(v))
		case task.Float32:
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(float32(v)))
		default:
			b = binary.LittleEndian.AppendUint64(b, math.Float64bits(v))
		}
	}
	return b
}

func (z *npzWriter) Close() error {
	for _, a := range z.arrays {
		if err := a.pass(z.archive, z.rows); err != nil {
			return err
		}
	}
	return z.archive.Close()
}

func (a *array) pass(to *Archive, rows int) error {
	if err := a.out.Flush(); err != nil {
		return err
	}
	if _, err := a.held.Seek(0, io.SeekStart); err != nil {
		return err
	}
	dtype := map[task.Kind]string{task.Class: "<i8", task.Float32: "<f4", task.Float64: "<f8", task.Subset: "|b1", task.Flag: "|b1"}[a.kind]
	if a.width > 0 {
		dtype = numpy.Text(a.width)
	}
	out, err := to.begin(a.name, dtype, append([]int{rows}, a.shape...)...)
	if err != nil {
		return err
	}
	if a.width > 0 {
		return a.pad(out, rows)
	}
	_, err = io.CopyBuffer(out, a.held, make([]byte, 1<<16))
	return err
}

// pad writes the texts of an array, padded with zeros to the width.
func (a *array) pad(w io.Writer, rows int) error {
	in, out := bufio.NewReader(a.held), bufio.NewWriter(w)
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

// discard closes the temporary files.
func (z *npzWriter) discard() {
	for _, a := range z.arrays {
		a.held.Close() // a nil file, left by an error, is safe to close
	}
}

var predictionRole = numpy.Role{
	What: "predictions",
	Want: "float16, float32 or float64",
	OK:   func(t numpy.Type) bool { return t.Kind == 'f' },
}

// readArrays reads a .npy or .npz.
func readArrays(path, key string) (content, error) {
	f, err := numpy.Open(path)
	if err != nil {
		return content{}, err
	}
	defer f.Close()
	keyed := key != ""
	if err = onlyClasses(f.Keys); err == nil || keyed {
		key, err = pickPredictions(f.Keys, key)
	}
	if err != nil {
		return content{}, fmt.Errorf("%s: %w", path, err)
	}
	x, err := f.Read(key, predictionRole)
	if err != nil {
		return content{}, err
	}
	if len(x.Shape) != 2 {
		return content{}, fmt.Errorf("%s: shape %d, want [n classes]", f.Where(key), x.Shape)
	}
	t := content{sum: f.SHA256, from: "the array", named: meaning(key), classes: x.Shape[1], values: x.Float64s()}
	if key != "" {
		t.from = fmt.Sprintf("array %q", key)
	}
	labels, err := f.Pick(numpy.Labels, key)
	if err == nil && labels != "" {
		_, shape, _ := f.Shape(labels)
		if t.labels, err = f.ReadLabels(labels, x.Shape[0], path); err != nil && slices.Equal(shape, x.Shape) {
			err = fmt.Errorf("%w. For independent labels, 0 or 1 for each: %s", err, setting.Task.With("labels"))
		}
	}
	if err == nil && t.named == "logits" && !keyed {
		err = t.readSecond(f)
	}
	t.unused = unused(f.Keys, func(name string) bool { return name == key || name == labels || t.second != nil && name == t.other })
	if t.other != "" {
		t.other = fmt.Sprintf("array %q", t.other)
	}
	return t, err
}

// readSecond reads the probabilities beside logits, if there are any.
func (t *content) readSecond(f *numpy.File) error {
	for _, name := range probabilityNames {
		i := slices.IndexFunc(f.Keys, func(k string) bool { return strings.EqualFold(k, name) })
		if i < 0 {
			continue
		}
		if _, shape, err := f.Shape(f.Keys[i]); err != nil || !slices.Equal(shape, []int{len(t.values) / t.classes, t.classes}) {
			continue
		}
		x, err := f.Read(f.Keys[i], predictionRole)
		if err == nil {
			t.other, t.second = f.Keys[i], x.Float64s()
		}
		return err
	}
	return nil
}

// pickPredictions chooses an array by name, or the only one. keys is nil if the file is a bare array.
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
	return "", fmt.Errorf("cannot tell which array holds the predictions, want \"probs\" or \"logits\", or a key that names one of %s",
		numpy.Quote(keys))
}

// An Archive writes an .npz file, one array after the other.
type Archive struct{ z *zip.Writer }

// NewArchive begins an archive. Close the Archive before w.
func NewArchive(w io.Writer) *Archive { return &Archive{numpy.NewArchive(w)} }

// Floats adds an array of float64 of the given shape.
func (a *Archive) Floats(name string, values []float64, shape ...int) error {
	return add(a, name, "<f8", values, shape)
}

// Ints adds an array of int64 of the given shape.
func (a *Archive) Ints(name string, values []int, shape ...int) error {
	wide := make([]int64, len(values))
	for i, v := range values {
		wide[i] = int64(v)
	}
	return add(a, name, "<i8", wide, shape)
}

func add[T float64 | int64](a *Archive, name, dtype string, values []T, shape []int) error {
	f, err := a.begin(name, dtype, shape...)
	for part := range slices.Chunk(values, 1<<13) { // binary.Write copies what it gets
		if err == nil {
			err = binary.Write(f, binary.LittleEndian, part)
		}
	}
	return err
}

// begin adds an array. It returns the writer for its elements, which is valid until the next array begins.
func (a *Archive) begin(name, dtype string, shape ...int) (io.Writer, error) {
	f, err := a.z.CreateHeader(&zip.FileHeader{Name: name + ".npy", Method: zip.Store})
	if err == nil {
		_, err = f.Write(numpy.Header(dtype, shape...))
	}
	return f, err
}

// Close writes the directory at the end of the file.
func (a *Archive) Close() error { return a.z.Close() }
