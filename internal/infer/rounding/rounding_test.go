package rounding

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/swagwrap/swagwrap/internal/infer/probe"
	"github.com/swagwrap/swagwrap/internal/ort"
	"github.com/swagwrap/swagwrap/internal/target"
	"github.com/swagwrap/swagwrap/internal/task"
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
		// Of three, the pair of mean 0.2 counts twice and the last, 0.8, once: 2·((2/3·0.2)² + (1/3·0.4)²) around 0.4.
		"a pair and one": {[]stratum{{weight: 3, count: 3, pairs: true, outcomes: [][]float64{pairs[0], pairs[1], pairs[3]}}}, 0.8 / 3},
		"four of 21":     {[]stratum{{weight: 21, count: 21, pairs: true, outcomes: pairs}}, 0.4 / math.Sqrt(21)},
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

func TestRoundingObjection(t *testing.T) {
	for _, test := range []struct {
		r             Change
		says, objects string
	}{
		{Change{Examples: 9, RMS: 0.01, MonteCarlo: 0.05}, "20 % of the Monte Carlo error of 30 members", ""},
		{Change{Examples: 9, RMS: 0.0101, MonteCarlo: 0.05}, "on 9 examples: probabilities", "a fifth"},
		{Change{Examples: 9, RMS: 0.01}, "no Monte Carlo error", "a fifth"},
		{Change{Examples: 9}, "no Monte Carlo error", ""},
		{Change{Examples: 9, Unusable: 2, MonteCarlo: 1}, "on 9 examples: 2 more without usable scores; probabilities", ""},
		{Change{Examples: 9, Lost: 1, MonteCarlo: 1}, "on 9 examples: 1 more without usable scores; probabilities", "1 of 10 examples without usable scores"},
		{Change{Unusable: 9}, "9 more without usable scores; nothing is known", "no example tells"},
		{Change{}, "nothing is known", "more than a part in 10 of the work"},
	} {
		test.r.Provider, test.r.Members, test.r.Of = "openvino bf16", 4, 30
		if got := test.r.String(); !strings.HasPrefix(got, "openvino bf16 against f32, 4 of 30 members") || !strings.Contains(got, test.says) {
			t.Errorf("%+v says %s", test.r, got)
		}
		if got := test.r.Objection(); (got == "") != (test.objects == "") || !strings.Contains(got, test.objects) {
			t.Errorf("%+v: objection %q", test.r, got)
		}
	}
	for _, test := range []struct {
		largest, rms, carlo, amplified float64
		far                            bool
	}{
		{9e-5, 1e-5, 0, 0, false},
		{2.5e-4, 1e-5, 0, 1e-6, true},
		{2.5e-4, 1e-5, 0, 1e-4, false}, // a deep network amplifies rounding
		{2.5e-4, 1e-5, 1e-2, 0, false},
		{0.5, 0.1, 0.3, 1e-4, true},
		{math.NaN(), math.NaN(), 0.3, 1e-4, true},
	} {
		r := Change{Provider: "cuda f32", Used: ort.F32, Examples: 9, Largest: test.largest, RMS: test.rms, MonteCarlo: test.carlo, Amplified: test.amplified}
		if got := r.Objection(); (got != "") != test.far || test.far && !strings.Contains(got, "rounding explains") {
			t.Errorf("%+v: objection %q", test, got)
		}
	}
	both := Change{Provider: "openvino bf16", BatchNorm: "openvino bf16"}
	passes := Change{BatchNorm: "openvino bf16"}
	if got := both.String() + "; " + passes.String(); !strings.Contains(got, "openvino bf16, batch norm too, against") || !strings.Contains(got, "; batch norm by openvino bf16 against") {
		t.Error(got)
	}
}

// An example without usable scores in one precision is left out in both, and those that the
// lower one alone has none of are distinguished.
func TestRoundingLeftOut(t *testing.T) {
	one := [][]stratum{{{outcomes: [][]float64{{1, 2, 3, 4, 5, 6, 7, 8}}}}, {{outcomes: [][]float64{{10, 20, 30, 40, 50, 60, 70, 80}}}}}
	var r Change
	labels := r.leaveOut(one, [2][]bool{{false, true, false, false}, {false, true, true, false}}, target.Target{Classes: []int{5, 6, 7, 8}})
	if r.Examples != 2 || r.Unusable != 1 || r.Lost != 1 || !slices.Equal(labels.Classes, []int{5, 8}) ||
		!slices.Equal(one[0][0].outcomes[0], []float64{1, 2, 7, 8}) || !slices.Equal(one[1][0].outcomes[0], []float64{10, 20, 70, 80}) {
		t.Errorf("%+v, %v, %v", r, labels, one)
	}
}

func TestChangeOfNLL(t *testing.T) {
	classes, err := task.New("", task.OutputSpec{Output: "logits", Count: 2})
	if err != nil {
		t.Fatal(err)
	}
	was, is := []float64{0.5, 0.5, 0.2, 0.8}, []float64{0.25, 0.75, 0.2, 0.8}
	if got := changeOfNLL(classes, was, is, target.Target{Classes: []int{0, 1}}); got == nil || !near(*got, math.Ln2/2) {
		t.Errorf("%v", got)
	}
	for _, labels := range [][]int{nil, {0, -1}, {0, 2}} {
		if got := changeOfNLL(classes, was, is, target.Target{Classes: labels}); got != nil {
			t.Errorf("labels %v: %v", labels, *got)
		}
	}
}

// A measurement before a job takes at most a tenth of the job's runs. Where that tells too little, nothing runs.
func TestAffordable(t *testing.T) {
	for _, test := range []struct{ runs, members, making, want int }{
		{1_279, 4, 0, 0},
		{Pays(), 4, 0, leastExamples},
		{4 * 1_000, 4, 0, 50},
		{30 * 5_000, 4, 0, probe.Examples},
		{30 * 5_000, 4, 1_000, probe.Examples},
		{30 * 5_000, 4, 3_700, 25},
		{30 * 5_000, 4, 4_000, 0},
	} {
		o := Options{Runs: Affordable(test.runs), Making: test.making}
		got := o.examples(test.members)
		if got != test.want || got > 0 && test.members*(2*got+test.making) > test.runs/10 {
			t.Errorf("%+v: %d examples", test, got)
		}
	}
	if got := (Options{}).examples(4); got != probe.Examples {
		t.Errorf("without a bound: %d examples", got)
	}
}
