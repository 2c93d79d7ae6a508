package labels

import (
	"math"

	"gonum.org/v1/gonum/floats"
)

// Sigmoid stores 1/(1 + e^−z) of each log-odds in dst of the same length.
func Sigmoid(dst, logits []float64) []float64 {
	dst = destination(dst, len(logits))
	for k, z := range logits {
		dst[k] = sigmoid(z)
	}
	return dst
}

// LogOdds stores log p/(1−p) in dst, which is ±Inf where p is 1 or 0. The argument complements is nil, or holds 1−p
// with more digits than that difference has. Such digits exist if the sigmoids of z and of −z are averaged
// separately.
func LogOdds(dst, probs, complements []float64) []float64 {
	if complements != nil && len(complements) != len(probs) {
		panic(badShape)
	}
	dst = destination(dst, len(probs))
	for k, p := range probs {
		if complements != nil {
			dst[k] = logOdds(p, complements[k])
		} else {
			dst[k] = math.Log(p) - math.Log1p(-p)
		}
	}
	return dst
}

func logOdds(p, complement float64) float64 { return math.Log(p) - math.Log(complement) }

func sigmoid(z float64) float64 { return 1 / (1 + math.Exp(-z)) }

// loss returns −log σ(z) = log(1 + e^−z).
func loss(z float64) float64 { return max(-z, 0) + math.Log1p(math.Exp(-math.Abs(z))) }

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
