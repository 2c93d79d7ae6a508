package bnupdate

import (
	"math"
	"math/rand/v2"
)

// Halves compares the statistics of the first half of the batches with those of
// the second. In random order they differ by chance alone.
type Halves struct {
	// PValue is the probability that chance makes the halves of some layer differ at least as much. It is 1 if there
	// are too few batches for the test.
	PValue float64
	// Layer is the layer whose halves differ most compared with chance, by the name of its running mean. It is empty
	// if no layer varies.
	Layer string
	// Difference is the distance between the means of that layer's halves, in standard deviations of the channel. It
	// is a root mean square over channels.
	Difference float64
}

// Disagree reports whether chance is an unlikely explanation. With shuffled data this happens once in 500 passes.
func (h Halves) Disagree() bool { return h.PValue <= 0.002 }

const (
	maxGroups    = 64   // bounds the time for many batches
	minGroups    = 14   // 1,716 ways to halve them; 12 groups have only 462, too few for a p-value of 0.002
	permutations = 1999 // 0.002 is then 4 of 2,000
)

// compareHalves is a permutation test. Batches in random order are exchangeable, so every way to halve them is
// equally likely. This holds for any distribution of the statistics, and for any dependence between channels and
// layers. A t-test for each channel would need to know both. Consecutive batches form an even number of groups of
// equal size, which are exchangeable too. Batches that are left over, and a short last batch, are not used.
//
// In a layer, each of the F statistics is centred and scaled to a sum of squares of 1 over the G groups. Then the sum
// of squared differences of the halves is T = sᵀXXᵀs, with s = ±1 by half. Its expectation is F·G/(G−1). The
// statistic of the test is the largest T/F among layers.
func (p *Plan) compareHalves(batches []Batch) Halves {
	for len(batches) > 0 && batches[len(batches)-1].Images < batches[0].Images {
		batches = batches[:len(batches)-1]
	}
	size := (len(batches) + maxGroups - 1) / maxGroups
	if size == 0 || len(batches)/size < minGroups {
		return Halves{PValue: 1}
	}
	groups := len(batches) / size &^ 1
	layers := make([][]float64, len(p.layers))
	for i := range layers {
		layers[i] = p.gram(i, batches, groups, size)
	}

	half := make([]float64, groups)
	for g := range half {
		half[g] = 1
		if g >= groups/2 {
			half[g] = -1
		}
	}
	observed, worst := largest(layers, half)
	if worst < 0 {
		return Halves{PValue: 1} // all batches are alike
	}
	return Halves{
		PValue:     chance(layers, half, observed),
		Layer:      p.layers[worst].name,
		Difference: p.difference(worst, batches[:groups*size]),
	}
}

// chance returns the share of orders whose statistic is at least the observed one. It stops after enough such orders,
// so that passes without a fault take little time (Besag and Clifford 1991, "Sequential Monte Carlo p-values").
func chance(layers [][]float64, half []float64, observed float64) float64 {
	const enough = 20
	rng := rand.New(rand.NewPCG(0, 0))
	asLarge := 0
	for k := range permutations {
		rng.Shuffle(len(half), func(i, j int) { half[i], half[j] = half[j], half[i] })
		if t, _ := largest(layers, half); t >= observed*(1-1e-9) { // the mirror image is rounded differently
			if asLarge++; asLarge == enough {
				return float64(asLarge) / float64(k+1)
			}
		}
	}
	return float64(asLarge+1) / (permutations + 1) // the observed order is one of those possible
}

// gram returns XXᵀ/F of a layer, groups×groups, for the groups' centred and scaled means and variances. It is nil if
// no statistic varies.
func (p *Plan) gram(i int, batches []Batch, groups, size int) []float64 {
	out := make([]float64, groups*groups)
	features := 0.0
	x := make([]float64, groups)
	add := func(value func(Batch) float64) {
		clear(x)
		mean := 0.0
		for k, b := range batches[:groups*size] {
			x[k/size] += value(b)
			mean += value(b) / float64(groups)
		}
		squares := 0.0
		for g := range x {
			x[g] -= mean
			squares += x[g] * x[g]
		}
		if squares <= 1e-20*mean*mean { // equal but for rounding; float32 values differ by at least 6e-8
			return
		}
		features++
		for g := range x {
			for h := range x {
				out[g*groups+h] += x[g] * x[h] / squares
			}
		}
	}
	for c := range int(p.layers[i].mean.Len()) {
		add(func(b Batch) float64 { return float64(b.Mean[i][c]) })
		add(func(b Batch) float64 { return float64(b.Var[i][c]) })
	}
	if features == 0 {
		return nil
	}
	for g := range out {
		out[g] /= features
	}
	return out
}

// largest returns the largest sᵀGs among the layers' matrices and the index of its layer, which is −1 if there is
// none.
func largest(layers [][]float64, s []float64) (value float64, layer int) {
	layer = -1
	for i, gram := range layers {
		if gram == nil {
			continue
		}
		t := 0.0
		for g, sg := range s {
			row := gram[g*len(s):][:len(s)]
			dot := 0.0
			for h, v := range row {
				dot += v * s[h]
			}
			t += sg * dot
		}
		if layer < 0 || t > value {
			value, layer = t, i
		}
	}
	return value, layer
}

// difference returns [Halves.Difference] of layer i.
func (p *Plan) difference(i int, batches []Batch) float64 {
	total, n := 0.0, float64(len(batches)/2)
	for c := range int(p.layers[i].mean.Len()) {
		difference, variance := 0.0, 0.0
		for k, b := range batches {
			if k < len(batches)/2 {
				difference += float64(b.Mean[i][c]) / n
			} else {
				difference -= float64(b.Mean[i][c]) / n
			}
			variance += float64(b.Var[i][c]) / (2 * n)
		}
		if variance > 0 {
			total += difference * difference / variance
		}
	}
	return math.Sqrt(total / float64(p.layers[i].mean.Len()))
}
