package moments_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/swagwrap/swagwrap/fixtures/reliability"
	"github.com/swagwrap/swagwrap/internal/moments"
)

// predictions returns confidences, entropies and classes of n examples of ten classes; shift makes them less sure.
func predictions(rng *rand.Rand, n int, shift float64) (numbers [][]float64, classes []int) {
	numbers = make([][]float64, 2)
	for range n {
		z := 4 - shift + 2*rng.NormFloat64()
		p := 1 / (1 + 9*math.Exp(-z))
		numbers[0], numbers[1] = append(numbers[0], p), append(numbers[1], -p*math.Log(p)-(1-p)*math.Log((1-p)/9))
		classes = append(classes, int(10*math.Pow(rng.Float64(), 1.5)))
	}
	return numbers, classes
}

var watched = []string{"confidence", "predictive_entropy"}

func added(p *moments.Predicted, numbers [][]float64, classes []int) *moments.Predicted {
	out := p.Empty()
	for i, c := range classes {
		out.Add([]float64{numbers[0][i], numbers[1][i]}, c)
	}
	return out
}

func off(all []moments.Distance) bool {
	return slices.ContainsFunc(all, func(d moments.Distance) bool { return d.Off })
}

// Data sets that are like validation data give a warning in at most 1 of 1,000 runs, with few examples too, and those that
// differ give one. With ten million examples a difference that does not matter gives none.
func TestPredictedAlarms(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{20, 200, 2000} {
		alarms, found := 0, 0
		runs := reliability.Figure(300, 1000)
		for range runs {
			numbers, classes := predictions(rng, 1000, 0)
			p := moments.NewPredicted("val", watched, numbers, classes, 10)
			numbers, classes = predictions(rng, n, 0)
			if off(p.Compare(added(p, numbers, classes), n)) {
				alarms++
			}
			numbers, classes = predictions(rng, n, 4)
			if off(p.Compare(added(p, numbers, classes), n)) {
				found++
			}
		}
		t.Logf("%d examples: %d alarms and %d found of %d", n, alarms, found, runs)
		if alarms > reliability.Figure(3, 5) { // 0.3 and 1 are allowed on average; more than 3 and 5 have a probability of 1 in 3,700 and 1 in 1,700
			t.Errorf("%d examples: %d of %d alarms, want 1 in 1,000 at most", n, alarms, runs)
		}
		if found < runs*9/10 {
			t.Errorf("%d examples: a large shift is found in %d of %d runs", n, found, runs)
		}
	}
	numbers, classes := predictions(rng, 100000, 0)
	p := moments.NewPredicted("val", watched, numbers, classes, 10)
	numbers, classes = predictions(rng, 1000000, 0.1)
	all := p.Compare(added(p, numbers, classes), len(classes))
	if all[0].Distance < all[0].Chance || off(all) {
		t.Errorf("a shift that chance does not explain and that does not matter: %+v", all)
	}
}

// The distance of two samples is that of SciPy's ks_2samp, since edges are all values of validation data.
func TestPredictedDistance(t *testing.T) {
	was, is := []float64{1, 2, 3, 4, 5, 6, 7, 8}, []float64{2.5, 3.5, 7.5, 9, 10}
	p := moments.NewPredicted("val", []string{"x"}, [][]float64{was}, nil, 0)
	now := p.Empty()
	for _, v := range is {
		now.Add([]float64{v}, -1)
	}
	d := p.Compare(now, 5)[0]
	if want := 0.475; math.Abs(d.Distance-want) > 1e-12 {
		t.Errorf("distance %v, want %v", d.Distance, want)
	}
	if want := math.Sqrt(math.Log(2/1e-3) / 2 * (1.0/8 + 1.0/5)); math.Abs(d.Chance-want) > 1e-12 {
		t.Errorf("chance %v, want %v", d.Chance, want)
	}
	if d.Was != 4 || d.Is != 7 || d.Bound != "above" { // it is 7.5
		t.Errorf("medians %v and %v %s", d.Was, d.Is, d.Bound)
	}
	for _, outside := range []struct {
		value, edge float64
		bound       string
	}{{-3, 1, "at most"}, {20, 7, "above"}} {
		now := p.Empty()
		now.Add([]float64{outside.value}, -1)
		if d := p.Compare(now, 1)[0]; d.Is != outside.edge || d.Bound != outside.bound {
			t.Errorf("of %v: the median is %s %v", outside.value, d.Bound, d.Is)
		}
	}
}

// A table rounds entropies to 0 that another format keeps.
func TestPredictedRounding(t *testing.T) {
	rounded, kept := []float64{0, 0, 0, 0, 0.5, 1, 0.25, 1}, []float64{1e-12, 1e-9, 2e-10, 0, 0.5000000001, 0.9999999999, 0.25, 1}
	p := moments.NewPredicted("val", []string{"x"}, [][]float64{rounded}, nil, 0)
	now := p.Empty()
	for _, v := range kept {
		now.Add([]float64{v}, -1)
	}
	if d := p.Compare(now, 8)[0]; d.Distance != 0 {
		t.Errorf("distance %v", d.Distance)
	}
	if err := p.Sound(); err != nil {
		t.Error(err)
	}
}

func TestPredictedSound(t *testing.T) {
	good := moments.Predicted{Examples: 3, Numbers: []moments.Numbers{{Name: "x", Edges: []float64{1}, Counts: []int{1, 2}}}, Classes: []int{3, 0}}
	if err := good.Sound(); err != nil {
		t.Fatal(err)
	}
	for _, change := range []func(*moments.Predicted){
		func(p *moments.Predicted) { p.Numbers = nil },
		func(p *moments.Predicted) { p.Numbers[0].Counts = []int{3} },
		func(p *moments.Predicted) { p.Numbers[0].Counts[0] = -1 },
		func(p *moments.Predicted) { p.Numbers[0].Counts[0] = 9 },
		func(p *moments.Predicted) { p.Classes = []int{9, -6} },
		func(p *moments.Predicted) {
			p.Numbers[0].Edges, p.Numbers[0].Counts = []float64{2, 1}, []int{1, 1, 1}
		},
	} {
		p := good
		p.Numbers = []moments.Numbers{{Name: "x", Edges: []float64{1}, Counts: []int{1, 2}}}
		change(&p)
		if p.Sound() == nil {
			t.Errorf("%+v: no error", p)
		}
	}
}
