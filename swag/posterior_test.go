package swag_test

import (
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"github.com/swagwrap/swagwrap/fixtures/reliability"
	"github.com/swagwrap/swagwrap/swag"
	"github.com/swagwrap/swagwrap/swag/trajectory"
	"github.com/swagwrap/swagwrap/weights"
)

// smallFile is a posterior file over 12 weights with 5 columns, all there are.
func smallFile(t testing.TB) (swag.Input, []byte) {
	it := iterates(small(t), 5, noisy(1, 0.5))
	it.Theta0 = &swag.Checkpoint{Path: "theta0.onnx", SHA256: "00", Theta: make(weights.Slice, 12)}
	for i := range it.Checkpoints {
		it.Checkpoints[i].Statistics = weights.Slice{1, 2, 3, float32(i)}
	}
	it.Card = swag.Card{Augment: "RandomHorizontalFlip(p=0.5)"}
	it.Graph = []byte("graph")
	return it, fitBytes(t, it, swag.FitOptions{Producer: "swagwrap test", Health: trajectory.Describe})
}

func TestRoundTrip(t *testing.T) {
	it, data := smallFile(t)
	path := filepath.Join(t.TempDir(), "p.swag")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	opened, err := swag.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer opened.Close()
	parsed, err := swag.Parse(path, data)
	if err != nil {
		t.Fatal(err)
	}
	for i := range it.Checkpoints {
		it.Checkpoints[i].Theta, it.Checkpoints[i].Statistics = nil, nil
	}
	it.Theta0.Theta = nil
	for _, p := range []*swag.Posterior{opened, parsed} {
		if err := p.Verify(); err != nil {
			t.Error(err)
		}
		if p.Path != path || p.ID == "" || p.ID != parsed.ID || !p.Layout.Equal(it.Layout) ||
			!reflect.DeepEqual(p.Checkpoints, it.Checkpoints) || !reflect.DeepEqual(p.Theta0, it.Theta0) ||
			!slices.Equal(p.Statistics, weights.Slice{1, 2, 3, 4}) || !reflect.DeepEqual(p.Card, it.Card) || string(p.Graph) != "graph" {
			t.Errorf("posterior %+v of %+v", p, it)
		}
		// Any stretch reads as the whole does.
		mean, variance, deviations := contents(p)
		m, v := make([]float64, 4), make([]float64, 4)
		p.Mean(m, 5)
		p.Variance(v, 5)
		if !slices.Equal(m, mean[5:9]) || !slices.Equal(v, variance[5:9]) {
			t.Error("a stretch differs from the whole")
		}
		d := [][]float32{make([]float32, 4), make([]float32, 4), make([]float32, 4), make([]float32, 4), make([]float32, 4)}
		if err := p.Deviations(d, 5); err != nil {
			t.Fatal(err)
		}
		for k := range d {
			if !slices.Equal(d[k], deviations[k][5:9]) {
				t.Errorf("a stretch of column %d differs from the whole", k)
			}
		}
	}
}

// rewrite returns the safetensors file with its metadata or sections edited.
func rewrite(t *testing.T, data []byte, edit func(meta map[string]string, sections []weights.Section)) []byte {
	t.Helper()
	st, err := weights.ParseSafetensors("", data)
	if err != nil {
		t.Fatal(err)
	}
	sections := slices.Clone(st.Sections)
	edit(st.Metadata, sections)
	return zeros(t, sections, st.Metadata)
}

// zeros returns a safetensors file whose sections hold zeros.
func zeros(t *testing.T, sections []weights.Section, meta map[string]string) []byte {
	t.Helper()
	var out memory
	sw, err := weights.NewSafetensorsWriter(&out, sections, meta)
	if err != nil {
		t.Fatal(err)
	}
	for i, s := range sections {
		n, _ := weights.Elements(s.Shape)
		if _, err := sw.Section(i).Write(make([]byte, n*s.DType.Size())); err != nil {
			t.Fatal(err)
		}
	}
	if err := sw.Close(); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestParseRefuses(t *testing.T) {
	_, data := smallFile(t)
	meta := func(key, value string) func(map[string]string, []weights.Section) {
		return func(m map[string]string, _ []weights.Section) { m[key] = value }
	}
	columns := func(k int) func(map[string]string, []weights.Section) {
		js, _ := json.Marshal(swag.Options{Columns: k, Divisor: 1, Models: 6, Theta0: true, Deviations: swag.Running})
		return meta("options", string(js))
	}
	section := func(i int, s weights.Section) func(map[string]string, []weights.Section) {
		return func(_ map[string]string, all []weights.Section) { all[i] = s }
	}
	for _, c := range []struct {
		name string
		edit func(map[string]string, []weights.Section)
		want []string
	}{
		{"kind", meta("kind", "swagwrap.ensemble"), []string{`kind is "swagwrap.ensemble", want "swagwrap.posterior"`}},
		{"version", meta("format_version", "3"), []string{"format version 3, want 2", "swagwrap test"}},
		{"no options", meta("options", ""), []string{`metadata "options"`}},
		{"no layout", meta("layout", "{"), []string{`metadata "layout"`}},
		{"layout", meta("layout", `[{"name":"a","shape":[-1],"dtype":"F32","role":"parameter"}]`), []string{`"a"`, "negative"}},
		{"models", meta("options", `{"models":7,"theta0":true}`), []string{"7 models of 5 checkpoints"}},
		{"θ0", meta("options", `{"models":6}`), []string{"6 models of 5 checkpoints"}},
		{"divisor", meta("options", `{"models":6,"theta0":true,"columns":2}`), []string{"divided by 0"}},
		{"deviations", meta("options", `{"models":6,"theta0":true,"columns":5,"divisor":4,"deviations":"last"}`), []string{`deviations "last"`}},
		{"compat", meta("options", `{"models":6,"theta0":true,"columns":5,"divisor":4,"deviations":"running","compat":"other"}`), []string{`compat "other"`}},
		{"no mixing", meta("options", `{"models":6,"theta0":true,"columns":5,"divisor":5,"deviations":"final"}`), []string{`"mixing"`, "want F64 [5 6]"}},
		{"referenced", meta("options", `{"models":6,"theta0":true,"columns":5,"divisor":4,"deviations":"running","referenced":true}`), []string{`"before"`}},
		{"columns below 0", columns(-1), []string{"-1 deviation columns"}},
		{"columns that overflow", columns(1 << 62), []string{"deviation columns of 5 checkpoints"}},
		{"fewer columns", columns(2), []string{`"deviations"`, "want F32 [2 12]"}},
		{"section missing", section(0, weights.Section{Name: "median", DType: weights.F64, Shape: []int64{12}}), []string{`"mean"`}},
		{"section type", section(1, weights.Section{Name: "variance", DType: weights.F32, Shape: []int64{12}}), []string{`"variance"`, "F64"}},
		{"section length", section(1, weights.Section{Name: "variance", DType: weights.F64, Shape: []int64{11}}), []string{`"variance"`, "12"}},
		{"statistics", section(4, weights.Section{Name: "statistics", DType: weights.F32, Shape: []int64{5, 3}}), []string{`"statistics"`, "4"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := swag.Parse("p.swag", rewrite(t, data, c.edit))
			wantError(t, err, append(c.want, "p.swag: ")...)
		})
	}
	if _, err := swag.Open("no such file"); !os.IsNotExist(err) {
		t.Errorf("no file: %v", err)
	}
}

func TestDamageIsFound(t *testing.T) {
	t.Parallel()
	_, several := smallFile(t)
	_, one := single(t)
	sound := func(b []byte) bool {
		p, err := swag.Parse("p.swag", b)
		return err == nil && p.Verify() == nil
	}
	for _, data := range [][]byte{several, one} {
		if !sound(data) {
			t.Fatal("the file itself")
		}
		for n := range data {
			if sound(data[:n]) {
				t.Fatalf("cut at byte %d of %d: not noticed", n, len(data))
			}
		}
		r := rand.New(rand.NewPCG(1, 2))
		for range 200 {
			at, bit := r.IntN(len(data)), r.IntN(8)
			b := slices.Clone(data)
			b[at] ^= 1 << bit
			if sound(b) {
				t.Errorf("bit %d of byte %d flipped: not noticed", bit, at)
			}
		}
	}
}

// FuzzParse: no file makes a reader or a sampler panic.
func FuzzParse(f *testing.F) {
	_, data := smallFile(f)
	_, one := single(f)
	f.Add(data)
	f.Add(one)
	f.Add(fitBytes(f, iterates(flat(f, 3), 2, noisy(0, 1)), swag.FitOptions{DiagOnly: true}))
	f.Fuzz(func(t *testing.T, data []byte) {
		var p *swag.Posterior
		var err error
		reliability.Heap(t, len(data), func() { p, err = swag.Parse("p.swag", data) })
		if err != nil {
			return
		}
		for _, c := range []swag.Covariance{swag.LowRankPlusDiagonal, swag.Diagonal} {
			if s, err := swag.NewSampler(p, swag.SampleOptions{Scale: 1, Covariance: c}); err == nil {
				_ = s.Draw(t.Context(), [][]float32{make([]float32, p.Len())}, []int{0})
			}
		}
	})
}
