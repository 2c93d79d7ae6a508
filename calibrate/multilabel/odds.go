package multilabel

import (
	"math"

	"gonum.org/v1/gonum/floats"

	"github.com/swagwrap/swagwrap/calibrate"
)

// Sigmoid returns 1/(1 + e^−z) of each log-odds.
func Sigmoid(logits []float64) []float64 { return mapValues(logits, sigmoid) }

func mapValues(values []float64, f func(float64) float64) []float64 {
	out := make([]float64, len(values))
	for k, v := range values {
		out[k] = f(v)
	}
	return out
}

// LogOdds returns log p/(1−p), which is ±Inf where p is 1 or 0. The argument complements is nil, or holds 1−p with more
// digits than that difference has. Such digits exist if the sigmoids of z and of −z are averaged separately.
func LogOdds(probs, complements []float64) []float64 {
	if complements == nil {
		return mapValues(probs, func(p float64) float64 { return math.Log(p) - math.Log1p(-p) })
	}
	if len(complements) != len(probs) {
		panic(badShape)
	}
	out := make([]float64, len(probs))
	for k, p := range probs {
		out[k] = logOdds(p, complements[k])
	}
	return out
}

func logOdds(p, complement float64) float64 { return math.Log(p) - math.Log(complement) }

func sigmoid(z float64) float64 { return 1 / (1 + math.Exp(-z)) }

// loss returns −log σ(z) = log(1 + e^−z).
func loss(z float64) float64 { return max(-z, 0) + math.Log1p(math.Exp(-math.Abs(z))) }

// LogOddsLosses returns −log p of the target for each of the log-odds, or 0 if it is [Unknown]. Unlike those of probabilities
// they are finite for finite log-odds.
func LogOddsLosses(logits []float64, targets []int) []float64 {
	if len(logits) != len(targets) {
		panic(badShape)
	}
	out := make([]float64, len(targets))
	for i, y := range targets {
		if y != Unknown {
			out[i] = loss(float64(2*y-1) * logits[i])
		}
	}
	return out
}

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

// PredictiveEntropy returns the [Entropy] of each of probs. For averaged probabilities of an ensemble this is the total
// uncertainty of each label.
func PredictiveEntropy(probs []float64) []float64 { return mapValues(probs, Entropy) }

// MutualInformation returns H(mean p) − mean H(p), in nats. The argument probs holds the members' averaged probabilities,
// and expected the means of their entropies, in the same order. See [calibrate.Information] for rounding.
func MutualInformation(probs, expected []float64) []float64 {
	if len(probs) != len(expected) {
		panic(badShape)
	}
	out := PredictiveEntropy(probs)
	for k, h := range expected {
		out[k] = calibrate.Information(out[k], h)
	}
	return out
}

// Sums returns the sum over the labels of each of n examples. The values are n×labels, row-major.
func Sums(values []float64, labels int) []float64 {
	if labels < 1 || len(values)%labels != 0 {
		panic(badShape)
	}
	out := make([]float64, len(values)/labels)
	for i := range out {
		out[i] = floats.Sum(values[i*labels : (i+1)*labels])
	}
	return out
}
