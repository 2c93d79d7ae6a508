// Package reference reads reference outputs: what a training framework itself computed for a few examples, with the weights that
// belong to them. It holds networks against them, and looks for the cause of a difference.
//
// docs/formats.md has the form of the file. The folder test_data_set_0 of the ONNX Model Zoo is read, too.
//
// # Invariants
//
// Files are untrusted: see package numpy.
package reference

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/swagwrap/swagwrap/internal/file"
	"github.com/swagwrap/swagwrap/internal/numpy"
	"github.com/swagwrap/swagwrap/internal/ort"
	"github.com/swagwrap/swagwrap/onnxio"
)

// A file of this Name is found in the folder of the graph or of the checkpoints. ZooFolder is that of the ONNX Model Zoo.
const (
	Name      = "swagwrap-reference.npz"
	ZooFolder = "test_data_set_0"
)

// Names of arrays that are neither inputs nor outputs, if the graph has none of the name. Behind prefix they always are these.
const (
	prefix        = "reference."
	keyWeights    = "weights"
	keyAbout      = "about"
	keyRaw        = "raw"
	keySizes      = "raw_sizes"
	keyClassNames = "class_names"
)

// maxBytes bounds the elements of all arrays.
const maxBytes = 1 << 30

// About says how the outputs were computed. Empty texts are not known.
type About struct {
	Device   string            `json:"device"` // as PyTorch names it, such as "cpu" or "cuda:0"
	DType    string            `json:"dtype"`  // in which most was computed, such as "float32" or "bfloat16"
	TF32     *bool             `json:"tf32"`   // whether a GPU rounded the factors of products to TensorFloat-32
	Mode     string            `json:"mode"`   // "eval" or "train"
	Versions map[string]string `json:"versions"`
	Inputs   string            `json:"inputs"` // "synthetic" for made-up numbers
}

// A File is reference outputs as they are stored.
type File struct {
	Path   string
	SHA256 string // "" of a folder
	// Weights name the files of weights that the rows of outputs belong to, in order. Nil if none is named.
	Weights    []string
	ByRow      bool // outputs have a row for each of Weights. Otherwise there is at most one, and no axis for it.
	About      About
	ClassNames []string
	Raw        [][]byte // raw examples, such as the bytes of picture files

	arrays map[string]numpy.Array
	texts  map[string][]string
}

// Open reads a file, or a folder of the ONNX Model Zoo.
func Open(path string) (*File, error) {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return openZoo(path)
	}
	n, err := numpy.Open(path)
	if err != nil {
		return nil, err
	}
	defer n.Close()
	if n.Keys == nil {
		return nil, fmt.Errorf("%s: one array without a name, want an .npz with the inputs and outputs of the network", path)
	}
	f := &File{Path: path, SHA256: n.SHA256, arrays: map[string]numpy.Array{}, texts: map[string][]string{}}
	total := 0
	for _, key := range n.Keys {
		dtype, shape, err := n.Shape(key)
		if err != nil {
			return nil, err
		}
		size := dtype.Size
		for _, d := range shape {
			size *= d
		}
		if total += size; total > maxBytes {
			return nil, fmt.Errorf("%s: more than %d bytes of arrays: a few examples are enough", path, maxBytes)
		}
		if dtype.Kind != 0 {
			f.arrays[key], err = n.Read(key, numpy.Values)
		} else {
			f.texts[key], shape, err = n.Texts(key)
			if bare(key) == keyWeights {
				f.Weights, f.ByRow = f.texts[key], len(shape) > 0
			}
		}
		if err != nil {
			return nil, err
		}
	}
	return f, f.readOthers()
}

// readOthers reads what is neither inputs nor outputs.
func (f *File) readOthers() error {
	for key, list := range f.texts {
		switch bare(key) {
		case keyAbout:
			if err := json.Unmarshal([]byte(list[0]), &f.About); err != nil {
				return fmt.Errorf("%s: %q: %w", f.Path, key, err)
			}
		case keyClassNames:
			f.ClassNames = list
		}
	}
	return f.readRaw()
}

func (f *File) readRaw() error {
	raw, ok := f.other(keyRaw)
	sizes, of := f.other(keySizes)
	switch {
	case !ok && !of:
		return nil
	case !ok || !of || raw.Type.Size != 1 || len(sizes.Shape) != 1 || sizes.Type.Kind == 'f':
		return fmt.Errorf("%s: want %q with the bytes of all raw examples, and %q with a whole number for each", f.Path, keyRaw, keySizes)
	}
	data := raw.Data
	for i := range sizes.Shape[0] {
		n, _ := sizes.Int64(i)
		if n < 0 || n > int64(len(data)) {
			return fmt.Errorf("%s: %q: example %d has %d bytes, and %d are left of %q", f.Path, keySizes, i, n, len(data), keyRaw)
		}
		f.Raw, data = append(f.Raw, data[:n]), data[n:]
	}
	if len(data) > 0 {
		return fmt.Errorf("%s: %q: %d bytes belong to no example of %q", f.Path, keyRaw, len(data), keySizes)
	}
	return nil
}

// other returns an array that is neither an input nor an output.
func (f *File) other(key string) (numpy.Array, bool) {
	if a, ok := f.arrays[prefix+key]; ok {
		return a, true
	}
	a, ok := f.arrays[key]
	return a, ok
}

// bare returns a key without the prefix.
func bare(key string) string { return strings.TrimPrefix(key, prefix) }

// openZoo reads a folder with input_0.pb, output_0.pb and so on.
func openZoo(dir string) (*File, error) {
	f := &File{Path: dir, arrays: map[string]numpy.Array{}}
	for _, what := range []string{"input", "output"} {
		for i := 0; ; i++ {
			path := filepath.Join(dir, fmt.Sprintf("%s_%d.pb", what, i))
			data, err := file.Read(path, maxBytes)
			if errors.Is(err, os.ErrNotExist) && i > 0 {
				break
			}
			if err != nil {
				return nil, fmt.Errorf("%s: want reference outputs: an .npz, or a folder with input_0.pb and output_0.pb", dir)
			}
			if f.arrays[fmt.Sprintf("%ss.%d", what, i)], err = readTensor(data); err != nil {
				return nil, fmt.Errorf("%s: %w", path, err)
			}
		}
	}
	return f, nil
}

// Row returns the row of outputs that belongs to a file of weights. ok is false if none does.
func (f *File) Row(path string) (row int, ok bool) {
	path = filepath.ToSlash(path)
	for i, w := range slices.Backward(f.Weights) { // a run that goes on writes the later row
		if w = filepath.ToSlash(w); path == w || strings.HasSuffix(path, "/"+w) || filepath.Base(path) == filepath.Base(w) &&
			(strings.HasPrefix(w, "/") || !strings.Contains(w, "/")) {
			return i, true
		}
	}
	return 0, false
}

// Rows returns the number of rows of outputs.
func (f *File) Rows() int {
	if f.ByRow {
		return len(f.Weights)
	}
	return 1
}

// Examples are reference outputs read against a graph.
type Examples struct {
	*File
	Count  int
	inputs []ort.Tensor
	fixed  int // the batch size that the graph fixes, or 0
	names  []string
	// outputs have the elements of row r, example i, at outputs[k][r][i].
	outputs  [][][][]float64
	rounding float64 // of the type in which outputs are stored, in units of their largest number
}

// Examples reads the examples as the inputs and outputs of a graph. scores names the output that "outputs" stands for.
func (f *File) Examples(m *onnxio.Model, scores string) (*Examples, error) {
	e := &Examples{File: f}
	inputs := m.FeedInputs()
	for i, v := range inputs {
		key, ok := f.find(v.Name, "inputs", i, len(inputs) == 1)
		if !ok {
			return nil, f.missing("input", v.Name, "inputs", i)
		}
		a := f.arrays[key]
		if len(a.Shape) == 0 {
			a.Shape = []int{1}
		}
		if len(v.Shape) > 0 && !fits(a.Shape, v.Shape) {
			last := len(a.Shape) - 1
			note := ""
			if last > 1 && fits(slices.Insert(slices.Clone(a.Shape[:last]), 1, a.Shape[last]), v.Shape) {
				note = ": the channels are last here, and the graph takes them first"
			}
			return nil, fmt.Errorf("%s: array %q: shape %d, want %s as the graph's input %q has%s", f.Path, key, a.Shape,
				onnxio.FormatShape(v.Shape, v.Dims), v.Name, note)
		}
		if e.Count == 0 {
			e.Count = a.Shape[0]
			e.fixed = int(max(0, slices.Concat(v.Shape, []int64{0})[0]))
		}
		if a.Shape[0] != e.Count {
			return nil, fmt.Errorf("%s: array %q: %d examples, and %d in others", f.Path, key, a.Shape[0], e.Count)
		}
		t, err := tensorOf(v, a)
		if err != nil {
			return nil, fmt.Errorf("%s: array %q: %w", f.Path, key, err)
		}
		e.inputs = append(e.inputs, t)
	}
	for i, v := range m.Graph.Outputs {
		key, ok := f.find(v.Name, "outputs", i, v.Name == scores)
		if !ok {
			continue
		}
		if t := f.arrays[key].Type; t.Kind == 'f' && t.Size == 2 {
			e.rounding = 1. / 2048 // of float16
		}
		rows, err := e.split(f.arrays[key])
		if err != nil {
			return nil, fmt.Errorf("%s: array %q: %w", f.Path, key, err)
		}
		e.names, e.outputs = append(e.names, v.Name), append(e.outputs, rows)
	}
	if len(e.names) == 0 {
		return nil, f.missing("output", scores, "outputs", 0)
	}
	return e, nil
}

// fits reports whether examples have the shape of an input. Their number is free.
func fits(have []int, want []int64) bool {
	if len(have) != len(want) {
		return false
	}
	for i, d := range want[1:] {
		if d > 0 && int64(have[i+1]) != d {
			return false
		}
	}
	return true
}

// find returns the array of a value of the graph: by its name, or by its place. only says that the bare word stands for it.
func (f *File) find(name, word string, place int, only bool) (key string, ok bool) {
	for _, key := range []string{name, fmt.Sprintf("%s.%d", word, place), word} {
		if _, ok := f.arrays[key]; ok && (key != word || only) {
			return key, true
		}
	}
	return "", false
}

func (f *File) missing(what, name, word string, place int) error {
	return fmt.Errorf("%s: no array for the graph's %s %q, want one of this name, or %s.%d: it has %s", f.Path, what, name, word, place,
		numpy.Quote(slices.Sorted(maps.Keys(f.arrays))))
}

// split returns the elements of outputs by row and example.
func (e *Examples) split(a numpy.Array) (rows [][][]float64, err error) {
	shape, n := a.Shape, e.Rows()
	if e.ByRow {
		if len(shape) == 0 || shape[0] != n {
			return nil, fmt.Errorf("shape %d, want [%d %d …]: a row for each of %q, and in it the examples", shape, n, e.Count, keyWeights)
		}
		shape = shape[1:]
	}
	if len(shape) == 0 && e.Count == 1 {
		shape = []int{1}
	}
	if len(shape) == 0 || shape[0] != e.Count {
		return nil, fmt.Errorf("shape %d, want %d examples as in the inputs", a.Shape, e.Count)
	}
	all := a.Float64s()
	size := len(all) / n / e.Count
	for r := range n {
		var row [][]float64
		for i := range e.Count {
			row = append(row, all[(r*e.Count+i)*size:][:size:size])
		}
		rows = append(rows, row)
	}
	return rows, nil
}
