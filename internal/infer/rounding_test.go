package infer

import (
	"math"
	"strings"
	"testing"

	"github.com/swagwrap/swagwrap/internal/task"
	"github.com/swagwrap/swagwrap/internal/truth"
)

func near(a, b float64) bool { return math.Abs(a-b) <= 1e-12*(1+math.Abs(b)) }

func TestMonteCarlo(t *testing.T) {
	two := [][]float64{{0.2, 0.8}, {0.6, 0.4}}                           // s² = 0.4²/2 of each number
	pairs := [][]float64{{0, 1}, {0.4, 0.6}, {0.4, 0.6}, {0.8, 0.2}}     // pairs of mean 0.2, 0.6 and 0.8, 0.4
	bernoulli := [][]float64{{1, 0}, {1, 0}, {1, 0}, {0, 1}}             // s² = p(1−p)·4/3
	same, single := [][]float64{{0.5}, {0.5}, {0.5}}, [][]float64{{0.3}} // tell of no error
	for name, test := range map[string]struct {
		strata []stratum
		want   float64
	}{
		"two members":    {[]stratum{{weight: 2, count: 2, outcomes: two}}, 0.4 / math.Sqrt(2) / math.Sqrt(2)},
		"two of thirty":  {[]stratum{{weight: 30, count: 30, outcomes: two}}, 0.4 / math.Sqrt(2*30)},
		"four of twelve": {[]stratum{{weight: 12, count: 12, outcomes: bernoulli}}, math.Sqrt(3. / 16 * 4 / 3 / 12)},
		"pairs":          {[]stratum{{weight: 20, count: 20, pairs: true, outcomes: pairs}}, 0.4 / math.Sqrt(2*10)},
		"alike":          {[]stratum{{weight: 3, count: 3, outcomes: same}}, 0},
		"one":            {[]stratum{{weight: 1, count: 1, outcomes: single}}, 0},
		"a mixture": {[]stratum{{weight: 15, count: 10, outcomes: two}, {weight: 5, count: 10, outcomes: bernoulli}},
			math.Sqrt(9./16*0.08/10 + 1./16*0.25/10)},
	} {
		if got := monteCarlo(test.strata); !near(got, test.want) {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
	}
}

// The average counts members as much as the whole ensemble does.
func TestStrataAverage(t *testing.T) {
	got := average([]stratum{{weight: 3, count: 9, outcomes: [][]float64{{1}, {0}}}, {weight: 1, count: 1, outcomes: [][]float64{{1}}}})
	if !near(got[0], 0.75*0.5+0.25) {
		t.Errorf("%v", got)
	}
}

func TestRoundingSmall(t *testing.T) {
	for _, test := range []struct {
		rms, monteCarlo float64
		small           bool
	}{{0.01, 0.05, true}, {0.0101, 0.05, false}, {0.01, 0, false}, {0, 0, true}} {
		r := &Rounding{Provider: "openvino bf16", RMS: test.rms, MonteCarlo: test.monteCarlo, Members: 4, Of: 30}
		if r.Small() != test.small {
			t.Errorf("%+v", test)
		}
		if told := strings.Contains(r.String(), "no Monte Carlo error"); told != (test.monteCarlo == 0) {
			t.Errorf("%v", r)
		}
	}
}

func TestChangeOfNLL(t *testing.T) {
	classes, err := task.Of("", task.Scores{Output: "logits", Count: 2})
	if err != nil {
		t.Fatal(err)
	}
	was, is := []float64{0.5, 0.5, 0.2, 0.8}, []float64{0.25, 0.75, 0.2, 0.8}
	if got := changeOfNLL(classes, was, is, truth.Truth{Classes: []int{0, 1}}); got == nil || !near(*got, math.Ln2/2) {
		t.Errorf("%v", got)
	}
	for _, labels := range [][]int{nil, {0, -1}, {0, 2}} {
		if got := changeOfNLL(classes, was, is, truth.Truth{Classes: labels}); got != nil {
			t.Errorf("labels %v: %v", labels, *got)
		}
	}
}
