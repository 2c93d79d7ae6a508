package regression

import (
	"fmt"
	"math"
)

// FitMixtureNoise returns the variance σ² that maximises the mean log-likelihood of the mixtures Σ_s w_s N(μ_s, σ²)
// for the n targets y. The means are n × members, row-major. The members have the given weights, or equal ones if
// nil.
//
// With r_s the share of member s in the density of a row, the likelihood is stationary where
//
//	σ² = mean over rows of Σ_s r_s (y−μ_s)²
//
// The right side grows with σ². It lies between the mean over rows of the smallest squared distance and that of the
// average squared distance, and so does every maximum. The function tries 64 variances in this range and refines the
// best one by bisection. It takes about 100 · n · members exponentials.
//
// It is an error if there is no row, a number is not finite, or weights are not shares. It is also an error if a
// member is exact in every row, because then the likelihood has no maximum. The error names the first bad row.
// FitMixtureNoise panics if the lengths disagree.
func FitMixtureNoise(y, means []float64, members int, weights []float64) (float64, error) {
	if members < 1 || len(means)%members != 0 || len(means)/members != len(y) || weights != nil && len(weights) != members {
		panic(badRows)
	}
	if err := CheckTargets(y); err != nil {
		return 0, err
	}
	p := noiseProblem{y: y, means: means, weights: weights, ones: make([]float64, members)}
	for s := range p.ones {
		p.ones[s] = 1
	}
	var least, most float64 // bounds of σ²
	for i := range y {
		m := p.row(i)
		if err := m.Check(); err != nil {
			return 0, fmt.Errorf("row %d: %w", i, err)
		}
		row := math.Inf(1)
		for s, mean := range m.Means {
			d := (y[i] - mean) * (y[i] - mean)
			if m.weight(s) > 0 {
				row = min(row, d)
			}
			most += m.weight(s) * d / float64(len(y))
		}
		least += row / float64(len(y))
	}
	switch {
	case math.IsInf(most, 1):
		return 0, errTooFar
	case least == 0:
		return 0, errExact
	}
	variance, _ := likeliest(min(least, most), most, func(v float64) float64 {
		value, _ := p.at(v)
		return value
	}, func(v float64) bool { // below the maximum, the right side of the fixed-point equation is larger
		_, square := p.at(v)
		return square >= v
	})
	return variance, nil
}

type noiseProblem struct {
	y, means, weights []float64
	ones              []float64 // a variance of 1 for each member
}

func (p noiseProblem) row(i int) Mixture {
	members := len(p.ones)
	return Mixture{Means: p.means[i*members : (i+1)*members], Variances: p.ones, Weights: p.weights}
}

// at returns the mean log-likelihood at a variance, and the mean of Σ_s r_s (y−μ_s)² there.
func (p noiseProblem) at(variance float64) (value, square float64) {
	n, std := float64(len(p.y)), math.Sqrt(variance)
	for i, y := range p.y {
		m := p.row(i)
		least := math.Inf(1) // squared distance over the variance
		for s, mean := range m.Means {
			if z := (y - mean) / std; m.weight(s) > 0 {
				least = min(least, z*z)
			}
		}
		var sum, squares float64
		for s, mean := range m.Means {
			z := (y - mean) / std
			r := m.weight(s) * math.Exp((least-z*z)/2)
			if r > 0 {
				sum += r
				squares += r * z * z
			}
		}
		value += (math.Log(sum) - (least+math.Log(2*math.Pi*variance))/2) / n
		square += squares / sum * variance / n
	}
	return value, square
}

// noisePoints is the number of variances that likeliest tries before it refines the best one. A grid is needed because a
// likelihood can have several maxima.
const noisePoints = 64

// likeliest returns the variance from least to most with the highest value, or least if the value falls there already.
// rises reports whether the value rises at a variance.
func likeliest(least, most float64, value func(variance float64) float64, rises func(variance float64) bool) (variance float64,
	atBound bool) {
	ratio := math.Log(most / least)
	at := func(k int) float64 { return least * math.Exp(ratio*float64(k)/(noisePoints-1)) }
	best, highest := 0, math.Inf(-1)
	for k := range noisePoints {
		if v := value(at(k)); v > highest {
			best, highest = k, v
		}
	}
	if best == 0 && !rises(least) {
		return least, true
	}
	lo, hi := at(max(best-1, 0)), at(min(best+1, noisePoints-1))
	for hi-lo > 4*rounding*hi {
		middle := lo + (hi-lo)/2
		if middle <= lo || middle >= hi {
			break
		}
		if rises(middle) {
			lo = middle
		} else {
			hi = middle
		}
	}
	// If several maxima lie between two points, bisection may miss the best one.
	found := lo + (hi-lo)/2
	if value(found) < highest-1e-12*math.Abs(highest) {
		return at(best), false
	}
	return found, false
}
