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

type golden struct {
	Confidence, Disagreement []float64
	Predicted                []int
	Right                    []bool
	Classes                  int
	Data                     struct {
		Confidence, Disagreement []float64
		Predicted, Known         []int
	}
	Want Estimate
}

func add(s *Sums, r *Reference, g golden, from, end int) {
	for i := from; i < end; i++ {
		s.Add(r, g.Data.Confidence[i], g.Data.Disagreement[i], g.Data.Predicted[i], Known(g.Data.Known[i]+1))
	}
}

// Estimates are those of testdata/golden.py, and parts merge to the same sums.
func TestGolden(t *testing.T) {
	js, err := os.ReadFile("testdata/golden.json")
	if err != nil {
		t.Fatal(err)
	}
	var all []golden
	if err := json.Unmarshal(js, &all); err != nil {
		t.Fatal(err)
	}
	for k, g := range all {
		r, err := New("val", g.Confidence, g.Disagreement, g.Predicted, g.Right, g.Classes)
		if err != nil || r.Sound() != nil {
			t.Fatal(k, err, r.Sound())
		}
		var s, a, b Sums
		n := len(g.Data.Confidence)
		add(&s, r, g, 0, n)
		add(&a, r, g, 0, n/3)
		add(&b, r, g, n/3, n)
		if a.Merge(&b); math.Abs(a.Disagreement-s.Disagreement) > 1e-12 {
			t.Error(k, "merged", a, s)
		}
		if a.Disagreement = s.Disagreement; !slices.Equal(a.Predicted, s.Predicted) || a.Above != s.Above || a.Strata != s.Strata || a.Labelled != s.Labelled || a.Right != s.Right {
			t.Error(k, "merged", a, s)
		}
		is, w := r.Estimate(&s, n), g.Want
		pairs := [][2]float64{{is.Accuracy, w.Accuracy}, {is.Low, w.Low}, {is.High, w.High}, {is.Validation, w.Validation}, {is.Confidence, w.Confidence}, {is.Disagreement, w.Disagreement}, {is.Moved, w.Moved}}
		if is.Bound != w.Bound || (is.Labels == nil) != (w.Labels == nil) {
			t.Fatalf("%d: %+v, want %+v", k, is, w)
		}
		if l, v := is.Labels, w.Labels; l != nil {
			pairs = append(pairs, [][2]float64{{l.Accuracy, v.Accuracy}, {l.Error, v.Error}, {l.Combined, v.Combined}, {l.Low, v.Low}, {l.High, v.High}}...)
			if l.Alone != v.Alone || l.Examples != v.Examples {
				t.Errorf("%d: %+v, want %+v", k, l, v)
			}
		}
		for i, p := range pairs {
			if !(math.Abs(p[0]-p[1]) < 1e-12) {
				t.Errorf("%d: number %d is %v, want %v", k, i, p[0], p[1])
			}
		}
	}
}

// simulated are n examples whose confidence is right, less a lapse.
func simulated(r *rand.Rand, n int, lapse float64) (confidence, disagreement []float64, predicted []int, right []bool) {
	for range n {
		c := 1 - 0.6*r.Float64()*r.Float64()
		confidence, disagreement = append(confidence, c), append(disagreement, (1-c)*r.Float64())
		predicted, right = append(predicted, r.IntN(4)), append(right, r.Float64() < c-lapse)
	}
	return confidence, disagreement, predicted, right
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
				vc, vd, vp, ok := simulated(rand, 1000, 0)
				r, err := New("val", vc, vd, vp, ok, 4)
				if err != nil {
					t.Fatal(err)
				}
				c, d, p, right := simulated(rand, 1500, of.lapse+of.spread*rand.NormFloat64())
				chosen := rand.Perm(len(c))[:60]
				if way == 1 {
					var all Sums
					next := NewNext(60)
					for i := range c {
						all.Add(r, c[i], d[i], p[i], Unlabelled)
						next.Add(r, Candidate{Index: i + rand.IntN(1<<30)*len(c), Predicted: p[i], Confidence: c[i]})
					}
					list := next.List(r, &all)
					if len(list) != 60 {
						t.Fatal(len(list))
					}
					chosen = nil
					for _, x := range list {
						chosen = append(chosen, x.Index%len(c))
					}
				}
				var s Sums
				truth := 0.0
				for i := range c {
					known := Unlabelled
					if slices.Contains(chosen, i) {
						if known = Wrong; right[i] {
							known = Right
						}
					}
					if right[i] {
						truth += 1 / float64(len(c))
					}
					s.Add(r, c[i], d[i], p[i], known)
				}
				l := r.Estimate(&s, len(c)).Labels
				if l.Low <= truth && truth <= l.High {
					held++
				}
				errs[way] += (l.Accuracy - truth) * (l.Accuracy - truth) / trials
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

// The labels that Halve promises make the interval half as wide.
func TestHalve(t *testing.T) {
	rand := rand.New(rand.NewPCG(56, 2))
	c, d, p, right := simulated(rand, 2000, 0)
	r, err := New("val", c, d, p, right, 4)
	if err != nil {
		t.Fatal(err)
	}
	width := func(n int) (float64, *Labels) {
		rand, s := rand, Sums{}
		c, d, p, right := simulated(rand, 20000, 0)
		for i := range c {
			known := Unlabelled
			if i < n {
				if known = Wrong; right[i] {
					known = Right
				}
			}
			s.Add(r, c[i], d[i], p[i], known)
		}
		l := r.Estimate(&s, len(c)).Labels
		return l.High - l.Low, l
	}
	was, l := width(200)
	is, _ := width(200 + l.Halve)
	if ratio := is / was; ratio < 0.44 || ratio > 0.56 || l.Halve < 200 {
		t.Errorf("%d labels more: %v of the width", l.Halve, ratio)
	}
}

// A file's content is checked, and predictions that say too little are refused.
func TestSound(t *testing.T) {
	rand := rand.New(rand.NewPCG(56, 3))
	c, d, p, right := simulated(rand, 300, 0)
	for _, bad := range []func(r *Reference){
		func(r *Reference) { r.Wrong = 3 }, func(r *Reference) { r.Examples = 0 }, func(r *Reference) { r.Threshold = math.NaN() }, func(r *Reference) { r.Disagreement = 0 },
		func(r *Reference) { r.Strata = r.Strata[1:] }, func(r *Reference) { r.Strata[0] = 0.999 }, func(r *Reference) { r.StratumWrong[0]++ }, func(r *Reference) { r.StratumExamples[3] = -1 },
		func(r *Reference) { r.Predicted[0]++ }, func(r *Reference) { r.Predicted = nil }, func(r *Reference) { r.StratumExamples = nil },
	} {
		r, err := New("val", c, d, p, right, 4)
		if err != nil || r.Sound() != nil {
			t.Fatal(err)
		}
		if bad(r); r.Sound() == nil {
			t.Errorf("%+v is sound", r)
		}
	}
	for i := range right {
		right[i] = i >= FewWrong-1
	}
	if _, err := New("val", c, d, p, right, 4); !errors.Is(err, ErrFew) {
		t.Error(err)
	}
}
