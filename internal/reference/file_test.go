package reference

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/swagwrap/swagwrap/internal/numpy"
	"github.com/swagwrap/swagwrap/onnxio"
)

// entry is an array in an .npz.
type entry struct {
	name string
	data []byte
}

// npz writes arrays to a file. deflated says that they are compressed.
func npz(t *testing.T, deflated bool, entries ...entry) string {
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, e := range entries {
		f, err := w.CreateHeader(&zip.FileHeader{Name: e.name + ".npy", Method: map[bool]uint16{true: zip.Deflate}[deflated]})
		if err == nil {
			_, err = f.Write(e.data)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return stored(t, Name, b.Bytes())
}

func stored(t *testing.T, name string, data []byte) string {
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// array is an array of NumPy with so many equal elements.
func array(dtype string, element []byte, shape ...int) []byte {
	n := 1
	for _, d := range shape {
		n *= d
	}
	return append(numpy.Header(dtype, shape...), bytes.Repeat(element, n)...)
}

func texts(list ...string) []byte {
	width := 1
	for _, s := range list {
		width = max(width, len(s))
	}
	b := numpy.Header(numpy.Text(width), len(list))
	for _, s := range list {
		for i := range width {
			c := byte(0)
			if i < len(s) {
				c = s[i]
			}
			b = append(b, c, 0, 0, 0)
		}
	}
	return b
}

var (
	one    = binary.LittleEndian.AppendUint32(nil, math.Float32bits(1))
	inputs = entry{"inputs", array("<f4", one, 2, 3, 6, 6)}
	scores = entry{"outputs", array("<f4", one, 2, 3)}
)

var model = filepath.Join("..", "..", "cmd", "swagwrap", "testdata", "reference", "model.onnx")

// open opens a file, and reads it as examples of the network in the tests of the program: input x [batch 3 6 6], output logits.
func open(path string) (*File, *Examples, error) {
	m, err := onnxio.Open(model)
	if err != nil {
		return nil, nil, err
	}
	defer m.Close()
	f, err := Open(path)
	if err != nil {
		return nil, nil, err
	}
	e, err := f.Examples(m, "logits")
	return f, e, err
}

// Damaged and hostile files end with an error that names the file and the array.
func TestDamaged(t *testing.T) {
	t.Parallel()
	whole, err := os.ReadFile(npz(t, true, inputs, scores))
	if err != nil {
		t.Fatal(err)
	}
	lying := array("<f4", one, 2, 3)
	for name, tc := range map[string]struct{ path, want string }{
		"no file":           {filepath.Join(t.TempDir(), "none.npz"), "no such file"},
		"empty":             {stored(t, "empty.npz", nil), "empty"},
		"no archive":        {stored(t, "text.npz", []byte("loss 0.1\n")), "text.npz"},
		"truncated":         {stored(t, "part.npz", whole[:len(whole)/2]), "part.npz"},
		"one array":         {stored(t, "one.npy", inputs.data), "one array without a name, want an .npz"},
		"no inputs":         {npz(t, false, scores), `no array for the graph's input "x"`},
		"no outputs":        {npz(t, false, inputs), `no array for the graph's output "logits"`},
		"shorter":           {npz(t, false, inputs, entry{"outputs", lying[:len(lying)-4]}), "outputs"},
		"longer":            {npz(t, false, inputs, entry{"outputs", append(slices.Clone(lying), 0)}), "outputs"},
		"huge shape":        {npz(t, false, inputs, entry{"outputs", append(numpy.Header("<f4", 1<<40, 1<<40), one...)}), "outputs"},
		"large shape":       {npz(t, false, inputs, entry{"outputs", append(numpy.Header("<f4", 1<<28, 2), one...)}), "swagwrap-reference.npz"},
		"bomb":              {npz(t, true, entry{"inputs", array("<f8", make([]byte, 8), 1<<24)}), "inputs"},
		"duplicate":         {npz(t, false, inputs, inputs, scores), "inputs"},
		"no elements":       {npz(t, false, inputs, entry{"outputs", array("<f4", one, 0, 3)}), "outputs"},
		"complex":           {npz(t, false, inputs, entry{"outputs", array("<c8", make([]byte, 8), 2, 3)}), "c8"},
		"objects":           {npz(t, false, inputs, entry{"outputs", array("|O", make([]byte, 8), 2, 3)}), "outputs"},
		"texts as inputs":   {npz(t, false, entry{"inputs", texts("a", "b")}, scores), `no array for the graph's input "x"`},
		"other rank":        {npz(t, false, entry{"inputs", array("<f4", one, 2, 3)}, scores), `array "inputs": shape [2 3], want [batch 3 6 6]`},
		"fewer outputs":     {npz(t, false, inputs, entry{"outputs", array("<f4", one, 1, 3)}), `array "outputs": shape [1 3], want 2 examples`},
		"rows of weights":   {npz(t, false, inputs, scores, entry{"weights", texts("a.pt", "b.pt", "c.pt")}), `a row for each of "weights"`},
		"about is no JSON":  {npz(t, false, inputs, scores, entry{"about", texts("cpu")}), `"about"`},
		"no examples":       {npz(t, false, entry{"inputs", array("<f4", one, 0, 3, 6, 6)}, entry{"outputs", array("<f4", one, 0, 3)}), ""},
		"no weights":        {npz(t, false, inputs, entry{"outputs", array("<f4", one, 0, 2, 3)}, entry{"weights", texts()}), ""},
		"about is empty":    {npz(t, false, inputs, scores, entry{"about", texts()}), ""},
		"channels last":     {npz(t, false, entry{"inputs", array("<f4", one, 2, 6, 6, 3)}, scores), "the channels are last here"},
		"another size":      {npz(t, false, entry{"inputs", array("<f4", one, 2, 3, 8, 8)}, scores), `shape [2 3 8 8], want [batch 3 6 6]`},
		"raw without sizes": {npz(t, false, inputs, scores, entry{"raw", array("|u1", []byte{1}, 4)}), `and "raw_sizes" with a whole number`},
		"one size": {npz(t, false, inputs, scores, entry{"raw", array("|u1", []byte{1}, 4)}, entry{"raw_sizes", array("|u1", []byte{4})}),
			`want "raw"`},
		"sizes of floats": {npz(t, false, inputs, scores, entry{"raw", array("|u1", []byte{1}, 4)},
			entry{"raw_sizes", array("<f4", one, 4)}), `want "raw"`},
		"sizes too large": {npz(t, false, inputs, scores, entry{"raw", array("|u1", []byte{1}, 4)},
			entry{"raw_sizes", array("|u1", []byte{3}, 2)}), `"raw_sizes": example 1 has 3 bytes, and 1 are left of "raw"`},
		"negative sizes": {npz(t, false, inputs, scores, entry{"raw", array("|u1", []byte{1}, 4)},
			entry{"raw_sizes", array("|i1", []byte{0xff}, 2)}), `example 0 has -1 bytes`},
		"sizes too small": {npz(t, false, inputs, scores, entry{"raw", array("|u1", []byte{1}, 4)},
			entry{"raw_sizes", array("|u1", []byte{1}, 2)}), `"raw": 2 bytes belong to no example`},
	} {
		_, _, err := open(tc.path)
		if err == nil || !strings.Contains(err.Error(), tc.want) || !strings.Contains(err.Error(), filepath.Base(tc.path)) {
			t.Errorf("%s: error %v, want %q and the name of the file", name, err, tc.want)
		}
	}
	for n := 0; n < len(whole); n += 9 { // no part of a file crashes, or is read as a whole one
		if _, _, err := open(stored(t, "part.npz", whole[:n])); err == nil {
			t.Fatalf("%d of %d bytes are read", n, len(whole))
		}
	}
}

// Numbers of all types are read as what they are, in either order of bytes and of axes.
func TestTypes(t *testing.T) {
	t.Parallel()
	fortran := slices.Clone(scores.data)
	copy(fortran[bytes.Index(fortran, []byte("False, 'shape'")):], "True,  'shape'")
	for name, tc := range map[string]struct{ in, out entry }{
		"float32":    {inputs, scores},
		"big-endian": {entry{"inputs", array(">f4", []byte{0x3f, 0x80, 0, 0}, 2, 3, 6, 6)}, entry{"outputs", array(">f8", []byte{0x3f, 0xf0, 0, 0, 0, 0, 0, 0}, 2, 3)}},
		"float16":    {entry{"inputs", array("<f2", []byte{0, 0x3c}, 2, 3, 6, 6)}, entry{"outputs", array("<f2", []byte{0, 0x3c}, 2, 3)}},
		"whole":      {entry{"x", array("<i8", []byte{1, 0, 0, 0, 0, 0, 0, 0}, 2, 3, 6, 6)}, entry{"logits", array("|u1", []byte{1}, 2, 3)}},
		"by place":   {entry{"inputs.0", inputs.data}, entry{"outputs.0", scores.data}},
		"Fortran":    {inputs, entry{"outputs", fortran}},
	} {
		_, e, err := open(npz(t, true, tc.in, tc.out))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if e.Count != 2 || e.inputs[0].F32[0] != 1 || e.outputs[0][0][1][2] != 1 {
			t.Errorf("%s: %d examples, %v, %v", name, e.Count, e.inputs[0].F32[0], e.outputs)
		}
	}
	f, _, err := open(npz(t, true, inputs, scores, entry{"reference.raw", array("|u1", []byte{'a'}, 3)},
		entry{"raw_sizes", array("|u1", []byte{1}, 3)}, entry{"class_names", texts("cat", "dog")}, entry{"weights", texts("a.pt")}))
	if err == nil || f.Raw == nil || !slices.Equal(f.ClassNames, []string{"cat", "dog"}) || !slices.Equal(f.Weights, []string{"a.pt"}) {
		t.Errorf("%+v (%v)", f, err) // outputs without a row for each of the list
	}
}

// proto is a TensorProto.
func proto(kind uint64, dims []uint64, num protowire.Number, elements []byte) (b []byte) {
	for _, d := range dims {
		b = protowire.AppendVarint(protowire.AppendTag(b, fieldDims, protowire.VarintType), d)
	}
	b = protowire.AppendVarint(protowire.AppendTag(b, fieldType, protowire.VarintType), kind)
	return protowire.AppendBytes(protowire.AppendTag(b, num, protowire.BytesType), elements)
}

// Files of the ONNX Model Zoo are read in all forms, and damaged ones are refused.
func TestZoo(t *testing.T) {
	t.Parallel()
	ones := bytes.Repeat(one, 2*3*6*6)
	good := proto(1, []uint64{2, 3}, fieldRaw, bytes.Repeat(one, 6))
	for name, tc := range map[string]struct {
		output []byte
		want   string // the error, or ""
	}{
		"raw":            {good, ""},
		"list of floats": {proto(1, []uint64{2, 3}, fieldFloats, bytes.Repeat(one, 6)), ""},
		"whole numbers":  {proto(7, []uint64{2, 3}, fieldInts64, bytes.Repeat([]byte{1}, 6)), ""},
		"bytes":          {proto(2, []uint64{2, 3}, fieldInts32, bytes.Repeat([]byte{1}, 6)), ""},
		"texts":          {proto(8, []uint64{2, 3}, fieldRaw, good), "elements of a type that is not supported"},
		"too few":        {proto(1, []uint64{2, 3}, fieldRaw, one), "4 bytes of elements, want 24 for shape [2 3]"},
		"negative":       {proto(1, []uint64{math.MaxUint64, 3}, fieldRaw, one), "a dimension of"},
		"huge":           {proto(1, []uint64{1 << 30, 1 << 30}, fieldRaw, one), "more than"},
		"none":           {proto(1, []uint64{0, 3}, fieldRaw, nil), "0 bytes of elements"},
		"truncated":      {good[:len(good)-1], "truncated"},
		"a text":         {[]byte("\xff\xff\xff"), "not a tensor of ONNX"},
		"empty":          {nil, "elements of a type"},
	} {
		dir := t.TempDir()
		for file, data := range map[string][]byte{"input_0.pb": proto(1, []uint64{2, 3, 6, 6}, fieldRaw, ones), "output_0.pb": tc.output} {
			if err := os.WriteFile(filepath.Join(dir, file), data, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		_, e, err := open(dir)
		if tc.want == "" && (err != nil || e.outputs[0][0][1][2] != 1) || tc.want != "" && (err == nil ||
			!strings.Contains(err.Error(), tc.want) || !strings.Contains(err.Error(), "output_0.pb")) {
			t.Errorf("%s: %v, want %q", name, err, tc.want)
		}
	}
	if _, _, err := open(t.TempDir()); err == nil || !strings.Contains(err.Error(), "input_0.pb") {
		t.Errorf("an empty folder: %v", err)
	}
}

// Outputs belong to the files of weights that have their name, whatever the folder.
func TestRow(t *testing.T) {
	t.Parallel()
	f := &File{Weights: []string{"epoch-1.pt", "epoch-2.pt", "run/epoch-3.pt", "/there/epoch-4.pt", "epoch-1.pt"}}
	for path, want := range map[string]int{"epoch-1.pt": 4, "a/b/epoch-2.pt": 1, "run/epoch-3.pt": 2, "a/run/epoch-3.pt": 2,
		"other/epoch-3.pt": -1, "here/epoch-4.pt": 3, "epoch-12.pt": -1} {
		row, ok := f.Row(path)
		if !ok {
			row = -1
		}
		if row != want {
			t.Errorf("%s: row %d, want %d", path, row, want)
		}
	}
}

// Rows tell which columns the network takes, unless two are alike or training scaled them.
func TestColumns(t *testing.T) {
	t.Parallel()
	network, err := onnxio.Open(model)
	if err != nil {
		t.Fatal(err)
	}
	defer network.Close()
	rows := []string{`{"b": 1, "a": 2.5, "c": 7, "member": true, "name": "x"}`, `{"b": -3, "a": 4, "c": 7, "member": false, "name": "y"}`,
		`{"b": 10, "a": NaN, "c": 7, "member": true, "name": "z"}`, `{"b": 0.1, "a": 8, "c": 7, "member": true, "name": ""}`}
	number := map[string][]float64{"a": {2.5, 4, math.NaN(), 8}, "b": {1, -3, 10, 0.1}, "c": {7, 7, 7, 7}, "member": {1, 0, 1, 1}}
	for name, tc := range map[string]struct {
		columns [2]string
		change  func(k int, v float64) float64
		note    string
	}{
		"order":   {[2]string{"b", "a"}, nil, ""},
		"another": {[2]string{"a", "member"}, nil, ""},
		"scaled":  {[2]string{"a", "b"}, func(k int, v float64) float64 { return (v - 2) / float64(1+2*k) }, ""},
		"scaled second": {[2]string{"c", "b"}, func(k int, v float64) float64 { return v - float64(3*k) },
			`takes the column "b" scaled, as number 1`},
		"made": {[2]string{"b", "b"}, func(k int, v float64) float64 { return v * math.Pow(v, float64(k)) }, "none of the columns"},
	} {
		f := &File{arrays: map[string]numpy.Array{}}
		var data []byte
		for i, row := range rows {
			f.Raw = append(f.Raw, []byte(row))
			for k, column := range tc.columns {
				v := number[column][i]
				if tc.change != nil {
					v = tc.change(k, v)
				}
				data = binary.LittleEndian.AppendUint32(data, math.Float32bits(float32(v)))
			}
		}
		f.arrays["inputs"] = numpy.Array{Type: numpy.Type{Name: "float32", Kind: 'f', Size: 4}, Shape: []int{4, 2}, Data: data}
		names, note := f.Columns(network, network.FeedInputs()[0].Name)
		if tc.note == "" && tc.change == nil && (note != "" || !slices.Equal(names, tc.columns[:])) || !strings.Contains(note, tc.note) ||
			tc.change != nil && names != nil {
			t.Errorf("%s: %v, %q", name, names, note)
		}
	}
	f := &File{Raw: [][]byte{[]byte("a text")}, arrays: map[string]numpy.Array{"inputs": {Shape: []int{1, 2}}}}
	if names, note := f.Columns(network, network.FeedInputs()[0].Name); names != nil || note != "" {
		t.Errorf("a text: %v, %q", names, note)
	}
}
