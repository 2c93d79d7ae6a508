package main

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/swagwrap/swagwrap/calibrate"
	"github.com/swagwrap/swagwrap/internal/ensemble"
	"github.com/swagwrap/swagwrap/internal/report"
)

// fewImages is a number of test images below which hardly any difference between
// methods shows.
const fewImages = 1000

// compareVerdict says in plain words what a comparison on so many test images
// found. The first line is the headline. It claims a difference only where the
// interval of the paired bootstrap leaves 0 out.
func compareVerdict(methods []ensemble.Method, images int) []string {
	base, _ := baselineOf(methods)
	if base == nil || len(methods) < 2 {
		return []string{"There is one method, and nothing to compare it with."}
	}
	var lines []string
	candidate := candidateOf(methods)
	if candidate != nil {
		lines = append(lines, headline(candidate, base, images)...)
	}
	better, worse := sides(methods, candidate)
	if better != "" {
		lines = append(lines, fmt.Sprintf("Better than %s: %s.", words(base), better))
	}
	if worse != "" {
		lines = append(lines, fmt.Sprintf("Worse than %s: %s.", words(base), worse))
	}
	if len(lines) == 0 {
		lines = append(lines, fmt.Sprintf("%s test images show no difference between %s and any other method.", report.Thousands(images), words(base)))
	}
	if candidate != nil {
		lines = append(lines, accuracyLine(candidate, base)...)
	}
	lines = append(lines, staleLine(methods)...)
	lines = append(lines, chanceLine(methods)...)
	if images < fewImages {
		lines = append(lines, fmt.Sprintf("%s test images are few: only large differences can show.", report.Thousands(images)))
	}
	return lines
}

// candidateOf returns the method that the headline is about: SWAG where it is
// among them, or what comes nearest to it.
func candidateOf(methods []ensemble.Method) *ensemble.Method {
	for _, key := range []string{ensemble.SWAG, ensemble.SWAGDiag, ensemble.MultiSWAG} {
		if i := slices.IndexFunc(methods, func(m ensemble.Method) bool { return m.Key == key && !m.Baseline }); i >= 0 {
			return &methods[i]
		}
	}
	return nil
}

// words is how a method is called in a sentence.
func words(m *ensemble.Method) string {
	if m.Key == ensemble.SWATemp {
		return "temperature scaling"
	}
	return m.Name
}

// headline compares a method with the baseline, and their costs where the method
// is not the better one.
func headline(m, base *ensemble.Method, images int) []string {
	d := m.NLLDifference
	switch {
	case math.IsNaN(d.Mean) || math.IsInf(d.Mean, 0):
		return []string{fmt.Sprintf("%s and %s cannot be compared by NLL: it is infinite, because a true class has probability 0.", m.Name, words(base))}
	case d.High < 0:
		return []string{fmt.Sprintf("%s is better than %s on this data: NLL %s.", m.Name, words(base), interval(d))}
	}
	lines := []string{fmt.Sprintf("%s test images show no difference between %s and %s: NLL %s.", report.Thousands(images), m.Name, words(base), interval(d))}
	if d.Low > 0 {
		lines[0] = fmt.Sprintf("%s is worse than %s on this data: NLL %s.", m.Name, words(base), interval(d))
	}
	if m.Members > base.Members {
		lines = append(lines, fmt.Sprintf("Of the two, %s is cheaper: %s for each prediction, not %s.", words(base), plural(base.Members, "network"), report.Thousands(m.Members)))
	}
	return lines
}

func interval(d calibrate.Interval) string {
	return report.Signed(d.Mean, 4) + " " + report.Interval(d.Low, d.High, 4)
}

// sides lists the other methods that surely differ from the baseline.
func sides(methods []ensemble.Method, but *ensemble.Method) (better, worse string) {
	var up, down []string
	for i := range methods {
		m := &methods[i]
		if m == but || m.Baseline || m.StaleBN {
			continue
		}
		text := fmt.Sprintf("%s (%s)", m.Name, report.Signed(m.NLLDifference.Mean, 4))
		switch d := m.NLLDifference; {
		case d.High < 0:
			up = append(up, text)
		case d.Low > 0:
			down = append(down, text)
		}
	}
	return strings.Join(up, ", "), strings.Join(down, ", ")
}

// accuracyLine speaks up where accuracy moved; scaling by a temperature leaves it.
func accuracyLine(m, base *ensemble.Method) []string {
	d := m.ErrorDifference // of the share of errors
	what := ""
	switch {
	case d.Low > 0:
		what = "lower"
	case d.High < 0:
		what = "higher"
	default:
		return nil
	}
	return []string{fmt.Sprintf("%s's accuracy is %s than that of %s: by %s %s percentage points.", m.Name, what, words(base),
		report.Signed(-100*d.Mean, 2), report.Interval(-100*d.High, -100*d.Low, 2))}
}

// staleLine says what leaving out the batch-norm update costs.
func staleLine(methods []ensemble.Method) []string {
	of := func(key string) *ensemble.Method {
		if i := slices.IndexFunc(methods, func(m ensemble.Method) bool { return m.Key == key }); i >= 0 {
			return &methods[i]
		}
		return nil
	}
	stale, fresh := of(ensemble.StaleSWA), of(ensemble.SWA)
	// The baseline is SWA or has its accuracy.
	if stale == nil || fresh == nil || !(stale.ErrorDifference.Low > 0) {
		return nil
	}
	return []string{fmt.Sprintf("Averaged weights need batch-norm statistics of their own: with the last checkpoint's, SWA's accuracy is %s instead of %s.",
		report.Percent(stale.Metrics.Accuracy, 1), report.Percent(fresh.Metrics.Accuracy, 1))}
}

// chanceLine warns of many comparisons at once.
func chanceLine(methods []ensemble.Method) []string {
	n := 0
	for _, m := range methods {
		if !m.Baseline && !m.StaleBN {
			n++
		}
	}
	if n < 2 {
		return nil
	}
	return []string{fmt.Sprintf("%d methods stand against one baseline, each with a 95 %% interval: if none differed, chance would still show a difference in up to %s of such tables.",
		n, report.Percent(calibrate.FamilywiseError(n), 0))}
}
