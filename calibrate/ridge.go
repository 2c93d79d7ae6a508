package calibrate

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
)

// VectorFolds is the number of folds in which [FitVectorScaling] chooses its ridge.
const VectorFolds = 5

// VectorRidges returns the ridges among which [FitVectorScaling] chooses, the largest first. In the mean NLL of 1,000 examples, a
// ridge of 1e-5 lets all scales of 10 classes move to the double for 0.05 nats in one example.
func VectorRidges() []float64 { return []float64{1, 0.1, 0.01, 1e-3, 1e-4, leastRidge} }

// leastRidge only makes the minimum unique.
const leastRidge = 1e-5

// roughDecrement is the Newton decrement, in nats, of fits that only choose a ridge or begin the next one.
const roughDecrement = 1e-6

// patience is the number of ridges without a gain after which the search ends.
const patience = 2

// stratified deals the rows of each label to the folds in turn. The split depends on the order of equal labels alone. It has no
// folds if there are too few rows.
func stratified(labels []int) [][]int {
	if len(labels) < 2*VectorFolds {
		return nil
	}
	order := allRows(len(labels))
	slices.SortStableFunc(order, func(a, b int) int { return labels[a] - labels[b] })
	folds := make([][]int, VectorFolds)
	for k, i := range order {
		folds[k%VectorFolds] = append(folds[k%VectorFolds], i)
	}
	return folds
}

// chooseRidge returns the ridge with the least NLL of rows in folds that the fit has not seen, or +Inf, and the NLL of each row. That
// is nil without folds. all is the temperature of all rows.
func (s scored) chooseRidge(folds [][]int, all Temperature) (best float64, unseen []float64) {
	best, least := math.Inf(1), math.Inf(1)
	if len(folds) < 2 {
		return best, nil
	}
	paths := make([]*ridgePath, len(folds))
	for f, t := range s.others(folds, all) {
		paths[f] = s.path(Others(folds, f), t)
	}
	for worse := 0; worse < patience; {
		nll := make([]float64, len(s.labels))
		for f, rows := range folds {
			v, z := paths[f].scaled(), make([]float64, s.classes)
			for _, i := range rows {
				v.scale(z, s.row(i))
				nll[i] = logSumExp(z) - z[s.labels[i]]
			}
		}
		if worse++; floats.Sum(nll) < least {
			best, least, worse, unseen = paths[0].ridge, floats.Sum(nll), 0, nll
		}
		for _, p := range paths {
			if !p.next() {
				return best, unseen
			}
		}
	}
	return best, unseen
}

// ridgePath fits some rows with one ridge after the other. Each fit begins at the one before.
type ridgePath struct {
	of    scored
	rows  []int
	t     Temperature
	ridge float64 // +Inf at first: the temperature alone
	v     VectorScaling
	x     []float64 // (w, b) in units of the temperature
}

// others returns the temperature of the other folds, for each. It is a step of Newton's method from that of all rows, which takes one
// pass over them.
func (s scored) others(folds [][]int, all Temperature) []Temperature {
	out := make([]Temperature, len(folds))
	losses := s.losses(allRows(len(s.labels)), 1/all.T)
	for f := range folds {
		rows := Others(folds, f)
		var sum rowLoss
		for _, i := range rows {
			sum.add(losses[i], len(rows))
		}
		step := sum.slope / sum.curvature
		if out[f] = all; !all.AtBound && math.Abs(step) < 0.1/all.T {
			out[f].T, out[f].NLLAfter = 1/(1/all.T-step), sum.nll-step*sum.slope/2
		} else {
			out[f] = s.fit(rows)
		}
	}
	return out
}

// path returns the path of some rows with a temperature at its beginning.
func (s scored) path(rows []int, t Temperature) *ridgePath {
	p := &ridgePath{of: s, rows: rows, t: t, ridge: math.Inf(1)}
	if p.t.AtBound {
		p.t.T, p.t.NLLAfter = 1, p.t.NLLBefore
	}
	p.v = VectorScaling{NLLBefore: p.t.NLLBefore, NLL: p.t.NLLAfter, Converged: true}
	p.x = (&vectorProblem{scored: s}).identity()
	return p
}

// next goes on to the next ridge. It returns false after the last one.
func (p *ridgePath) next() bool {
	ridges := VectorRidges()
	i := slices.IndexFunc(ridges, func(r float64) bool { return r < p.ridge })
	if i < 0 {
		return false
	}
	p.ridge = ridges[i]
	p.fit(roughDecrement)
	return true
}

// scaled returns the scales and biases for logits.
func (p *ridgePath) scaled() VectorScaling {
	v := p.v
	v.Temperature, v.Ridge = p.t.T, p.ridge
	v.Scale, v.Bias = slices.Clone(p.x[:p.of.classes]), slices.Clone(p.x[p.of.classes:])
	for c := range v.Scale {
		v.Scale[c] /= p.t.T
	}
	return v
}

// result returns the exact fit with the present ridge.
func (p *ridgePath) result() VectorScaling {
	if !math.IsInf(p.ridge, 1) {
		p.fit(decrementTolerance)
	}
	v := p.scaled()
	p.of.judge(&v, p.rows)
	return v
}
