package show

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/swagwrap/swagwrap/calibrate"
	"github.com/swagwrap/swagwrap/calibrate/chance"
	"github.com/swagwrap/swagwrap/calibrate/detect"
	"github.com/swagwrap/swagwrap/internal/baseline"
	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/report"
	"github.com/swagwrap/swagwrap/internal/setting"
	"github.com/swagwrap/swagwrap/internal/study"
	"github.com/swagwrap/swagwrap/internal/study/compare"
	"github.com/swagwrap/swagwrap/internal/task"
	"gonum.org/v1/gonum/stat"
)

// Places of tables on the page. They are for the tables whose order on the page differs from that in the text.
const (
	middle = 1 + iota
	late
	last
)

func (r rows) sections() (all []study.Section) {
	verbose := study.OnlyOnPage // in the text, with all metrics
	if r.AllMetrics {
		verbose = study.Everywhere
	}
	all = append(all, r.priceList(), r.main(), r.parts(), r.decisions(), r.runs(), r.byGroup())
	all = append(all, r.bySeverity()...)
	for _, s := range []study.Section{r.byCorruption(), r.further(), r.sets()} {
		s.Folded, s.Where = true, verbose
		all = append(all, s)
	}
	if r.Scalings {
		for _, s := range []study.Section{r.scalings(), r.recalibration()} {
			s.Order, s.Where = late, verbose
			all = append(all, s)
		}
	}
	return all
}

func (r rows) priceList() study.Section {
	s := study.Section{
		Title:       "What each step buys",
		Explanation: "From your last checkpoint to the ensemble. An interval compares a step with the one before, on new examples.",
	}
	if len(r.steps) > 0 {
		s.Rows = append([]study.Row{r.price(r.Steps[0].From, " ")}, r.steps...)
	}
	return s
}

// mostShort is the largest number of methods in the short table.
const mostShort = 7

// short shows the methods that the advice is about: the last checkpoint, the baselines with a temperature, the advised method, and its
// nearest rivals.
func (r rows) short() study.Section {
	v := r.verdict
	wanted := []*compare.Method{v.Choice, r.Method(baseline.SGD), v.Base, v.Best, v.Rival, v.Candidate, v.Instead,
		r.Method(baseline.SGDTemp), r.Method(baseline.SWA), r.Method(baseline.SWATemp), r.Method(baseline.SWAGTemp)}
	taken := map[*compare.Method]bool{nil: true}
	for _, m := range wanted {
		if len(taken) <= mostShort {
			taken[m] = true
		}
	}
	symbol := r.First().Symbol
	s := study.Section{Columns: []study.Column{{Key: "method"}, {Key: symbol}, {Key: "networks", Optional: 1}}}
	s.Columns = append(s.Columns, r.scoreColumns(func(i int) study.Column { return study.Column{Optional: max(0, 2*i-1)} })...)
	s.Columns = append(s.Columns, study.Column{Key: " "})
	scaled := false
	for i, m := range r.Methods {
		if !taken[m] {
			continue
		}
		marks := study.Marked("")
		if m == v.Choice {
			marks = study.Marked(deployed)
		}
		row := study.Row{study.Shown("networks", report.Thousands(m.Networks)), marks}
		if name, number, ok := strings.Cut(m.Name, " ("+symbol+" = "); ok && strings.Count(number, ", ") < 2 {
			row = append(row, study.Name("method", "method", name), study.Shown(symbol, strings.TrimSuffix(number, ")")).Blank())
		}
		s.Rows = append(s.Rows, append(row, r.methods[i]...))
		scaled = scaled || m.Scaling != nil && m.Scaling.Values() != nil
	}
	if v.Choice != nil {
		for _, w := range r.warningsOf(v.Choice) {
			s.Warn("warning: " + short(v.Choice) + ": " + w.Error())
		}
	}
	if scaled {
		s.Warn(fmt.Sprintf("%s is the temperature: scores are divided by it. Above 1: too sure without it.", symbol))
	}
	return s
}

// First returns the first rows of the table while other methods still run.
func First(methods []*compare.Method) *report.Table {
	s := study.Section{}
	for _, m := range methods[:min(len(methods), mostShort)] {
		row := study.Row{study.Name("method", "so far", m.Name)}
		for i, score := range m.Main() {
			if i == 0 || score.Key == m.Losses[0].Key {
				row = append(row, study.Scores("", []task.Score{score})...)
			}
		}
		s.Rows = append(s.Rows, row)
	}
	return s.Table()
}

const (
	// aboveRange marks a calibration error above the range of a calibrated model.
	aboveRange = "^"

	noise, otherSeeds, veryMany = "noise", "other seeds", "very many members" // columns for the eye alone
)

// main shows the main metrics, and the differences in the first loss.
func (r rows) main() study.Section {
	s := study.Section{Title: "Methods", Columns: r.mainColumns(), Rows: r.methods}
	s.Explanation = "NLL is the mean for each " + r.unit() + " in nats. Lower is better, except for accuracy. An interval is for the " +
		"difference of these networks on new examples."
	if r.Kept {
		s.Explanation += " At best T: with a temperature of its own, on examples that it was not fitted on. Other seeds: what other " +
			"draws would change on the same examples."
	}
	if constant := r.constant(); constant != nil {
		s.Rows = append([]study.Row{constant}, r.methods...)
	}
	if slices.ContainsFunc(r.methods, func(m study.Row) bool { return m.Cell("ece") != nil && m.Cell("ece").Mark != "" }) {
		s.Warnings = append(s.Warnings, aboveRange+" above the range of a calibrated model with the same confidences")
	}
	r.noteDifferences(&s)
	if slices.ContainsFunc(r.Methods, func(m *compare.Method) bool { return !r.Enough(m, r.verdict.Base) }) {
		s.Note(fmt.Sprintf("Where both methods make fewer than %d errors, %s has no interval: a handful of examples decides, and it would "+
			"not hold", chance.FewErrors, r.Loss().Name))
	}
	r.noteUnits(&s)
	if r.Kept {
		r.noteKept(&s)
	}
	s.Warnings = append(append(s.Warnings, r.staleNote(), r.Tuned), r.warnings()...)
	return s
}

func (r rows) mainColumns() []study.Column {
	columns := append(study.Keys("method"), r.scoreColumns(func(i int) study.Column {
		if i <= 2 {
			return study.Column{Optional: 1, Marked: true}
		}
		return study.Column{Optional: 3 + i, Marked: true}
	})...)
	if task.Missing(r.Task) != nil { // the networks predict none
		columns = append(columns, study.Column{Key: noise, Optional: 4})
	}
	if r.Kept {
		columns = append(columns, study.Column{Key: otherSeeds, Optional: 2}, study.Column{Key: veryMany, Optional: 3},
			study.Column{Key: r.Loss().Key + "_at_best_t", Optional: 20})
	}
	return append(columns, study.Column{Key: " "})
}

// scoreColumns returns the columns of the main scores: the first loss with its difference, which are always shown, and the others as
// column makes them from their number.
func (r rows) scoreColumns(column func(i int) study.Column) (columns []study.Column) {
	for i, s := range r.Methods[0].Main() {
		if s.Key == r.Loss().Key {
			columns = append(columns, study.Keys(s.Key, s.Key+"_difference")...)
			continue
		}
		c := column(i)
		c.Key = s.Key
		columns = append(columns, c)
	}
	return columns
}

func (r rows) noteDifferences(s *study.Section) {
	loss, base := r.Loss().Name, r.baselineName()
	note := fmt.Sprintf("minus %s: %s − %s(%s). The interval is for the difference of these networks on new %s.", base, loss, loss,
		base, r.units())
	if slices.ContainsFunc(r.Methods[0].Scores, func(m task.Score) bool { return strings.HasPrefix(m.Key, "ece") }) {
		note += fmt.Sprintf(" ECE in %v.", calibrate.ECEOptions{})
	}
	s.Note(note)
	s.Note(fmt.Sprintf("what the verdict calls better or worse is adjusted for %d tests (Holm); intervals are for single comparisons",
		r.Tests))
}

// noteUnits says what intervals and tests count.
func (r rows) noteUnits(s *study.Section) {
	if !r.Kept {
		s.Note("figures count all labelled positions")
	}
	switch n := len(r.Clustered(r.Loss().Values, nil)); {
	case r.Unit != nil:
		units := fmt.Sprintf("unit of chance: intervals and tests count %s units by %s, since %s of one unit depend on each other",
			report.Thousands(n), r.UnitBy, r.units())
		switch {
		case n < fewUnits:
			s.Warn(units + ". They are few: intervals are rough")
		case r.example() == "token": // its units are the same in each comparison
			s.Note(units)
		default:
			s.Warn(units)
		}
	case !r.Kept:
		s.Note(fmt.Sprintf("intervals and tests count whole %s, since neighbouring positions depend on each other", r.units()))
	}
}

// noteKept explains the figures that need the outcomes of all examples.
func (r rows) noteKept(s *study.Section) {
	loss := r.Loss().Name
	s.Note(fmt.Sprintf("at best %s: %s with a temperature that is fitted on one half of the test %s and applied to the other, mean over "+
		"%d random splits; without it where that is better", r.First().Symbol, loss, r.units(), calibrate.Splits))
	s.Note(fmt.Sprintf("other seeds: standard error of %s over other draws, on the same %s. very many members: %s with very many "+
		"members, with its standard error", loss, r.units(), loss))
	if task.Missing(r.Task) != nil {
		s.Note("noise: the standard deviation of targets about their means that makes the data it is fitted on most likely. Networks " +
			"predict none. For one network it is the RMSE there")
	}
	if r.Method(baseline.Laplace) != nil {
		s.Note(baseline.TauNote)
	}
}

// staleNote says what SWA costs without batch-norm statistics of its own, or is "".
func (r rows) staleNote() string {
	stale, fresh := r.Method(baseline.StaleSWA), r.Method(baseline.SWA)
	if stale == nil {
		return ""
	}
	note := "! these batch-norm statistics do not belong to the averaged weights"
	if fresh != nil && r.CountsErrors() {
		what, is := "accuracy", report.InsteadOf(stale.Value("accuracy"), fresh.Value("accuracy"), report.Percent, 1)
		if stale.Value("accuracy") == fresh.Value("accuracy") {
			what, is = r.Loss().Name, report.InsteadOf(r.Value(stale), r.Value(fresh), report.Fixed, 4)
		}
		note += fmt.Sprintf(": with the last checkpoint's, SWA's %s is %s", what, is)
	}
	return note
}

// marks returns the marks that refer to the notes below a table, and the one of the method to deploy.
func (r words) marks(m *compare.Method) string {
	mark := ""
	if m.StaleBN {
		mark = "!"
	}
	if len(r.warningsOf(m)) > 0 {
		mark += "*"
	}
	if m == r.verdict.Choice {
		mark = strings.TrimSpace(mark + " " + deployed)
	}
	return mark
}

// deployed marks the method to deploy.
const deployed = "← deploy"

// warningsOf returns the warnings about a method. The one to deploy was better in a cross-validation, so that a temperature is not safer.
func (r words) warningsOf(m *compare.Method) []error {
	scarce := func(w error) bool {
		return r.verdict.Choice == m && r.verdict.Together > 0 && errors.As(w, new(*calibrate.ScarceError))
	}
	return slices.DeleteFunc(slices.Clone(m.Warnings), scarce)
}

// warnings returns the warnings about methods, and names all that share one.
func (r rows) warnings() (out []string) {
	var order []string
	names := make(map[string][]string)
	for _, m := range r.Methods {
		for _, warning := range r.warningsOf(m) {
			text := warning.Error()
			if names[text] == nil {
				order = append(order, text)
			}
			names[text] = append(names[text], m.Name)
		}
	}
	for _, text := range order {
		who := strings.Join(names[text], ", ")
		if len(names[text]) == len(r.Methods) && len(r.Methods) > 1 {
			who = "all"
		}
		out = append(out, fmt.Sprintf("* %s: %s", who, text))
	}
	return out
}

// marked returns the name of a method, with a mark if the verdict does not count it. The mark stands at the notes of the main
// table, too.
func marked(m *compare.Method) string {
	if m.Sound() {
		return m.Name
	}
	return m.Name + " *"
}

// noiseOf returns the noise of a method by target, and by half if there are two.
func noiseOf(m *compare.Method) string {
	var out []string
	if m.Noise == nil {
		return ""
	}
	for _, c := range m.Noise.Each {
		var each []string
		for _, std := range c.NoiseStd {
			each = append(each, report.Fixed(std, 4))
		}
		out = append(out, strings.Join(each, " "))
	}
	return strings.Join(out, ", ")
}

// further shows the metrics that the other tables leave out.
func (r rows) further() study.Section {
	s := r.metrics("method", func(s task.Score) bool { return s.Further && !s.Decision && !s.Set })
	s.Title, s.Order, s.Columns = "Further metrics", late, slices.Insert(s.Columns, 1, study.Column{Key: "members"})
	return s
}

// sets shows sets of classes, for tasks with them.
func (r rows) sets() (s study.Section) {
	first := r.Methods[0]
	if !first.Has("set_level") {
		return s
	}
	s = r.metrics("sets of classes", func(s task.Score) bool { return s.Set })
	s.Title, s.Order = "Sets of classes", late
	s.Explanation = "Conformal sets contain the true class with a guaranteed probability."
	if level, n := first.Value("set_level"), r.Test.Len()/2; r.Unit != nil {
		s.Note("no unit of chance is in both halves. The coverage varies more than that of as many independent examples")
	} else if level == level {
		low, high := calibrate.CoverageRange(level, n)
		s.Note(fmt.Sprintf("a fit on %s %s covers from %s to %s of new ones, in 95 %% of fits (beta distribution). The coverage above "+
			"joins both halves, so it is nearer to the level. A class gap of %s is chance",
			report.Thousands(n), r.units(), report.Percent(low, 1), report.Percent(high, 1),
			report.Percent(calibrate.ChanceGap(r.Test.Labels().Classes, level), 1)))
	}
	return s
}

func (r rows) decisions() (s study.Section) {
	if _, ok := r.Task.(task.Decided); !ok {
		return s
	}
	s = r.metrics("by a threshold", func(s task.Score) bool { return s.Decision })
	s.Title, s.Order = "Decisions", middle
	s.Explanation = "What is predicted by a threshold on the probability of class 1, the positive class."
	note := "class 1 is predicted where its probability is the threshold or more"
	if (r.By != detect.Criterion{}) {
		note += fmt.Sprintf("; for each method it is chosen by %v on the validation %s", r.By, r.units())
	}
	s.Note(note)
	return s
}

// metrics shows some metrics of all methods.
func (r rows) metrics(first string, shown func(task.Score) bool) study.Section {
	s := study.Section{First: first, Columns: study.Keys("method"), Rows: r.methods}
	for _, x := range r.Methods[0].Scores {
		if shown(x) {
			s.Columns = append(s.Columns, study.Column{Key: x.Key})
			s.Note(x.Note)
		}
	}
	return s
}

// scalings shows each method with its own calibrators, if any method has some.
func (r rows) scalings() (s study.Section) {
	if !slices.ContainsFunc(r.Methods, func(m *compare.Method) bool { return m.Scaled != nil }) {
		return s
	}
	s = r.calibrated("With scalings of their own", r.First())
	for i, c := range r.Listed() {
		if i == 0 {
			s.Columns = append(s.Columns, study.Column{Key: scaledKey(c) + "/numbers"})
		}
		s.Columns = append(s.Columns, columnsOf(c, scaledKey(c)+"/")...)
	}
	if slices.ContainsFunc(r.Methods, func(m *compare.Method) bool {
		return m.Scaled != nil && m.Scaled[0] != nil && m.Scaled[0].Fitted.CrossFitted()
	}) {
		s.Note("scalings are fitted on one half of the test " + r.units() + " and judged on the other")
	} else {
		s.Note("scalings are fitted on the validation " + r.units())
	}
	return s
}

// recalibration shows each method's distributions before and after recalibration, for tasks with it. A method that is scaled
// itself has none.
func (r rows) recalibration() (s study.Section) {
	how, ok := task.Find(r.Task, task.Recalibration)
	if !ok {
		return s
	}
	s = r.calibrated("With distributions recalibrated", how)
	s.Columns = append(s.Columns, columnsOf(how, string(how.Method)+"/")...)
	s.Note(how.Words + " is fitted on " + r.fittedOn() + "; it moves quantiles and intervals, and leaves no density: there is no NLL " +
		"after it")
	return s
}

// calibrated begins a table with the metrics that a calibrator changes.
func (r rows) calibrated(title string, by task.Calibrator) study.Section {
	return study.Section{Title: title, Columns: append(study.Keys("method"), columnsOf(by, "")...), Rows: r.methods}
}

// columnsOf returns the columns of a calibrator. prefix begins their keys.
func columnsOf(c task.Calibrator, prefix string) (columns []study.Column) {
	for _, m := range c.Columns {
		columns = append(columns, study.Column{Key: prefix + m.Key})
	}
	return columns
}

// mostParts is the largest number of targets, classes or documents that are printed separately by default.
const mostParts = 10

// parts shows the main metrics of each target, or one metric of each class or document. It returns nil if there is only one.
func (r rows) parts() (s study.Section) {
	if r.Methods[0].Parts == nil {
		return s
	}
	all, names := r.Methods[0].Parts, r.Runs[0].Network.Posterior.Card.ClassNames
	s.Order = last
	if !r.AllMetrics && len(all) > mostParts {
		s.Where = study.OnlyOnPage
	}
	if cut, ok := dataset.CutOf(r.Test); ok {
		if names = cut.Documents; names == nil {
			return s
		}
		s.Instead = setting.Metrics.With("all") + " and " + setting.Report.With("FILE") + " show each document"
	}
	name := func(k int) string {
		if len(names) == len(all) {
			return names[k]
		}
		return all[k].Name
	}
	switch first := all[0].Evaluation(); {
	case first.Has("perplexity"):
		s.Title, s.Explanation = "Each document", "The perplexity of each document."
		s.Rows = r.acrossMethods(name, "perplexity", "tokens")
	case first.Has("iou"):
		s.Title, s.Explanation = "Each class", "The intersection over union of each class. JSON has further figures."
		s.Rows = r.acrossMethods(name, "iou", "share")
	default:
		s.Title, s.Rows = "Each target", r.eachTarget(name)
	}
	return s
}

// eachTarget returns the main metrics of each target and method.
func (r rows) eachTarget(name func(part int) string) (rows []study.Row) {
	for k := range r.Methods[0].Parts {
		target := study.Shown(" ", name(k)).Aligned(report.Left).Blank()
		for _, m := range r.Methods {
			rows = append(rows, append(study.Row{target, study.Name("method", "method", m.Name)},
				study.Scores("", m.Parts[k].Evaluation().Main())...))
			target.Text = ""
		}
	}
	return rows
}

// acrossMethods returns the size of each part, and a metric of it for each method that figures name.
func (r rows) acrossMethods(name func(part int) string, metric, size string) (rows []study.Row) {
	for k, part := range r.Methods[0].Parts {
		of := part.Evaluation()
		row := study.Row{
			study.Shown(of.Score(metric).Header, name(k)).Aligned(report.Left),
			study.Shown(of.Score(size).Header, study.Format(of.Score(size))),
		}
		for _, m := range r.Methods {
			if r.major(m) {
				row = append(row, study.Shown(short(m), study.Format(m.Parts[k].Evaluation().Score(metric))).Renamed(m.Key))
			}
		}
		rows = append(rows, row)
	}
	return rows
}

// runs shows the first loss and the differences to the baseline over runs of training.
func (r rows) runs() (s study.Section) {
	if r.OfRuns == nil {
		return s
	}
	s = study.Section{Title: "Runs of training", Explanation: "The methods in each run, on the same test data."}
	over, spread := fmt.Sprintf("over %d runs", len(r.OfRuns)), r.Loss().Name+" ± SD"
	s.Columns = study.Keys(over, spread, "over_runs/difference", "over_runs/sd", "over_runs/p_better", "over_runs/p_sign_flip")
	for i, m := range r.Methods {
		in := m.InRuns(r.Result)
		if len(in) < len(r.OfRuns) || m.StaleBN {
			continue
		}
		var values []float64
		name := short(m)
		for k, own := range in {
			values = append(values, own.Value(r.Loss().Key))
			if !own.Sound() {
				s.Warn(fmt.Sprintf("* %s: not counted, since the fit is not determined in the run of %s: %s", short(m),
					r.Runs[k].Network.Posterior.Path, own.Undetermined))
				name = short(m) + " *"
			}
		}
		mean, sd := stat.MeanStdDev(values, nil)
		s.Rows = append(s.Rows, append(study.Row{
			study.Shown(over, name).Aligned(report.Left),
			study.Shown(spread, report.Fixed(mean, 4)+" ± "+report.Fixed(sd, 4)),
		}, r.methods[i]...))
	}
	s.Warn(fmt.Sprintf("each posterior is a run of training. Intervals of differences are for new runs and new %s. P(better): share of "+
		"runs in which the method beats %s, with its exact interval", r.units(), short(r.verdict.RunsBase)))
	if n := len(r.OfRuns); n <= 20 {
		s.Warn(fmt.Sprintf("the sign-flip test of %d runs has no p below %s", n, report.Fixed(math.Pow(2, 1-float64(n)), 3)))
	}
	return s
}

// byGroup shows the first loss by group for the two methods that the verdict compares.
func (r rows) byGroup() (s study.Section) {
	if r.Report == nil {
		return s
	}
	base, other := r.verdict.Base, r.verdict.Candidate
	s = study.Section{Title: "Groups", Explanation: "The two methods of the verdict on each group of the test data.",
		First: r.Loss().Name + " by group", Columns: study.Keys("group", "examples")}
	if r.Unit != nil {
		s.Columns = append(s.Columns, study.Keys("units")...)
	}
	s.Columns = append(s.Columns, study.Keys("base", "other", "difference [95 %]")...)
	var differences []chance.Interval
	if other != nil {
		differences = r.GroupDifferences(other, base)
	}
	order := r.WorstFirst(base)
	const shown = 20
	for _, k := range order[:min(len(order), shown)] {
		row := append(study.GroupRow(base.Groups[k]), study.Shown(short(base)+" [95 %]", r.groupLoss(base.Groups[k])).Renamed("base"))
		if other != nil {
			row = append(row, study.Shown(short(other)+" [95 %]", r.groupLoss(other.Groups[k])).Renamed("other"),
				study.Shown("difference [95 %]", study.IntervalText(differences[k])))
		}
		s.Rows = append(s.Rows, row)
	}
	s.Warnings = study.GroupNotes(r.Grouping, base.AllGroups, base.Groups)
	return s
}

func (r rows) bySeverity() (all []study.Section) {
	if r.Shift == nil {
		return nil
	}
	base := r.verdict.Base
	for _, metric := range r.shiftMetrics() {
		s := study.Section{Title: metric.Header + " when the data change", First: metric.Header + " at severity"}
		for _, m := range r.Methods {
			if m.StaleBN {
				continue
			}
			row := study.Row{study.Name("method", "method", m.Name)}
			for k, e := range m.Shifted.Steps {
				severity := "clean"
				if k > 0 {
					severity = strconv.Itoa(r.Shift.Severity(k))
				}
				row = append(row, study.Shown(severity, study.Format(e.Score(metric.Key))))
			}
			if metric.Key == r.Loss().Key {
				difference := ""
				if m != base {
					difference = study.IntervalText(r.ShiftDifference(m, base, metric.Key, 0).Interval)
				}
				row = append(row, study.Shown("damaged minus "+short(base)+" [95 %]", difference))
				s.Explanation = fmt.Sprintf("%s of the test data, each damaged in %s of %s. What was fitted on clean data stays. The last "+
					"column is for all severities together.", report.Plural(r.Shift.Examples, r.Shift.Unit(r.Test)),
					report.Plural(r.Shift.Each, "way"), report.Thousands(len(r.Shift.Corruptions)))
			}
			s.Rows = append(s.Rows, row)
		}
		all = append(all, s)
	}
	return all
}

// byCorruption shows the first loss by corruption for the two methods that the verdict compares.
func (r rows) byCorruption() (s study.Section) {
	if r.Shift == nil {
		return s
	}
	s.Title, s.Explanation = "By corruption", "Means over the severities."
	base, other := r.verdict.Base, r.verdict.Candidate
	for k, c := range r.Shift.Corruptions {
		a := base.Shifted.ByCorruption(k)
		if a == nil {
			continue // there are fewer examples than corruptions
		}
		row := study.Row{
			study.Shown(r.Loss().Name, strings.ReplaceAll(c, "_", " ")).Aligned(report.Left),
			study.Shown(short(base), report.Fixed(stat.Mean(a, nil), 4)),
		}
		if other != nil {
			difference := ""
			if len(a) > 1 {
				difference = study.IntervalText(r.CorruptionDifference(other, base, k))
			}
			row = append(row, study.Shown(short(other), report.Fixed(stat.Mean(other.Shifted.ByCorruption(k), nil), 4)),
				study.Shown("difference [95 %]", difference))
		}
		s.Rows = append(s.Rows, row)
	}
	return s
}
