package shares

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"gonum.org/v1/gonum/floats"
)

// golden has what testdata/golden.py computed: the largest likelihood by SciPy, over shares.
type golden struct {
	Training []float64   `json:"training"`
	Probs    [][]float64 `json:"probs"`
	Shares   []float64   `json:"shares"`
}

// The shares of the largest likelihood are those that SciPy finds, also where a share is 0.
func TestFit(t *testing.T) {
	js, err := os.ReadFile("testdata/golden.json")
	if err != nil {
		t.Fatal(err)
	}
	var all []golden
	if err := json.Unmarshal(js, &all); err != nil {
		t.Fatal(err)
	}
	for i, g := range all {
		w, found, err := fit(g.Training, func(use func([]float64) error) error {
			for _, p := range g.Probs {
				if err := use(p); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil || !found {
			t.Fatalf("case %d: %v, %v", i, found, err)
		}
		floats.Mul(w, g.Training)
		if !floats.EqualApprox(w, g.Shares, 1e-6) {
			t.Errorf("case %d: %v, want %v", i, w, g.Shares)
		}
	}
}

// A world has classes on a line: class c has the mean c·apart and the variance 1. Its classifier knows the training shares, and its
// logarithms are divided by off.
type world struct {
	training []float64
	apart    float64
	off      float64
	rng      *rand.Rand
}

func newWorld(classes int, apart float64) *world {
	w := &world{apart: apart, off: 1, rng: rand.New(rand.NewPCG(1, uint64(classes)))}
	for c := range classes {
		w.training = append(w.training, 1/float64(c+2))
	}
	floats.Scale(1/floats.Sum(w.training), w.training)
	return w
}

// draw returns probabilities and labels of n examples with these shares. noise is the deviation of what is added to each example.
func (w *world) draw(n int, shares []float64, noise float64) (probs []float64, labels []int) {
	for range n {
		label, u := 0, w.rng.Float64()
		for u -= shares[0]; u > 0 && label < len(shares)-1; u -= shares[label] {
			label++
		}
		x := float64(label)*w.apart + w.rng.NormFloat64() + noise*w.rng.NormFloat64()
		p := make([]float64, len(shares))
		for c := range p {
			d := x - float64(c)*w.apart
			p[c] = math.Exp((math.Log(w.training[c]) - d*d/2) / w.off)
		}
		floats.Scale(1/floats.Sum(p), p)
		probs, labels = append(probs, p...), append(labels, label)
	}
	return probs, labels
}

// labelled returns n labelled examples with the shares of training.
func (w *world) labelled(n int) *Labelled {
	probs, labels := w.draw(n, w.training, 0)
	return NewLabelled(len(w.training), probs, labels)
}

func rowsOf(probs []float64, classes int) Rows {
	return func(use func([]float64) error) error {
		for p := range slices.Chunk(probs, classes) {
			if err := use(p); err != nil {
				return err
			}
		}
		return nil
	}
}

// moved returns shares that differ from those of training.
func (w *world) moved() []float64 {
	out := slices.Clone(w.training)
	slices.Reverse(out)
	return out
}

func (w *world) estimate(t *testing.T, l *Labelled, n int, shares []float64, noise float64) (*Estimate, []float64, []int) {
	t.Helper()
	probs, labels := w.draw(n, shares, noise)
	e, err := l.Estimate(rowsOf(probs, len(shares)))
	if err != nil {
		t.Fatal(err)
	}
	return e, probs, labels
}

// nll returns the mean NLL, in nats, and the accuracy after a correction.
func nll(probs []float64, labels []int, w []float64) (loss, right float64) {
	n := float64(len(labels))
	for i, label := range labels {
		p := slices.Clone(probs[i*len(w):][:len(w)])
		Correct(p, w)
		loss -= math.Log(p[label]) / n
		if floats.MaxIdx(p) == label {
			right += 1 / n
		}
	}
	return loss, right
}

// Shares that have not moved are called moved in at most 1 % of samples, and 95 % intervals have the true shares and the true accuracy.
func TestCalibrated(t *testing.T) {
	const runs = 400
	for _, c := range []struct {
		classes, labelled, n int
		apart                float64
		moved                bool
	}{
		{2, 300, 200, 1.5, false}, {2, 1000, 1000, 1.5, true}, {2, 1000, 5000, 3, true}, {3, 300, 1000, 2, false}, {3, 500, 500, 2, true},
		{5, 500, 1000, 2, false}, {5, 1000, 1000, 2.5, true}, {10, 1000, 500, 3, false}, {10, 2000, 1000, 3, true},
	} {
		t.Run(fmt.Sprint(c), func(t *testing.T) {
			w := newWorld(c.classes, c.apart)
			truth := w.training
			if c.moved {
				truth = w.moved()
			}
			holds, accurate, told, gain := 0, 0, 0, 0.0
			for range runs {
				e, probs, labels := w.estimate(t, w.labelled(c.labelled), c.n, truth, 0)
				for k, share := range truth {
					if e.Low[k] <= share && share <= e.High[k] {
						holds++
					}
				}
				factors := Factors(e.Training, e.Shares)
				before, _ := nll(probs, labels, slices.Repeat([]float64{1}, c.classes))
				after, right := nll(probs, labels, factors)
				if e.Accuracy[1] <= right && right <= e.Accuracy[2] {
					accurate++
				}
				if e.P < Level {
					told++
				}
				if e.Verdict == Moved {
					gain += (before - after) / runs
				}
			}
			cover, level := float64(holds)/float64(runs*c.classes), float64(told)/runs
			t.Logf("shares %.3f, accuracy %.3f, told %.3f, gain %.4f", cover, float64(accurate)/runs, level, gain)
			if cover < 0.93 || cover > 0.975 || float64(accurate)/runs < 0.93 {
				t.Errorf("intervals of shares hold %.3f, those of the accuracy %.3f", cover, float64(accurate)/runs)
			}
			if c.moved == (level <= 0.02) || gain < -0.001 || c.moved && gain < 0.01 {
				t.Errorf("told %.3f, gain %.4f", level, gain)
			}
		})
	}
}
