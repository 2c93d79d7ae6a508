package report

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
)

// randomExamples have many equal keys: numbers have one decimal.
func randomExamples(n int) []Example {
	r := rand.New(rand.NewPCG(1, 2))
	tenth := func() float64 { return math.Round(10*r.Float64()) / 10 }
	examples := make([]Example, n)
	for i := range examples {
		examples[i] = Example{Index: i, Label: r.IntN(3) - 1, Top: []Score{{r.IntN(2), tenth()}}, Entropy: tenth(), MutualInformation: max(0, tenth()-0.5)}
	}
	return examples
}

// The reference sorts everything.
func TestSelection(t *testing.T) {
	const n = 7
	examples := randomExamples(2000)
	sorted := func(keep func(e Example) bool, key func(e Example) float64) []Example {
		all := slices.DeleteFunc(slices.Clone(examples), func(e Example) bool { return !keep(e) })
		slices.SortFunc(all, func(a, b Example) int { return cmp.Or(cmp.Compare(key(b), key(a)), a.Index-b.Index) })
		return all[:n]
	}
	any := func(Example) bool { return true }
	want := [][]Example{
		sorted(any, func(e Example) float64 { return -e.Entropy }),
		sorted(any, func(e Example) float64 { return e.Entropy }),
		sorted(any, func(e Example) float64 { return e.MutualInformation }),
		sorted(func(e Example) bool { return e.Label >= 0 && e.Label != e.Top[0].Class }, func(e Example) float64 { return e.Top[0].Probability }),
	}
	shuffled := slices.Clone(examples)
	rand.New(rand.NewPCG(3, 4)).Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
	for name, order := range map[string][]Example{"in order": examples, "shuffled": shuffled} {
		s := NewSelection(n)
		reused := make([]Score, 1)
		for _, e := range order {
			reused[0] = e.Top[0] // Add must copy
			e.Top = reused
			s.Add(e)
		}
		var got [][]Example
		for _, section := range s.Sections() {
			got = append(got, section.Examples)
		}
		if diff := gocmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestSelectionEdges(t *testing.T) {
	example := func(i int, entropy, mi float64) Example {
		return Example{Index: i, Label: -1, Top: []Score{{0, 0.5}}, Entropy: entropy, MutualInformation: mi}
	}
	nan := example(9, 1, 0)
	nan.Top = []Score{{0, math.NaN()}}
	for _, tt := range []struct {
		name string
		in   []Example
		want map[string][]int // indices by heading
	}{
		{"nothing", nil, map[string][]int{}},
		{"one", []Example{example(0, 1, 0)}, map[string][]int{"Most certain": {0}}},
		{"few are shared", []Example{example(0, 3, 0), example(1, 1, 0), example(2, 2, 0)}, map[string][]int{"Most certain": {1, 2}, "Least certain": {0}}},
		{"rounding is no disagreement", []Example{example(0, 1, 1e-12), example(1, 2, 1e-6)}, map[string][]int{"Most certain": {0}, "Least certain": {1}, "Most disagreement between members": {1}}},
		{"not scored", []Example{example(0, math.NaN(), 0), example(1, math.Inf(1), 0), example(2, 1, math.NaN()), nan, {Index: 4}}, map[string][]int{}},
	} {
		s := NewSelection(5)
		for _, e := range tt.in {
			s.Add(e)
		}
		got := map[string][]int{}
		for _, section := range s.Sections() {
			for _, e := range section.Examples {
				got[section.Heading] = append(got[section.Heading], e.Index)
			}
		}
		if diff := gocmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s: %s", tt.name, diff)
		}
	}
}

func BenchmarkSelection(b *testing.B) {
	examples := randomExamples(1 << 16)
	s := NewSelection(12)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		e := examples[i%len(examples)]
		e.Index = i
		s.Add(e)
	}
}
