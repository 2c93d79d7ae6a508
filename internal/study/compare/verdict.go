package compare

import (
	"fmt"
	"math"
	"strings"

	"github.com/swagwrap/swagwrap/calibrate"
	"github.com/swagwrap/swagwrap/internal/baseline"
	"github.com/swagwrap/swagwrap/internal/report"
	"github.com/swagwrap/swagwrap/internal/task"
)

// fewImages is a number of test images below which hardly any difference between
// methods shows.
const fewImages = 1000

// Verdict says in plain words what was found. The first line is the headline. It
// claims a difference only where the interval of the paired bootstrap leaves 0
// out.
func (r *Result) Verdict() []string {
	images := r.Test.Len()
	if len(r.Methods) < 2 {
		return []string{"There is one method, and nothing to compare it with."}
	}
	base := &r.Methods[r.baseline()]
	var lines []string
	candidate := r.candidate()
	if candidate != nil {
		lines = append(lines, r.headline(candidate, base)...)
	}
	better, worse := r.sides(candidate)
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
		lines = append(lines, r.accuracyLine(candidate, base)...)
	}
	lines = append(lines, r.staleLine()...)
	lines = append(lines, r.chanceLine()...)
	if images < fewImages {
		lines = append(lines, fmt.Sprintf("%s test images are few: only large differences can show.", report.Thousands(images)))
	}
	return lines
}

// baselineName is what the tables call the baseline.
func (r *Result) baselineName() string {
	m := &r.Methods[r.baseline()]
	if m.Key == baseline.SWATemp {
		return "SWA-Temp"
	}
	return m.Name
}

// candidate returns the method that the headline is about: SWAG where it is among
// them, or what comes nearest to it.
func (r *Result) candidate() *Method {
	for _, key := range []string{baseline.SWAG, baseline.SWAGDiag, baseline.MultiSWAG} {
		if i := r.find(key); i >= 0 && i != r.baseline() {
			return &r.Methods[i]
		}
	}
	return nil
}

// words is how a method is called in a sentence.
func words(m *Method) string {
	if m.Key == baseline.SWATemp {
		return "temperature scaling"
	}
	return m.Name
}

// headline compares a method with the baseline, and their costs where the method
// is not the better one.
func (r *Result) headline(m, base *Method) []string {
	d, loss := m.Differences[0], r.task.Losses()[0].Name
	switch {
	case math.IsNaN(d.Mean) || math.IsInf(d.Mean, 0):
		return []string{fmt.Sprintf("%s and %s cannot be compared by %s: it is infinite, because a true class has probability 0.", m.Name, words(base), loss)}
	case d.High < 0:
		return []string{fmt.Sprintf("%s is better than %s on this data: %s %s.", m.Name, words(base), loss, interval(d))}
	}
	lines := []string{fmt.Sprintf("%s test images show no difference between %s and %s: %s %s.", report.Thousands(r.Test.Len()), m.Name, words(base), loss, interval(d))}
	if d.Low > 0 {
		lines[0] = fmt.Sprintf("%s is worse than %s on this data: %s %s.", m.Name, words(base), loss, interval(d))
	}
	if m.Members > base.Members {
		lines = append(lines, fmt.Sprintf("Of the two, %s is cheaper: %s for each prediction, not %s.", words(base), report.Plural(base.Members, "network"), report.Thousands(m.Members)))
	}
	return lines
}

func interval(d calibrate.Interval) string {
	return report.Signed(d.Mean, 4) + " " + report.Interval(d.Low, d.High, 4)
}

// sides lists the other methods that surely differ from the baseline.
func (r *Result) sides(but *Method) (better, worse string) {
	var up, down []string
	for i := range r.Methods {
		m := &r.Methods[i]
		if m == but || m.Differences == nil || m.StaleBN {
			continue
		}
		d := m.Differences[0]
		text := fmt.Sprintf("%s (%s)", m.Name, report.Signed(d.Mean, 4))
		switch {
		case d.High < 0:
			up = append(up, text)
		case d.Low > 0:
			down = append(down, text)
		}
	}
	return strings.Join(up, ", "), strings.Join(down, ", ")
}

// errors returns the difference in the share of errors; ok is false for a task
// that knows no errors.
func (r *Result) errors(m *Method) (d calibrate.Interval, ok bool) {
	for i, l := range r.task.Losses() {
		if l.Key == "error" && m.Differences != nil {
			return m.Differences[i], true
		}
	}
	return d, false
}

// accuracyLine speaks up where accuracy moved; scaling by a temperature leaves it.
func (r *Result) accuracyLine(m, base *Method) []string {
	d, ok := r.errors(m)
	what := ""
	switch {
	case ok && d.Low > 0:
		what = "lower"
	case ok && d.High < 0:
		what = "higher"
	default:
		return nil
	}
	return []string{fmt.Sprintf("%s's accuracy is %s than that of %s: by %s %s percentage points.", m.Name, what, words(base),
		report.Signed(-100*d.Mean, 2), report.Interval(-100*d.High, -100*d.Low, 2))}
}

// staleLine says what leaving out the batch-norm update costs.
func (r *Result) staleLine() []string {
	stale, fresh := r.find(baseline.StaleSWA), r.find(baseline.SWA)
	if stale < 0 || fresh < 0 {
		return nil
	}
	// The baseline is SWA or has its accuracy.
	if d, ok := r.errors(&r.Methods[stale]); !ok || !(d.Low > 0) {
		return nil
	}
	accuracy := func(i int) string {
		return report.Percent(task.Value(r.task, r.Methods[i].Evaluation, "accuracy"), 1)
	}
	return []string{fmt.Sprintf("Averaged weights need batch-norm statistics of their own: with the last checkpoint's, SWA's accuracy is %s instead of %s.", accuracy(stale), accuracy(fresh))}
}

// chanceLine warns of many comparisons at once.
func (r *Result) chanceLine() []string {
	n := 0
	for _, m := range r.Methods {
		if m.Differences != nil && !m.StaleBN {
			n++
		}
	}
	if n < 2 {
		return nil
	}
	return []string{fmt.Sprintf("%d methods stand against one baseline, each with a 95 %% interval: if none differed, chance would still show a difference in up to %s of such tables.",
		n, report.Percent(calibrate.FamilywiseError(n), 0))}
}
