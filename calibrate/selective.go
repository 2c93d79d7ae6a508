package calibrate

import "math"

const (
	badCoverage = "calibrate: coverage is not above 0 and at most 1"
	badRisk     = "calibrate: risk is not between 0 and 1"
)

// A RiskPoint is the result of answering only the examples with the highest confidence and leaving the others to
// someone else.
type RiskPoint struct {
	Coverage  float64 // share of answered examples, above 0 and at most 1
	Risk      float64 // share of wrong answers among them
	Threshold float64 // the lowest confidence among them
}

// RiskCoverage returns the risk–coverage curve of p (Geifman and El-Yaniv 2017, section 2). Point k−1 answers the k
// examples with the highest confidence, for k = 1 … n.
//
// If a cut separates examples of equal confidence, the choice between them is arbitrary. The risk is then the mean over
// all choices, so the order of the examples does not matter. Of a run of m examples with e errors, j examples have
// j·e/m errors.
func RiskCoverage(p Predictions) []RiskPoint {
	p.check()
	return riskCoverage(sortedTopLabels(p))
}

// riskCoverage computes the curve of predictions in ascending order of confidence.
func riskCoverage(g []TopLabel) []RiskPoint {
	n := len(g)
	points := make([]RiskPoint, 0, n)
	wrong := 0 // among the examples above the run
	for end := n; end > 0; {
		start := end - 1
		for start > 0 && g[start-1].Confidence == g[start].Confidence {
			start--
		}
		errors := 0 // number of errors in the run
		for _, x := range g[start:end] {
			if !x.Correct {
				errors++
			}
		}
		for j := 1; j <= end-start; j++ {
			k := n - end + j
			expected := float64(wrong) + float64(errors*j)/float64(end-start)
			points = append(points, RiskPoint{
				Coverage:  float64(k) / float64(n),
				Risk:      expected / float64(k),
				Threshold: g[start].Confidence,
			})
		}
		wrong += errors
		end = start
	}
	return points
}

// AURC returns the area under the risk–coverage curve of p, the mean of the risks of [RiskCoverage] (Geifman, Uziel
// and El-Yaniv 2019, section 2). It is 0 if every example is classified correctly, and the error rate if all
// confidences are equal. It is lower if correct predictions have higher confidence than wrong ones.
func AURC(p Predictions) float64 {
	p.check()
	return areaUnder(riskCoverage(sortedTopLabels(p)))
}

func areaUnder(points []RiskPoint) float64 {
	var sum float64
	for _, x := range points {
		sum += x.Risk
	}
	return sum / float64(len(points))
}

// SelectiveRisk returns the share of wrong answers among the ⌈coverage·n⌉ examples with the highest confidence. See
// [RiskCoverage] for equal confidences. At coverage 1 it is the error rate. SelectiveRisk panics unless 0 < coverage
// ≤ 1.
func SelectiveRisk(p Predictions, coverage float64) float64 {
	p.check()
	return riskAt(riskCoverage(sortedTopLabels(p)), coverage)
}

func riskAt(points []RiskPoint, coverage float64) float64 {
	if !(0 < coverage && coverage <= 1) {
		panic(badCoverage)
	}
	return points[ceilShare(coverage, len(points))-1].Risk
}

// ceilShare returns ⌈share·n⌉, at least 1. It tolerates rounding, because a share such as 0.07 is not exact in binary
// and 0.07·100 would round up to 8.
func ceilShare(share float64, n int) int {
	x := share * float64(n)
	return max(1, int(math.Ceil(x-1e-9*math.Max(1, x))))
}

func ratio(part, whole int) float64 { return float64(part) / float64(whole) } // NaN if whole is 0
