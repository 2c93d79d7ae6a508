package corrupt

import "math"

// A Column describes a number of every example of clean data.
type Column struct {
	Mean, Std float64
	// Binary columns hold only 0 and 1. They may be missing, but have neither noise nor units.
	Binary bool
	// Fixed columns stay: row numbers and pixels.
	Fixed bool
}

// sizes is by severity: the share of missing numbers, or how much others change, in standard deviations of their column.
var sizes = [Severities]float64{.05, .1, .2, .3, .5}

// Row damages the numbers of an example in place. columns describes each of them. The seed decides what happens to this
// example, and common what happens to all examples.
func (c Corruption) Row(row []float32, columns []Column, severity int, seed, common uint64) {
	r := &random{seed: seed}
	for i, of := range columns {
		if of.Fixed || of.Std == 0 {
			continue
		}
		v := float32(c.number(float64(row[i]), of, sizes[severity-1], r, &random{seed: common, n: 2 * uint64(i)}))
		if !math.IsInf(float64(v), 0) {
			row[i] = v
		}
	}
}

// missing replaces a share of the numbers by the mean of their column, as pipelines do.
func missing(v float64, c Column, size float64, r, _ *random) float64 {
	if r.uniform() < size {
		return c.Mean
	}
	return v
}

// noise adds normal noise. Its standard deviation is twice the size, times that of the column.
func noise(v float64, c Column, size float64, r, _ *random) float64 {
	e := r.normal()
	if c.Binary {
		return v
	}
	return v + 2*size*c.Std*e
}

// drift changes the unit and the zero of each column, for all examples alike. The deviation from the mean grows or shrinks
// by the size. The mean rises or falls by the size times the standard deviation.
func drift(v float64, c Column, size float64, _, common *random) float64 {
	sign := func() float64 { return math.Copysign(size, common.uniform()-.5) }
	unit, zero := 1+sign(), sign()
	if c.Binary {
		return v
	}
	return c.Mean + unit*(v-c.Mean) + zero*c.Std
}
