package bnupdate

import "math"

// track follows the means or the variances of one layer from checkpoint to checkpoint. Means are in standard
// deviations. Variances are relative to those that the images give at the last checkpoint. Each row is an interval
// between two checkpoints, with one element per channel.
type track struct {
	before, after [][]float64 // stored at the start and the end of the interval
	was, is       [][]float64 // recomputed at its start and end; was is nil if unknown
	noise         float64     // squared standard error of is, due to the images, mean over channels
	step          float64     // mean square of all steps, or the noise of a moving average if larger
	together      float64     // correlation of one step with the next, over all steps
}

// tracks returns the tracks of layer i's means and variances.
func (p *Plan) tracks(i int, stored [][]float32, fresh []Result, wide *Wide) (means, variances track) {
	l, last := p.layers[i], fresh[len(fresh)-1]
	spread := make([]float64, l.mean.Len()) // variances of the channels
	for c := range spread {
		spread[c] = float64(last.Statistics[l.vari.Offset+int64(c)]) + l.epsilon
	}
	rows := func(statistics []float32) (out [2][]float64) { // means and variances
		for c, v := range spread {
			out[0] = append(out[0], float64(statistics[l.mean.Offset+int64(c)])/math.Sqrt(v))
			out[1] = append(out[1], (float64(statistics[l.vari.Offset+int64(c)])+l.epsilon)/v)
		}
		return out
	}
	n := max(len(fresh)-1, 1)
	var both [2]track
	var few [2]float64 // the noise of the few images
	few[0], few[1] = p.noise(i, last.batches)
	if both[0].noise, both[1].noise = few[0], few[1]; wide != nil {
		both[0].noise, both[1].noise = p.wideNoise(i, last.batches, wide)
	}
	window := 2 * (1 - l.momentum) / (1 + l.momentum) * float64(len(last.batches)) // difference of two averages
	for of := range both {
		q := &both[of]
		var all [][]float64
		for t := 1; t < len(stored); t++ {
			before, after := rows(stored[t-1])[of], rows(stored[t])[of]
			all = append(all, minus(after, before))
			k := t - len(stored) + n // index of the interval
			if k < 0 {
				continue
			}
			q.before, q.after = append(q.before, before), append(q.after, after)
			q.is = append(q.is, rows(fresh[len(fresh)-n+k].Statistics)[of])
			if len(fresh) > 1 {
				q.was = append(q.was, rows(fresh[k].Statistics)[of])
			}
		}
		q.step, q.together = steps(all)
		if l.momentum >= 1 { // PyTorch's exporters write this for momentum=None
			q.together = 1
		}
		q.step = max(q.step, window*few[of])
	}
	return both[0], both[1]
}

func minus(a, b []float64) []float64 {
	out := make([]float64, len(a))
	for i := range a {
		out[i] = a[i] - b[i]
	}
	return out
}

// steps returns the mean square of steps and the correlation of each with the next. The correlation is 1 if there are
// too few steps to compute it.
func steps(all [][]float64) (square, together float64) {
	var squares, products float64
	for t, row := range all {
		for c, v := range row {
			square += v * v / float64(len(all)*len(row))
			if t > 0 {
				products += v * all[t-1][c]
				squares += (v*v + all[t-1][c]*all[t-1][c]) / 2
			}
		}
	}
	if len(all) < 3 || squares == 0 {
		return square, 1
	}
	return square, products / squares
}

// mostPace bounds the fit of f. If weights walk at random, an average that goes 1/f of its way takes steps whose
// correlation with the next is 1 − 1/f. Weights that drift take steps with a higher correlation. Four times that f
// leaves room for noise. The limit is 1,000: a cumulative average over a thousand times the iterations between two
// checkpoints says nothing.
func mostPace(tracks []track) float64 {
	together := 0.0
	for _, q := range tracks {
		together += q.together / float64(len(tracks))
	}
	return 4 / max(1-max(together, 0), 4e-3)
}

// fitted fits f of [Plan.Check] to the means over all intervals, for all layers of a pace at once, by least squares:
//
//	f·mean(s_t − s_(t−1)) = mean(r_t − s_(t−1)) + noise
//
// The weight of a layer is the inverse of its measured noise: the scatter over the intervals, and the images' noise.
// The iteration starts with f = 1.
func fitted(tracks []track) float64 {
	f, most := 1.0, mostPace(tracks)
	for range 10 {
		var numerator, denominator float64
		for _, q := range tracks {
			n, channels := float64(len(q.after)), float64(len(q.after[0]))
			weight := 1 / (q.scatter(f, false)/n + q.noise + 1e-12) / channels
			for c := range q.after[0] {
				var step, way float64
				for t := range q.after {
					step += (q.after[t][c] - q.before[t][c]) / n
					way += (q.between(t, c, f) - q.before[t][c]) / n
				}
				numerator += weight * step * way
				denominator += weight * step * step
			}
		}
		if !(denominator > 0) {
			return 1
		}
		f = min(max(numerator/denominator, 1), most)
	}
	return f
}

// between returns the statistics that the images give for the weights which a moving average describes. Assume that the
// weights move evenly, and that the average goes 1/f of its way in each interval. It then describes the weights at the
// fraction f + 1/log(1−1/f) of the interval: its end for f = 1, and its middle for large f.
func (q track) between(t, c int, f float64) float64 {
	if q.was == nil || f <= 1 {
		return q.is[t][c]
	}
	at := f + 1/math.Log1p(-1/f)
	return (1-at)*q.was[t][c] + at*q.is[t][c]
}

// seen returns what training saw in the interval, computed from the statistics stored at its ends. A variance stays
// positive, whatever noise f adds to it.
func (q track) seen(t, c int, f float64, variance bool) float64 {
	v := q.before[t][c] + f*(q.after[t][c]-q.before[t][c])
	if variance {
		v = max(v, q.after[t][c]/100)
	}
	return v
}

// difference returns y_t of [Plan.Check], as a difference of logarithms if log is set.
func (q track) difference(t, c int, f float64, log bool) float64 {
	if log {
		return math.Log(q.seen(t, c, f, true) / q.between(t, c, f))
	}
	return q.seen(t, c, f, false) - q.between(t, c, f)
}

// scatter returns the variance of y_t over the intervals, averaged over channels. For a single interval it uses step.
func (q track) scatter(f float64, log bool) (s float64) {
	n, channels := float64(len(q.after)), float64(len(q.after[0]))
	if n == 1 {
		return f * f * q.step
	}
	for c := range q.after[0] {
		mean, squares := 0.0, 0.0
		for t := range q.after {
			y := q.difference(t, c, f, log)
			mean, squares = mean+y/n, squares+y*y
		}
		s += (squares - n*mean*mean) / (n - 1) / channels
	}
	return s
}

// bias returns root mean squares over channels: of the mean of y_t, and of its standard error.
func (q track) bias(f float64, log bool) (bias, expected float64) {
	n, channels := float64(len(q.after)), float64(len(q.after[0]))
	for c := range q.after[0] {
		mean := 0.0
		for t := range q.after {
			mean += q.difference(t, c, f, log) / n
		}
		bias += mean * mean / channels
	}
	return math.Sqrt(bias), math.Sqrt(q.scatter(f, log)/n + q.noise)
}
