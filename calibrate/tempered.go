package calibrate

import (
	"math"

	"gonum.org/v1/gonum/floats"
)

const badTempered = "calibrate: counts are not those of the images"

// Fitted anew, a temperature is looked for between half and twice the fitted one. In
// log T losses are analytic up to π/2 beside the real axis, so that polynomials
// through 12 Chebyshev points are off by about (2.27+2.48)⁻¹², 1e-8 of what they
// interpolate (Trefethen, "Approximation theory and approximation practice", theorem 8.2).
const (
	temperatureRange = 2
	temperatureNodes = 12
)

// Tempered is a method scaled by a temperature, such that the temperature can be
// fitted anew for thousands of bootstrap resamples: its losses at a few temperatures
// about the fitted one, in place of the probabilities that they are made of. A
// resample then costs the same for two classes and a thousand.
type Tempered struct {
	nodes       []float64   // log T
	barycentric []float64   // weights of the nodes
	slopes      [][]float64 // row j: the derivative at node j of what has these values at all nodes
	fit         [][]float64 // by node, then image: the loss that T minimises
	losses      [][][]float64
}

// NewTempered asks for losses at temperatures about t, a fitted one. at returns, for a
// temperature, the losses that it minimises of the images that it is fitted on, and
// the losses of the images that it is applied to, by kind and then image.
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

// Resample fits the temperature to a resample in which each image counts so often, and
// adds to sums the sum of each kind of loss at it, over images that count so often.
// Resamples that ask for less than half or more than twice the temperature get that.
func (t *Tempered) Resample(sums, fit, counts []float64) (temperature float64) {
	if len(fit) != len(t.fit[0]) || len(counts) != len(t.losses[0][0]) || len(sums) != len(t.losses[0]) {
		panic(badTempered)
	}
	at := make([]float64, temperatureNodes) // the loss fitted, at the nodes
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

// minimum returns where a function is least, given its values at the nodes. In log T
// the NLL falls, and then rises.
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

// coefficients are by what the values at the nodes are to be multiplied to make that at x.
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
