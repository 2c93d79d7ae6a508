package guarantee

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/swagwrap/swagwrap/fixtures/reliability"
	"github.com/swagwrap/swagwrap/internal/target"
	"github.com/swagwrap/swagwrap/internal/task"
)

// The range is that of SciPy 1.17.1: beta.ppf([0.025, 0.975], 50, 1). Ties widen it upwards only. A threshold without a range has none.
func TestRange(t *testing.T) {
	q := 0.5
	c := &Coverage{Level: 0.98, Method: "lac", Cells: []Cell{{Examples: []int{50}, Thresholds: []*float64{&q}, Cuts: []float32{0.5}, Upper: []int{50}}}}
	e := &c.Cells[0]
	if low, high, ok := c.Range(e, 0); !ok || math.Abs(low-0.9288782) > 1e-6 || math.Abs(high-0.9994938) > 1e-6 {
		t.Errorf("%v to %v, %v", low, high, ok)
	}
	if s := c.Spread(); s != "on average: 95 % of thresholds from 50 labels cover 92.9 to 99.9 %" {
		t.Error(s)
	}
	e.Examples[0], e.Upper[0] = 100, 99 // beta.ppf(0.975, 99, 2)
	if _, high, _ := c.Range(e, 0); c.Tied(e, 0) != 0 || math.Abs(high-0.9975687) > 1e-6 {
		t.Errorf("without ties: up to %v", high)
	}
	e.Upper[0] = 101
	if _, high, _ := c.Range(e, 0); c.Tied(e, 0) != 2 || high != 1 {
		t.Errorf("with ties: up to %v", high)
	}
	for name, change := range map[string]func(){
		"of all":   func() { e.Whole = []int{0} },
		"infinite": func() { e.Thresholds[0] = nil },
		"unknown":  func() { e.Upper = nil },
	} {
		was := *e
		change()
		if _, _, ok := c.Range(e, 0); ok || c.Spread() != "" {
			t.Errorf("%s: has a range", name)
		}
		*e = was
		e.Thresholds = []*float64{&q}
	}
}

// Of thresholds from n examples 95 % cover a share of new examples in the range that is printed: of continuous scores, of rounded
// ones, and of intervals. The share of new examples that a threshold covers is counted on many.
func TestRangeCovers(t *testing.T) {
	classes := newTask(t, "classes", task.OutputSpec{Count: 5})
	draw := func(digits float64) func(r *rand.Rand) ([]float64, target.Target, string) {
		return func(r *rand.Rand) ([]float64, target.Target, string) {
			p, class := probabilities(r, 5, 1)
			for k := range p {
				if digits > 0 {
					p[k] = math.Round(p[k]*digits) / digits
				}
			}
			return p, target.Target{Classes: []int{class}}, ""
		}
	}
	all := append(sources(t)[3:4], source{"five classes", classes, draw(0), nil, []string{"lac", "aps"}}, source{"two digits", classes, draw(100), nil, []string{"lac", "aps"}},
		source{"one digit", classes, draw(10), nil, []string{"lac", "aps"}})
	for _, s := range all {
		for _, method := range s.sets {
			for _, level := range []float64{0.9, 0.98} {
				for _, n := range []int{60, 300} {
					t.Run(fmt.Sprint(s.name, method, level, n), func(t *testing.T) {
						t.Parallel()
						splits, fresh := reliability.Figure(12, 1000), 2000
						in := 0.0
						r := rand.New(rand.NewPCG(uint64(n), uint64(1000*level)))
						for seed := range splits {
							c := chooseFrom(t, &Fitting{Task: s.task, Level: level, Method: method, Seed: uint64(seed)}, s, r, n)
							low, high, ok := c.Range(&c.Cells[0], 0)
							if !ok {
								t.Fatal("no range")
							}
							// The count varies by itself: what is in the range with one standard error of it counts.
							got := judged(t, s, c, r, fresh)["all"]
							se := math.Sqrt(got * (1 - got) / float64(fresh))
							if got >= low-se && got <= high+se {
								in++
							}
						}
						t.Logf("%s: %.3f of %d thresholds are in their range", t.Name(), in/float64(splits), splits)
						if least := 0.95 - 4*math.Sqrt(0.95*0.05/float64(splits)); in/float64(splits) < least {
							t.Errorf("%.3f of the thresholds are in their range, want 0.95", in/float64(splits))
						}
					})
				}
			}
		}
	}
}
