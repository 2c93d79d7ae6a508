package show

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/swagwrap/swagwrap/internal/report"
	"github.com/swagwrap/swagwrap/internal/setting"
	"github.com/swagwrap/swagwrap/internal/study/compare"
)

const (
	// fewExamples is the number of test examples below which differences between methods are rarely visible.
	fewExamples = 1000
	// fewUnits is the number of units of chance below which intervals are rough.
	fewUnits = 30
	// fewRuns is the number of runs below which their spread is hardly known.
	fewRuns = 5
)

// sentences makes the verdict in plain words, in sentences of about a line.
type sentences struct{ words }

// all returns the verdict. The first sentence says which method to deploy. The last says what more checkpoints would give, if
// there is only one.
func (r sentences) all() []string {
	lines := slices.Concat(r.BatchNorm.Twice, r.ranking(), r.runLines(), r.groupLines(), r.shiftLines())
	if r.Single() {
		lines = append(lines, collected)
	}
	return append(lines, r.sameStd()...)
}

func (r sentences) ranking() []string {
	if len(r.Methods) < 2 {
		return []string{"There is one method, and nothing to compare it with."}
	}
	base := r.verdict.Base
	if r.verdict.Unranked != compare.Ranked {
		return append([]string{r.unranked()}, r.undetermined()...)
	}
	lines := slices.Concat(r.headline(base), r.undetermined(), r.unlike())
	lines = append(lines, r.drawLines(base)...)
	lines = append(lines, r.others(base)...)
	lines = append(lines, r.accuracyLine(base)...)
	if n := r.Test.Len(); n < fewExamples {
		lines = append(lines, fmt.Sprintf("%s are few: only large differences can show.", r.testExamples()))
	}
	return lines
}

// unranked says why nothing is ranked against the baseline.
func (r sentences) unranked() string {
	switch v := r.verdict; v.Unranked {
	case compare.Contradicted:
		m := v.Contradicted
		return fmt.Sprintf("Nothing is ranked: the scores of %s do not fit the labels that its temperature is fitted on (T = %s). Check the order of the classes (%s), the labels, and the preprocessing.", short(m), m.Scaling.Numbers(), setting.Fit.With(setting.ClassNames.String()))
	case compare.FewCount:
		return "Nothing is ranked: fewer than two methods count."
	case compare.AllCorrect:
		return fmt.Sprintf("Nothing is ranked: every method predicts all %s correctly. Compare on harder ones, or on more.", r.testExamples())
	case compare.TooFewErrors:
		return fmt.Sprintf("Nothing is ranked: no method makes more than %d errors on %s. With fewer than %d errors a handful decides. Compare on more.", v.Errors, r.testExamples(), compare.FewErrors)
	}
	return ""
}

// undetermined says which methods the verdict does not count, because what was fitted for them is not determined. It says what
// to type.
func (r sentences) undetermined() []string {
	reason, where := "", setting.Val.With("FILE")
	var names []string
	for _, m := range r.Methods {
		if !m.Sound() {
			reason, names = cmp.Or(reason, m.Undetermined), append(names, short(m))
		}
	}
	if names == nil {
		return nil
	}
	if r.Validation == nil {
		where = setting.Val.With("FILE") + ", or more test data"
	}
	return []string{fmt.Sprintf("%s: not counted, since the fit is not determined: %s. Give more labelled examples: %s.", strings.Join(names, ", "), reason, where)}
}

// unlike warns if the temperature of the baseline makes it clearly worse on the test data. Then the validation data, which
// the temperature is fitted on, is of another kind.
func (r sentences) unlike() []string {
	if m := r.verdict.Plain; m != nil {
		return []string{fmt.Sprintf("The temperature makes %s worse on the test data. The validation data is of another kind: check %s, its preprocessing and its labels.", short(m), setting.Val)}
	}
	return nil
}

// headline says which method to deploy, and compares SWAG with the baseline.
func (r sentences) headline(base *compare.Method) (lines []string) {
	loss, choice, m := r.Loss(), r.verdict.Choice, r.verdict.Candidate
	if choice != nil {
		lines = append(lines, fmt.Sprintf("Deploy %s: %s %s with %s for each prediction.", short(choice), loss.Name, report.Fixed(r.Value(choice), 4), report.Plural(choice.Networks, "network")))
	}
	if choice != nil && choice != base && choice.Networks > base.Networks {
		m = choice // it is better than the baseline
	}
	switch {
	case m == nil && choice == nil:
		return []string{fmt.Sprintf("No method here can be saved as an ensemble. The table compares them with %s.", short(base))}
	case m == nil:
		return lines
	}
	d := r.Main(m)
	if !d.Finite() {
		return append(lines, fmt.Sprintf("%s and %s have no finite %s difference: a true class has probability 0.", short(m), short(base), loss.Name))
	}
	if !r.Enough(m, base) {
		return append(lines, fmt.Sprintf("%s and %s both make fewer than %d errors: too few to compare them.", short(m), short(base), compare.FewErrors))
	}
	sign, borderline := r.Told(m, loss.Key)
	adjusted := fmt.Sprintf("p = %s, adjusted for %d tests", probability(d.Adjusted), r.Tests)
	text := fmt.Sprintf("%s with %s shows no difference to %s: %s", short(m), report.Plural(m.Networks, "network"), short(base), textOf(d))
	switch name := fmt.Sprintf("%s with %s", short(m), report.Plural(m.Networks, "network")); {
	case sign != 0:
		text = fmt.Sprintf("%s is %s than %s: %s", name, map[int]string{-1: "better", 1: "worse"}[sign], short(base), textOf(d))
		if borderline {
			text += " (borderline: " + adjusted + ")"
		}
	case d.Low > 0 || d.High < 0:
		text = fmt.Sprintf("%s differs from %s by %s, perhaps by chance (%s)", name, short(base), textOf(d), adjusted)
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
func (r sentences) drawLines(base *compare.Method) []string {
	m := r.verdict.Candidate
	if m == nil || !m.Drawn() {
		return nil
	}
	d := r.Main(m)
	if m.Members < compare.FewMembers || math.IsInf(m.Draws.Variance, 1) {
		return []string{fmt.Sprintf("%s are too few for a verdict about %s itself. Use %s.", report.Plural(m.Members, "member"), short(m), setting.Members.With("30"))}
	}
	if math.IsNaN(d.Low) || !r.Enough(m, base) {
		return nil
	}
	other, many := d.OtherDraws(m.Draws), d.ManyDraws(m.Draws)
	what := "which is open"
	switch sign, _ := r.Told(m, r.Loss().Key); {
	case sign > 0 && other.Low > 0 && many.Low > 0:
		what = "worse too"
	case sign < 0 && other.High < 0 && many.High < 0:
		what = "better too"
	}
	lines := []string{fmt.Sprintf("With other seeds: %s, %s.", intervalText(other), what)}
	if examples, draws := d.Standard, m.Draws.Standard(); draws > examples {
		lines = append(lines, fmt.Sprintf("Draws add more error (±%s) than %s (±%s). %s settles it.", report.Fixed(draws, 4), r.units(), report.Fixed(examples, 4), setting.Members.With(strconv.Itoa(compare.Settling(m.Members, draws, examples)))))
	}
	return lines
}

// others lists the methods besides the candidate and the choice that are better than the baseline.
func (r sentences) others(base *compare.Method) []string {
	var better []string
	for _, m := range r.Methods {
		if m == r.verdict.Candidate || m == r.verdict.Choice {
			continue
		}
		sign, borderline := r.Told(m, r.Loss().Key)
		if sign >= 0 {
			continue
		}
		text := fmt.Sprintf("%s (%s", short(m), report.Signed(r.Main(m).Mean, 4))
		if borderline {
			text += ", borderline"
		}
		better = append(better, text+")")
	}
	if better == nil {
		return nil
	}
	return []string{fmt.Sprintf("Also better than %s: %s.", short(base), strings.Join(better, ", "))}
}

// accuracyLine lists the methods whose accuracy differs from the baseline's, without those that only scale another
// method by a number: that does not change accuracy.
func (r sentences) accuracyLine(base *compare.Method) []string {
	var differ []string
	for _, m := range r.Methods {
		if sign, _ := r.Told(m, compare.ErrorLoss); sign == 0 || m.Scaling != nil && m.Scaling.Values() != nil {
			continue
		}
		differ = append(differ, fmt.Sprintf("%s %s", short(m), report.Signed(-100*m.Differences[compare.ErrorLoss].Mean, 2)))
	}
	if differ == nil {
		return nil
	}
	return []string{fmt.Sprintf("Accuracy against %s, points: %s.", short(base), strings.Join(differ, ", "))}
}
