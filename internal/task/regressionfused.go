package task

import (
	"github.com/swagwrap/swagwrap/calibrate/regression"
)

// Say implements [Fusable]: the outcome is the means alone, in the network's units.
func (t regressionTask) Say(g Graph, scores string) MemberOutcome {
	head := t.numbers().Head
	if head == "" {
		return MemberOutcome{Outcome: scores}
	}
	variance := t.half(g, scores, 1)
	switch head {
	case regression.ByLogVariance:
		variance = g.Op("Exp", variance)
	case regression.BySoftplus:
		variance = g.Op("Softplus", variance)
	case regression.ByStd: // a negative one gives NaN
		variance = g.Op("Mul", variance, g.Op("Abs", variance))
	case regression.ByLogStd:
		variance = g.Op("Exp", g.Op("Add", variance, variance))
	case regression.BySoftplusStd:
		std := g.Op("Softplus", variance)
		variance = g.Op("Mul", std, std)
	}
	return MemberOutcome{Outcome: t.half(g, scores, 0), Variance: variance}
}

// half adds the first or the second half of the scores.
func (t regressionTask) half(g Graph, scores string, part int) string {
	columns := make([]int64, t.targets)
	for k := range columns {
		columns[k] = int64(part*t.targets + k)
	}
	return g.Rowwise("Gather", scores, g.Integers(columns...))
}

// Fuse implements [Fusable]. Sums are in the network's units, where numbers are of order 1. The variance of the means
// is computed from their differences, because float32 would lose it in a difference of squares.
func (t regressionTask) Fuse(g Graph, outcomes []MemberOutcome, weights []float64, by *Calibration) []Output {
	j := fusing{g, weights}
	var means, variances []string
	for _, s := range outcomes {
		means = append(means, s.Outcome)
		if s.Variance != "" {
			variances = append(variances, s.Variance)
		}
	}
	mean := j.average(means)
	n := t.numbers()
	stds, shifts, noise := make([]float64, t.targets), make([]float64, t.targets), make([]float64, t.targets)
	for k := range stds {
		u := t.units(k)
		std := elementFor(n.Noise, k, 0) / u.Std
		stds[k], shifts[k], noise[k] = u.Std, u.Mean, std*std
	}
	inUnits := func(x string) string { return g.Op("Mul", x, j.row(stds)) }
	epistemic := j.squares(means, mean, t.targets)
	aleatoric := ""
	switch {
	case variances != nil:
		aleatoric = j.average(variances)
	case n.Noise != nil: // the noise is repeated for each example of the batch
		aleatoric = g.Op("Add", j.scale(mean, 0), j.row(noise))
	}
	if by != nil {
		factors := make([]float64, t.targets)
		for k := range factors {
			factors[k] = by.Factor(k)
		}
		epistemic = g.Op("Mul", epistemic, j.row(factors))
		if aleatoric != "" {
			aleatoric = g.Op("Mul", aleatoric, j.row(factors))
		}
	}
	out := []Output{{"mean", g.Op("Add", inUnits(mean), j.row(shifts)), t.targets}}
	root := func(name, variance string) {
		out = append(out, Output{name, inUnits(g.Op("Sqrt", variance)), t.targets})
	}
	if aleatoric != "" {
		root("std", g.Op("Add", aleatoric, epistemic))
		root("aleatoric_std", aleatoric)
	}
	root("epistemic_std", epistemic)
	return out
}

// squares adds Σ w·(x − mean)² over the members.
func (j fusing) squares(members []string, mean string, width int) string {
	square := func(x, mean string) string {
		d := j.Op("Sub", x, mean)
		return j.Op("Mul", d, d)
	}
	if width == 1 { // total adds over all values
		if all, copies := j.beside(members, mean, width); all != "" {
			return j.total(square(all, copies), width)
		}
	}
	squares := make([]string, len(members))
	for k, x := range members {
		squares[k] = square(x, mean)
	}
	return j.average(squares)
}
