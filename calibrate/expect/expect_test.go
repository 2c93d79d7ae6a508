package expect

import (
	"encoding/json"
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
)

// Known says what is known of an example with one predicted class.
type known int

const (
	unlabelled known = iota - 1
	wrong
	right
)

// predictions are examples with one predicted class.
type predictions struct {
	Confidence, Disagreement []float64
	Predicted                []int
	Known                    []known
	Right                    []bool // instead of Known
	Classes                  int
}

func (p *predictions) seen(i int, l Limits) *Seen {
	e := &Example{Size: 1, Signs: [2]float64{0, p.Disagreement[i]}, Predicted: make([]float64, p.Classes)}
	if p.Confidence[i] <= l.Threshold {
		e.Signs[0] = 1
	}
	e.Predicted[p.Predicted[i]] = 1
	is := unlabelled
	switch {
	case p.Known != nil:
		is = p.Known[i]
	case p.Right != nil:
		if is = wrong; p.Right[i] {
			is = right
		}
	}
	if is != unlabelled {
		e.Known = 1
	}
	if is == wrong {
		e.Loss = 1
	}
	return &Seen{Uncertainty: -p.Confidence[i], Kind: float64(p.Predicted[i]), All: e}
}

func (p *predictions) validation() (*Validation, error) {
	n := 0
	for _, ok := range p.Right {
		if !ok {
			n++
		}
	}
	l := Limits{Threshold: Threshold(p.Confidence, n)}
	return New("val", Accuracy, l, nil, func(f func(*Seen)) {
		for i := range p.Confidence {
			f(p.seen(i, l))
		}
	})
}

func (p *predictions) tally(v *Validation) *Tally {
	t := new(Tally)
	for i := range p.Confidence {
		t.Add(v, p.seen(i, v.All.Limits))
	}
	return t
}

// pictures are examples with several predictions.
type pictures struct {
	N, Wrong, Below, Mutual []float64
	Counts                  [][]float64
}

func (p *pictures) each(known bool) func(f func(*Seen)) {
	return func(f func(*Seen)) {
		for i, n := range p.N {
			e := &Example{Size: n, Signs: [2]float64{p.Below[i] / n, p.Mutual[i] / n}, Predicted: p.Counts[i]}
			if known {
				e.Known, e.Loss = n, p.Wrong[i]/n
			}
			f(&Seen{Uncertainty: p.Below[i] / n, All: e})
		}
	}
}

// numbers are examples with one target.
type numbers struct{ Mean, Variance, Epistemic, Loss []float64 }

func (p *numbers) each(l Limits, known bool) func(f func(*Seen)) {
	return func(f func(*Seen)) {
		for i := range p.Mean {
			e := Example{Size: 1, Signs: [2]float64{p.Variance[i], p.Epistemic[i]}, Predicted: make([]float64, 10)}
			at, _ := slices.BinarySearch(l.Ranges, p.Mean[i])
			e.Predicted[at] = 1
			if known {
				e.Known, e.Loss = 1, p.Loss[i]
			}
			f(&Seen{Uncertainty: math.Log(p.Variance[i]), Parts: []Example{e}})
		}
	}
}

func (p *numbers) limits() (l Limits) {
	sorted := slices.Sorted(slices.Values(p.Mean))
	for k := 1; k < 10; k++ {
		l.Ranges = append(l.Ranges, sorted[k*len(sorted)/10])
	}
	return l
}

func tallied(v *Validation, each func(f func(*Seen))) *Tally {
	t := new(Tally)
	each(func(s *Seen) { t.Add(v, s) })
	return t
}

// Estimates are those of testdata/golden.py.
func TestGolden(t *testing.T) {
	js, err := os.ReadFile("testdata/golden.json")
	if err != nil {
		t.Fatal(err)
	}
	var all struct {
		Classes []struct {
			predictions
			Data predictions
			Want Estimate
		}
		Pictures []struct {
			Validation, Data pictures
			Want             Estimate
		}
		Numbers []struct {
			Validation, Data numbers
			Want             Estimate
		}
	}
	if err := json.Unmarshal(js, &all); err != nil {
		t.Fatal(err)
	}
	if len(all.Classes)*len(all.Pictures)*len(all.Numbers) == 0 {
		t.Fatal("no cases")
	}
	for k, g := range all.Classes {
		v, err := g.validation()
		if err != nil || v.Sound() != nil {
			t.Fatal(k, err)
		}
		g.Data.Classes = g.predictions.Classes
		e, _ := v.Estimate(g.Data.tally(v), len(g.Data.Confidence))
		check(t, k, e, g.Want)
	}
	for k, g := range all.Pictures {
		v, err := New("val", Accuracy, Limits{Threshold: 0.5}, nil, g.Validation.each(true))
		if err != nil || v.Sound() != nil {
			t.Fatal(k, err)
		}
		e, _ := v.Estimate(tallied(v, g.Data.each(false)), len(g.Data.N))
		check(t, k, e, g.Want)
	}
	for k, g := range all.Numbers {
		l := g.Validation.limits()
		v, err := New("val", RMSE, Limits{}, []Limits{l}, g.Validation.each(l, true))
		if err != nil || v.Sound() != nil {
			t.Fatal(k, err)
		}
		e, _ := v.Estimate(tallied(v, g.Data.each(l, false)), len(g.Data.Mean))
		check(t, k, e, g.Want)
	}
}

func check(t *testing.T, k int, is, w Estimate) {
	t.Helper()
	pairs := [][2]float64{{is.Accuracy, w.Accuracy}, {is.RMSE, w.RMSE}, {is.Low, w.Low}, {is.High, w.High}, {is.Validation, w.Validation}, {is.Confidence, w.Confidence}, {is.Variance, w.Variance}, {is.Disagreement, w.Disagreement}, {is.Moved, w.Moved}}
	if is.Figure != w.Figure || is.Bound != w.Bound || (is.Labels == nil) != (w.Labels == nil) {
		t.Fatalf("%d: %+v, want %+v", k, is, w)
	}
	if l, v := is.Labels, w.Labels; l != nil {
		pairs = append(pairs, [][2]float64{{l.Value, v.Value}, {l.Error, v.Error}, {l.Combined, v.Combined}, {l.Low, v.Low}, {l.High, v.High}}...)
		if l.Alone != v.Alone || l.Examples != v.Examples {
			t.Errorf("%d: %+v, want %+v", k, l, v)
		}
	}
	for i, p := range pairs {
		if !(math.Abs(p[0]-p[1]) < 1e-12) {
			t.Errorf("%s %d: number %d is %v, want %v", w.Figure, k, i, p[0], p[1])
		}
	}
}

// simulated are n examples whose confidence is right, less a lapse.
func simulated(r *rand.Rand, n int, lapse float64) *predictions {
	p := &predictions{Classes: 4}
	for range n {
		c := 1 - 0.6*r.Float64()*r.Float64()
		p.Confidence, p.Disagreement = append(p.Confidence, c), append(p.Disagreement, (1-c)*r.Float64())
		p.Predicted, p.Right = append(p.Predicted, r.IntN(4)), append(p.Right, r.Float64() < c-lapse)
	}
	return p
}

// hide makes the labels of all examples unknown, but for some, and returns the share that is right.
func (p *predictions) hide(but []int) (accuracy float64) {
	p.Known = slices.Repeat([]known{unlabelled}, len(p.Right))
	for _, i := range but {
		if p.Known[i] = wrong; p.Right[i] {
			p.Known[i] = right
		}
	}
	for _, ok := range p.Right {
		if ok {
			accuracy += 1 / float64(len(p.Right))
		}
	}
	return accuracy
}

// The interval of few labels holds the accuracy of all examples in about 95 % of the cases, if the rules err as much as their band says, or are
// plainly wrong, and if Next chose the rows. Rows that Next chose give a smaller error than rows at random.
func TestLabels(t *testing.T) {
	rand := rand.New(rand.NewPCG(56, 1))
	for _, of := range []struct{ lapse, spread, least float64 }{{0, 0, 0.95}, {0, 0.0125, 0.94}, {0.3, 0, 0.925}} {
		var errs [2]float64
		const trials = 400
		for way := range 2 {
			held := 0
			for range trials {
				v, err := simulated(rand, 1000, 0).validation()
				if err != nil {
					t.Fatal(err)
				}
				p := simulated(rand, 1500, of.lapse+of.spread*rand.NormFloat64())
				n := len(p.Right)
				chosen := rand.Perm(n)[:60]
				if way == 1 {
					p.hide(nil)
					next := NewNext(60)
					for i := range n {
						next.Add(v, p.seen(i, v.All.Limits), i+rand.IntN(1<<30)*n, "")
					}
					list := next.List(v, p.tally(v))
					if len(list) != 60 {
						t.Fatal(len(list))
					}
					chosen = nil
					for _, x := range list {
						chosen = append(chosen, x.Index%n)
					}
				}
				target := p.hide(chosen)
				e, _ := v.Estimate(p.tally(v), n)
				if l := e.Labels; l.Low <= target && target <= l.High {
					held++
				}
				errs[way] += (e.Labels.Value - target) * (e.Labels.Value - target) / trials
			}
			if share := float64(held) / trials; share < of.least-0.025 {
				t.Errorf("%+v, way %d: %v of the intervals hold", of, way, share)
			}
		}
		if of.lapse == 0 && of.spread == 0 && errs[1] > errs[0] {
			t.Errorf("squared error %v with chosen rows, %v with rows at random", errs[1], errs[0])
		}
	}
}

// The interval of few labels holds the mean over pictures, and the RMSE, in about 95 % of the cases.
func TestLabelsOfOthers(t *testing.T) {
	rand := rand.New(rand.NewPCG(56, 4))
	const trials, n, few = 120, 400, 40
	held := map[Figure]int{}
	for range trials {
		draw := func(n int) *pictures {
			p := new(pictures)
			for range n {
				size, hard := float64(20+rand.IntN(60)), 0.4*rand.Float64()*rand.Float64()
				off := min(size, math.Round(size*hard*2*rand.Float64()))
				p.N, p.Below, p.Mutual, p.Wrong = append(p.N, size), append(p.Below, size*hard), append(p.Mutual, size*hard), append(p.Wrong, off)
				p.Counts = append(p.Counts, []float64{size / 2, size / 2})
			}
			return p
		}
		v, err := New("val", Accuracy, Limits{Threshold: 0.5}, nil, draw(n).each(true))
		if err != nil {
			t.Fatal(err)
		}
		p, tally, i := draw(n), new(Tally), 0
		target, all := 0.0, 0.0
		p.each(true)(func(s *Seen) {
			target, all = target+s.All.Size-s.All.Known*s.All.Loss, all+s.All.Size
			if i++; i > few {
				s.All.Known = 0
			}
			tally.Add(v, s)
		})
		e, _ := v.Estimate(tally, n)
		if l := e.Labels; l.Low <= target/all && target/all <= l.High {
			held[Accuracy]++
		}
		targets := func(n int) *numbers {
			p := new(numbers)
			for range n {
				v := 0.1 + rand.ExpFloat64()
				off := rand.NormFloat64()
				p.Mean, p.Variance, p.Epistemic, p.Loss = append(p.Mean, rand.NormFloat64()), append(p.Variance, v), append(p.Epistemic, v/3), append(p.Loss, v*off*off)
			}
			return p
		}
		was, is := targets(n), targets(n)
		limits := was.limits()
		if v, err = New("val", RMSE, Limits{}, []Limits{limits}, was.each(limits, true)); err != nil {
			t.Fatal(err)
		}
		tally, i, target = new(Tally), 0, 0
		is.each(limits, true)(func(s *Seen) {
			target += s.Parts[0].Loss / n
			if i++; i > few {
				s.Parts[0].Known = 0
			}
			tally.Add(v, s)
		})
		e, _ = v.Estimate(tally, n)
		if l, rmse := e.Labels, math.Sqrt(target); l.Low <= rmse && rmse <= l.High {
			held[RMSE]++
		}
	}
	for figure, n := range held {
		if share := float64(n) / trials; share < 0.9 {
			t.Errorf("%s: %v of the intervals hold", figure, share)
		}
	}
}

// The number of labels that Halve gives makes the interval half as wide.
func TestHalve(t *testing.T) {
	rand := rand.New(rand.NewPCG(56, 2))
	v, err := simulated(rand, 2000, 0).validation()
	if err != nil {
		t.Fatal(err)
	}
	p := simulated(rand, 20000, 0)
	var first []int
	for i := range p.Right {
		first = append(first, i)
	}
	width := func(n int) (float64, *Labels) {
		p.hide(first[:n])
		e, _ := v.Estimate(p.tally(v), len(p.Right))
		return e.Labels.High - e.Labels.Low, e.Labels
	}
	was, l := width(200)
	is, _ := width(200 + l.Halve)
	if ratio := is / was; ratio < 0.44 || ratio > 0.56 || l.Halve < 200 {
		t.Errorf("%d labels more: %v of the width", l.Halve, ratio)
	}
}

// Several targets have a mean, and a bound if one has.
func TestSeveralTargets(t *testing.T) {
	a := Estimate{Figure: RMSE, RMSE: 2, Low: 1, High: 6, Validation: 2, Variance: 2, Disagreement: 2, Examples: 9}
	b := Estimate{Figure: RMSE, RMSE: 4, Low: 3, High: 8, Validation: 3, Variance: 4, Disagreement: 4, Examples: 9, Moved: 0.1}
	if m := mean([]Estimate{a, b}); m.RMSE != 3 || m.Low != 2 || m.High != 7 || m.Validation != 2.5 || m.Moved != 0.1 || m.Bound != "" {
		t.Errorf("%+v", m)
	}
	b.Bound, b.RMSE, b.High = Large, 0, 0
	if m := mean([]Estimate{a, b}); m.RMSE != 0 || m.Low != 2 || m.High != 0 || m.Bound != Large {
		t.Errorf("%+v", m)
	}
}

// A file's content is checked, and predictions that say too little are refused.
func TestSound(t *testing.T) {
	p := simulated(rand.New(rand.NewPCG(56, 3)), 300, 0)
	for k, bad := range []func(v *Validation){
		func(v *Validation) { v.All.Loss = 0.01 }, func(v *Validation) { v.All.Examples = 0 }, func(v *Validation) { v.All.Threshold = math.NaN() }, func(v *Validation) { v.All.Signs[1] = 0 },
		func(v *Validation) { v.Cuts = v.Cuts[1:] }, func(v *Validation) { v.Cuts[2] = 5 }, func(v *Validation) { v.All.Strata[0].Loss++ }, func(v *Validation) { v.All.Strata[3].Examples = -1 },
		func(v *Validation) { v.All.Predicted[0]++ }, func(v *Validation) { v.All.Predicted = nil }, func(v *Validation) { v.All.Strata = nil }, func(v *Validation) { v.All.Figure = "f1" },
		func(v *Validation) { v.All = nil }, func(v *Validation) { v.All.Figure = RMSE }, func(v *Validation) { v.All.Spread = math.Inf(1) }, func(v *Validation) { v.Parts = []*Reference{{}} },
	} {
		v, err := p.validation()
		if err != nil || v.Sound() != nil {
			t.Fatal(err)
		}
		if bad(v); v.Sound() == nil {
			t.Errorf("%d: %+v is sound", k, v)
		}
	}
	for i := range p.Right {
		p.Right[i] = i >= FewWrong-1
	}
	if _, err := p.validation(); !errors.Is(err, ErrFew) {
		t.Error(err)
	}
}
