package onnxio

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/swagwrap/swagwrap/weights"
)

func layoutOf(t testing.TB, models ...*Model) *weights.Layout {
	t.Helper()
	l, err := NewLayout(models)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func templateOf(t testing.TB, m *Model, l *weights.Layout) *Template {
	t.Helper()
	tpl, err := NewTemplate(m, l)
	if err != nil {
		t.Fatal(err)
	}
	return tpl
}

func vectors(t testing.TB, m *Model, l *weights.Layout) (parameters, statistics weights.Vector) {
	t.Helper()
	parameters, err1 := m.Vector(l, weights.Parameter)
	statistics, err2 := m.Vector(l, weights.Statistic)
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	return parameters, statistics
}

func render(t testing.TB, tpl *Template, l *weights.Layout, parameters, statistics weights.Vector) []byte {
	t.Helper()
	b, err := tpl.Render(l, parameters, statistics)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// rendered returns a filled template of one file.
func rendered(t testing.TB, f Filled) []byte {
	t.Helper()
	return render(t, f.Template, f.Layout, f.Parameters, f.Statistics)
}

// renderAll returns all files of the template by name, the model's as "".
func renderAll(t testing.TB, tpl *Template, l *weights.Layout, parameters, statistics weights.Vector) map[string]string {
	t.Helper()
	out := make(map[string]string)
	for i, name := range tpl.Files() {
		if i == 0 {
			name = ""
		}
		var b strings.Builder
		if err := tpl.WriteTo(&b, i, l, parameters, statistics); err != nil {
			t.Fatal(err)
		}
		out[name] = b.String()
	}
	return out
}

// allBytes returns the files that the model was read from.
func allBytes(m *Model) map[string]string {
	out := map[string]string{"": string(m.Bytes())}
	for location, f := range m.files {
		out[location] = string(f.All())
	}
	return out
}

// decodes reports whether some of the model's elements are not in one piece, and
// become raw data when the model is written.
func decodes(m *Model) bool {
	return slices.ContainsFunc(m.tensors, func(t *Tensor) bool { return t.decoded != nil })
}

func read(t testing.TB, v weights.Vector) weights.Slice {
	t.Helper()
	s := make(weights.Slice, v.Len())
	if err := v.ReadAt(s, 0); err != nil {
		t.Fatal(err)
	}
	return s
}

// replacement is make.py's values.
func replacement(n int64, seed int) weights.Slice {
	s := make(weights.Slice, n)
	for i := range s {
		s[i] = float32((i+seed)*37%101-50) / 8
	}
	return s
}

func tensorNames(tensors []weights.Tensor) []string {
	out := []string{}
	for _, t := range tensors {
		out = append(out, t.Name)
	}
	return out
}

func TestTemplate(t *testing.T) {
	for path, want := range golden(t) {
		if want.Parameters == nil {
			continue
		}
		t.Run(path, func(t *testing.T) {
			m := open(t, path)
			l := layoutOf(t, m)
			if p, s := tensorNames(l.Role(weights.Parameter)), tensorNames(l.Role(weights.Statistic)); !slices.Equal(p, want.Parameters) || !slices.Equal(s, want.Statistics) {
				t.Errorf("parameters %q, statistics %q, want %q and %q", p, s, want.Parameters, want.Statistics)
			}
			tpl, err := m.Edit().Template(l)
			if err != nil {
				t.Fatal(err)
			}
			own, ownStats := vectors(t, m, l)
			got, size := renderAll(t, tpl, l, own, ownStats), 0
			for _, f := range got {
				size += len(f)
			}
			if maps.Equal(got, allBytes(m)) == decodes(m) || tpl.Size() != int64(size) {
				t.Errorf("with its own weights: %d bytes (Size says %d), differ from the file's %d", size, tpl.Size(), len(m.Bytes()))
			}

			bns, _ := m.BatchNorms()
			training := slices.ContainsFunc(bns, func(bn BatchNorm) bool { return bn.IsTraining })
			if again := renderAll(t, templateOf(t, m, l), l, own, ownStats); maps.Equal(again, got) == training {
				t.Errorf("exported in training mode: %v, but NewTemplate's changes say otherwise", training)
			}

			// New weights end up where Python's onnx puts them.
			p, s := replacement(own.Len(), 1000), replacement(ownStats.Len(), 2000)
			replaced := renderAll(t, tpl, l, p, s)
			if sum := fmt.Sprintf("%x", sha256.Sum256([]byte(replaced[""]))); want.Replaced != "" && sum != want.Replaced {
				t.Errorf("with new weights: SHA-256 %s, want %s as Python wrote it", sum, want.Replaced)
			}
			outside := make(map[string][]byte)
			for name, b := range replaced {
				outside[name] = []byte(b)
			}
			filled, err := ParseFiles("filled.onnx", outside[""], outside)
			if err != nil {
				t.Fatal(err)
			}
			gotP, gotS := vectors(t, filled, l)
			if !slices.Equal(read(t, gotP), p) || !slices.Equal(read(t, gotS), s) {
				t.Error("new weights do not read back")
			}

			stored, err := tpl.MarshalBinary()
			if err != nil {
				t.Fatal(err)
			}
			back, err := ParseTemplate(stored)
			if err != nil {
				t.Fatal(err)
			}
			if again := renderAll(t, back, l, p, s); !maps.Equal(again, replaced) {
				t.Error("a stored template renders differently")
			}
			for _, v := range []weights.Vector{own, ownStats} {
				if v.Len() > 0 && bytes.Contains(stored, render32(read(t, v))) {
					t.Error("the template holds the weights that it should not")
				}
			}
		})
	}
}

func render32(v weights.Slice) []byte {
	b := make([]byte, 4*len(v))
	weights.F32.PutFloat32s(b, v)
	return b
}

// A tensor of several blocks, and of more elements than a block divides,
// arrives whole.
func TestRenderInBlocks(t *testing.T) {
	const n = 2<<16 + 3
	m := parse(t, encodeModel(tinyGraph(tensor("w", BFloat16, []int64{n}, make([]byte, 2*n)), tensor("v", Double, []int64{2}, make([]byte, 16)))))
	l := layoutOf(t, m)
	p := replacement(n+2, 0)
	got, _ := vectors(t, parse(t, render(t, templateOf(t, m, l), l, p, weights.Slice{})), l)
	if !slices.Equal(read(t, got), p) {
		t.Error("weights do not read back")
	}
}

// Elements that a vector holds in the type of the file are copied bit for bit,
// also those that float32 cannot hold; others are rounded to float32.
func TestRenderRounds(t *testing.T) {
	third := binary.LittleEndian.AppendUint64(nil, math.Float64bits(1.0/3))
	m := parse(t, encodeModel(tinyGraph(tensor("w", Double, []int64{1}, third))))
	l := layoutOf(t, m)
	own, stats := vectors(t, m, l)
	for want, p := range map[float64]weights.Vector{1.0 / 3: own, float64(float32(1.0 / 3)): read(t, own)} {
		again := parse(t, render(t, templateOf(t, m, l), l, p, stats))
		elements := again.Elements(again.Graph.Initializers[0])
		if got := math.Float64frombits(binary.LittleEndian.Uint64(elements)); got != want {
			t.Errorf("1/3 in a %T becomes %v, want %v", p, got, want)
		}
	}
}

func TestRenderErrors(t *testing.T) {
	m := fixture(t, "raw-f32")
	l := layoutOf(t, m)
	tpl := templateOf(t, m, l)
	other := layoutOf(t, fixture(t, "raw-f16"))
	if b, err := tpl.Render(other, weights.Slice{}, weights.Slice{}); b != nil || err == nil || !strings.Contains(err.Error(), `tensor "w": hole of 48 bytes`) {
		t.Errorf("another layout: %v", err)
	}
	broken := errors.New("broken")
	var b bytes.Buffer
	if err := tpl.WriteTo(&b, 0, l, failingVector{broken}, weights.Slice{}); !errors.Is(err, broken) {
		t.Errorf("an unreadable vector: %v", err)
	}
	own, stats := vectors(t, m, l)
	for room := range tpl.Size() {
		if err := tpl.WriteTo(&limited{room, broken}, 0, l, own, stats); !errors.Is(err, broken) {
			t.Fatalf("a disk with room for %d of %d bytes: %v", room, tpl.Size(), err)
		}
	}
}

type failingVector struct{ err error }

func (failingVector) Len() int64                      { return 1 << 40 }
func (v failingVector) ReadAt([]float32, int64) error { return v.err }

// A layout comes from a posterior file too: one that says transposed of what is
// no matrix must not be believed.
func TestHostileLayout(t *testing.T) {
	m := fixture(t, "raw-f32")
	l := layoutOf(t, m)
	p, s := vectors(t, m, l)
	hostile := &weights.Layout{Tensors: slices.Clone(l.Tensors)}
	for i := range hostile.Tensors {
		hostile.Tensors[i].Transposed = true
	}
	if got := render(t, templateOf(t, m, l), hostile, p, s); !bytes.Equal(got, m.Bytes()) {
		t.Error("the model changes")
	}
}

// limited takes room bytes and no more.
type limited struct {
	room int64
	err  error
}

func (w *limited) Write(p []byte) (int, error) {
	if w.room -= int64(len(p)); w.room < 0 {
		return 0, w.err
	}
	return len(p), nil
}

// Template bytes come from a posterior file, which is untrusted.
func TestHostileTemplates(t *testing.T) {
	t.Parallel()
	m := fixture(t, "raw-f32")
	l := layoutOf(t, m)
	whole, err := templateOf(t, m, l).MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	own, stats := vectors(t, m, l)
	frame := func(js string) []byte {
		return append(binary.LittleEndian.AppendUint64(nil, uint64(len(js))), js+"other bytes"...)
	}
	holes := func(js string) []byte { return frame(`[{"name":"m.onnx","bytes":11,"holes":[` + js + "]}]") }
	for name, c := range map[string]struct {
		data []byte
		want string // of ParseTemplate or, where that is content, of Render
	}{
		"nothing":              {nil, "truncated"},
		"half a length":        {whole[:7], "truncated"},
		"cut in the holes":     {whole[:20], "truncated"},
		"cut in the file":      {whole[:len(whole)-1], "bytes, of which"},
		"length 2⁶⁴-1":         {bytes.Repeat([]byte{255}, 32), "truncated"},
		"not JSON":             {frame("nonsense"), "invalid character"},
		"not a list":           {frame("{}"), "cannot unmarshal"},
		"no file":              {frame("null"), "0 files and 11 bytes too many"},
		"bytes left":           {frame(`[{"bytes":10}]`), "1 files and 1 bytes too many"},
		"negative file":        {frame(`[{"name":"f","bytes":-1}]`), `file "f" has -1 bytes`},
		"huge file":            {frame(`[{"bytes":1},{"name":"f","bytes":9223372036854775807}]`), `file "f" has 9223372036854775807 bytes, of which 10 are left`},
		"hole before the file": {holes(`{"tensor":"w","at":-1,"bytes":48}`), "out of place"},
		"hole behind the file": {holes(`{"tensor":"w","at":12,"bytes":48}`), "out of place"},
		"negative hole":        {holes(`{"tensor":"w","at":0,"bytes":-1}`), "out of place"},
		"huge hole":            {holes(`{"tensor":"w","at":0,"bytes":9223372036854775807}`), "out of place"},
		"huge holes":           {holes(`{"tensor":"w","at":0,"bytes":9223372036854775000},{"tensor":"b","at":0,"bytes":2000}`), "out of place"},
		"holes out of order":   {holes(`{"tensor":"w","at":5,"bytes":48},{"tensor":"b","at":4,"bytes":12}`), "out of place"},
		"too many holes":       {frame("[" + strings.Repeat("{},", 1<<21) + "{}]"), "want at most"},
		"unknown tensor":       {holes(`{"tensor":"v","at":0,"bytes":48}`), `tensor "v": hole of 48 bytes does not fit`},
		"wrong size":           {holes(`{"tensor":"w","at":0,"bytes":2000000000}`), `tensor "w": hole of 2000000000 bytes does not fit`},
		"one tensor twice":     {holes(`{"tensor":"w","at":0,"bytes":48},{"tensor":"w","at":0,"bytes":48}`), `tensor "w": hole of 48 bytes does not fit`},
		"two files":            {frame(`[{"name":"m.onnx","bytes":5},{"name":"d","bytes":6}]`), "m.onnx: 2 files, want one"},
	} {
		tpl, err := ParseTemplate(c.data)
		if err == nil {
			_, err = tpl.Render(l, own, stats)
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q in it", name, err, c.want)
		}
	}
	if tpl, err := ParseTemplate(holes("")); err != nil || tpl.Size() != 11 {
		t.Errorf("no holes at all: %v", err)
	}
}
