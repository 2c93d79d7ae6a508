package calibrate

import (
	"math"

	"gonum.org/v1/gonum/floats"
)

const badTempered = "calibrate: counts are not those of the images"

// A resample's temperature is sought between half and twice the fitted one. In log T, losses are analytic up to a
// distance of π/2 from the real axis. So polynomials through 12 Chebyshev points have a relative error of about
// (2.27+2.48)⁻¹², or 1e-8 (Trefethen, "Approximation theory and approximation practice", theorem 8.2).
const (
	temperatureRange = 2
	temperatureNodes = 12
)

// Tempered is a method scaled by a temperature that can be fitted again for thousands of bootstrap resamples. It
// stores the method's losses at a few temperatures around the fitted one instead of the probabilities. So a resample
// costs the same for two classes and for a thousand.
type Tempered struct {
	nodes       []float64   // log T
	barycentric []float64   // weights of the nodes
	slopes      [][]float64 // row j holds the weights for the derivative at node j
	fit         [][]float64 // by node, then image: the loss that the fit minimises
	losses      [][][]float64
}

// NewTempered computes losses at temperatures around the fitted temperature t. For a temperature, the function at
// returns two results. The first is the losses of the fitting images, whose sum the fit minimises. The second is the
// losses of the images to which it is applied, by kind and then image.
func NewTempered(t float64, at func(t float64) (fit []float64, losses [][]float64, err error)) (*Tempered, error) {
	out := &Tempered{}
	half := math.Log(temperatureRange)
	for j := range temperatureNodes {
		angle := math.Pi * (2*float64(j) + 1) / (2 * temperatureNodes)
		x := math.Log(t) - half*math.Cos(angle) // ascending
		out.nodes = append(out.nodes, x)
		out.barycentric = append(out.barycentric, math.Sin(angle)*float64(1-2*(j%2)))
		fit, losses, err := at(math.Exp(x))
		if err != nil {
			return nil, err
		}
		out.fit, out.losses = append(out.fit, fit), append(out.losses, losses)
	}
	for i, x := range out.nodes { // Berrut and Trefethen 2004, section 9.3
		row := make([]float64, temperatureNodes)
		for j, y := range out.nodes {
			if i != j {
				row[j] = out.barycentric[j] / out.barycentric[i] / (x - y)
				row[i] -= row[j]
			}
		}
		out.slopes = append(out.slopes, row)
	}
	return out, nil
}

// Resample fits the temperature to a resample in which each fitting image occurs as often as fit says. It adds to
// sums the sum of each kind of loss at this temperature, with the images weighted by counts. Temperatures are limited
// to the range from half to twice the original one.
func (t *Tempered) Resample(sums, fit, counts []float64) (temperature float64) {
	if len(fit) != len(t.fit[0]) || len(counts) != len(t.losses[0][0]) || len(sums) != len(t.losses[0]) {
		panic(badTempered)
	}
	at := make([]float64, temperatureNodes) // the fitted loss at the nodes
	for j, losses := range t.fit {
		at[j] = floats.Dot(losses, fit)
	}
	x := t.minimum(at)
	for j, c := range t.coefficients(x) {
		for k, losses := range t.losses[j] {
			sums[k] += c * floats.Dot(losses, counts)
		}
	}
	return math.Exp(x)
}

// minimum returns the place of the minimum of a function, given its values at the nodes. It relies on the NLL, as a
// function of log T, having one minimum.
func (t *Tempered) minimum(values []float64) float64 {
	slopes := make([]float64, len(values))
	for i, row := range t.slopes {
		slopes[i] = floats.Dot(row, values)
	}
	lo, hi := t.nodes[0], t.nodes[len(t.nodes)-1]
	switch {
	case slopes[0] >= 0:
		return lo
	case slopes[len(slopes)-1] <= 0:
		return hi
	}
	for range 40 { // to 1e-12 of the range
		middle := (lo + hi) / 2
		if floats.Dot(t.coefficients(middle), slopes) < 0 {
			lo = middle
		} else {
			hi = middle
		}
	}
	return (lo + hi) / 2
}

// coefficients returns the weights of the nodes' values that give the value at x.
func (t *Tempered) coefficients(x float64) []float64 {
	out, total := make([]float64, len(t.nodes)), 0.0
	for j, node := range t.nodes {
		if x == node {
			clear(out)
			out[j] = 1
			return out
		}
		out[j] = t.barycentric[j] / (x - node)
		total += out[j]
	}
	floats.Scale(1/total, out)
	return out
}
