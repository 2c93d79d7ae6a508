package calibrate

import (
	"math"

	"gonum.org/v1/gonum/floats"
)

const (
	badLogits      = "calibrate: number of logits is not a multiple of classes"
	badTemperature = "calibrate: temperature is not a positive number"
)

// Softmax stores softmax(z/temperature) in dst for each row z of logits, n×classes in row-major order. Adding a
// constant to a row changes nothing, so log-probabilities can be used as logits.
//
// dst has the length of logits and may be the same slice. A row that contains NaN or +Inf, or only -Inf, has no
// softmax, and its result contains NaN. Softmax panics if the lengths disagree, or if temperature is not positive and
// finite.
func Softmax(dst, logits []float64, classes int, temperature float64) []float64 {
	dst = softmaxDestination(dst, logits, classes, temperature)
	for i := 0; i < len(logits); i += classes {
		row, out := logits[i:i+classes], dst[i:i+classes]
		_, peak := top(row) // subtracted, so that exp cannot overflow
		var sum float64
		for c, z := range row {
			out[c] = math.Exp((z - peak) / temperature)
			sum += out[c]
		}
		for c := range out {
			out[c] /= sum
		}
	}
	return dst
}

// LogSoftmax is like [Softmax] but stores the logarithms of the probabilities. These stay finite and precise where a
// probability rounds to 0 or 1.
func LogSoftmax(dst, logits []float64, classes int, temperature float64) []float64 {
	dst = softmaxDestination(dst, logits, classes, temperature)
	for i := 0; i < len(logits); i += classes {
		row, out := logits[i:i+classes], dst[i:i+classes]
		_, peak := top(row)
		for c, z := range row {
			out[c] = (z - peak) / temperature
		}
		floats.AddConst(-logSumExp(out), out)
	}
	return dst
}

// LogProbs stores the natural logarithm of each of probs in dst. It converts averaged probabilities to logits for
// [FitTemperature] and [Softmax]. A probability of 0 becomes -Inf, which both treat as an impossible class. dst has
// the length of probs and may be the same slice.
func LogProbs(dst, probs []float64) []float64 {
	dst = destination(dst, len(probs))
	for i, x := range probs {
		dst[i] = math.Log(x)
	}
	return dst
}

func softmaxDestination(dst, logits []float64, classes int, temperature float64) []float64 {
	if classes < 1 || len(logits)%classes != 0 {
		panic(badLogits)
	}
	if !(temperature > 0) || math.IsInf(temperature, 1) {
		panic(badTemperature)
	}
	return destination(dst, len(logits))
}

// expSteps is the number of steps of [exp] from one power of two to the next.
const expSteps = 64

var expTable = func() (t [expSteps]float64) {
	for k := range t {
		t[k] = math.Exp2(float64(k) / expSteps)
	}
	return t
}()

// exp returns the exponential of x ≤ 0 in a fraction of the time of [math.Exp], with a relative error of 1e-13. Below −700 it is 0.
func exp(x float64) float64 {
	if !(x > -700) {
		return 0
	}
	k := math.Floor(x*(expSteps/math.Ln2) + 0.5)
	r := x - k*(math.Ln2/expSteps)
	n := int(k)
	power := math.Float64frombits(uint64(1023+n>>6) << 52)
	return power * expTable[n&(expSteps-1)] * (1 + r*(1+r*(0.5+r*(1.0/6+r*(1.0/24+r/120)))))
}
