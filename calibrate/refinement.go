package calibrate

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"
)

// Refinement estimates the part of the NLL of p that no recalibration removes, its refinement loss, in nats per example
// (Bröcker 2009; Berta et al. 2025). The rest of the NLL is the calibration loss.
//
// The estimate is the lowest NLL of three: of p, of p with a temperature, and of p with a temperature and an isotonic map.
// For two classes it maps the probability of class 1. For more it maps the confidence, and scales the other
// probabilities in proportion. Maps and temperatures are fitted on each random half of the units, cut by seed, and judged on the other.
// So the calibration loss is at least NLL − Refinement on average, because other recalibrations might remove more.
//
// The result is NaN if a true class has probability 0, or if there are fewer than 4 examples or 2 units.
func Refinement(p Predictions, seed uint64) float64 {
	p.check()
	n := p.Len()
	s, err := newScored(LogProbs(nil, p.Probs), p.Classes, p.Labels)
	if err != nil || n < 4 || p.Units != nil && slices.Max(p.Units) == 0 {
		return math.NaN()
	}
	scaled, mapped := make([]float64, n), make([]float64, n)
	// no fit fails
	CrossFit(UnitFolds(p.Units, n, 2, seed), func(rows []int) (recalibration, error) {
		return s.recalibrate(rows), nil
	}, func(r recalibration, rows []int) {
		for _, i := range rows {
			row := Softmax(nil, s.row(i), s.classes, r.temperature)
			scaled[i], mapped[i] = negLogLikelihood(row, p.Labels[i]), negLogLikelihood(r.apply(row), p.Labels[i])
		}
	})
	return min(NegLogLikelihood(p), stat.Mean(scaled, nil), stat.Mean(mapped, nil))
}

// recalibration is a temperature, and an isotonic map of one of the probabilities behind it.
type recalibration struct {
	temperature float64
	from, to    []float64 // probabilities from from[k] on become to[k]
}

// recalibrate fits to some rows. A step of the map with k of m rows right has the value (k + ½)/(m + 1), which is neither
// 0 nor 1 (Krichevsky and Trofimov 1981).
func (s scored) recalibrate(rows []int) recalibration {
	r := recalibration{temperature: s.fit(rows).T}
	var g []TopLabel
	for _, i := range rows {
		row := Softmax(nil, s.row(i), s.classes, r.temperature)
		c := mapped(row)
		g = append(g, TopLabel{row[c], s.labels[i] == c})
	}
	order(g)
	levels := make([]float64, len(g))
	for start, end := 0, 0; start < len(g); start = end { // equal confidences have one level
		right := 0.0
		for end = start; end < len(g) && g[end].Confidence == g[start].Confidence; end++ {
			if g[end].Correct {
				right++
			}
		}
		for i := start; i < end; i++ {
			levels[i] = right / float64(end-start)
		}
	}
	Isotonic(levels)
	for start, end := 0, 0; start < len(g); start = end {
		for end = start; end < len(g) && levels[end] == levels[start]; end++ {
		}
		m := float64(end - start)
		r.from, r.to = append(r.from, g[start].Confidence), append(r.to, (levels[start]*m+0.5)/(m+1))
	}
	return r
}

// mapped returns the class whose probability an isotonic map changes.
func mapped(row []float64) int {
	if len(row) == 2 {
		return 1
	}
	class, _ := top(row)
	return class
}

// apply maps a row in place, behind the temperature.
func (r recalibration) apply(row []float64) []float64 {
	class := mapped(row)
	k, found := slices.BinarySearch(r.from, row[class])
	if !found {
		k = max(0, k-1)
	}
	rest := 0.0
	for c, x := range row {
		if c != class {
			rest += x
		}
	}
	if rest == 0 { // float64 holds no other probability
		return row
	}
	for c := range row {
		row[c] *= (1 - r.to[k]) / rest
	}
	row[class] = r.to[k]
	return row
}

// Isotonic replaces values by the nearest ones that do not fall, in least squares, by pooling adjacent violators (Ayer et
// al. 1955).
func Isotonic(values []float64) {
	var means, counts []float64
	for _, v := range values {
		means, counts = append(means, v), append(counts, 1)
		for n := len(means); n > 1 && means[n-2] > means[n-1]; n = len(means) {
			total := counts[n-2] + counts[n-1]
			means[n-2] = (means[n-2]*counts[n-2] + means[n-1]*counts[n-1]) / total
			counts[n-2] = total
			means, counts = means[:n-1], counts[:n-1]
		}
	}
	at := 0
	for i, m := range means {
		for range int(counts[i]) {
			values[at] = m
			at++
		}
	}
}
