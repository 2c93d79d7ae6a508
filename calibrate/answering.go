package calibrate

import (
	"fmt"
	"math"
	"slices"
	"sort"

	"gonum.org/v1/gonum/stat/distuv"
)

// RiskConfidence is the confidence of the bound of [FitAnswering].
const RiskConfidence = 0.95

const (
	// mostTests bounds the tests of [FitAnswering]. With more the first failure comes earlier, and with fewer the steps are coarse.
	mostTests = 40
	// leadErrors is the number of errors that the first test allows, if there are enough examples. One that allows none fails by a
	// single error.
	leadErrors = 2
	// fewTests is the number of tests below which all start at the first. Otherwise that has the share leadShare of the level, and the
	// rest starts in the middle.
	fewTests  = 10
	leadShare = 0.8
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
// It tests thresholds that answer m examples each, with e errors, by the exact binomial tail
//
//	P(Binomial(m, risk) ≤ e) ≤ level
//
// The numbers m ascend, and depend on the number of examples and the risk alone: each is the smallest that can pass with some number
// of errors. Tests form a sequence (fallback procedure: Wiens 2003). The level of 5 % is given out at two of them, at the first
// and in the middle. A test that passes gives its level to the next, and one that fails loses it. The middle has a level of its
// own, because some networks err most where they are most confident: a sequence that starts there alone ends there. Bonferroni's
// correction, an equal level for each test, has less coverage: see TestAnsweringRules.
//
// The examples above the confidence of rank m+1 are independent, given this confidence. So the guarantee needs only that examples
// are independent and new ones have the same distribution.
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
	n := len(g)
	tests := answeringTests(n, risk)
	if tests == nil {
		least := math.Ceil(math.Log(1-RiskConfidence) / math.Log1p(-risk)) // for a tiny risk it is beyond integers
		return Answering{}, fmt.Errorf("%d examples cannot show a risk of at most %g, want at least %.10g", n, risk, least)
	}
	best := Answering{Coverage: -1}
	level, counted, wrong := 0.0, 0, 0
	for _, t := range tests {
		level += t.level
		m, threshold := t.answered, -1.0
		if m < n {
			threshold = raise(g[m].Confidence)
			for m > 0 && g[m-1].Confidence <= threshold {
				m--
			}
		}
		if m <= counted || math.Pow(1-risk, float64(m)) > level {
			continue // among equal confidences: the test of before, or one that no number of errors passes
		}
		for ; counted < m; counted++ {
			if !g[counted].Correct {
				wrong++
			}
		}
		if (distuv.Binomial{N: float64(m), P: risk}).CDF(float64(wrong)) > level {
			level = 0
			continue
		}
		best = Answering{threshold, ratio(m, n), ratio(wrong, m)}
	}
	if best.Coverage < 0 {
		return Answering{}, fmt.Errorf("no threshold shows a risk of at most %g with %g %% confidence", risk, 100*RiskConfidence)
	}
	return best, nil
}

// answeringTest is a test of [FitAnswering]: it answers so many examples, and level starts at it.
type answeringTest struct {
	answered int
	level    float64
}

// answeringTests returns the sequence of tests on n examples. It is nil if n is too small.
func answeringTests(n int, risk float64) (tests []answeringTest) {
	lead := 1 - RiskConfidence
	passes := func(m, errors int, level float64) bool {
		return distuv.Binomial{N: float64(m), P: risk}.CDF(float64(errors)) <= level
	}
	// allowed is the number of different numbers of errors with which some test can pass.
	allowed := func() int { return sort.Search(n, func(errors int) bool { return !passes(n, errors, lead) }) }
	count := allowed()
	if count == 0 {
		return nil
	}
	if count >= fewTests {
		lead *= leadShare
		count = allowed()
	}
	first := min(leadErrors, count/3)
	for j := range mostTests {
		errors := first + (count-1-first)*j/(mostTests-1)
		m := errors + 1 + sort.Search(n-errors-1, func(k int) bool { return passes(errors+1+k, errors, lead) })
		if len(tests) == 0 || m > tests[len(tests)-1].answered {
			tests = append(tests, answeringTest{answered: m})
		}
	}
	if tests[len(tests)-1].answered < n {
		tests = append(tests, answeringTest{answered: n})
	}
	tests[0].level = lead
	tests[len(tests)/2].level += 1 - RiskConfidence - lead
	return tests
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
