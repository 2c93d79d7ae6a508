package compare

import (
	"cmp"
	"fmt"
	"math"
	"slices"
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
	// fewUnits is the number of units of chance below which intervals are rough.
	fewUnits = 30
	// fewMembers is the number of members below which nothing is said about a method: the effect of the draws cannot
	// be estimated.
	fewMembers = 10

	significant = 0.05
	// Adjusted p-values between these are reported as borderline, because other examples can move them across.
	clearly, hardly = 0.02, 0.1
)

// Verdict returns the result in plain words, in sentences of about a line. The first says which method to deploy. A
// difference is claimed only where Holm's procedure allows it. The last says what more checkpoints would give, if there is
// only one.
func (r *Result) Verdict() []string {
	lines := slices.Concat(r.BatchNorm.Twice, r.ranking(), r.runLines(), r.groupLines(), r.shiftLines())
	if r.Single() {
		lines = append(lines, collected)
	}
	return lines
}

func (r *Result) ranking() []string {
	if len(r.Methods) < 2 {
		return []string{"There is one method, and nothing to compare it with."}
	}
	base := r.base()
	if line := r.unranked(base); line != "" {
		return append([]string{line}, r.undetermined()...)
	}
	lines := slices.Concat(r.headline(base), r.undetermined(), r.unlike(base))
	lines = append(lines, r.drawLines(base)...)
	lines = append(lines, r.others(base)...)
	lines = append(lines, r.accuracyLine(base)...)
	if n := r.Test.Len(); n < fewExamples {
		lines = append(lines, fmt.Sprintf("%s are few: only large differences can show.", r.testExamples()))
	}
	return lines
}

// undetermined says which methods the verdict does not count, because what was fitted for them is not determined. It says what
// to type.
func (r *Result) undetermined() []string {
	reason, where := "", "--val FILE"
	var names []string
	for _, m := range r.Methods {
		if !m.sound() {
			reason, names = cmp.Or(reason, m.Undetermined), append(names, m.short())
		}
	}
	if names == nil {
		return nil
	}
	if r.Validation == nil {
		where = "--val FILE, or more test data"
	}
	return []string{fmt.Sprintf("%s: not counted, since the fit is not determined: %s. Give more labelled examples: %s.", strings.Join(names, ", "), reason, where)}
}

// unlike warns if the temperature of the baseline makes it clearly worse on the test data. Then the validation data, which
// the temperature is fitted on, is of another kind.
func (r *Result) unlike(base *Method) []string {
	if m := r.betterPlain(base); m != nil {
		return []string{fmt.Sprintf("The temperature makes %s worse on the test data. The validation data is of another kind: check --val, its preprocessing and its labels.", m.short())}
	}
	return nil
}

// betterPlain returns the baseline without its temperature, if it is clearly better on the test data, or nil.
func (r *Result) betterPlain(base *Method) *Method {
	plain, scaled := map[string]string{baseline.SGDTemp: baseline.SGD, baseline.SWATemp: baseline.SWA}[base.Key]
	if m := r.method(plain); scaled && m != nil && r.Validation != nil {
		if d, ok := m.Differences[r.loss().Key]; ok && d.Interval.High < 0 {
			return m
		}
	}
	return nil
}

// testExamples returns the number of test examples in words.
func (r *Result) testExamples() string {
	if cut, ok := dataset.CutOf(r.Test); ok {
		return cut.Count("test")
	}
	return report.Plural(r.Test.Len(), "test "+dataset.Unit(r.Test))
}

// units returns the word for examples: "images" or "examples".
func (r *Result) units() string { return dataset.Unit(r.Test) + "s" }

// unit returns the word for what has a prediction: "image", "example", "token" of a text, or "position" of other data.
func (r *Result) unit() string {
	switch {
	case r.isText():
		return "token"
	case r.dense():
		return "position"
	}
	return dataset.Unit(r.Test)
}

func (r *Result) isText() bool {
	_, ok := dataset.CutOf(r.Test)
	return ok
}

// baselineName returns the name of the baseline without its temperature.
func (r *Result) baselineName() string { return r.base().short() }

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
		if m := r.method(key); m != nil && m != r.base() && m.sound() {
			return m
		}
	}
	return nil
}

// unjudged returns the reason why nothing is known about any method, or "".
func (r *Result) unjudged() string {
	for _, m := range r.Methods {
		if (m.Key == baseline.SWATemp || m.Key == baseline.SGDTemp) && m.Scaling.Contradicted() {
			return fmt.Sprintf("Nothing is ranked: the scores of %s do not fit the labels that its temperature is fitted on (T = %s). Check the order of the classes (fit --class-names), the labels, and the preprocessing.", m.short(), m.Scaling.Numbers())
		}
	}
	switch n := r.counted(); {
	case n == len(r.Methods), n > 1, n == 1 && r.Single():
		return ""
	}
	return "Nothing is ranked: fewer than two methods count."
}

// unranked returns the reason why nothing is ranked against the baseline, or "".
func (r *Result) unranked(base *Method) string {
	if line := r.unjudged(); line != "" {
		return line
	}
	most := 0
	for _, m := range r.Methods {
		if !m.StaleBN && m.sound() {
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

// countsErrors reports whether the task has a loss that counts wrong examples.
func (r *Result) countsErrors() bool { return !r.dense() && r.Methods[0].Loss(errorLoss) != nil }

// dense reports whether examples have several positions, such as pixels.
func (r *Result) dense() bool { return r.streams != nil }

// enough reports whether there are enough errors to rank two methods.
func (r *Result) enough(a, b *Method) bool {
	return !r.countsErrors() || max(r.wrong(a), r.wrong(b)) >= fewErrors
}

// told returns 1 if a method is significantly worse than the baseline in a loss, −1 if it is better, and 0 otherwise.
// It also reports whether that is borderline.
func (r *Result) told(m *Method, loss string) (sign int, borderline bool) {
	d, ok := m.Differences[loss]
	if !ok || m.StaleBN || !m.sound() || !r.base().sound() || !r.enough(m, r.base()) {
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
func (r *Result) headline(base *Method) (lines []string) {
	loss, choice, m := r.loss(), r.choice(), r.candidate()
	if choice != nil {
		lines = append(lines, fmt.Sprintf("Deploy %s: %s %s with %s for each prediction.", choice.short(), loss.Name, report.Fixed(r.value(choice), 4), report.Plural(choice.Networks, "network")))
	}
	if choice != nil && choice != base && choice.Networks > base.Networks {
		m = choice // it is better than the baseline
	}
	switch {
	case m == nil && choice == nil:
		return []string{fmt.Sprintf("No method here can be saved as an ensemble. The table compares them with %s.", base.short())}
	case m == nil:
		return lines
	}
	d := r.main(m)
	if math.IsNaN(d.Mean) || math.IsInf(d.Mean, 0) {
		return append(lines, fmt.Sprintf("%s and %s have no finite %s difference: a true class has probability 0.", m.short(), base.short(), loss.Name))
	}
	if !r.enough(m, base) {
		return append(lines, fmt.Sprintf("%s and %s both make fewer than %d errors: too few to compare them.", m.short(), base.short(), fewErrors))
	}
	sign, borderline := r.told(m, loss.Key)
	adjusted := fmt.Sprintf("p = %s, adjusted for %d tests", probability(d.Adjusted), r.Tests)
	text := fmt.Sprintf("%s with %s shows no difference to %s: %s", m.short(), report.Thousands(m.Networks), base.short(), d.text())
	switch name := fmt.Sprintf("%s with %s", m.short(), report.Thousands(m.Networks)); {
	case sign != 0:
		text = fmt.Sprintf("%s is %s than %s: %s", name, map[int]string{-1: "better", 1: "worse"}[sign], base.short(), d.text())
		if borderline {
			text += " (borderline: " + adjusted + ")"
		}
	case d.Low > 0 || d.High < 0:
		text = fmt.Sprintf("%s differs from %s by %s, perhaps by chance (%s)", name, base.short(), d.text(), adjusted)
	}
	return append(lines, text+".")
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
		return []string{fmt.Sprintf("%s are too few for a verdict about %s itself. Use --members 30.", report.Plural(m.Members, "member"), m.short())}
	}
	if math.IsNaN(d.Low) || !r.enough(m, base) {
		return nil
	}
	other, many := d.OtherDraws(m.Draws), d.ManyDraws(m.Draws)
	what := "no verdict about the method"
	switch sign, _ := r.told(m, r.loss().Key); {
	case sign > 0 && other.Low > 0 && many.Low > 0:
		what = "the method is worse here"
	case sign < 0 && other.High < 0 && many.High < 0:
		what = "the method is better here"
	}
	lines := []string{fmt.Sprintf("Another seed gives %s: %s.", intervalText(other), what)}
	if examples, draws := d.Standard, m.Draws.Standard(); draws > examples {
		lines = append(lines, fmt.Sprintf("The draws vary more (±%s) than the %s (±%s). Try --members %d.", report.Fixed(draws, 4), r.units(), report.Fixed(examples, 4), settling(m.Members, draws, examples)))
	}
	return lines
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
	for _, m := range r.Methods {
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

// accuracyLine lists the methods whose accuracy differs from the baseline's, without those that only scale another
// method by a number: that does not change accuracy.
func (r *Result) accuracyLine(base *Method) []string {
	var differ []string
	for _, m := range r.Methods {
		if sign, _ := r.told(m, errorLoss); sign == 0 || m.Scaling != nil && m.Scaling.Values() != nil {
			continue
		}
		differ = append(differ, fmt.Sprintf("%s %s", m.short(), report.Signed(-100*m.Differences[errorLoss].Mean, 2)))
	}
	if differ == nil {
		return nil
	}
	return []string{fmt.Sprintf("Accuracy against %s, points: %s.", base.short(), strings.Join(differ, ", "))}
}
