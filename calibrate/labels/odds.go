package labels

import "math"

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
