package show

import (
	"math"
	"slices"

	"github.com/swagwrap/swagwrap/calibrate"
	"github.com/swagwrap/swagwrap/calibrate/chance"
	"github.com/swagwrap/swagwrap/internal/report"
	"github.com/swagwrap/swagwrap/internal/study"
	"github.com/swagwrap/swagwrap/internal/study/compare"
	"github.com/swagwrap/swagwrap/internal/task"
	"gonum.org/v1/gonum/stat"
)

// rows are the figures of a comparison. Differences are those of losses: positive is worse.
type rows struct {
	words
	methods, steps []study.Row
}

func rowsOf(w words) rows {
	r := rows{words: w}
	r.methods, r.steps = study.Rows(w.Methods, r.method), study.Rows(w.Steps, r.step)
	return r
}

// all returns all figures, unrounded. Numbers that are not finite become null.
func (r rows) all(verdict, next, code []string) study.Row {
	validation := 0
	if r.Validation != nil {
		validation = r.Validation.Len()
	}
	paths, ids := []string{}, []string{}
	for _, n := range r.Networks() {
		paths, ids = append(paths, n.Posterior.Path), append(ids, n.Posterior.ID)
	}
	var eceOf, recommended any
	if of := task.ECEOf(r.Task); of != "" {
		eceOf = of
	}
	if m := r.verdict.Choice; m != nil {
		recommended = m.Key
	}
	against := study.Rows(r.verdict.Against, func(o compare.Objection) study.Row {
		return study.Fields("kind", o.Kind, "text", sentences{r.words}.objection(o), "warnings", append([]string{}, o.Warnings...))
	})
	var expect study.Row
	if r.Measured != "" {
		expect = study.Fields("expect", r.Measured)
	}
	return append(expect, study.Fields(
		"examples", r.Test.Len(), "members", r.Drawn(), "scale", r.Scale, "rank", r.rank(), "seed", r.Seed,
		"ece_binning", calibrate.ECEOptions{}.Name(), "ece_of", eceOf, "best_t_splits", calibrate.Splits,
		"validation_examples", validation, "posteriors", paths, "posterior_ids", ids, "test", r.TestPath, "methods", r.methods,
		"steps", r.steps, "tests", r.Tests, "tuned", r.Tuned, "notes", append([]string{}, r.Notes...),
		"warnings", r.BatchNorm.Warnings(), "data_notes", r.BatchNorm.Notes(), "batch_norm", r.BatchNorm.Records,
		"recommended", recommended, "against", against, "floor", r.constant(), "verdict", verdict,
		"next", append([]string{}, next...), "code", append([]string{}, code...),
	)...)
}

func (r rows) method(m *compare.Method) study.Row {
	row := append(study.Row{study.Name("method", "method", m.Name), {Key: "key", Value: m.Key},
		study.Count("members", "members", m.Members)}, study.Scores("", m.Scores)...)
	add := func(pairs ...any) { row = append(row, study.Fields(pairs...)...) }
	if m.Has("ece_calibrated_high") && m.Value("ece") > m.Value("ece_calibrated_high") {
		row.Cell("ece").Mark = aboveRange
	}
	row = append(row, study.Number(r.Loss().Key+"_at_best_t", "at best "+r.First().Symbol, m.AtBestT, report.Fixed(m.AtBestT, 4)),
		study.Shown(noise, noiseOf(m)), study.Marked(r.marks(m)))
	if m.Scaling != nil && m.Scaling.Values() != nil {
		add("temperatures", m.Scaling.Values())
	} else if c := m.Scaling.Single(); c != nil {
		add("calibration", study.Fields("method", c.Method, "norm", c.Norm()))
	}
	if m.Noise != nil {
		var std [][]float64 // one, or one for each half
		for _, c := range m.Noise.Each {
			std = append(std, c.NoiseStd)
		}
		add("noise_std", std)
	}
	add("cross_fitted", m.Scaling != nil && m.Scaling.CrossFitted() || m.Noise != nil && m.Noise.CrossFitted())
	for i, c := range r.Listed() {
		var scaled study.Row
		if m.Scaled != nil {
			scaled = scaledBy(c, m.Scaled[i])
		}
		add(scaledKey(c), scaled)
	}
	if m.Recalibrated != nil {
		how, _ := task.Find(r.Task, task.Recalibration)
		add(string(how.Method), append(study.Scores("", as(m.Recalibrated.Scores, how.Columns)),
			study.Fields("warnings", study.Texts(m.Recalibrated.Warnings))...))
	}
	if m.Parts != nil {
		add("targets", study.Rows(m.Parts, func(p task.Part) study.Row {
			return append(study.Fields("name", p.Name), study.Scores("", p.Scores)...)
		}))
	}
	for _, f := range m.Figures {
		add("figure_"+f.Key, study.Fields("x", f.X, "y", f.Y, "lower", f.Lower, "upper", f.Upper))
	}
	for _, l := range m.Losses {
		d, ok := m.Differences[l.Key]
		if ok && l.Key != compare.ErrorLoss {
			d.Interval = r.Held(m, r.verdict.Base, d.Interval)
		}
		cell := study.Difference(l.Key+"_difference", "minus "+r.baselineName()+" [95 %]", difference(d), d.Interval)
		if !ok {
			cell.Value, cell.Text = nil, ""
		}
		row = append(row, cell)
	}
	row = append(row, r.draws(m)...)
	add("shift", r.shift(m), "groups", r.groups(m), "over_runs", r.overRuns(m))
	if !m.Sound() {
		add("undetermined", m.Undetermined)
	}
	deploy := r.Spell.Lines(nil)
	if r.verdict.Against == nil {
		deploy = r.Spell.Lines(r.StepsOf(m))
	}
	var settings any // with which sample makes the method's ensemble
	if m.Deploy != nil {
		settings = m.Deploy.Form()
	}
	add("intervals", r.intervals(m), "settings", settings, "networks", m.Networks, "deploy", deploy,
		"stale_bn", m.StaleBN, "baseline", m.Differences == nil, "warnings", study.Texts(r.warningsOf(m)))
	return row
}

// intervals returns the 95 % intervals of a method's own figures on new examples.
func (r rows) intervals(m *compare.Method) study.Row {
	out := study.Row{}
	for _, l := range m.Losses {
		units := r.Clustered(l.Values, nil)
		i := r.Held(m, m, chance.NewDifference(units, 0).Interval)
		key := l.Key
		if key == compare.ErrorLoss {
			key, i = "accuracy", chance.Interval{Mean: 1 - i.Mean, Low: max(0, 1-i.High), High: min(1, 1-i.Low)}
			if r.CountsErrors() && len(units) == len(l.Values) {
				i = chance.Exact(i.Mean, len(units))
			}
		}
		if !math.IsNaN(i.Low) && !math.IsInf(i.Mean, 0) {
			out = append(out, study.Fields(key, study.Fields("low", i.Low, "high", i.High))...)
		}
	}
	return out
}

// difference returns the difference of these networks with its interval.
func difference(d compare.Difference) study.Row {
	return append(study.Interval("value", d.Interval), study.Fields("standard_error", d.Standard, "p", d.P, "p_holm", d.Adjusted)...)
}

// draws says how the first loss varies with other draws of as many members, and what it would be with very many.
func (r rows) draws(m *compare.Method) study.Row {
	seeds, many := study.Shown(otherSeeds, ""), study.Shown(veryMany, "")
	if d, ok := m.OwnDraws(); ok {
		seeds.Text = "±" + report.Fixed(d.Standard(), 4)
		many.Text = report.Fixed(r.Value(m)-d.Bias, 4) + " " + seeds.Text
	}
	var all study.Row
	if m.Differences != nil && m.Draws.DoF != 0 {
		d := r.Main(m)
		all = study.Fields("standard_error", m.Draws.Standard(), "bias", m.Draws.Bias, "other_seeds",
			study.Interval("value", d.OtherDraws(m.Draws)), "very_many_members", study.Interval("value", d.ManyDraws(m.Draws)))
	}
	return append(study.Fields(r.Loss().Key+"_draws", all), seeds, many)
}

// step returns a step of the price list.
func (r rows) step(s compare.Step) study.Row {
	s.Interval = r.Held(s.To, s.From, s.Interval)
	return slices.Concat(study.Fields("from", s.From.Key, "to", s.To.Key), difference(s.Difference),
		r.price(s.To, study.IntervalText(s.Interval)))
}

// price returns what the price list shows of a method.
func (r rows) price(m *compare.Method, change string) study.Row {
	return study.Row{
		study.Shown("step by step", marked(m)).Aligned(report.Left),
		study.Shown("networks", report.Thousands(m.Networks)),
		study.Shown(r.Loss().Name, report.Fixed(r.Value(m), 4)),
		study.Shown("change [95 %]", change),
	}
}

func scaledKey(c task.Calibrator) string { return string(c.Method) + "_scaled" }

// scaledBy returns a method after a calibrator, or nil.
func scaledBy(c task.Calibrator, s *compare.Scaled) study.Row {
	if s == nil {
		return nil
	}
	out := append(study.Scores("", as(s.Scores, c.Columns)), study.Shown(c.Symbol, s.Fitted.Numbers()).Renamed("numbers"))
	if v := s.Fitted.Values(); v != nil {
		out = append(out, study.Fields("temperatures", v)...)
	}
	return append(out, study.Fields("cross_fitted", s.Fitted.CrossFitted(), "warnings",
		study.Texts(append(s.Fitted.Warnings(), s.Evaluation.Warnings...)))...)
}

// as returns scores with the headers that a calibration gives to metrics.
func as(scores []task.Score, metrics []task.Metric) []task.Score {
	scores = slices.Clone(scores)
	for i, s := range scores {
		if k := slices.IndexFunc(metrics, func(m task.Metric) bool { return m.Key == s.Key }); k >= 0 {
			scores[i].Metric = metrics[k]
		}
	}
	return scores
}

// shift returns the scores of a method by severity, 0 for clean data, its first loss by corruption, and its differences to the
// baseline.
func (r rows) shift(m *compare.Method) study.Row {
	if r.Shift == nil {
		return nil
	}
	base := r.verdict.Base
	difference := func(k int) study.Row {
		out := study.Row{}
		for _, l := range m.Losses {
			if m != base {
				d := r.ShiftDifference(m, base, l.Key, k)
				if m == r.verdict.Candidate && l.Key == r.Loss().Key && k == 0 {
					d = r.Shifted
				}
				out = append(out, study.Fields(l.Key+"_difference", difference(d))...)
			}
		}
		return out
	}
	steps := []study.Row{}
	for k, e := range m.Shifted.Steps {
		step := append(study.Fields("severity", r.Shift.Severity(k)), study.Scores("", e.Main())...)
		if k > 0 {
			step = append(step, difference(k)...)
		}
		steps = append(steps, step)
	}
	corruptions := []study.Row{}
	for k, c := range r.Shift.Corruptions {
		if of := m.Shifted.ByCorruption(k); of != nil {
			corruptions = append(corruptions, study.Fields("corruption", c, r.Loss().Key, stat.Mean(of, nil)))
		}
	}
	return study.Fields("examples", r.Shift.Examples, "each", r.Shift.Each, "severities", steps, "all_severities", difference(0),
		"corruptions", corruptions)
}

// groups returns the figures of a method by group with its differences to the baseline, or nil.
func (r rows) groups(m *compare.Method) any {
	if r.Report == nil {
		return nil
	}
	list, differences := study.Rows(m.Groups, study.GroupRow), r.GroupDifferences(m, r.verdict.Base)
	for k := range list {
		if m != r.verdict.Base {
			list[k] = append(list[k], study.Fields(r.Loss().Key+"_difference", study.Interval("value", differences[k]))...)
		}
	}
	return list
}

func (r rows) overRuns(m *compare.Method) study.Row {
	o := m.OverRuns
	if o == nil {
		return nil
	}
	p := o.Better
	return study.Row{
		{Key: "runs", Value: len(o.PerRun)},
		study.Difference("difference", "minus "+short(r.verdict.RunsBase)+" [95 %]",
			difference(compare.Difference{Difference: o.Difference, Adjusted: math.NaN()}), o.Interval),
		{Key: "each_run", Value: o.PerRun},
		study.Number("sd", "± SD", o.Spread, report.Fixed(o.Spread, 4)),
		study.Number("p_better", "P(better) [95 %]", study.Interval("value", p),
			report.Fixed(p.Mean, 2)+" ["+report.Fixed(p.Low, 2)+", "+report.Fixed(p.High, 2)+"]"),
		{Key: "p_better_bootstrap", Value: study.Interval("value", o.Bootstrap)},
		{Key: "p_paired_t", Value: o.PairedT},
		study.Number("p_sign_flip", "sign-flip p", o.SignFlip, report.Fixed(o.SignFlip, 3)),
	}
}

// constant returns the main scores of a network that learnt nothing, or nil.
func (r rows) constant() study.Row {
	if r.Constant == nil {
		return nil
	}
	row := append(study.Fields("of", r.ConstantOf, "name", r.Constant.Name), study.Scores("", r.Constant.Main())...)
	row = append(row, study.Cell{Key: "method", Text: r.Constant.Name + ", no network", Hidden: true})
	for _, c := range r.mainColumns() {
		if row.Cell(c.Key) == nil {
			row = append(row, study.Cell{Key: c.Key, Text: " ", Hidden: true}) // not the dash of the baseline
		}
	}
	return row
}
