package calibrate_test

import (
	"cmp"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/swagwrap/swagwrap/calibrate"
)

// pick returns some rows of a problem.
func (p problem) pick(rows ...int) (q problem) {
	q.classes = p.classes
	for _, i := range rows {
		q.logits = append(q.logits, p.logits[i*p.classes:(i+1)*p.classes]...)
		q.labels = append(q.labels, p.labels[i])
	}
	return q
}

// cross cross-fits a temperature. It returns the NLL of the unseen rows and the temperatures.
func (p problem) cross(t *testing.T, folds int, seed uint64) (nll float64, ts []float64) {
	t.Helper()
	n := len(p.labels)
	err := calibrate.CrossFit(calibrate.Folds(n, folds, seed), func(rows []int) (float64, error) { return p.pick(rows...).fit(t).T, nil }, func(T float64, rows []int) {
		nll += p.pick(rows...).nll(T) * float64(len(rows)) / float64(n)
		ts = append(ts, T)
	})
	if err != nil {
		t.Fatal(err)
	}
	return nll, ts
}

// crossFits measures what a temperature is worth over several splits.
func (p problem) crossFits(folds, splits int, seed uint64) (calibrate.CrossFitted, error) {
	return calibrate.CrossFits(len(p.labels), nil, folds, splits, seed, func(rows []int) (float64, error) {
		q := p.pick(rows...)
		T, err := calibrate.FitTemperature(q.logits, q.classes, q.labels)
		return T.T, err
	}, func(T float64, rows []int) float64 { return p.pick(rows...).nll(cmp.Or(T, 1)) })
}

// With as many folds as images the split is known, up to its order.
func TestCrossFitLeavesOneOut(t *testing.T) {
	p, _ := randomProblem(2)
	n := len(p.labels)
	nll, ts := p.cross(t, n, 1)
	var want float64
	var wantTs []float64
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	for i := range n {
		T := p.pick(slices.Concat(all[:i], all[i+1:])...).fit(t).T
		wantTs = append(wantTs, T)
		want += p.pick(i).nll(T) / float64(n)
	}
	slices.Sort(ts)
	slices.Sort(wantTs)
	diff(t, "NLL, one image left out", nll, want)
	diff(t, "temperatures, one image left out", ts, wantTs)
	if fit := p.fit(t); nll < fit.NLLAfter { // unseen labels are harder than seen ones
		t.Errorf("cross-fitted NLL %v is below the fitted %v", nll, fit.NLLAfter)
	}
}

// Of three images in two folds one is alone, and each image counts the same.
func TestCrossFitUnevenFolds(t *testing.T) {
	p := problem{[]float64{2, 0, 1, 0, 0, 3}, 2, []int{0, 1, 1}}
	got, _ := p.cross(t, 2, 1)
	for i := range 3 {
		one, two := p.pick(i), p.pick((i+1)%3, (i+2)%3)
		want := (one.nll(two.fit(t).T) + 2*two.nll(one.fit(t).T)) / 3
		if math.Abs(got-want) < 1e-9*want {
			return
		}
	}
	t.Errorf("NLL %v fits none of the three splits", got)
}

func TestCrossFitSplit(t *testing.T) {
	p, _ := randomProblem(2)
	nll, ts := p.cross(t, 2, 1)
	if again, _ := p.cross(t, 2, 1); again != nll || len(ts) != 2 {
		t.Errorf("NLL %v and then %v, %d temperatures", nll, again, len(ts))
	}
	if other, _ := p.cross(t, 2, 2); other == nll {
		t.Error("the split does not depend on the seed")
	}
	if _, ts := p.cross(t, 7, 1); len(ts) != 7 {
		t.Errorf("7 folds give %d temperatures", len(ts))
	}
	failed := errors.New("failed")
	err := calibrate.CrossFit(calibrate.Folds(4, 2, 1), func([]int) (int, error) { return 0, failed }, func(int, []int) { t.Error("a failed fit is used") })
	if !errors.Is(err, failed) {
		t.Error(err)
	}
}

// A fresh draw is worse than the fitting set says, and cross-fitting shows it: no label depends on the logits here.
func TestCrossFitIsHonest(t *testing.T) {
	rng := rand.New(rand.NewPCG(41, 0))
	const n, classes = 60, 8
	p := problem{make([]float64, n*classes), classes, make([]int, n)}
	for i := range p.logits {
		p.logits[i] = rng.NormFloat64()
	}
	for i := range p.labels {
		p.labels[i] = rng.IntN(classes)
	}
	unseen := 0.0
	err := calibrate.CrossFit(calibrate.Folds(n, 2, 1), func(rows []int) (calibrate.VectorScaling, error) { return p.pick(rows...).fitVector(t), nil }, func(v calibrate.VectorScaling, rows []int) {
		q := p.pick(rows...)
		unseen += calibrate.NegLogLikelihood(predictions(t, v.Apply(nil, q.logits), classes, q.labels...)) * float64(len(rows)) / n
	})
	if v := p.fitVector(t); err != nil || !(v.NLL < math.Log(classes) && unseen > math.Log(classes)) {
		t.Errorf("NLL of noise: %.3f fitted and %.3f cross-fitted, of a guess %.3f; %v", v.NLL, unseen, math.Log(classes), err)
	}
}

func TestWarnings(t *testing.T) {
	enough := problem{slices.Repeat([]float64{1, 0, 0, 1, 1, 0}, 40), 2, slices.Repeat([]int{0, 1, 1}, 40)}
	if w := enough.fitVector(t).Warnings(120); w != nil {
		t.Error(w)
	}
	if w := enough.fitVector(t).Warnings(99); len(w) != 1 || w[0].Error() != "4 numbers are fitted on 99 rows, fewer than 50 for each class: a temperature is safer" {
		t.Error(w)
	}
}

// Folds of units have each example once, and no unit is in two folds. A temperature that is fitted to half of each unit's
// copies of an example knows the other half; one that is fitted to other units does not.
func TestUnitFolds(t *testing.T) {
	const n, copies = 60, 20
	rng := rand.New(rand.NewPCG(9, 9))
	var units, labels []int
	var probs []float64
	for u := range n {
		p := 0.5 + 0.45*rng.Float64()
		label := rng.IntN(2) // by chance, so that a temperature helps only those that know the labels
		for range copies + 40*(u%2) {
			units, labels, probs = append(units, u), append(labels, label), append(probs, p, 1-p)
		}
	}
	for _, folds := range []int{2, 5} {
		seen, of := map[int]bool{}, map[int]int{}
		for f, rows := range calibrate.UnitFolds(units, len(units), folds, 3) {
			if len(rows) < len(units)/folds-60 || len(rows) > len(units)/folds+60 {
				t.Errorf("fold %d of %d has %d of %d examples", f, folds, len(rows), len(units))
			}
			for _, i := range rows {
				if other, ok := of[units[i]]; ok && other != f || seen[i] {
					t.Fatalf("example %d of unit %d is in folds %d and %d", i, units[i], other, f)
				}
				seen[i], of[units[i]] = true, f
			}
		}
		if len(seen) != len(units) {
			t.Errorf("%d examples of %d", len(seen), len(units))
		}
	}
	if folds := calibrate.UnitFolds([]int{0, 0, 0, 0, 0, 1}, 6, 2, 1); len(folds[0])+len(folds[1]) != 6 || len(folds[0])*len(folds[1]) != 5 {
		t.Errorf("two units of unequal size: %v", folds)
	}
	by, err := calibrate.CrossFitTemperature(probs, labels, units, 2, 20, 1)
	if err != nil {
		t.Fatal(err)
	}
	distance, err := calibrate.CrossFitTemperature(probs, labels, nil, 2, 20, 1)
	if err != nil {
		t.Fatal(err)
	}
	if by.NLLBefore != distance.NLLBefore || !(by.NLLAfter > distance.NLLAfter) {
		t.Errorf("NLL %v by unit, and %v by example", by, distance)
	}
	if _, err := calibrate.CrossFitTemperature(probs[:80], labels[:40], units[:40], 3, 1, 1); err == nil {
		t.Error("three folds of two units")
	}
}
