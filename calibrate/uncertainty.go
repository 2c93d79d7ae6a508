package calibrate

import (
	"math"

	"gonum.org/v1/gonum/floats"
)

const badEntropies = "calibrate: number of entropies is not the number of rows"

// entropyRounding is the largest negative mutual information that rounding can cause, in nats. Summing 30 members
// over 1,000 classes in float64 loses at most about 1e-12.
const entropyRounding = 1e-10

// Entropy returns −Σ p log p of one distribution, in nats, with 0·log 0 = 0. It adds no small constant inside the
// logarithm, so the entropy of a nearly certain prediction is small but correct.
func Entropy(probs []float64) float64 {
	var h float64
	for _, x := range probs {
		switch {
		case least <= x && x <= 0.5:
			// x = 2^e·m, and the table has the logarithm of a number near m. The series is off by less than 1e-15. This takes
			// a third of the time of math.Log.
			b := math.Float64bits(x)
			near := &logs[b>>(52-logBits)&(1<<logBits-1)]
			r := float64(math.Float64frombits(b&(1<<52-1)|1023<<52)*near.inverse) - 1
			r -= float64(r * r * (0.5 - r*(1.0/3-r*(0.25-r*0.2))))
			h -= float64(x * (float64(float64(int(b>>52)-1023)*math.Ln2) + near.log + r))
		case x > 0:
			h -= float64(x * math.Log(x))
		}
	}
	return h
}

const (
	least   = 0x1p-1022 // smaller numbers have no exponent of their own
	logBits = 7
)

// logs[k] belongs to the middle of the numbers from 1 + k/128 to 1 + (k+1)/128.
var logs = func() (table [1 << logBits]struct{ inverse, log float64 }) {
	for k := range table {
		table[k].inverse = 1 / (1 + (float64(k)+0.5)/(1<<logBits))
		table[k].log = -math.Log(table[k].inverse)
	}
	return table
}()

// PredictiveEntropy stores the [Entropy] of each row of probs, n×classes in row-major order, in dst of length n. For
// averaged probabilities of an ensemble this is the total uncertainty.
func PredictiveEntropy(dst, probs []float64, classes int) []float64 {
	return eachRow(dst, probs, classes, Entropy)
}

// LeastConfidence stores 1 − the largest probability of each row of probs in dst of length n, with values from 0 to
// 1. As a score for detecting other domains it is the baseline of Hendrycks and Gimpel (2017). probs are n×classes in
// row-major order.
func LeastConfidence(dst, probs []float64, classes int) []float64 {
	return eachRow(dst, probs, classes, func(row []float64) float64 { return 1 - floats.Max(row) })
}

// eachRow stores f of each row of probs in dst.
func eachRow(dst, probs []float64, classes int, f func(row []float64) float64) []float64 {
	if classes < 1 || len(probs)%classes != 0 {
		panic(badShape)
	}
	dst = destination(dst, len(probs)/classes)
	for i := range dst {
		dst[i] = f(probs[i*classes : (i+1)*classes])
	}
	return dst
}

// MutualInformation stores H(mean p) − mean H(p) of each example in dst, in nats. This is the part of the uncertainty
// that comes from disagreement between members (Houlsby et al. 2011, equation 2). The argument probs holds the
// members' averaged probabilities, n×classes in row-major order. For each example, expected holds the mean of the
// members' entropies. dst has length n and may be the same slice as expected.
//
// Entropy is concave, so the result is negative only by rounding. Values from −1e-10 to 0 become 0. A lower value
// means that expected does not belong to probs, or was kept in float32. It is kept so that the caller can see it.
func MutualInformation(dst, probs []float64, classes int, expected []float64) []float64 {
	if classes < 1 || !isMatrix(probs, len(expected), classes) {
		panic(badEntropies)
	}
	dst = destination(dst, len(expected))
	for i, h := range expected {
		dst[i] = Information(Entropy(probs[i*classes:(i+1)*classes]), h)
	}
	return dst
}

// Information is [MutualInformation] of one example, from the entropy of the averaged probabilities.
func Information(entropy, expected float64) float64 {
	mi := entropy - expected
	if -entropyRounding <= mi && mi < 0 {
		mi = 0
	}
	return mi
}

// Divergence returns the mean over rows of half the Jeffreys divergence of two sets of predictions, in nats:
// ½·(KL(p‖q) + KL(q‖p)) = ½·Σ (p−q)·log(p/q). Both are n×classes, with rows that sum to 1. The result is +Inf if only
// one of them gives a class probability 0.
func Divergence(p, q []float64, classes int) float64 {
	if classes < 1 || len(p) != len(q) || len(p)%classes != 0 {
		panic("calibrate: predictions of different lengths")
	}
	sum := 0.0
	for i, v := range p {
		if v != q[i] {
			sum += (v - q[i]) * math.Log(v/q[i]) / 2
		}
	}
	return sum * float64(classes) / float64(len(p))
}
