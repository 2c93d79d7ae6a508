package labels

import (
	"math"

	"gonum.org/v1/gonum/floats"
)

// entropyRounding is the largest negative mutual information that rounding can cause, in nats, as in package
// calibrate.
const entropyRounding = 1e-10

// Entropy returns −p log p − (1−p) log(1−p), in nats, with 0·log 0 = 0.
func Entropy(p float64) float64 {
	var h float64
	if p > 0 {
		h -= p * math.Log(p)
	}
	if p < 1 {
		h -= (1 - p) * math.Log1p(-p)
	}
	return h
}

// PredictiveEntropy stores the [Entropy] of each of probs in dst of that length. For averaged probabilities of an
// ensemble this is the total uncertainty of each label.
func PredictiveEntropy(dst, probs []float64) []float64 {
	dst = destination(dst, len(probs))
	for k, p := range probs {
		dst[k] = Entropy(p)
	}
	return dst
}

// MutualInformation stores H(mean p) − mean H(p) in dst, in nats. The argument probs holds the members' averaged
// probabilities, and expected the means of their entropies, in the same order. Values from −1e−10 to 0 are rounding
// and become 0. A lower value means that expected does not belong to probs, and is kept so that the caller can see
// it.
func MutualInformation(dst, probs, expected []float64) []float64 {
	if len(probs) != len(expected) {
		panic(badShape)
	}
	dst = destination(dst, len(probs))
	for k, p := range probs {
		dst[k] = Entropy(p) - expected[k]
		if -entropyRounding <= dst[k] && dst[k] < 0 {
			dst[k] = 0
		}
	}
	return dst
}

// Sums stores the sum over the labels of each of n examples in dst of length n. The values are n×labels, row-major.
func Sums(dst, values []float64, labels int) []float64 {
	if labels < 1 || len(values)%labels != 0 {
		panic(badShape)
	}
	dst = destination(dst, len(values)/labels)
	for i := range dst {
		dst[i] = floats.Sum(values[i*labels : (i+1)*labels])
	}
	return dst
}
