package calibrate

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"
)

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

// RiskConfidence is the confidence of the bound of [FitAnswering], and riskTests the number of thresholds that it tests.
const (
	RiskConfidence = 0.95
	riskTests      = 20
)

// Answering is a rule that answers only the examples whose confidence is above a threshold.
type Answering struct {
	Threshold float64 // −1 answers all examples
	Coverage  float64 // share of answered examples of the fit
	Risk      float64 // share of wrong answers among them
}

// FitAnswering chooses the lowest threshold whose answers are wrong with at most the probability risk. This holds with 95 %
// confidence over the examples g of the fit. It is selection with guaranteed risk (Geifman and El-Yaniv 2017), by the rules
// of learn then test (Angelopoulos et al. 2021).
//
// It tests 20 thresholds that answer m examples each, with e errors, by the exact binomial tail
//
//	P(Binomial(m, risk) ≤ e) ≤ (1 − 0.95)/20
//
// The numbers m are evenly spaced from the smallest that can pass to all examples. The examples above the confidence of
// rank m+1 are independent, given this confidence. So the guarantee needs only that examples are independent and new ones
// have the same distribution. Bonferroni's correction has more coverage here than a fixed sequence of tests, which stops at
// the first failure.
//
// FitAnswering sorts g. It returns an error if no threshold passes, and panics unless 0 < risk < 1.
func FitAnswering(g []TopLabel, risk float64) (Answering, error) {
	return FitAnsweringAbove(g, risk, func(confidence float64) float64 { return confidence })
}

// FitAnsweringAbove is [FitAnswering] with thresholds that raise makes higher. What raise returns must depend on its argument
// alone, and not be below it: the examples above it are then independent too.
func FitAnsweringAbove(g []TopLabel, risk float64, raise func(confidence float64) float64) (Answering, error) {
	if !(0 < risk && risk < 1) {
		panic(badRisk)
	}
	order(g)
	slices.Reverse(g)
	n, level := len(g), (1-RiskConfidence)/riskTests
	least := math.Ceil(math.Log(level) / math.Log1p(-risk)) // for a tiny risk it is beyond integers
	if float64(n) < least {
		return Answering{}, fmt.Errorf("%d examples cannot show a risk of at most %g, want at least %.10g", n, risk, least)
	}
	first := int(least)
	for j := riskTests - 1; j >= 0; j-- {
		m, threshold := first+(n-first)*j/(riskTests-1), -1.0
		if m < n {
			threshold = raise(g[m].Confidence)
			for m > 0 && g[m-1].Confidence <= threshold {
				m--
			}
		}
		wrong := 0
		for _, x := range g[:m] {
			if !x.Correct {
				wrong++
			}
		}
		if m > 0 && (distuv.Binomial{N: float64(m), P: risk}).CDF(float64(wrong)) <= level {
			return Answering{threshold, ratio(m, n), ratio(wrong, m)}, nil
		}
	}
	return Answering{}, fmt.Errorf("no threshold shows a risk of at most %g with %g %% confidence", risk, 100*RiskConfidence)
}

// Judge returns the coverage and the risk of the rule on other examples. The risk is NaN if none is answered.
func (a Answering) Judge(g []TopLabel) (coverage, risk float64) {
	answered, wrong := 0, 0
	for _, x := range g {
		if x.Confidence > a.Threshold {
			answered++
			if !x.Correct {
				wrong++
			}
		}
	}
	return ratio(answered, len(g)), ratio(wrong, answered)
}

func ratio(part, whole int) float64 { return float64(part) / float64(whole) } // NaN if whole is 0
