package detect

import (
	"cmp"
	"math"
	"slices"
)

const (
	badScores    = "detect: no scores"
	badRate      = "detect: rate is not above 0 and at most 1"
	badHistogram = "detect: histograms do not have the same bins"
	badValue     = "detect: value of a histogram is not a number"
	badSmoothing = "detect: smoothing is not a positive number"
)

// The following functions measure how well a score separates examples of the training domain ("in") from others
// ("out"). The score, such as the predictive entropy, should be larger for the latter, which are the positives. Only
// the order of the scores matters. If a score is NaN, the result is NaN. The functions panic if one side has no
// examples.

// AUROC returns the area under the receiver operating characteristic. This is the probability that a random score of
// out is larger than one of in (Mann and Whitney 1947). Equal scores count one half, so the area is 0.5 if all scores
// are equal.
func AUROC(in, out []float64) float64 {
	var area float64
	ok := eachThreshold(in, out, func(_ float64, before, after outcome) {
		// The trapezoid between two points of the curve.
		area += float64(after.alarms-before.alarms) * float64(after.found+before.found) / 2
	})
	if !ok {
		return math.NaN()
	}
	return area / float64(len(in)) / float64(len(out))
}

// AUPR returns the average precision: the area under the precision–recall curve by the step rule of scikit-learn's
// average_precision_score,
//
//	Σ_t (recall_t − recall_{t−1}) · precision_t
//
// over the distinct scores t in descending order. It does not interpolate, which would be too optimistic (Davis and
// Goadrich 2006). If all scores are equal, it is the share of out among all examples. So compare it only between data
// sets of equal shares.
func AUPR(in, out []float64) float64 {
	var area float64
	ok := eachThreshold(in, out, func(_ float64, before, after outcome) {
		precision := float64(after.found) / float64(after.found+after.alarms)
		area += float64(after.found-before.found) * precision
	})
	if !ok {
		return math.NaN()
	}
	return area / float64(len(out))
}

// FPRAt returns the false positive rate, the share of in that is taken for out, at a given true positive rate. It
// uses the largest threshold that detects at least the share tpr of out, by convention 0.95 (Hendrycks et al. 2019).
// A score at the threshold counts as detected, so the result is 1 if all scores are equal. FPRAt panics unless 0 <
// tpr ≤ 1.
//
// Others take examples of the domain as the positives (Liang et al. 2018). That is FPRAt(−out, −in, tpr), a different
// number.
func FPRAt(in, out []float64, tpr float64) float64 {
	if !(0 < tpr && tpr <= 1) {
		panic(badRate)
	}
	fpr := -1.0
	exact := tpr * float64(len(out))
	want := max(1, int(math.Ceil(exact-1e-9*math.Max(1, exact)))) // 0.07·100 rounds up to 8 otherwise
	ok := eachThreshold(in, out, func(_ float64, _, after outcome) {
		if fpr < 0 && after.found >= want {
			fpr = float64(after.alarms) / float64(len(in))
		}
	})
	if !ok {
		return math.NaN()
	}
	return fpr
}

// Detection describes how well a score detects examples out of the domain.
type Detection struct {
	AUROC float64 `json:"auroc"`
	// Low and High are the 95 % interval of AUROC: see [AUROCInterval].
	Low   float64 `json:"auroc_low"`
	High  float64 `json:"auroc_high"`
	AUPR  float64 `json:"aupr"`
	FPR95 float64 `json:"fpr95"` // [FPRAt] 0.95
}

// Detect returns [AUROC] with its interval, [AUPR] and [FPRAt] 0.95 of the same scores.
func Detect(in, out []float64) Detection {
	i := AUROCInterval(in, out)
	return Detection{i.Mean, i.Low, i.High, AUPR(in, out), FPRAt(in, out, 0.95)}
}

// Reversed reports whether the score is clearly worse than guessing: the whole interval is below 0.5.
func (d Detection) Reversed() bool { return d.High < 0.5 }

// outcome counts the examples with scores at or above a threshold.
type outcome struct {
	found, alarms int // examples out of the domain, and in it
}

// eachThreshold lowers a threshold through the distinct scores and calls f with each score, and the outcome before and after
// it. It returns false if a score is NaN.
func eachThreshold(in, out []float64, f func(score float64, before, after outcome)) bool {
	if len(in) == 0 || len(out) == 0 {
		panic(badScores)
	}
	type scored struct {
		score float64
		out   bool
	}
	all := make([]scored, 0, len(in)+len(out))
	for _, x := range in {
		all = append(all, scored{x, false})
	}
	for _, x := range out {
		all = append(all, scored{x, true})
	}
	if slices.ContainsFunc(all, func(s scored) bool { return math.IsNaN(s.score) }) {
		return false
	}
	slices.SortFunc(all, func(a, b scored) int { return cmp.Compare(b.score, a.score) })
	var before, after outcome
	for i, s := range all {
		if s.out {
			after.found++
		} else {
			after.alarms++
		}
		if i+1 == len(all) || all[i+1].score != s.score {
			f(s.score, before, after)
			before = after
		}
	}
	return true
}

// Histogram counts values in bins.
type Histogram struct {
	// Edges ascend. Bin b holds the values from Edges[b] up to, but excluding, Edges[b+1]. The last bin includes its
	// upper edge.
	Edges  []float64
	Counts []int // one fewer than Edges

	// Below and Above count the values outside the edges, which are in no bin.
	Below, Above int
}

// EntropyHistogram counts entropies, in nats, in the bins of the SWAG paper (Maddox et al. 2019, appendix on
// out-of-sample detection) and its code. They have 30 edges from 1e−8 to 10^0.5 = 3.16, evenly spaced in their
// logarithms.
//
// The entropy of a nearly certain prediction is less than 1e−8, and with more than 23 classes it can exceed 3.16. The
// paper's histogram drops both silently. Here Below and Above count them, and the user should see these counts.
// EntropyHistogram panics on NaN.
func EntropyHistogram(h []float64) Histogram {
	edges := make([]float64, histogramEdges)
	for i := range edges {
		edges[i] = math.Pow(10, -8+8.5*float64(i)/(histogramEdges-1))
	}
	return NewHistogram(edges, h)
}

// histogramEdges is the number of edges of the SWAG paper's histograms.
const histogramEdges = 30

// LogarithmicEdges returns as many edges as [EntropyHistogram] has, evenly spaced in their logarithms from the least
// positive value to the largest. They are for uncertainties without a fixed range, unlike entropies. If there is one
// such value, they go from half of it to twice of it. If there is none, they lie around 1. It panics on NaN and
// infinity.
func LogarithmicEdges(values ...[]float64) []float64 {
	least, most := math.Inf(1), 0.0
	for _, list := range values {
		for _, x := range list {
			if x-x != 0 {
				panic(badValue)
			}
			if x > 0 {
				least, most = min(least, x), max(most, x)
			}
		}
	}
	if most == 0 {
		least, most = 1, 1
	}
	if least == most {
		least, most = least/2, 2*most
	}
	edges := make([]float64, histogramEdges)
	for i := range edges {
		t := float64(i) / (histogramEdges - 1)
		edges[i] = math.Exp((1-t)*math.Log(least) + t*math.Log(most))
	}
	edges[0], edges[histogramEdges-1] = least, most // exact, so that all values are in a bin
	return edges
}

// NewHistogram counts values between edges in ascending order. It panics on NaN.
func NewHistogram(edges, values []float64) Histogram {
	hist := Histogram{Edges: edges, Counts: make([]int, len(edges)-1)}
	for _, x := range values {
		if math.IsNaN(x) {
			panic(badValue)
		}
		b, found := slices.BinarySearch(hist.Edges, x)
		if !found {
			b-- // the bin that begins at the previous edge
		}
		switch last := len(hist.Counts) - 1; {
		case b < 0:
			hist.Below++
		case b > last && x > edges[len(edges)-1]:
			hist.Above++
		default:
			hist.Counts[min(b, last)]++
		}
	}
	return hist
}

// DefaultSmoothing is the number that the SWAG paper adds to every count before it compares two histograms.
const DefaultSmoothing = 1e-7

// SymmetrizedKL returns KL(a‖b) + KL(b‖a) between the distributions of two histograms, in nats (Maddox et al. 2019,
// appendix on out-of-sample detection). A distribution consists of the counts plus smoothing, as shares of their sum.
// It ignores Below and Above.
//
// If a bin is empty in only one histogram, its term is its share times log(count/smoothing). So the result depends on
// smoothing and on the number of examples. Use [DefaultSmoothing] to compare with the paper, and AUROC for anything
// else. The result is NaN if all bins of a or of b are empty. SymmetrizedKL panics if the edges differ or if
// smoothing is not positive.
func SymmetrizedKL(a, b Histogram, smoothing float64) float64 {
	if !slices.Equal(a.Edges, b.Edges) || len(a.Counts) != len(b.Counts) {
		panic(badHistogram)
	}
	if !(smoothing > 0) || math.IsInf(smoothing, 1) {
		panic(badSmoothing)
	}
	p, q := a.shares(smoothing), b.shares(smoothing)
	var sum float64
	for i := range p {
		sum += (p[i] - q[i]) * math.Log(p[i]/q[i])
	}
	return sum
}

// shares returns the smoothed distribution, or NaN if all bins are empty.
func (h Histogram) shares(smoothing float64) []float64 {
	total := 0
	for _, k := range h.Counts {
		total += k
	}
	p := make([]float64, len(h.Counts))
	for i, k := range h.Counts {
		p[i] = math.NaN()
		if total > 0 {
			p[i] = (float64(k) + smoothing) / (float64(total) + smoothing*float64(len(p)))
		}
	}
	return p
}
