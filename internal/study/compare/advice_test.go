package compare

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/swagwrap/swagwrap/calibrate"
	"github.com/swagwrap/swagwrap/calibrate/chance"
	"github.com/swagwrap/swagwrap/fixtures/reliability"
	"github.com/swagwrap/swagwrap/internal/baseline"
	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/ensemble"
	"github.com/swagwrap/swagwrap/internal/target"
	"github.com/swagwrap/swagwrap/internal/task"
)

// quality says how the logit of a network depends on the logit η of the target: slope·η + shift + noise·e, with e ~ N(0, 1) of
// each example.
type quality struct{ slope, shift, noise float64 }

// world is a population of examples of two classes with η ~ N(centre, spread²), and what three networks make of them: the last
// checkpoint, SWA, and SWAG with thirty members. Noises of two networks have the correlation shared. Another seed of SWAG
// has another slope, with the standard deviation draws, and a tenth more noise.
type world struct {
	name             string
	centre, spread   float64
	sgd, swa, swag   quality
	shared, draws    float64
	tests, validates int
}

// worlds are the populations of the table in fixtures/reliability/README.md.
func worlds() []world {
	usual := quality{1.6, 0, 1.2}
	all := []world{
		{name: "all alike"},
		{name: "SWA better", sgd: quality{1.6, 0, 1.8}},
		{name: "SWA worse", swa: quality{1.6, 0, 1.8}, swag: quality{1.6, 0, 1.8}},
		{name: "SWAG better", swag: quality{1.1, 0, 0.6}},
		{name: "SWAG a little better", swag: quality{1.6, 0, 1.1}},
		{name: "SWAG worse", swag: quality{1.6, 0, 1.6}},
		{name: "few labels, all alike", tests: 300, validates: 60},
		{name: "few labels, SWA better", sgd: quality{1.6, 0, 1.8}, tests: 300, validates: 60},
		{name: "useless networks", centre: -1, sgd: quality{0, -1, 1}, swa: quality{0, -1, 0.8}, swag: quality{0, -1, 0.6}},
		{name: "1 of 15 is of class 1", centre: -5},
		{name: "calibrated", sgd: quality{0.8, 0, 0.5}, swa: quality{0.8, 0, 0.5}, swag: quality{0.8, 0, 0.5}},
		{name: "classes shifted", sgd: quality{1.6, 0.8, 1.2}, swa: quality{1.6, 0.8, 1.2}, swag: quality{1.6, 0.8, 1.2}},
	}
	for k := range all {
		w := &all[k]
		for _, q := range []*quality{&w.sgd, &w.swa, &w.swag} {
			if *q == (quality{}) {
				*q = usual
			}
		}
		if w.tests == 0 {
			w.tests, w.validates = 1000, 500
		}
		w.spread, w.shared, w.draws = 2.5, 0.9, 0.03
	}
	return all
}

// seen are examples: the logit of the target, the noises of the three networks, and classes.
type seen struct {
	dataset.Dataset
	target  []float64
	noise   [3][]float64
	classes []int
}

func (s *seen) Len() int { return len(s.target) }

func (w world) see(rng *rand.Rand, n int) *seen {
	s := &seen{}
	for range n {
		eta, common, class := w.centre+w.spread*rng.NormFloat64(), rng.NormFloat64(), 0
		if rng.Float64() < sigmoid(eta) {
			class = 1
		}
		for k := range s.noise {
			s.noise[k] = append(s.noise[k], math.Sqrt(w.shared)*common+math.Sqrt(1-w.shared)*rng.NormFloat64())
		}
		s.target, s.classes = append(s.target, eta), append(s.classes, class)
	}
	return s
}

// logits returns those of network k, with the draws of a seed.
func (w world) logits(k int, s *seen, slope float64, rng *rand.Rand) []float64 {
	q, out := []quality{w.sgd, w.swa, w.swag}[k], make([]float64, s.Len())
	for i, eta := range s.target {
		out[i] = q.slope*eta + q.shift + q.noise*s.noise[k][i]
		if k == 2 {
			out[i] = slope*out[i] + 0.1*q.noise*rng.NormFloat64()
		}
	}
	return out
}

// scaling is fitted to logits z: scale·z + shift.
type scaling struct{ scale, shift float64 }

// fitted fits a scale, or a scale and a shift, by Newton's method with the ridge of vector scaling.
func fitted(z []float64, classes []int, shifted bool) scaling {
	s := scaling{1, 0}
	const ridge = 1e-5
	for range 30 {
		var g0, g1, h00, h01, h11 float64
		for i, v := range z {
			p := sigmoid(s.scale*v + s.shift)
			d, h := p-float64(classes[i]), p*(1-p)
			g0, g1, h00, h01, h11 = g0+d*v, g1+d, h00+h*v*v, h01+h*v, h11+h
		}
		n := float64(len(z))
		g0, g1, h00, h11 = g0+ridge*n*(s.scale-1), g1+ridge*n*s.shift, h00+ridge*n, h11+ridge*n
		if !shifted {
			g1, h01, h11 = 0, 0, 1
		}
		det := h00*h11 - h01*h01
		d0, d1 := (h11*g0-h01*g1)/det, (h00*g1-h01*g0)/det
		s.scale, s.shift = max(s.scale-d0, s.scale/10), s.shift-d1
		if math.Abs(d0)+math.Abs(d1) < 1e-9 {
			break
		}
	}
	return s
}

// A mapping maps logits of class 1 of two.
type mapping func(z []float64) []float64

func (s scaling) mapping(z []float64) []float64 {
	out := make([]float64, len(z))
	for i, v := range z {
		out[i] = s.scale*v + s.shift
	}
	return out
}

// paired returns logits of two classes.
func paired(z []float64) []float64 {
	out := make([]float64, 0, 2*len(z))
	for _, v := range z {
		out = append(out, 0, v)
	}
	return out
}

// further are the fits of the rows that --metrics all adds for two classes. Structured scaling of two classes is near vector scaling.
func further(t *testing.T, z []float64, classes []int) map[string]mapping {
	t.Helper()
	all := map[string]mapping{}
	what, err := task.New("classes", task.OutputSpec{Count: 2})
	if err != nil {
		t.Fatal(err)
	}
	for _, by := range []task.Method{task.ByStructured, task.ByQuadratic, task.ByVennAbers} {
		fit, _ := task.Find(what, by)
		c, err := fit.Fit(calibrate.Softmax(nil, paired(z), 2, 1), target.Target{Classes: classes})
		if err != nil {
			t.Fatal(by, err)
		}
		all[string(by)] = func(z []float64) []float64 {
			p := what.Apply(nil, c, calibrate.Softmax(nil, paired(z), 2, 1))
			out := make([]float64, len(z))
			for i := range z {
				out[i] = math.Log(p[2*i+1]) - math.Log(p[2*i])
			}
			return out
		}
	}
	return all
}

// nll is the loss of a logit for a class.
func nll(z float64, class int) float64 {
	if class == 1 {
		z = -z
	}
	return max(z, 0) + math.Log1p(math.Exp(-math.Abs(z)))
}

// row is a method of a comparison with its true loss on fresh examples.
type row struct {
	*Method
	fresh float64
}

// compared returns the comparison of eight methods and the constant prediction, and their losses on fresh examples. all adds the rows of --metrics
// all.
func (w world) compared(t *testing.T, test, val, fresh *seen, seed uint64, all bool) (*Result, []row) {
	t.Helper()
	binary, err := task.New("binary", task.OutputSpec{Count: 1})
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(seed, 2))
	slope := 1 + w.draws*rng.NormFloat64()
	r := &Result{Comparison: &Comparison{Test: test, Validation: val}, Task: binary}
	var rows []row
	add := func(key string, networks int, z, zVal, zFresh []float64, by mapping, one float64, refit func(z []float64, classes []int) mapping) {
		m := &Method{Key: key, Name: key, Networks: networks, Deploy: &ensemble.Settings{}}
		errors := make([]float64, len(z))
		at := func(by mapping, z []float64, classes []int) []float64 {
			out := by(z)
			for i, v := range out {
				out[i] = nll(v, classes[i])
			}
			return out
		}
		losses := at(by, z, test.classes)
		sum := 0.0
		for i, v := range by(z) {
			sum += losses[i]
			if (v > 0) != (test.classes[i] == 1) {
				errors[i] = 1
			}
		}
		m.Evaluation = &task.Evaluation{Scores: []task.Score{{Metric: task.Metric{Key: "nll"}, Value: sum / float64(len(z))}},
			Losses: []task.Loss{{Key: "nll", Name: "NLL", Values: losses}, {Key: ErrorLoss, Name: "error", Values: errors}}}
		if one > 0 {
			m.Scaling = &task.Fitted{Each: []*task.Calibration{{Method: task.ByTemperature, Temperature: 1 / one}}}
			fit, err := chance.NewRefit(func(factor float64) ([]float64, [][]float64, error) {
				by := scaling{one / factor, 0}.mapping
				return at(by, zVal, val.classes), [][]float64{at(by, z, test.classes), errors}, nil
			})
			if err != nil {
				t.Fatal(err)
			}
			m.Fits, m.Unseen = fit.Variances, fit.Unseen
		}
		switch {
		case networks != 0 && one == 0 && refit == nil:
			m.Unseen = at(by, zVal, val.classes)
		case refit != nil:
			m.Unseen = make([]float64, len(zVal))
			for _, rows := range calibrate.UnitFolds(nil, len(zVal), 5, seed) {
				held := map[int]bool{}
				for _, i := range rows {
					held[i] = true
				}
				var others []float64
				var classes []int
				for i, v := range zVal {
					if !held[i] {
						others, classes = append(others, v), append(classes, val.classes[i])
					}
				}
				by := refit(others, classes)
				for _, i := range rows {
					m.Unseen[i] = at(by, zVal[i:i+1], val.classes[i:i+1])[0]
				}
			}
		}
		x := row{m, 0}
		for i, z := range by(zFresh) {
			p := sigmoid(fresh.target[i])
			x.fresh += (p*nll(z, 1) + (1-p)*nll(z, 0)) / float64(len(zFresh))
		}
		if networks == 0 {
			r.Constant = m
		} else {
			r.Methods = append(r.Methods, m)
		}
		rows = append(rows, x)
	}
	for k, name := range []string{"sgd", "swa", "swag"} {
		z, zVal, zFresh := w.logits(k, test, slope, rng), w.logits(k, val, slope, rng), w.logits(k, fresh, slope, rng)
		networks := 1
		if k == 2 {
			networks = 30
		}
		add(name, networks, z, zVal, zFresh, scaling{1, 0}.mapping, 0, nil)
		temperature := fitted(zVal, val.classes, false)
		add(name+"-temp", networks, z, zVal, zFresh, temperature.mapping, temperature.scale, nil)
		if k == 2 {
			continue
		}
		vector := func(z []float64, classes []int) mapping { return fitted(z, classes, true).mapping }
		add(name+"-vector", networks, z, zVal, zFresh, vector(zVal, val.classes), 0, vector)
		if all {
			for by, m := range further(t, zVal, val.classes) {
				add(name+"-"+by, networks, z, zVal, zFresh, m, 0, func(z []float64, classes []int) mapping { return further(t, z, classes)[by] })
			}
		}
	}
	ones := 0.5
	for _, c := range val.classes {
		ones += float64(c)
	}
	share := ones / float64(val.Len()+1)
	add("floor", 0, make([]float64, test.Len()), make([]float64, val.Len()), make([]float64, fresh.Len()), scaling{1, math.Log(share / (1 - share))}.mapping, 0, nil)
	return r, rows
}

// ruleBefore is the rule before there were candidates: SWA-Temp, unless a method is significantly better than that.
func ruleBefore(r *Result) *Method {
	best := r.Method(baseline.SWATemp)
	for _, m := range r.Methods {
		if sign := r.Told(m, "nll"); sign < 0 && r.Value(m) < r.Value(best) {
			best = m
		}
	}
	return best
}

// tally sums up what a rule advised.
type tally struct {
	regret, most                         float64
	changed, dear, needless, none, under int
}

// add adds the advice for one set of data and two seeds. Without any the user is left with the constant prediction.
func (a *tally) add(rows []row, chosen, other *Method) {
	constant, least, one := rows[len(rows)-1].fresh, math.Inf(1), math.Inf(1)
	own := constant
	for _, x := range rows {
		least = min(least, x.fresh)
		if x.Networks == 1 {
			one = min(one, x.fresh)
		}
		if chosen == x.Method {
			own = x.fresh
		}
	}
	a.regret += own - least
	a.most = max(a.most, own-least)
	if key(chosen) != key(other) {
		a.changed++
	}
	switch {
	case chosen == nil:
		a.none++
	case own > constant:
		a.under++
	}
	if chosen != nil && chosen.Networks > 1 {
		if a.dear++; own >= one {
			a.needless++
		}
	}
}

func key(m *Method) string {
	if m == nil {
		return ""
	}
	return m.Key
}

// The advice is near the best row on fresh data, and takes thirty networks without a gain in at most one of twenty comparisons.
// Of networks that learnt nothing it recommends none. The rule before had more regret. At night the table of fixtures/reliability/README.md
// comes from these figures. The rows of --metrics all may cost a tenth of the regret of the rule before.
func TestAdvice(t *testing.T) {
	repetitions, others := reliability.Figure(3, 1000), reliability.Figure(1, 1000)
	var lines []string
	var regret, was, wide float64
	for _, w := range worlds() {
		now, old := w.tallies(t, repetitions, false)
		full, _ := w.tallies(t, others, true)
		lines = append(lines, now.line(w.name, repetitions), full.line("--metrics all", others), old.line("the rule before", repetitions))
		regret, was, wide = regret+now.regret, was+old.regret, wide+full.regret
		if most := 0.05*float64(repetitions) + 1; float64(full.needless) > most || float64(full.under) > most {
			t.Errorf("%s, --metrics all: thirty networks without a gain in %d of %d, worse than class shares in %d", w.name, full.needless, repetitions, full.under)
		}
		if most := 0.05*float64(repetitions) + 1; float64(now.needless) > most || float64(now.under) > most {
			t.Errorf("%s: thirty networks without a gain in %d of %d, worse than class shares in %d", w.name, now.needless, repetitions, now.under)
		}
		if useless := w.sgd.slope == 0; useless && float64(now.none) < 0.85*float64(repetitions)-1 || !useless && now.none > repetitions/100 {
			t.Errorf("%s: nothing is recommended in %d of %d", w.name, now.none, repetitions)
		}
		if mean, before := now.regret/float64(repetitions), old.regret/float64(repetitions); repetitions > 100 && mean > before+0.003 {
			t.Errorf("%s: a regret of %.4f, with the rule before %.4f", w.name, mean, before)
		}
	}
	t.Logf("%d repetitions\n%s", repetitions, strings.Join(lines, "\n"))
	t.Logf("regret %.4f, with the rows of --metrics all %.4f, with the rule before %.4f", regret/float64(repetitions), wide/float64(others), was/float64(repetitions))
	if repetitions > 100 && wide > regret+0.1*was {
		t.Errorf("the rows of --metrics all raise the regret from %.4f to %.4f", regret/float64(repetitions), wide/float64(repetitions))
	}
	if repetitions > 100 && regret > 0.7*was {
		t.Errorf("the regret is %.2f of that of the rule before", regret/was)
	}
}

// tallies compares both rules in repetitions with data of their own.
func (w world) tallies(t *testing.T, repetitions int, all bool) (now, old tally) {
	fresh := w.see(rand.New(rand.NewPCG(9, 9)), 2000)
	for k := range repetitions {
		rng := rand.New(rand.NewPCG(uint64(k), 1))
		test, val := w.see(rng, w.tests), w.see(rng, w.validates)
		var advice, before [2]*Method
		var rows [2][]row
		for seed := range advice {
			r, compared := w.compared(t, test, val, fresh, uint64(2*k+seed), all)
			r.compare()
			r.adjust()
			advice[seed], before[seed], rows[seed] = r.Verdict().Choice, ruleBefore(r), compared
		}
		now.add(rows[0], advice[0], advice[1])
		old.add(rows[0], before[0], before[1])
	}
	return now, old
}

// line is a line of the table: the mean and the largest regret in nats, and shares of comparisons.
func (a tally) line(name string, repetitions int) string {
	line := fmt.Sprintf("| %s | %.4f | %.4f |", name, a.regret/float64(repetitions), a.most)
	for _, n := range []int{a.changed, a.dear, a.needless, a.none, a.under} {
		line += fmt.Sprintf(" %.1f %% |", 100*float64(n)/float64(repetitions))
	}
	return line
}
