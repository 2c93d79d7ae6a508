package moments

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/swagwrap/swagwrap/fixtures/reliability"
	"github.com/swagwrap/swagwrap/fixtures/testfile"
)

// rows cuts values into examples.
func rows(values []float32, size int) [][]float32 {
	return slices.Collect(slices.Chunk(values, size))
}

// near fails where two lists differ by more than rounding in float64: sums of a few hundred
// float32 values of order 1 agree to 1e-12.
func near(t *testing.T, what string, got, want []float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %v, want %v", what, got, want)
	}
	for i := range got {
		if !(math.Abs(got[i]-want[i]) <= 1e-12*max(1, math.Abs(want[i]))) {
			t.Errorf("%s: %v, want %v", what, got, want)
			return
		}
	}
}

func mapGroups(groups []Group, f func(Group) float64) (out []float64) {
	for _, g := range groups {
		out = append(out, f(g))
	}
	return out
}

// Numbers are those of NumPy and SciPy: testdata/make.py.
func TestGolden(t *testing.T) {
	var golden struct {
		Channels struct {
			Values                                 []float32
			Mean, Std, Min, Max, Zeros, Covariance []float64
			MeanStd                                []float64 `json:"mean_std"`
			VarianceStd                            []float64 `json:"variance_std"`
		}
		Columns struct {
			Train, Test                            []float32
			Quantiles                              [][]float64
			Spearman, Distance, Whole, Mean, Ratio []float64
		}
		Outside struct {
			N, M   int
			Chance []float64
		}
	}
	testfile.JSON(t, "testdata/golden.json", &golden)
	c := golden.Channels
	sum := NewSample(Channels, 3, 20, rows(c.Values, 60)).Summary()
	near(t, "mean", mapGroups(sum.Groups, func(g Group) float64 { return g.Mean }), c.Mean)
	near(t, "std", mapGroups(sum.Groups, func(g Group) float64 { return g.Std }), c.Std)
	near(t, "mean std", mapGroups(sum.Groups, func(g Group) float64 { return g.MeanStd }), c.MeanStd)
	near(t, "variance std", mapGroups(sum.Groups, func(g Group) float64 { return g.VarianceStd }), c.VarianceStd)
	near(t, "min", mapGroups(sum.Groups, func(g Group) float64 { return g.Min }), c.Min)
	near(t, "max", mapGroups(sum.Groups, func(g Group) float64 { return g.Max }), c.Max)
	near(t, "zeros", mapGroups(sum.Groups, func(g Group) float64 { return g.Zeros }), c.Zeros)
	near(t, "covariance", sum.Correlation, c.Covariance)

	table := golden.Columns
	train := NewSample(Columns, 3, 1, rows(table.Train, 3)).Summary()
	for g := range train.Groups {
		near(t, "quantiles", train.Groups[g].Quantiles, table.Quantiles[g])
	}
	near(t, "whole", mapGroups(train.Groups, func(g Group) float64 { return g.Whole }), table.Whole)
	for i := range table.Spearman { // rounded to 4 digits in files
		if math.Abs(train.Correlation[i]-table.Spearman[i]) > 5.1e-5 {
			t.Errorf("rank correlations %v, want %v", train.Correlation, table.Spearman)
		}
	}
	d := Compare(train, NewSample(Columns, 3, 1, rows(table.Test, 3)))
	for g, want := range table.Distance {
		near(t, "distance, mean, ratio", []float64{d.Groups[g].Distance, d.Groups[g].Mean, d.Groups[g].Ratio}, []float64{want, table.Mean[g], table.Ratio[g]})
	}
	for k, want := range golden.Outside.Chance { // simulated to about 0.001
		if got := beyond(k, golden.Outside.N, golden.Outside.M); got < want-0.004 || got > 3*want+0.01 {
			t.Errorf("the chance of %d outside is bounded by %v, want a little above %v", k, got, want)
		}
	}
}

// A summary survives JSON, and quantiles of fewer values than 33 never raise the distance of
// a sample from itself.
func TestSummary(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{1, 2, 5, 33, 100} {
		s := NewSample(Columns, 4, 1, table(rng, n))
		sum := s.Summary()
		js, err := json.Marshal(sum)
		var back Summary
		if err == nil {
			err = json.Unmarshal(js, &back)
		}
		if err != nil || !cmp.Equal(sum, back) {
			t.Errorf("%v: %s", err, cmp.Diff(sum, back))
		}
		for g, d := range Compare(sum, s).Groups {
			if d.Off || d.Distance > 1e-15 || d.Outside > 0 || d.Mean != 0 || d.Ratio != 1 {
				t.Errorf("%d rows, column %d: %+v of the same rows", n, g, d)
			}
		}
	}
	text := NewTokens([][]int64{{7, 7, 7, 3, 4, 0, 0, 0}, {3, 9}, {5}, {0, 0}})
	want := &Ids{Min: 0, Max: 9, Frequent: []Frequent{{5, 0.25, 0.5}, {0, 0.25 + 0.0625, 0}, {3, 0.1875, 0}, {9, 0.125, 0}, {4, 0.0625, 0}, {7, 0.0625, 0}}}
	slices.SortFunc(want.Frequent, func(a, b Frequent) int { return int(1e6 * (b.Share - a.Share)) })
	got := text.Summary().Tokens
	for i := range got.Frequent {
		got.Frequent[i].Std = 0
		want.Frequent[i].Std = 0
	}
	if !cmp.Equal(got, want) {
		t.Error(cmp.Diff(got, want))
	}
}

// Distributions for tests of chance.

// table returns rows of a normal, a heavy-tailed, a binary and a mostly zero column, with
// correlations.
func table(rng *rand.Rand, n int) (out [][]float32) {
	for range n {
		z := rng.NormFloat64()
		cauchy := rng.NormFloat64() / rng.NormFloat64()
		binary, zero := 0.0, 0.0
		if z+rng.NormFloat64() > 0.5 {
			binary = 1
		}
		if rng.Float64() < 0.2 {
			zero = math.Exp(2 * rng.NormFloat64())
		}
		out = append(out, []float32{float32(z), float32(cauchy), float32(binary), float32(zero)})
	}
	return out
}

// sparse returns rows of whole numbers from 0 to 16, as pixels of digits are: columns from
// almost always 0 to never, which depend on each other.
func sparse(rng *rand.Rand, n int) (out [][]float32) {
	for range n {
		x, all := make([]float32, 12), rng.NormFloat64()
		for k := range x {
			x[k] = float32(math.Round(min(max(4*(all+rng.NormFloat64())+2*float64(k)-14, 0), 16)))
		}
		out = append(out, x)
	}
	return out
}

// pictures returns pictures of 3×4×4 whose brightness and contrast vary much from one to
// the next, normalised as ImageNet's.
func pictures(rng *rand.Rand, n int) (out [][]float32) {
	for range n {
		light, contrast, tint := 0.5+0.2*rng.NormFloat64(), 0.2*math.Exp(0.4*rng.NormFloat64()), 0.08+0.08*rng.NormFloat64()
		x := make([]float32, 48)
		for k := range x {
			c := k / 16
			p := min(max(light+contrast*rng.NormFloat64()+tint*float64(1-c), 0), 1)
			x[k] = float32((p - mean3[c]) / std3[c])
		}
		out = append(out, x)
	}
	return out
}

var mean3, std3 = []float64{0.485, 0.456, 0.406}, []float64{0.229, 0.224, 0.225}

// texts returns sentences of Zipf's words, each about a topic, with padding.
func texts(rng *rand.Rand, n int) (out [][]int64) {
	zipf := rand.NewZipf(rng, 1.3, 3, 5000)
	for range n {
		topic := int64(rng.IntN(5))
		ids := []int64{101}
		for range 5 + rng.IntN(10) {
			id := int64(zipf.Uint64()) * 7919 % 5003 // frequent ids are no neighbours
			if rng.Float64() < 0.3 {
				id = 5000 + topic
			}
			ids = append(ids, 1000+id)
		}
		for len(ids) < 20 {
			ids = append(ids, 0)
		}
		out = append(out, ids)
	}
	return out
}

// sources are samples of each kind of input.
var sources = []struct {
	name string
	draw func(rng *rand.Rand, n int) *Sample
}{
	{"pictures", func(rng *rand.Rand, n int) *Sample { return NewSample(Channels, 3, 16, pictures(rng, n)) }},
	{"table", func(rng *rand.Rand, n int) *Sample { return NewSample(Columns, 4, 1, table(rng, n)) }},
	{"sparse columns", func(rng *rand.Rand, n int) *Sample { return NewSample(Columns, 12, 1, sparse(rng, n)) }},
	{"texts", func(rng *rand.Rand, n int) *Sample { return NewTokens(texts(rng, n)) }},
}

// pictureChanges are some that a program tries on pictures.
func pictureChanges() []Change {
	undo := Change{Name: "twice", Scale: std3, Shift: mean3}
	raw := Change{Name: "raw"}
	bgr := Change{Name: "bgr", From: []int{2, 1, 0}}
	for c := range 3 {
		raw.Scale, raw.Shift = append(raw.Scale, 1/std3[c]), append(raw.Shift, -mean3[c]/std3[c])
		from := 2 - c
		bgr.Scale = append(bgr.Scale, std3[from]/std3[c])
		bgr.Shift = append(bgr.Shift, (mean3[from]-mean3[c])/std3[c])
	}
	return []Change{undo, raw, bgr, {Name: "255", Scale: []float64{1. / 255}}}
}

// In many clean resamples of each kind and size at most 1 % are off.
func TestFalseAlarms(t *testing.T) {
	runs := reliability.Figure(250, 1000)
	for _, of := range sources {
		for _, sizes := range [][2]int{{256, 32}, {64, 200}, {256, 1}} {
			t.Run(fmt.Sprint(of.name, sizes), func(t *testing.T) {
				t.Parallel()
				rng, alarms := rand.New(rand.NewPCG(28, uint64(sizes[1]))), 0
				for range runs {
					if Explain(of.draw(rng, sizes[0]).Summary(), of.draw(rng, sizes[1]), pictureChanges()).Found() {
						alarms++
					}
				}
				if t.Logf("%d of %d", alarms, runs); alarms > runs/100 {
					t.Errorf("%d false alarms in %d, want at most 1 %%", alarms, runs)
				}
			})
		}
	}
}

// Of 50 samples of 32 examples with a fault, 45 or more are found, and the change that undoes
// the fault is named.
func TestFaults(t *testing.T) {
	changes := pictureChanges()
	inverse := func(c Change) Change { // x = Scale·y + Shift
		out := Change{From: c.From}
		for g := range 3 {
			from, _, _ := c.Group(g)
			_, a, b := c.Group(from)
			out.Scale, out.Shift = append(out.Scale, 1/a), append(out.Shift, -b/a)
		}
		return out
	}
	const runs = 50
	for _, c := range changes {
		found := 0
		for seed := range uint64(runs) {
			rng := rand.New(rand.NewPCG(seed, 7))
			train := NewSample(Channels, 3, 16, pictures(rng, 256)).Summary()
			wrong := NewSample(Channels, 3, 16, pictures(rng, 32)).Changed(inverse(c))
			if e := Explain(train, wrong, changes); e.Change != nil && e.Change.Name == c.Name {
				found++
			}
		}
		if found < runs*9/10 {
			t.Errorf("%s: found and named in %d of %d", c.Name, found, runs)
		}
	}
	column := func(name string, spoil func(x []float32), right func(c []ColumnChange) bool) {
		found := 0
		for seed := range uint64(runs) {
			rng := rand.New(rand.NewPCG(seed, 8))
			wrong := table(rng, 64)
			for _, x := range wrong {
				spoil(x)
			}
			e := Explain(NewSample(Columns, 4, 1, table(rng, 256)).Summary(), NewSample(Columns, 4, 1, wrong), nil)
			if right(e.Columns) {
				found++
			}
		}
		if found < runs*9/10 {
			t.Errorf("%s: found and named in %d of %d", name, found, runs)
		}
	}
	column("×1,000", func(x []float32) { x[0] *= 1000 }, func(c []ColumnChange) bool {
		return len(c) == 1 && c[0].Column == 0 && len(c[0].Units) > 0 && c[0].Units[0].Scale == 1e-3
	})
	column("swapped", func(x []float32) { x[0], x[2] = x[2], x[0] }, func(c []ColumnChange) bool {
		return len(c) == 2 && c[0].From+c[1].From == 2 && c[0].Column+c[1].Column == 2
	})
}

// Columns of one distribution that are swapped are found by their correlations; where there
// are none nothing can be.
func TestSwapped(t *testing.T) {
	draw := func(rng *rand.Rand, n int, order []int) *Sample {
		var out [][]float32
		for range n {
			a, b := rng.NormFloat64(), rng.NormFloat64()
			x := []float64{a, a + 0.5*rng.NormFloat64(), b, b + 0.5*rng.NormFloat64()}
			row := make([]float32, 4)
			for k, from := range order {
				row[k] = float32(x[from])
				if from%2 == 1 {
					row[k] /= float32(math.Sqrt(1.25))
				}
			}
			out = append(out, row)
		}
		return NewSample(Columns, 4, 1, out)
	}
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 9))
		train := draw(rng, 256, []int{0, 1, 2, 3}).Summary()
		e := Explain(train, draw(rng, 100, []int{0, 2, 1, 3}), nil)
		if len(e.Columns) != 2 || !e.Found() {
			t.Errorf("seed %d: %+v", seed, e.Columns)
		}
	}
}

// Ids of another vocabulary, shifted ids and ids outside the range of training are found.
func TestTokens(t *testing.T) {
	shift := []Change{{Name: "one too many", Shift: []float64{-1}}, {Name: "one too few", Shift: []float64{1}}}
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 10))
		train := NewTokens(texts(rng, 256)).Summary()
		clean := NewTokens(texts(rng, 32))
		if e := Explain(train, clean.Changed(Change{Shift: []float64{1}}), shift); e.Change == nil || e.Change.Name != "one too many" {
			t.Errorf("seed %d: shifted by one: %+v", seed, e)
		}
		if e := Explain(train, clean.Changed(Change{Shift: []float64{20000}}), shift); !e.Found() || e.Beyond < 1 {
			t.Errorf("seed %d: other ids: %+v", seed, e)
		}
	}
}

// A tiny difference is not reported, however many examples show it.
func TestSmall(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	train := NewSample(Channels, 3, 16, pictures(rng, 20000)).Summary()
	other := NewSample(Channels, 3, 16, pictures(rng, 20000)).Changed(Change{Scale: []float64{1.2}, Shift: []float64{0.3}})
	if e := Explain(train, other, pictureChanges()); e.Found() {
		t.Errorf("%+v", e)
	}
}
