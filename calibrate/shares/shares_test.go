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

// A world has classes on a line: class c has the mean c·distance and the variance 1. Its classifier knows that.
type world struct {
	training []float64
	distance float64
	rng      *rand.Rand
}

func newWorld(classes int, distance float64) *world {
	w := &world{distance: distance, rng: rand.New(rand.NewPCG(1, uint64(classes)))}
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
		x := float64(label)*w.distance + w.rng.NormFloat64() + noise*w.rng.NormFloat64()
		p := make([]float64, len(shares))
		for c := range p {
			d := x - float64(c)*w.distance
			p[c] = w.training[c] * math.Exp(-d*d/2)
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

// Shares that have not moved are called moved in about 1 % of samples, and 95 % intervals have the true shares and the true accuracy.
func TestCalibrated(t *testing.T) {
	const runs = 120 // of 400 in nine cases, intervals held 94.5 to 95.8 %, and 0.3 to 2.0 % were called moved
	for _, c := range []struct {
		classes, labelled, n int
		distance             float64
		moved                bool
	}{
		{2, 300, 200, 1.5, false}, {2, 500, 500, 1.5, true}, {3, 500, 500, 2, true}, {5, 500, 500, 2, false}, {5, 500, 500, 2.5, true},
		{10, 500, 300, 3, false},
	} {
		t.Run(fmt.Sprint(c), func(t *testing.T) {
			w := newWorld(c.classes, c.distance)
			now := w.training
			if c.moved {
				now = w.moved()
			}
			holds, accurate, told, gain := 0, 0, 0, 0.0
			for range runs {
				e, probs, labels := w.estimate(t, w.labelled(c.labelled), c.n, now, 0)
				for k, share := range now {
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
			if cover < 0.92 || cover > 0.98 || c.moved && float64(accurate)/runs < 0.9 {
				t.Errorf("intervals of shares hold %.3f, those of the accuracy %.3f", cover, float64(accurate)/runs)
			}
			if c.moved && (level < 0.9 || gain < 0.005) || !c.moved && (level > 0.04 || gain < -0.002) {
				t.Errorf("told %.3f, gain %.4f", level, gain)
			}
		})
	}
}

// What an estimate may not be used for: few examples, shares as before, classes that look alike, bad probabilities, other examples.
func TestVerdicts(t *testing.T) {
	for _, c := range []struct {
		name     string
		classes  int
		n        int
		distance float64
		moved    bool
		noise    float64
		want     Verdict
	}{
		{name: "few", classes: 2, n: LeastExamples - 1, distance: 3, moved: true, want: Few},
		{name: "same", classes: 3, n: 1000, distance: 2, want: Same},
		{name: "moved", classes: 3, n: 1000, distance: 2, moved: true, want: Moved},
		{name: "alike", classes: 6, n: 400, distance: 0.5, moved: true, want: Alike},
		{name: "no gain", classes: 2, n: 5000, distance: 3, noise: 2, want: Uncalibrated},
		{name: "noise", classes: 4, n: 5000, distance: 1.5, noise: 2, want: Otherwise},
	} {
		w := newWorld(c.classes, c.distance)
		shares := w.training
		if c.moved {
			shares = w.moved()
		}
		e, _, _ := w.estimate(t, w.labelled(2000), c.n, shares, c.noise)
		if e.Verdict != c.want {
			t.Errorf("%s: %s, want %s: %+v", c.name, e.Verdict, c.want, e)
		}
	}
}

// Two classes with the same probabilities cannot be told, whatever the number of examples.
func TestSameProbabilities(t *testing.T) {
	w := newWorld(3, 3)
	merge := func(probs []float64) {
		for p := range slices.Chunk(probs, 3) {
			both := p[1] + p[2]
			p[1], p[2] = both*0.6, both*0.4
		}
	}
	probs, labels := w.draw(2000, w.training, 0)
	merge(probs)
	l := NewLabelled(3, probs, labels)
	probs, _ = w.draw(5000, []float64{0.3, 0.1, 0.6}, 0)
	merge(probs)
	e, err := l.Estimate(rowsOf(probs, 3))
	if err != nil || e.Verdict != Alike || e.P > Level || e.Information > leastInformation {
		t.Errorf("%v, %+v", err, e)
	}
}

// A file may have anything.
func TestSound(t *testing.T) {
	w := newWorld(3, 3)
	if err := w.labelled(100).Sound(); err != nil {
		t.Error(err)
	}
	for name, change := range map[string]func(*Labelled){
		"NaN":      func(l *Labelled) { l.Probs[5] = float32(math.NaN()) },
		"negative": func(l *Labelled) { l.Probs[5] = -1 },
		"sum":      func(l *Labelled) { l.Probs[5] += 0.5 },
		"label":    func(l *Labelled) { l.Labels[7] = 3 },
		"few":      func(l *Labelled) { l.Labels, l.Probs = l.Labels[:10], l.Probs[:30] },
		"short":    func(l *Labelled) { l.Probs = l.Probs[3:] },
		"classes":  func(l *Labelled) { l.Classes = 1 },
	} {
		l := w.labelled(100)
		if change(l); l.Sound() == nil {
			t.Errorf("%s: sound", name)
		}
	}
}

// Of many examples a part is kept, with the same classes.
func TestManyLabelled(t *testing.T) {
	const classes = MostClasses
	n := mostValues/classes + 100
	probs, labels := make([]float64, n*classes), make([]int, n)
	for i := range labels {
		labels[i] = i % classes
		probs[i*classes+labels[i]] = 1
	}
	l := NewLabelled(classes, probs, labels)
	if l.Sound() != nil || len(l.Labels) != mostValues/classes || l.Probs[classes+l.Labels[1]] != 1 {
		t.Errorf("%v, %d kept", l.Sound(), len(l.Labels))
	}
	if NewLabelled(classes+1, nil, labels) != nil || NewLabelled(2, probs, labels[:LeastLabelled-1]) != nil {
		t.Error("too many classes, or too few examples, are kept")
	}
}

// A class that is not there has a share near 0, and an interval that says so.
func TestMissingClass(t *testing.T) {
	w := newWorld(4, 4)
	e, _, _ := w.estimate(t, w.labelled(800), 400, []float64{0.5, 0, 0, 0.5}, 0)
	if e.Verdict != Moved || e.Shares[1] > 0.01 || e.Shares[2] > 0.01 || e.Low[1] > 0 || e.High[1] > 0.03 || e.High[1] < 0.002 {
		t.Errorf("%+v", e)
	}
}
