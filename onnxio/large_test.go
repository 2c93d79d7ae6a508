package onnxio

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/swagwrap/swagwrap/fixtures/reliability"
	"github.com/swagwrap/swagwrap/onnxio/internal/wire"

	"github.com/swagwrap/swagwrap/weights"
)

// sparse is a model with two tensors of 2.2 GiB and 2.2 GiB + 16 bytes in one
// data file, of which only the given values are there: at index i of a and of b.
// In between lies a constant.
func sparse(t testing.TB, values map[int64]float32) (m *Model, n int64) {
	t.Helper()
	n = 2_362_232_012 / 4
	inits := [][]byte{
		outside(tensor("a", Float, []int64{n}, nil), externalAt("m.data")...),
		outside(tensor("c", Int64, []int64{1}, nil), externalAt("m.data", "offset", fmt.Sprint(4*n), "length", "8")...),
		outside(tensor("b", Float, []int64{1, n + 4}, nil), externalAt("m.data", "offset", fmt.Sprint(4*n+8))...),
	}
	folder := t.TempDir()
	writeFiles(t, folder, map[string]string{"m.onnx": string(encodeModel(tinyGraph(inits...)))})
	f, err := os.Create(filepath.Join(folder, "m.data"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.Truncate(8*n + 24); err != nil {
		t.Fatal(err)
	}
	for i, v := range values {
		for _, start := range []int64{0, 4*n + 8} {
			if _, err := f.WriteAt(render32(weights.Slice{v}), start+4*i); err != nil {
				t.Fatal(err)
			}
		}
	}
	return open(t, filepath.Join(folder, "m.onnx")), n
}

// Offsets and lengths beyond 2³¹ and 2³² bytes are read where they are, and a
// model that large costs no memory to open, cut, store and edit.
func TestLargeExternalData(t *testing.T) {
	var m *Model
	var tpl, runtime *Template
	var l *weights.Layout
	var last int64
	allocated := reliability.Allocated(func() {
		m, last = sparse(t, map[int64]float32{0: 1, 1<<29 + 1: 2, 2_362_232_012/4 - 1: 3})
		l = layoutOf(t, m)
		stored, err := templateOf(t, m, l).MarshalBinary()
		if err != nil {
			t.Fatal(err)
		}
		if tpl, err = ParseTemplate(stored); err != nil {
			t.Fatal(err)
		}
		without, err := tpl.Model("without weights", l)
		if err != nil {
			t.Fatal(err)
		}
		if runtime, err = NewRuntimeTemplate(without, l); err != nil {
			t.Fatal(err)
		}
	})
	if allocated > 4<<20 {
		t.Errorf("%d bytes are allocated", allocated)
	}
	if size := m.Size(); tpl.Size() != size || runtime.Size() != size || size < 1<<32 {
		t.Errorf("templates of %d and %d bytes, want %d", tpl.Size(), runtime.Size(), size)
	}
	p, _ := vectors(t, m, l)
	got := make(weights.Slice, 2)
	for at, want := range map[int64]weights.Slice{0: {1, 0}, 1<<29 + 1: {2, 0}, last - 1: {3, 1}, last + 1<<29 + 1: {2, 0}, 2*last - 1: {3, 0}, 2*last + 2: {0, 0}} {
		if err := p.ReadAt(got, at); err != nil || !slices.Equal(got, want) {
			t.Errorf("weights at %d: %v, want %v; %v", at, got, want, err)
		}
	}
	if n := l.Len(weights.Parameter); n != 2*last+4 || p.Len() != n {
		t.Errorf("%d weights, want %d", n, 2*last+4)
	}
	// Both files come out whole; the second is not written, only counted.
	f, err := runtime.Fill(l, zeros(p.Len()), weights.Slice{})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []int64{m.Size() - (8*last + 24), 8*last + 24} {
		if n := int64(f.Template.files[i].Size); n != want {
			t.Errorf("file %d has %d bytes, want %d", i, n, want)
		}
	}
}

// zeros is a vector of any length.
type zeros int64

func (z zeros) Len() int64                        { return int64(z) }
func (zeros) ReadAt(dst []float32, _ int64) error { clear(dst); return nil }

// A template is a model without weights, and what is made of that is what is
// made of the model itself.
func TestModelWithoutWeights(t *testing.T) {
	t.Parallel()
	for path, want := range golden(t) {
		if want.Parameters == nil {
			continue
		}
		m := open(t, path)
		l := layoutOf(t, m)
		tpl := templateOf(t, m, l)
		without, err := tpl.Model(m.Path, l)
		if err != nil {
			t.Fatal(err)
		}
		filled := func(make func(*Model, *weights.Layout) (*Template, error), m *Model) map[string]string {
			tpl, err := make(m, l)
			if err != nil {
				t.Fatalf("%s: %v", path, err)
			}
			return renderAll(t, tpl, l, replacement(l.Len(weights.Parameter), 1), replacement(l.Len(weights.Statistic), 2))
		}
		for what, make := range map[string]func(*Model, *weights.Layout) (*Template, error){"NewTemplate": NewTemplate, "NewRuntimeTemplate": NewRuntimeTemplate, "moved": moved} {
			if got, want := filled(make, without), filled(make, m); !decodes(m) && !maps.Equal(got, want) {
				t.Errorf("%s: %s without weights gives other files", path, what)
			}
		}
		if len(without.Graph.Nodes) != len(m.Graph.Nodes) || without.Size() != tpl.Size() {
			t.Errorf("%s: %d nodes and %d bytes, want %d and %d", path, len(without.Graph.Nodes), without.Size(), len(m.Graph.Nodes), tpl.Size())
		}
		if l.Len(weights.Parameter) > 0 {
			_, err := without.Vector(l, weights.Parameter)
			wantError(t, path, err, "was cut out of the model", "")
			_, err = NewLayout([]*Model{without})
			wantError(t, path, err, "was cut out of the model", "")
		}
	}
}

// moved is NewRuntimeTemplate of a model that is taken for a large one.
func moved(m *Model, l *weights.Layout) (*Template, error) {
	e, err := m.inference()
	if err != nil {
		return nil, err
	}
	e.ForRuntime()
	e.move = moveOut
	return e.Template(l)
}

// Of a large model, tensors that fill a page move into a data file, each to the
// start of a page; what was outside stays there. The model's own data files may
// have the new one's name already.
func TestMovedElements(t *testing.T) {
	const n = pageSize / 4
	explicit := varintField(tensor("explicit", Float, []int64{n}, render32(replacement(n, 3))), wire.TensorLocation, 0)
	given := map[string][]byte{"weights": render32(replacement(2, 5))}
	inits := [][]byte{
		floats("small", replacement(n-1, 1), n-1), floats("large", replacement(n+1, 2), n+1), explicit,
		floats("constant", replacement(2*n, 4), 2*n), outside(tensor("outside", Float, []int64{2}, nil), externalAt("weights")...),
		tensor("integers", Int64, []int64{n}, make([]byte, 8*n)), floats("scalar", weights.Slice{7}),
	}
	nodes := [][]byte{
		node("Constant", "", nil, []string{"k"}, floatsAttribute(replacement(n, 6)...)),
		node("Add", "", []string{"k", "large"}, []string{"y"}),
	}
	m, err := ParseFiles("weights_", encodeModel(graph(nodes, inits, [][]byte{output("y", Float)})), given)
	if err != nil {
		t.Fatal(err)
	}
	l, err := weights.NewLayout([]weights.Tensor{
		{Name: "small", Shape: []int64{n - 1}, DType: weights.F32, Role: weights.Parameter}, {Name: "large", Shape: []int64{n + 1}, DType: weights.F32, Role: weights.Parameter},
		{Name: "explicit", Shape: []int64{n}, DType: weights.F32, Role: weights.Parameter}, {Name: "outside", Shape: []int64{2}, DType: weights.F32, Role: weights.Parameter},
		{Name: "k", Shape: []int64{n}, DType: weights.F32, Role: weights.Parameter},
	})
	if err != nil {
		t.Fatal(err)
	}
	tpl, err := moved(m, l)
	if err != nil {
		t.Fatal(err)
	}
	p, s := vectors(t, m, l)
	files := make(map[string][]byte)
	for name, b := range renderAll(t, tpl, l, p, s) {
		files[name] = []byte(b)
	}
	if len(files) != 3 || len(files["weights__"]) != 5*pageSize {
		t.Errorf("files %q; %d bytes in the new one, want 5 pages", slices.Sorted(maps.Keys(files)), len(files["weights__"]))
	}
	again, err := ParseFiles("again", files[""], files)
	if err != nil {
		t.Fatal(err)
	}
	sameElements(t, m, again)
	for _, x := range again.tensors {
		want := map[string]string{"outside": "weights", "large": "weights__", "explicit": "weights__", "constant": "weights__"}[x.Name]
		switch {
		case want == "" && x.external != nil, want != "" && (x.external == nil || x.external.location != want):
			t.Errorf("%s: lies in %+v, want %q", x.Name, x.external, want)
		case want != "" && x.external.offset%pageSize != 0:
			t.Errorf("%s: at byte %d", x.Name, x.external.offset)
		}
	}
}

// A hole where no tensor's elements are makes no model.
func TestMisplacedHoles(t *testing.T) {
	m := fixture(t, "raw-f32")
	l := layoutOf(t, m)
	refused := 0
	for at := range m.data.Size - 48 {
		tpl := templateOf(t, m, l)
		file, own := &tpl.files[0].Content, m.Bytes()
		hole := file.Parts[1]
		if hole.Tensor != "w" || hole.Len() != 48 {
			t.Fatalf("%+v is not the hole for w", hole)
		}
		if at == hole.Start {
			continue
		}
		*file = wire.Content{}
		file.Add(own[:at])
		file.AddHole("w", 48)
		file.Add(own[at+48:])
		without, err := tpl.Model("m.onnx", l)
		if err == nil {
			tpl, err = NewRuntimeTemplate(without, l)
		}
		if err == nil {
			_, err = tpl.Fill(l, zeros(l.Len(weights.Parameter)), zeros(l.Len(weights.Statistic)))
		}
		if err == nil {
			t.Errorf("a hole at byte %d, want it at %d, goes unnoticed", at, hole.Start)
		}
		refused++
	}
	if refused < 100 {
		t.Errorf("%d places tried", refused)
	}
}

// Memory is given back every so many bytes, in the midst of one large write too,
// and a writer that takes less than it is given does not hang the others.
func TestReleasing(t *testing.T) {
	released := 0
	r := &releasing{w: io.Discard, release: []func(){func() { released++ }}}
	data := make([]byte, 10*releaseChunk) // two and a half times what is released at once
	for i, want := range []int{2, 5, 7} {
		if n, err := r.Write(data); n != len(data) || err != nil || released != want {
			t.Errorf("write %d: %d bytes, %v; released %d times, want %d", i, n, err, released, want)
		}
	}
	if n, err := (&releasing{w: short{}}).Write(data[:10]); n != 9 || !errors.Is(err, io.ErrShortWrite) {
		t.Errorf("a short write: %d bytes, %v", n, err)
	}
	if n, err := (&releasing{w: &limited{5, io.ErrClosedPipe}}).Write(data[:10]); n != 0 || !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("a failed write: %d bytes, %v", n, err)
	}
}

type short struct{}

func (short) Write(p []byte) (int, error) { return len(p) - 1, nil }

// Vectors must have the lengths that the layout says.
func TestFillErrors(t *testing.T) {
	m := fixture(t, "raw-f32")
	l := layoutOf(t, m)
	tpl := templateOf(t, m, l)
	p, s := vectors(t, m, l)
	for _, c := range []struct {
		l    *weights.Layout
		p, s weights.Vector
		want string
	}{
		{l, zeros(1), s, fmt.Sprintf("raw-f32.onnx: 1 elements for the parameters, want %d", p.Len())},
		{l, p, zeros(9), fmt.Sprintf("raw-f32.onnx: 9 elements for the statistics, want %d", s.Len())},
		{&weights.Layout{}, zeros(0), zeros(0), "does not fit the layout"},
	} {
		if _, err := tpl.Fill(c.l, c.p, c.s); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
}
