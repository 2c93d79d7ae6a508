package compare

import (
	"fmt"
	"math"
	"strings"

	"gonum.org/v1/gonum/floats"

	"github.com/swagwrap/swagwrap/internal/baseline"
	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/report"
	"github.com/swagwrap/swagwrap/internal/task"
)

const (
	// fewExamples is the number of test examples below which differences between methods are rarely visible.
	fewExamples = 1000
	// fewErrors is the number of errors that at least one of two methods must make. With fewer errors a loss depends
	// on a handful of examples, and the normal approximation fails.
	fewErrors = 30
	// fewMembers is the number of members below which nothing is said about a method: the effect of the draws cannot
	// be estimated.
	fewMembers = 10

	significant = 0.05
	// Adjusted p-values between these are reported as borderline, because other examples can move them across.
	clearly, hardly = 0.02, 0.1
)

// Verdict returns the result in plain words, in at most six lines. The first line is the headline: which method to
// deploy. A difference is claimed only where Holm's procedure allows it.
func (r *Result) Verdict() []string {
	if len(r.Methods) < 2 {
		return []string{"There is one method, and nothing to compare it with."}
	}
	base := &r.Methods[r.baseline()]
	if line := r.unranked(base); line != "" {
		return []string{line}
	}
	lines := []string{r.headline(base)}
	lines = append(lines, r.drawLines(base)...)
	lines = append(lines, r.others(base)...)
	lines = append(lines, r.accuracyLine(base)...)
	if r.Tests > 1 {
		lines = append(lines, fmt.Sprintf("What is called better or worse is adjusted for %d tests (Holm). The intervals are for single comparisons.", r.Tests))
	}
	if n := r.Test.Len(); n < fewExamples {
		lines = append(lines, fmt.Sprintf("%s are few: only large differences can show.", r.testExamples()))
	}
	return lines
}

// testExamples returns the number of test examples in words.
func (r *Result) testExamples() string {
	return report.Plural(r.Test.Len(), "test "+dataset.Unit(r.Test))
}

// units returns the word for examples: "images" or "examples".
func (r *Result) units() string { return dataset.Unit(r.Test) + "s" }

// baselineName returns the name of the baseline without its temperature.
func (r *Result) baselineName() string { return r.Methods[r.baseline()].short() }

// short returns the name of a method without its number.
func (m *Method) short() string {
	name, _, _ := strings.Cut(m.Name, " (")
	return name
}

// first returns the calibrator with a single number.
func (r *Result) first() task.Calibrator { return r.task.Calibrators()[0] }

// candidate returns the ensemble that the headline compares with the baseline: SWAG with a temperature like the
// baseline, or the most similar method if that is missing.
func (r *Result) candidate() *Method {
	for _, key := range []string{baseline.SWAGTemp, baseline.SWAG, baseline.SWAGDiag, baseline.MultiSWAG} {
		if i := r.find(key); i >= 0 && i != r.baseline() {
			return &r.Methods[i]
		}
	}
	return nil
}

// unranked returns the reason why nothing is ranked against the baseline, or "".
func (r *Result) unranked(base *Method) string {
	if s := base.Scaling; s != nil && s.AtBound() {
		return fmt.Sprintf("Nothing is ranked: the temperature of %s is at its bound (T = %s). The data that it is fitted on does not determine it.", r.baselineName(), s.Numbers())
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
		return fmt.Sprintf("Nothing is ranked: every method predicts all %s correctly. Compare on harder ones, or on more.", r.testExamples())
	}
	return fmt.Sprintf("Nothing is ranked: no method makes more than %d errors on %s. With fewer than %d errors a handful decides. Compare on more.", most, r.testExamples(), fewErrors)
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
	return d.sign(), clearly <= d.Adjusted && d.Adjusted < hardly
}

// sign returns 1 or −1 for a significant difference, and 0 otherwise.
func (d Difference) sign() int {
	switch {
	case !(d.Adjusted < significant):
		return 0
	case d.Mean > 0:
		return 1
	}
	return -1
}

// headline says which method to deploy, and compares SWAG with the baseline.
func (r *Result) headline(base *Method) string {
	loss, choice, m := r.loss(), r.choice(), r.candidate()
	deploy := ""
	if choice != nil {
		deploy = fmt.Sprintf("Deploy %s: %s %s with %s for each prediction.", choice.short(), loss.Name, report.Fixed(r.value(choice), 4), report.Plural(choice.Networks, "network"))
	}
	if choice != nil && choice != base && choice.Networks > base.Networks {
		m = choice // it is better than the baseline
	}
	if m == nil {
		if choice == nil {
			return fmt.Sprintf("No method here can be saved as an ensemble. The table compares them with %s.", r.baselineName())
		}
		return deploy
	}
	d := r.main(m)
	if math.IsNaN(d.Mean) || math.IsInf(d.Mean, 0) {
		return strings.TrimSpace(deploy + fmt.Sprintf(" %s and %s cannot be compared by %s: it is infinite, because a true class has probability 0.", m.short(), base.short(), loss.Name))
	}
	sign, borderline := r.told(m, loss.Key)
	name, with := m.short(), fmt.Sprintf(" with %s", report.Thousands(m.Networks))
	if m == choice {
		name, with = "It", ""
	}
	text := fmt.Sprintf("%s show no difference between %s%s and %s: %s.", r.testExamples(), m.short(), with, base.short(), d.text())
	switch {
	case !r.enough(m, base):
		text, borderline = fmt.Sprintf("%s and %s both make fewer than %d errors: too few to compare them.", m.short(), base.short(), fewErrors), false
	case sign < 0:
		text = fmt.Sprintf("%s%s is better than %s: %s.", name, with, base.short(), d.text())
	case sign > 0:
		text = fmt.Sprintf("%s%s is worse than %s: %s.", name, with, base.short(), d.text())
	case d.Low > 0 || d.High < 0:
		text, borderline = fmt.Sprintf("%s%s differs from %s by %s. Among %d tests that may be chance (p = %s).", name, with, base.short(), d.text(), r.Tests, probability(d.Adjusted)), false
	}
	if borderline {
		text += fmt.Sprintf(" That is borderline (p = %s, adjusted for %d tests).", probability(d.Adjusted), r.Tests)
	}
	return strings.TrimSpace(deploy + " " + text)
}

// probability formats a p-value; only its magnitude matters.
func probability(p float64) string {
	if p < 0.001 {
		return "below 0.001"
	}
	return report.Fixed(p, 3)
}

// drawLines says whether the candidate differs from the baseline with other draws too, and what would settle it.
func (r *Result) drawLines(base *Method) []string {
	m := r.candidate()
	if m == nil || m.without == nil {
		return nil
	}
	d := r.main(m)
	if m.Members < fewMembers || math.IsInf(m.Draws.Variance, 1) {
		return []string{fmt.Sprintf("%s are too few for a verdict about %s with another seed. Use --members 30.", report.Plural(m.Members, "member"), m.short())}
	}
	if math.IsNaN(d.Low) || !r.enough(m, base) {
		return nil
	}
	other, many := d.OtherDraws(m.Draws), d.ManyDraws(m.Draws)
	line := fmt.Sprintf("With another seed %s changes %s by %s, with very many members by %s", m.short(), r.loss().Name, intervalText(other), intervalText(many))
	switch sign, _ := r.told(m, r.loss().Key); {
	case sign > 0 && other.Low > 0 && many.Low > 0:
		line += ": the method itself is worse here."
	case sign < 0 && other.High < 0 && many.High < 0:
		line += ": the method itself is better here."
	default:
		line += ": no verdict about the method itself."
	}
	if examples, draws := d.Standard, m.Draws.Standard(); draws > examples {
		line += fmt.Sprintf(" The draws vary more (±%s) than the %s (±%s). Try --members %d.", report.Fixed(draws, 4), r.units(), report.Fixed(examples, 4), settling(m.Members, draws, examples))
	}
	return []string{line}
}

// settling returns the number of members with which the standard error of the draws would be half of that of the
// examples, rounded up to tens. The variance of the draws falls as one over the number of members.
func settling(members int, draws, examples float64) int {
	ratio := 2 * draws / examples
	return 10 * int(math.Ceil(float64(members)*ratio*ratio/10))
}

// others lists the methods besides the candidate and the choice that are better than the baseline.
func (r *Result) others(base *Method) []string {
	var better []string
	for i := range r.Methods {
		m := &r.Methods[i]
		if m == r.candidate() || m == r.choice() {
			continue
		}
		sign, borderline := r.told(m, r.loss().Key)
		if sign >= 0 {
			continue
		}
		text := fmt.Sprintf("%s (%s", m.short(), report.Signed(r.main(m).Mean, 4))
		if borderline {
			text += ", borderline"
		}
		better = append(better, text+")")
	}
	if better == nil {
		return nil
	}
	return []string{fmt.Sprintf("Also better than %s: %s.", base.short(), strings.Join(better, ", "))}
}

// accuracyLine lists the methods whose accuracy differs from the baseline's. A temperature does not change accuracy.
func (r *Result) accuracyLine(base *Method) []string {
	var differ []string
	for i := range r.Methods {
		m := &r.Methods[i]
		sign, borderline := r.told(m, errorLoss)
		if sign == 0 {
			continue
		}
		d := m.Differences[errorLoss]
		text := fmt.Sprintf("%s %s %s", m.short(), report.Signed(-100*d.Mean, 2), report.Interval(-100*d.High, -100*d.Low, 2))
		if borderline {
			text += " (borderline)"
		}
		differ = append(differ, text)
	}
	if differ == nil {
		return nil
	}
	return []string{fmt.Sprintf("Accuracy minus that of %s, in percentage points: %s.", base.short(), strings.Join(differ, ", "))}
}
