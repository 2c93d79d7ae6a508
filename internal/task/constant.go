package task

import (
	"math"
	"slices"

	"github.com/swagwrap/swagwrap/calibrate"
	"github.com/swagwrap/swagwrap/calibrate/multilabel"
	"github.com/swagwrap/swagwrap/calibrate/regression"
	"github.com/swagwrap/swagwrap/internal/target"
)

// Constant predicts the same for every example and position: what a network can say that has learnt nothing from its inputs. It
// is the baseline for every method.
type Constant struct {
	kind    target.Kind
	classes map[int]float64 // the number of targets of each class
	each    []spread        // of each label or number
	known   int
}

// spread sums up the known values of one label or number (Welford 1962).
type spread struct{ n, mean, squares float64 }

func (s *spread) add(v float64) {
	s.n++
	d := v - s.mean
	s.mean += d / s.n
	s.squares += d * (v - s.mean)
}

// NewConstant returns one for a task that has seen no target.
func NewConstant(t Task) *Constant {
	return &Constant{kind: TraitsOf(t.About().Name).Labels, classes: map[int]float64{}}
}

// Add counts the targets of an example. Targets that are not known do not count.
func (c *Constant) Add(t target.Target) {
	if c.each == nil {
		c.each = make([]spread, t.Width)
	}
	for _, class := range t.Classes {
		if class >= 0 {
			c.classes[class]++
			c.known++
		}
	}
	for i, v := range t.Values {
		if unknown := v != v || c.kind == target.Labels && v < 0; !unknown {
			c.each[i%t.Width].add(v)
			c.known++
		}
	}
}

// Known returns the number of targets that were counted.
func (c *Constant) Known() int { return c.known }

// constant is a task of one position that can say the same for every example.
type constant interface {
	// constant returns the outcome, its entropy, and a name for it.
	constant(c *Constant) (outcome []float64, entropy float64, name string)
}

// Outcome returns the outcome of an example of the task.
func (c *Constant) Outcome(t Task) []float64 {
	outcome, entropy, _ := OnePosition(t).(constant).constant(c)
	if !Large(t) {
		return outcome
	}
	return slices.Repeat(append(outcome, entropy), Positions(t))
}

// Name says what the prediction is made of.
func (c *Constant) Name(t Task) string {
	_, _, name := OnePosition(t).(constant).constant(c)
	return name
}

// share is a share with half a target added to each of so many possible values, so that none is impossible (Krichevsky and
// Trofimov, IEEE Transactions on Information Theory 1981).
func share(count, of, values float64) float64 { return (count + 0.5) / (of + values/2) }

func (t classes) constant(c *Constant) ([]float64, float64, string) {
	out := make([]float64, t.count)
	for k := range out {
		out[k] = share(c.classes[k], float64(c.known), float64(t.count))
	}
	return out, calibrate.Entropy(out), "class shares"
}

func (t labels) constant(c *Constant) (out []float64, entropy float64, name string) {
	out = make([]float64, t.width())
	p, q, h := t.parts(out)
	for k, s := range c.each {
		p[k] = share(s.n*s.mean, s.n, 2)
		q[k] = 1 - p[k]
		h[k] = multilabel.Entropy(min(p[k], q[k]))
		entropy += h[k]
	}
	return out, entropy, "label rates"
}

// leastVariance is that of targets that are all equal, in the network's units.
const leastVariance = 1e-12

func (t regressionTask) constant(c *Constant) ([]float64, float64, string) {
	var all []regression.Moments
	entropy := 0.0
	for k, s := range c.each {
		u := t.units(k)
		variance := max(s.squares/max(1, s.n-1)/(u.Std*u.Std), leastVariance)
		all = append(all, regression.Moments{Mean: (s.mean - u.Mean) / u.Std, Aleatoric: variance})
		entropy += math.Log(2*math.Pi*math.E*variance) / 2
	}
	return t.FromMoments(all), entropy, "mean and variance"
}
