package show

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/swagwrap/swagwrap/calibrate/chance"
	"github.com/swagwrap/swagwrap/internal/baseline"
	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/report"
	"github.com/swagwrap/swagwrap/internal/setting"
	"github.com/swagwrap/swagwrap/internal/study"
	"github.com/swagwrap/swagwrap/internal/study/compare"
	"github.com/swagwrap/swagwrap/internal/task"
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

// all returns the verdict. The first sentence says which method to deploy, or why none. The last says what more checkpoints
// would give, if there is only one.
func (r sentences) all() []string {
	lines := slices.Concat(r.objections(), r.ranking(), r.runLines(), r.groupLines(), r.shiftLines(), r.adaptedLines())
	if r.Single() {
		lines = append(lines, collected)
	}
	return append(lines, r.sameStd()...)
}

// brief returns the verdict without what decides nothing: accuracies, and other draws of a method that is not chosen.
func (r sentences) brief() []string {
	base := r.verdict.Base
	details := r.accuracyLine(base)
	if r.verdict.Candidate != r.verdict.Choice {
		details = append(details, r.drawLines(base)...)
	}
	return slices.DeleteFunc(r.all(), func(line string) bool { return slices.Contains(details, line) })
}

func (r sentences) ranking() []string {
	if len(r.Methods) < 2 {
		return []string{"There is one method, and nothing to compare it with."}
	}
	for _, o := range r.verdict.Against {
		if o.Kind != compare.NotDetermined {
			return nil // nothing to rank
		}
	}
	base := r.verdict.Base
	if r.verdict.Unranked != compare.Ranked {
		return slices.Concat(r.unranked(), r.notCounted(), r.meanwhile())
	}
	lines := slices.Concat(r.headline(), r.notCounted(), r.unlike())
	lines = append(lines, r.drawLines(base)...)
	lines = append(lines, r.accuracyLine(base)...)
	if n := r.Test.Len(); n < fewExamples {
		lines = append(lines, fmt.Sprintf("%s are few: only large differences can show.", r.testExamples()))
	}
	return lines
}

// unranked says why nothing is ranked against the baseline.
func (r sentences) unranked() []string {
	switch v := r.verdict; v.Unranked {
	case compare.FewCount:
		return []string{"Nothing is ranked: fewer than two methods count."}
	case compare.AllCorrect:
		return []string{fmt.Sprintf("Nothing is ranked: every method predicts all %s correctly. Compare on harder ones, or on more.",
			r.testExamples())}
	case compare.TooFewErrors:
		return []string{fmt.Sprintf("Nothing is ranked: no method makes more than %d errors on %s. With fewer than %d errors a handful "+
			"decides. Compare on more.", v.Errors, r.testExamples(), chance.FewErrors)}
	}
	return nil // an objection says it
}

// meanwhile says what can be deployed although nothing is ranked.
func (r sentences) meanwhile() []string {
	if m := r.verdict.Choice; m != nil {
		return []string{fmt.Sprintf("Until then %s will do, the simplest of those that are alike: %s.", called(m), r.price(m))}
	}
	return nil
}

// notCounted says which methods the verdict does not count, unless an objection says it.
func (r sentences) notCounted() []string {
	stated := slices.ContainsFunc(r.verdict.Against, func(o compare.Objection) bool { return o.Kind == compare.NotDetermined })
	if names, why := r.undetermined(); names != "" && !stated {
		return []string{fmt.Sprintf("%s: not counted, since the fit is not determined: %s", names, why)}
	}
	return nil
}

// undetermined returns the names of the methods for which what was fitted is not determined, and why with what to type.
func (r sentences) undetermined() (list, why string) {
	reason, where := "", setting.Val.With("FILE")
	var names []string
	for _, m := range r.Methods {
		if !m.Sound() {
			reason, names = cmp.Or(reason, m.Undetermined), append(names, short(m))
		}
	}
	if names == nil {
		return "", ""
	}
	if r.Validation == nil {
		where = setting.Val.With("FILE") + ", or more test data"
	}
	return strings.Join(names, ", "), fmt.Sprintf("%s. Give more labelled examples: %s.", reason, where)
}

// unlike warns if the temperature of the baseline makes it worse on the test data by more than chance.
func (r sentences) unlike() []string {
	if m := r.verdict.Plain; m != nil {
		return []string{fmt.Sprintf("The temperature makes %s worse on the test data. Perhaps the validation data is of another kind: "+
			"check %s, its preprocessing and its labels.", short(m), setting.Val)}
	}
	return nil
}

// headline says which method to deploy, and why this one.
func (r sentences) headline() (lines []string) {
	c := r.verdict.Advice
	if c.Choice == nil {
		if r.verdict.Against == nil {
			lines = append(lines, fmt.Sprintf("No method here can be saved as an ensemble. The table compares them with %s.",
				short(r.verdict.Base)))
		}
		return lines
	}
	lines = append(lines, fmt.Sprintf("Deploy %s: %s for each prediction.", called(c.Choice), r.price(c.Choice)))
	lines = slices.Concat(lines, r.changeLine(), r.sureLine(), r.gainLine())
	if c.Instead != nil {
		lines = append(lines, fmt.Sprintf("%s is alike (%s), and the simpler one is taken.", capital(called(c.Instead)),
			study.IntervalText(r.Held(c.Choice, c.Instead, c.By.Minus()))))
	}
	return slices.Concat(lines, r.togetherLine(), r.rivalLine())
}

// changeLine says what the last checkpoint has, and which accuracy the choice has instead.
func (r sentences) changeLine() []string {
	own, m := r.Method(baseline.SGD), r.verdict.Choice
	if own == nil || own == m {
		return nil
	}
	line := fmt.Sprintf("Your network has %s %s.", r.Loss().Name, report.Fixed(r.Value(own), 4))
	if r.CountsErrors() && own.Has("accuracy") {
		line += fmt.Sprintf(" The accuracy is %s.", report.InsteadOf(m.Value("accuracy"), own.Value("accuracy"), report.Percent, 1))
	}
	return []string{line}
}

// sureLine says how confident the last checkpoint and the choice are on average, and how often they are right.
func (r sentences) sureLine() []string {
	own, m := r.Method(baseline.SGD), r.verdict.Choice
	says, right := confidence(own)
	if _, decided := r.Task.(task.Decided); decided || right != right || !own.Has("ece_calibrated_high") {
		return nil
	}
	what := "as sure as it should be"
	if own.Value("ece") > own.Value("ece_calibrated_high") {
		what = "not sure enough"
		if says > right {
			what = "too sure"
		}
	}
	line := fmt.Sprintf("Your network is %s: it says %s on average, and is right in %s.", what, report.Percent(says, 1),
		report.Percent(right, 1))
	if of, right := confidence(m); m != own && right == right {
		line += fmt.Sprintf(" %s says %s, and is right in %s.", capital(called(m)), report.Percent(of, 1), report.Percent(right, 1))
	}
	return []string{line}
}

// confidence returns the mean confidence of a method and its accuracy, or NaN.
func confidence(m *compare.Method) (confidence, accuracy float64) {
	n := 0.
	if m != nil {
		for _, b := range m.Reliability {
			confidence += float64(b.Count) * b.Confidence
			accuracy += float64(b.Count) * b.Accuracy
			n += float64(b.Count)
		}
	}
	return confidence / n, accuracy / n
}

// togetherLine says that validation data chose too, if the test data alone would choose another method of as few networks.
func (r sentences) togetherLine() []string {
	c := r.verdict.Advice
	if c.Together == 0 || c.Lowest == c.Best || c.Lowest == c.Choice {
		return nil
	}
	return []string{fmt.Sprintf("%s has the lowest %s on the test %s alone. Together with %s %s has.", capital(called(c.Lowest)),
		r.Loss().Name, r.units(), report.Plural(c.Together, "validation "+dataset.Unit(r.Test)), called(c.Best))}
}

// price says what a method has for which price.
func (r sentences) price(m *compare.Method) string {
	pairs := ""
	if m.Antithetic {
		pairs = " in antithetic pairs"
	}
	return fmt.Sprintf("%s %s with %s%s", r.Loss().Name, report.Fixed(r.Value(m), 4), report.Plural(m.Networks, "network"), pairs)
}

// rivalLine compares the methods of more networks with the best of few.
func (r sentences) rivalLine() []string {
	c := r.verdict.Advice
	m, best := c.Rival, c.Best
	if m == nil {
		return nil
	}
	name := fmt.Sprintf("%s with %s", short(m), report.Plural(m.Networks, "network"))
	text := study.IntervalText(c.Over)
	switch {
	case math.IsNaN(c.Over.Low):
		return []string{fmt.Sprintf("%s and %s have no finite %s difference: a true class has probability 0.", short(m), short(best),
			r.Loss().Name)}
	case !r.Enough(m, best):
		return []string{fmt.Sprintf("%s and %s both make fewer than %d errors: too few to compare them.", short(m), short(best),
			chance.FewErrors)}
	case c.Over.High < 0:
		return []string{fmt.Sprintf("%s is clearly better than %s: %s.", name, called(best), text)}
	case c.Over.Low > 0:
		return []string{fmt.Sprintf("%s is worse than %s: %s.", name, called(best), text)}
	case c.Alone.High < 0:
		return []string{fmt.Sprintf("%s may be better than %s only by chance: %s.", name, called(best), text)}
	}
	return []string{fmt.Sprintf("%s shows no clear gain over %s: %s. %s", name, called(best), text, r.more(c.Over))}
}

// more says what a difference that is not clear leaves open.
func (r sentences) more(over chance.Interval) string {
	if half := over.Mean - over.Low; over.Mean < 0 {
		n := float64(r.Test.Len()) * (half / over.Mean) * (half / over.Mean)
		return fmt.Sprintf("About %s test %s would make a gain of this size clear.", report.Thousands(int(rounded(n))), r.units())
	}
	return fmt.Sprintf("A gain above %s is ruled out.", report.Fixed(-over.Low, 4))
}

// rounded rounds to two digits.
func rounded(n float64) float64 {
	unit := math.Pow(10, math.Floor(math.Log10(n))-1)
	return math.Round(n/unit) * unit
}

// gainLine says what the choice gains, and that the test data made it.
func (r sentences) gainLine() []string {
	c := r.verdict.Advice
	stated := c.From == c.Best && c.Choice == c.Rival // by the line of the rival
	if c.Choice == c.From || math.IsNaN(c.Gain.Low) || !r.Enough(c.Choice, c.From) || stated {
		return nil
	}
	what := "is not clearly better than"
	if c.Gain.High < 0 {
		what = "is better than"
	}
	return []string{fmt.Sprintf("%s %s %s: %s %s. The interval allows for the choice among %d.", capital(called(c.Choice)), what,
		called(c.From), r.Loss().Name, study.IntervalText(c.Gain), c.Candidates)}
}

// capital capitalises the first letter.
func capital(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

// drawLines says whether the candidate differs from the baseline with other draws too, and what would settle it.
func (r sentences) drawLines(base *compare.Method) []string {
	m := r.verdict.Candidate
	if m == nil || !m.Drawn() {
		return nil
	}
	d := r.Main(m)
	if m.Members < chance.LeastMembers(m.Antithetic) || math.IsInf(m.Draws.Variance, 1) {
		return []string{fmt.Sprintf("%s are too few for a verdict about %s itself. Use %s.", report.Plural(m.Members, "member"), short(m),
			setting.Members.With("30"))}
	}
	if math.IsNaN(d.Low) || !r.Enough(m, base) {
		return nil
	}
	other, many := d.OtherDraws(m.Draws), d.ManyDraws(m.Draws)
	lines := []string{fmt.Sprintf("%s against %s, with other seeds: %s, %s.", short(m), short(base), study.IntervalText(other),
		r.withOthers(m, other, many))}
	if examples, draws := d.Standard, m.Draws.Standard(); draws > examples {
		n := compare.Settling(m.Members, draws, examples)
		how := setting.Members.With(strconv.Itoa(n)) + " settles it."
		if n > payable {
			how = fmt.Sprintf("About %s members would settle it, which does not pay.", report.Thousands(n))
		}
		lines = append(lines, fmt.Sprintf("Draws add more error (±%s) than %s (±%s). %s", report.Fixed(draws, 4), r.units(),
			report.Fixed(examples, 4), how))
	}
	return lines
}

// payable is the largest number of members that is worth drawing for one comparison.
const payable = 1000

// withOthers says whether the difference of m to the baseline holds with other seeds and very many members, and what decided.
func (r sentences) withOthers(m *compare.Method, other, many chance.Interval) string {
	sign := r.Told(m, r.Loss().Key)
	switch {
	case other.Low <= 0 && other.High >= 0:
		return "which is open"
	case sign == 0:
		return fmt.Sprintf("which one of %d tests may show by chance", r.Tests)
	case many.Low <= 0 && many.High >= 0:
		return fmt.Sprintf("but very many members leave it open: %s", study.IntervalText(many))
	case sign > 0:
		return "worse too"
	}
	return "better too"
}

// accuracyLine lists the methods whose accuracy differs from the baseline's, without those that only scale another
// method by a number: that does not change accuracy.
func (r sentences) accuracyLine(base *compare.Method) []string {
	var differ []string
	for _, m := range r.Methods {
		if sign := r.Told(m, compare.ErrorLoss); sign == 0 || m.Scaling != nil && m.Scaling.Values() != nil {
			continue
		}
		differ = append(differ, fmt.Sprintf("%s %s", short(m), report.Signed(-100*m.Differences[compare.ErrorLoss].Mean, 2)))
	}
	if differ == nil {
		return nil
	}
	return []string{fmt.Sprintf("Accuracy against %s, points: %s.", short(base), strings.Join(differ, ", "))}
}

// sameStd says that one network that predicts no variance gives all rows the same standard deviation. A reader would take it for
// an uncertainty of each row.
func (r sentences) sameStd() []string {
	m := r.verdict.Choice
	if m == nil || m.Networks != 1 || task.Missing(r.Task) == nil {
		return nil
	}
	return []string{fmt.Sprintf("%s gives each row the same standard deviation, the usual error. It does not tell uncertain rows from "+
		"sure ones.", strings.ToUpper(short(m)[:1])+short(m)[1:])}
}

// objections says why nothing is recommended, and what to check.
func (r sentences) objections() (lines []string) {
	for _, o := range r.verdict.Against {
		lines = append(append(lines, "Nothing is recommended: "+r.objection(o)), o.Warnings...)
	}
	return lines
}

func (r sentences) objection(o compare.Objection) string {
	switch m := o.Method; o.Kind {
	case compare.SharedData:
		return "data has two roles, so the numbers look better than they are."
	case compare.WrongInputs:
		return "inputs are not like those of training."
	case compare.WrongClasses:
		return fmt.Sprintf("the scores of %s do not fit the labels that its temperature is fitted on (T = %s). Check the order of the "+
			"classes (%s), the labels, and the preprocessing.",
			short(m), m.Scaling.Numbers(), setting.Fit.With(setting.ClassNames.String()))
	case compare.NothingLearnt:
		return fmt.Sprintf("no method is clearly better than the %s of the %s data. They need no network, and their %s is %s; %s has "+
			"%s. Check the labels, and that inputs are prepared as in training.",
			r.Constant.Name, r.ConstantOf, r.Loss().Name, report.Fixed(r.Value(r.Constant), 4), short(m), report.Fixed(r.Value(m), 4))
	case compare.TooSure:
		return fmt.Sprintf("the networks are worse than the %s of the %s data (%s %s) and only look useful with %s = %s. Check the "+
			"labels, and that inputs are prepared as in training.",
			r.Constant.Name, r.ConstantOf, r.Loss().Name, report.Fixed(r.Value(r.Constant), 4), m.Scaling.By.Symbol, m.Scaling.Numbers())
	case compare.NotDetermined:
		names, why := r.undetermined()
		return fmt.Sprintf("the fit for %s is not determined: %s", names, why)
	}
	panic("show: no words for " + o.Kind)
}
