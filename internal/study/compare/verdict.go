package compare

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/gonum/floats"

	"github.com/swagwrap/swagwrap/internal/baseline"
	"github.com/swagwrap/swagwrap/internal/report"
	"github.com/swagwrap/swagwrap/internal/task"
)

const (
	// fewImages is the number of test images below which differences between methods are rarely visible.
	fewImages = 1000
	// fewErrors is the number of errors that at least one of two methods must make. With fewer errors a loss depends
	// on a handful of images, and the normal approximation fails.
	fewErrors = 30

	significant = 0.05
	// Adjusted p-values between these are reported as borderline, because another seed can move them across.
	clearly, hardly = 0.02, 0.1
)

// Verdict returns the result in plain words. The first line is the headline. It claims a difference only where Holm's
// procedure allows it.
func (r *Result) Verdict() []string {
	images := r.Test.Len()
	if len(r.Methods) < 2 {
		return []string{"There is one method, and nothing to compare it with."}
	}
	base := &r.Methods[r.baseline()]
	if line := r.unranked(base); line != "" {
		return append([]string{line}, r.staleLine()...)
	}
	var lines []string
	candidate := r.candidate()
	if candidate != nil {
		lines = append(lines, r.headline(candidate, base)...)
	}
	lines = append(lines, r.sides(candidate, base)...)
	if len(lines) == 0 {
		lines = append(lines, fmt.Sprintf("%s test images tell no other method from %s, which is not to say that they are equal.", report.Thousands(images), r.words(base)))
	}
	lines = append(lines, r.accuracyLines(base)...)
	lines = append(append(lines, r.deployLines(base)...), r.staleLine()...)
	lines = append(lines, r.familyLine()...)
	if images < fewImages {
		lines = append(lines, fmt.Sprintf("%s test images are few: only large differences can show.", report.Thousands(images)))
	}
	return lines
}

// baselineName returns the name of the baseline without its temperature.
func (r *Result) baselineName() string {
	m := &r.Methods[r.baseline()]
	if m.Key == baseline.SWATemp {
		return "SWA-" + r.first().Name
	}
	return m.Name
}

// first returns the calibrator with a single number.
func (r *Result) first() task.Calibrator { return r.task.Calibrators()[0] }

// candidate returns the method of the headline: SWAG, or the most similar method if SWAG is missing.
func (r *Result) candidate() *Method {
	for _, key := range []string{baseline.SWAG, baseline.SWAGDiag, baseline.MultiSWAG} {
		if i := r.find(key); i >= 0 && i != r.baseline() {
			return &r.Methods[i]
		}
	}
	return nil
}

// words returns the name of a method in a sentence.
func (r *Result) words(m *Method) string {
	if m.Key == baseline.SWATemp {
		return r.first().Words
	}
	return m.Name
}

// unranked returns the reason why nothing is ranked against the baseline, or "".
func (r *Result) unranked(base *Method) string {
	if s := base.Scaling; s != nil && s.AtBound() {
		return fmt.Sprintf("Nothing is ranked: the temperature of %s is at its bound (T = %s), so the images that it is fitted on do not determine it, and what it gives is no standard.", r.baselineName(), s.Numbers())
	}
	most := 0
	for i := range r.Methods {
		if m := &r.Methods[i]; !m.StaleBN {
			if !r.enough(m, base) {
				most = max(most, r.wrong(m))
				continue
			}
			return ""
		}
	}
	if most == 0 {
		return fmt.Sprintf("Nothing is ranked: every method puts all %s test images right. Compare on harder ones, or on more.", report.Thousands(r.Test.Len()))
	}
	return fmt.Sprintf("Nothing is ranked: no method errs on more than %d of %s test images, and with fewer than %d errors a handful of images decides. Compare on more.", most, report.Thousands(r.Test.Len()), fewErrors)
}

// wrong returns the number of a method's errors, or −1 for a task without errors.
func (r *Result) wrong(m *Method) int {
	if !r.countsErrors() {
		return -1
	}
	return int(math.Round(floats.Sum(m.Loss(errorLoss))))
}

// countsErrors reports whether the task has a loss that counts errors.
func (r *Result) countsErrors() bool { return r.Methods[0].Loss(errorLoss) != nil }

// enough reports whether there are enough errors to rank two methods.
func (r *Result) enough(a, b *Method) bool {
	return !r.countsErrors() || max(r.wrong(a), r.wrong(b)) >= fewErrors
}

// told returns 1 if a method is significantly worse than the baseline in a loss, −1 if it is better, and 0 otherwise.
// It also reports whether that is borderline.
func (r *Result) told(m *Method, loss string) (sign int, borderline bool) {
	d, ok := m.Differences[loss]
	if !ok || m.StaleBN || !r.enough(m, &r.Methods[r.baseline()]) {
		return 0, false
	}
	switch {
	case d.Adjusted < significant && d.Mean > 0:
		sign = 1
	case d.Adjusted < significant:
		sign = -1
	}
	return sign, clearly <= d.Adjusted && d.Adjusted < hardly
}

// headline compares a method with the baseline. If the method is not better, it also compares their costs.
func (r *Result) headline(m, base *Method) []string {
	d, loss := r.main(m), r.loss().Name
	if math.IsNaN(d.Mean) || math.IsInf(d.Mean, 0) {
		return []string{fmt.Sprintf("%s and %s cannot be compared by %s: it is infinite, because a true class has probability 0.", m.Name, r.words(base), loss)}
	}
	found := fmt.Sprintf("%s %s %s", loss, report.Signed(d.Mean, 4), report.Interval(d.Low, d.High, 4))
	sign, borderline := r.told(m, r.loss().Key)
	why := "They may differ by as much as that."
	if !r.enough(m, base) {
		why, borderline = fmt.Sprintf("Both err on fewer than %d of them, and a handful decides.", fewErrors), false
	}
	line := fmt.Sprintf("%s test images do not tell %s and %s apart: %s. %s", report.Thousands(r.Test.Len()), m.Name, r.words(base), found, why)
	but := ""
	if borderline {
		but = fmt.Sprintf(" That is borderline (p = %s): other images or draws may well tell otherwise.", probability(r.main(m).Adjusted))
	}
	switch {
	case math.IsInf(d.Draws.Variance, 1):
		line = fmt.Sprintf("%s and %s cannot be told apart with %s: what other draws would give is not known.", m.Name, r.words(base), report.Plural(m.Members, "member"))
	case sign < 0:
		return []string{fmt.Sprintf("%s is better than %s on this data: %s.%s", m.Name, r.words(base), found, but)}
	case sign > 0:
		line = fmt.Sprintf("%s is worse than %s on this data: %s.", m.Name, r.words(base), found)
	}
	lines := []string{line + but}
	if m.Members > base.Members {
		lines = append(lines, fmt.Sprintf("Of the two, %s is cheaper: %s for each prediction, not %s.", r.words(base), report.Plural(base.Members, "network"), report.Thousands(m.Members)))
	}
	return lines
}

// probability formats a p-value; only its magnitude matters.
func probability(p float64) string {
	if p < 0.001 {
		return "below 0.001"
	}
	return report.Fixed(p, 3)
}

// sides lists the other methods that differ from the baseline in the first loss, significantly or borderline.
func (r *Result) sides(but, base *Method) []string {
	var up, down, nearly []string
	for i := range r.Methods {
		m := &r.Methods[i]
		if m == but || m == base {
			continue
		}
		sign, borderline := r.told(m, r.loss().Key)
		text := fmt.Sprintf("%s (%s)", m.Name, report.Signed(r.main(m).Mean, 4))
		switch {
		case borderline:
			nearly = append(nearly, fmt.Sprintf("%s (%s, p = %s)", m.Name, report.Signed(r.main(m).Mean, 4), probability(r.main(m).Adjusted)))
		case sign < 0:
			up = append(up, text)
		case sign > 0:
			down = append(down, text)
		}
	}
	return slices.Concat(listed("Better than "+r.words(base), up), listed("Worse than "+r.words(base), down), listed("Borderline, beside "+r.words(base), nearly))
}

// listed returns a line that lists methods, or none if there are no methods.
func listed(what string, methods []string) []string {
	if methods == nil {
		return nil
	}
	return []string{fmt.Sprintf("%s: %s.", what, strings.Join(methods, ", "))}
}

// accuracyLines lists the methods whose accuracy differs from the baseline's. A temperature does not change accuracy.
func (r *Result) accuracyLines(base *Method) []string {
	var higher, lower []string
	for i := range r.Methods {
		m := &r.Methods[i]
		sign, borderline := r.told(m, errorLoss)
		if sign == 0 {
			continue
		}
		d := m.Differences[errorLoss]
		text := fmt.Sprintf("%s (%s %s percentage points", m.Name, report.Signed(-100*d.Mean, 2), report.Interval(-100*d.High, -100*d.Low, 2))
		if borderline {
			text += fmt.Sprintf(", borderline: p = %s", probability(d.Adjusted))
		}
		if sign > 0 {
			lower = append(lower, text+")")
		} else {
			higher = append(higher, text+")")
		}
	}
	return append(listed("Accuracy is higher than that of "+r.words(base), higher), listed("Accuracy is lower than that of "+r.words(base), lower)...)
}

// staleLine describes the cost of skipping the batch-norm update.
func (r *Result) staleLine() []string {
	stale, fresh := r.find(baseline.StaleSWA), r.find(baseline.SWA)
	if stale < 0 || fresh < 0 || !r.countsErrors() {
		return nil
	}
	// The baseline is SWA or has its accuracy.
	if d := r.Methods[stale].Differences[errorLoss]; !(d.Low > 0) {
		return nil
	}
	accuracy := func(i int) string { return report.Percent(r.Methods[i].Value("accuracy"), 1) }
	return []string{fmt.Sprintf("Averaged weights need batch-norm statistics of their own: with the last checkpoint's, SWA's accuracy is %s instead of %s.", accuracy(stale), accuracy(fresh))}
}

// familyLine returns the number of differences from which these sentences choose.
func (r *Result) familyLine() []string {
	n := 0
	for _, m := range r.Methods {
		for _, d := range m.Differences {
			if d.Adjusted == d.Adjusted {
				n++
			}
		}
	}
	if n < 2 {
		return nil
	}
	in := r.loss().Name
	if r.countsErrors() {
		in += " and accuracy"
	}
	return []string{fmt.Sprintf("These sentences choose from %d differences, in %s, by Holm's procedure: if none were real, all the same at most one such table in twenty would claim one.", n, in)}
}
