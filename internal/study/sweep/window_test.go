package sweep

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/swagwrap/swagwrap/calibrate"
	"github.com/swagwrap/swagwrap/fixtures/infertest"
	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/swag"
)

// TestChooseWindow compares each average with SWA of a fit of the same checkpoints. Its loss is that of temperatures that have not seen
// the example.
func TestChooseWindow(t *testing.T) {
	t.Parallel()
	s, models := quickSweep(t), infertest.Checkpoints(t)
	s.Validation = dataset.Subset(s.Validation, dataset.Order{Limit: 100})
	run := infertest.Run(t)
	images := int64(0)
	run.Progress = func(n int) { images += int64(n) }
	c, err := s.ChooseWindow(t.Context(), run, models)
	if err != nil || c.Why != "" || c.Better() || c.Checkpoints != 30 || c.Examples != 100 || c.Images != images || images != s.WindowImages() {
		t.Fatalf("%+v, %v: %d examples, %d announced", c, err, images, s.WindowImages())
	}
	want := []Window{{}, {Last: 3}, {Last: 5}, {Last: 10}, {Last: 20}, {Power: 4}}
	for k, tried := range c.Tried {
		if tried.Window != want[k] {
			t.Errorf("%v, want %v", tried.Window, want[k])
		}
		last := models
		if tried.Last > 0 {
			last = models[len(models)-tried.Last:]
		}
		alone := *s
		alone.Network = infertest.Network(t, infertest.FitWith(t, swag.FitOptions{Power: tried.Power}, last...))
		alone.Test = s.Validation
		logs := calibrate.LogProbs(nil, plainAverage(t, infertest.Run(t), &alone, swag.SampleOptions{}, 1, false).Mean())
		labels, sum := s.Validation.Labels().Classes, 0.0
		for i := range labels {
			rest, others := slices.Concat(logs[:10*i], logs[10*i+10:]), slices.Concat(labels[:i], labels[i+1:])
			without, err := calibrate.FitTemperature(rest, 10, others)
			if err != nil {
				t.Fatal(err)
			}
			p := calibrate.Softmax(nil, logs[10*i:][:10], 10, without.T)
			sum -= math.Log(p[labels[i]])
		}
		if math.Abs(tried.NLL-sum/100) > 2e-2*tried.NLL { // Newton's step is of first order, and one example has a third of the loss
			t.Errorf("%v: NLL %v, want %v", tried.Window, tried.NLL, sum/100)
		}
	}
	if text := c.String(); !strings.HasPrefix(text, "100 validation examples show no average that is better than that of all 30 checkpoints. With temperature scaling for each") {
		t.Error(text)
	}
	s.Validation = dataset.Subset(s.Validation, dataset.Order{Limit: 5})
	if c, err = s.ChooseWindow(t.Context(), infertest.Run(t), models); err != nil || c.Better() ||
		!strings.HasPrefix(c.String(), "SWA averages all 30 checkpoints alike: the validation data determine no temperature scaling: it is fitted on 5 rows") {
		t.Errorf("%v, %v", c, err)
	}
}

// TestWindows: a fit of the posterior's kind can take each.
func TestWindows(t *testing.T) {
	t.Parallel()
	models := infertest.Checkpoints(t)
	for name, c := range map[string]struct {
		opts  swag.FitOptions
		count int
		want  string
	}{
		"4":        {swag.FitOptions{}, 4, "[all]"},
		"5":        {swag.FitOptions{}, 5, "[all the last 3 weights that rise as t^4]"},
		"11":       {swag.FitOptions{}, 11, "[all the last 3 the last 5 the last 10 weights that rise as t^4]"},
		"diagonal": {swag.FitOptions{DiagOnly: true}, 5, "[all the last 3 weights that rise as t^4]"},
		"final":    {swag.FitOptions{Deviations: swag.Final}, 6, "[all the last 3 the last 5]"},
		"authors'": {swag.FitOptions{Reference: true}, 6, "[all the last 3 the last 5]"},
	} {
		s := &Sweep{Network: infertest.Network(t, infertest.FitWith(t, c.opts, models[:c.count]...))}
		if got := fmt.Sprint(s.Windows()); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// TestWindowChance: five windows of the same expected loss take the place of all checkpoints in one of forty cases at most. One that is
// better by five standard errors does in nearly all.
func TestWindowChance(t *testing.T) {
	t.Parallel()
	const repeats = 160
	for _, n := range []int{100, 1000} {
		for _, gain := range []float64{0, 0.05 * math.Sqrt(1000/float64(n))} {
			rng, taken := rand.New(rand.NewPCG(uint64(n), 5)), 0
			for range repeats {
				c := &WindowChoice{Tried: make([]TriedWindow, 6)}
				for k := range c.Tried {
					c.Tried[k] = TriedWindow{Window: Window{Last: k}, losses: make([]float64, n)}
				}
				for i := range n {
					base, common := rng.ExpFloat64(), 0.2*rng.NormFloat64() // windows have most of their difference in common
					for k := range c.Tried {
						if c.Tried[k].losses[i] = base; k > 0 {
							c.Tried[k].losses[i] += common + 0.2*rng.NormFloat64()
						}
					}
					c.Tried[3].losses[i] -= gain
				}
				if c.choose(); c.Better() {
					taken++
				}
			}
			t.Logf("%d labels, gain %.3f: %d of %d", n, gain, taken, repeats)
			// 2.5 % of 160 and four standard errors more
			if gain == 0 && taken > 11 || gain > 0 && taken < repeats*95/100 {
				t.Errorf("%d labels, gain %v: taken in %d of %d", n, gain, taken, repeats)
			}
		}
	}
}
