package reference

import (
	"io/fs"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/swagwrap/swagwrap/onnxio"
)

// A network with rounded weights is one that runs, whatever its constants are: without it, the tolerance would be the least one.
func TestRoundedNetworksAreReadable(t *testing.T) {
	const root = "../../fixtures/exporters"
	count := 0
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "ckpt-1.onnx") {
			return err
		}
		m, err := onnxio.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		r, err := rounded(m, bitsProbe)
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		filled, err := prepared(r, false)
		if err != nil {
			t.Logf("%s: %v", path, err) // such as batch norm inside of functions
			return nil
		}
		if _, err := filled.Template.Signature(); err != nil {
			t.Errorf("%s: %v", path, err)
		}
		count++
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if count < 50 {
		t.Errorf("%d networks, want more", count)
	}
}

// A number that is small beside the others of its output is held in units of its own, unless rounding of the others reaches it.
func TestSmallNumbers(t *testing.T) {
	examples := func(about About, rows ...[]float64) *Examples {
		return &Examples{File: &File{About: about}, names: []string{"y"}, Count: len(rows), outputs: [][][][]float64{{rows}}}
	}
	rows := [][]float64{{2e6, 5, -3e-4, 7}, {-1e6, 4, 2e-4, 7}}
	few := []float64{.3, 1e-6, 1e-10, 0}
	for _, tc := range []struct {
		what  string
		about About
		rows  [][]float64
		noise []float64
		place int
		by    float64
		equal bool
	}{
		{"right", About{}, rows, few, 0, 0, true},
		{"large number, rounded", About{}, rows, few, 0, .5, true},
		{"large number", About{}, rows, few, 0, 50, false},
		{"small number, rounded", About{}, rows, few, 1, 1e-3, true},
		{"small number", About{}, rows, few, 1, .1, false},
		{"least number", About{}, rows, few, 2, 1e-5, false},
		{"number that never changes", About{}, rows, few, 3, .1, true},
		{"rounding of the others reaches it", About{}, rows, []float64{.3, .3, 1e-10, 0}, 1, 5, true},
		{"and not that far", About{}, rows, []float64{.3, .1, 1e-10, 0}, 1, 30, false},
		{"each step rounds to float16", About{DType: "float16"}, rows, few, 2, .1, true},
		{"probabilities", About{}, [][]float64{{1, 1e-6}, {.9, 2e-6}}, []float64{1e-7, 1e-12}, 1, 1e-6, true},
	} {
		r := &Runner{Examples: examples(tc.about, tc.rows...), strict: least, units: map[int][]float64{}}
		r.scale = []float64{slices.Max(largestNumbers(r.outputs[0]))}
		r.measureUnits(0, slices.Clone(tc.noise))
		got := [][][]float64{{slices.Clone(tc.rows[0]), tc.rows[1]}}
		got[0][0][tc.place] += tc.by
		if d, _, _ := r.distance(got, [][][]float64{tc.rows}); (d <= r.strict) != tc.equal {
			t.Errorf("%s: difference %g, want equal %v", tc.what, d, tc.equal)
		}
	}
}

// Rounding makes no infinite number: a mask would be NaN then, and the probe would say nothing.
func TestRound32(t *testing.T) {
	for _, v := range []float32{math.MaxFloat32, -math.MaxFloat32, float32(math.Inf(1)), 0, -1.5} {
		if got := round32(v, bitsProbe); got != v {
			t.Errorf("%g becomes %g", v, got)
		}
	}
	if got := round32(1+0x1p-23, bitsProbe); got != 1 {
		t.Errorf("%v, want 1", got)
	}
}
