package compare

import (
	"slices"

	"github.com/swagwrap/swagwrap/calibrate"
	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/report"
	"github.com/swagwrap/swagwrap/internal/report/plot"
	"github.com/swagwrap/swagwrap/internal/study"
	"github.com/swagwrap/swagwrap/internal/task"
)

// Page returns the result with figures.
func (r *Result) Page() *report.Report {
	page := r.BatchNorm.Page("SWAG and its alternatives", r, r.Notes, r.facts()...)
	page.Code = r.Code()
	page.Provenance = study.Provenance(r.Runtime, r.Networks(), study.Used{As: "validation", Data: r.Validation},
		study.Used{As: "training", Data: r.Inputs.BatchNorm.Data}, study.Used{As: "test", Data: r.Test})
	if r.Steps != nil {
		page.Tables = append(page.Tables, report.NamedTable{Title: "What each step buys", Explanation: "From your last checkpoint to the ensemble. An interval compares a step with the one before, on new examples.", Table: r.stepsTable()})
	}
	explanation := "NLL is the mean for each " + r.unit() + " in nats. Lower is better, except for accuracy. An interval is for the difference of these networks on new examples."
	if !r.dense() {
		explanation += " At best T: with a temperature of its own, on examples that it was not fitted on. Other seeds: what other draws would change on the same examples."
	}
	page.Tables = append(page.Tables, report.NamedTable{Title: "Methods", Explanation: explanation, Table: r.mainTable()})
	if r.runs != nil {
		page.Tables = append(page.Tables, report.NamedTable{Title: "Runs of training", Explanation: "The methods in each run, on the same test data.", Table: r.runsTable()})
	}
	if r.Report != nil {
		page.Tables = append(page.Tables, report.NamedTable{Title: "Groups", Explanation: "The two methods of the verdict on each group of the test data.", Table: r.groupsTable()})
	}
	if r.Shift != nil {
		page.Tables, page.Shifts = append(page.Tables, r.shiftTables()...), r.shiftCurves()
		page.Tables = append(page.Tables, report.NamedTable{Title: "By corruption", Explanation: "Means over the severities.", Table: r.corruptionTable(), Folded: true})
	}
	if _, ok := r.task.(task.Decided); ok {
		page.Tables = append(page.Tables, report.NamedTable{Title: "Decisions", Explanation: "What is predicted by a threshold on the probability of class 1, the positive class.", Table: r.decisionsTable()})
	}
	page.Tables = append(page.Tables, report.NamedTable{Title: "Further metrics", Table: r.furtherTable(), Folded: true})
	if t := r.setsTable(); t != nil {
		page.Tables = append(page.Tables, report.NamedTable{Title: "Sets of classes", Explanation: "Conformal sets contain the true class with a promised probability.", Table: t, Folded: true})
	}
	if r.Scalings {
		if t := r.scalingsTable(); t != nil {
			page.Tables = append(page.Tables, report.NamedTable{Title: "With scalings of their own", Table: t})
		}
		if t := r.recalibrationTable(); t != nil {
			page.Tables = append(page.Tables, report.NamedTable{Title: "With distributions recalibrated", Table: t})
		}
	}
	if t := r.parts(); t != nil {
		page.Tables = append(page.Tables, *t)
	}
	page.Differences, page.Calibrations = r.differences(), r.calibrations()
	page.Promote()
	for _, m := range r.Methods {
		if m.StaleBN {
			continue
		}
		_, decided := r.task.(task.Decided)
		page.Methods = append(page.Methods, plot.Method{Name: m.Name, Minor: !r.major(m), Label: m.calibrationError(), Reliability: m.Reliability, OfClass1: decided,
			RiskCoverage: m.RiskCoverage, Points: m.Points, Decided: m.Decided})
	}
	return page
}

// differences returns the differences in the first loss, and in errors if the task has them, for the same methods.
// They show the same verdicts as the text.
func (r *Result) differences() (all []plot.Differences) {
	name, ranked := r.baselineName(), r.unranked(r.base()) == ""
	for _, loss := range []task.Loss{r.loss(), {Key: errorLoss}} {
		d := plot.Differences{Title: loss.Name + " against " + name, Label: loss.Name + " − " + loss.Name + "(" + name + "), nats per " + map[bool]string{true: "token", false: dataset.Unit(r.Test)}[r.isText()], Baseline: name}
		unit := 1.0
		if loss.Key == errorLoss {
			d.Title, d.Label, unit = "Error rate against "+name, "errors − errors("+name+"), percentage points", 100
		}
		for _, m := range r.Methods {
			if x, ok := m.Differences[loss.Key]; ok && !m.StaleBN && m.sound() { // its loss would flatten the others
				sign := 0
				if ranked {
					sign, _ = r.told(m, loss.Key)
				}
				d.Rows = append(d.Rows, plot.Difference{Name: m.Name, Value: unit * x.Mean, Lower: unit * x.Low, Upper: unit * x.High, Open: sign == 0})
			}
		}
		if len(d.Rows) > 0 {
			all = append(all, d)
		}
	}
	return all
}

// mostNamed is the largest number of methods for which figures name all.
const mostNamed = 4

// major reports whether figures name a method. If there are many methods, figures name those of the price list, and the
// method to deploy.
func (r *Result) major(m *Method) bool {
	return len(r.Methods) <= mostNamed || m == r.choice() || m == r.base() ||
		slices.ContainsFunc(r.Steps, func(s Step) bool { return s.From == m || s.To == m })
}

// calibrationError returns the calibration error as tables show it, or "" for a task without one.
func (m *Method) calibrationError() string {
	if !m.Has("ece") {
		return ""
	}
	return m.Score("ece").Header + " " + study.Cell(m.Score("ece"))
}

// JSON returns all numbers, unrounded. Numbers that are not finite become null. Differences are those of losses:
// positive is worse.
func (r *Result) JSON() any {
	validation := 0
	if r.Validation != nil {
		validation = r.Validation.Len()
	}
	paths := []string{}
	for _, n := range r.Networks() {
		paths = append(paths, n.Posterior.Path)
	}
	methods := []study.Object{}
	for _, m := range r.Methods {
		methods = append(methods, r.methodJSON(m))
	}
	return study.Fields(
		"examples", r.Test.Len(), "members", r.Members, "scale", r.Scale, "rank", r.rank(), "seed", r.Seed,
		"ece_binning", calibrate.ECEOptions{}.Name(), "best_t_splits", calibrate.Splits, "validation_examples", validation, "posteriors", paths, "methods", methods, "steps", r.stepsJSON(), "tests", r.Tests, "tuned", r.Tuned,
		"notes", append([]string{}, r.Notes...), "warnings", r.BatchNorm.Warnings(), "data_notes", r.BatchNorm.Notes(), "batch_norm", r.BatchNorm.Records, "verdict", r.Verdict(), "next", append([]string{}, r.Next()...), "code", append([]string{}, r.Code()...),
	)
}

func (r *Result) methodJSON(m *Method) study.Object {
	out := study.Fields("method", m.Name, "key", m.Key, "members", m.Members)
	add := func(pairs ...any) { out = append(out, study.Fields(pairs...)...) }
	out = append(out, study.Scores("", m.Scores)...)
	add(r.loss().Key+"_at_best_t", study.Finite(m.AtBestT))
	if m.Scaling != nil && m.Scaling.Values() != nil {
		add("temperatures", m.Scaling.Values())
	}
	if m.Noise != nil {
		var std [][]float64 // one, or one for each half
		for _, c := range m.Noise.Each {
			std = append(std, c.NoiseStd)
		}
		add("noise_std", std)
	}
	add("cross_fitted", m.Scaling != nil && m.Scaling.CrossFitted() || m.Noise != nil && m.Noise.CrossFitted())
	for i, c := range r.calibrators() {
		var scaled any
		if m.Scaled != nil && m.Scaled[i] != nil {
			scaled = m.Scaled[i].json()
		}
		add(string(c.Method)+"_scaled", scaled)
	}
	if m.Recalibrated != nil {
		add("isotonic", append(study.Scores("", m.Recalibrated.Scores), study.Fields("warnings", study.Texts(m.Recalibrated.Warnings))...))
	}
	if m.Parts != nil {
		parts := []study.Object{}
		for _, p := range m.Parts {
			parts = append(parts, append(study.Fields("name", p.Name), study.Scores("", p.Scores)...))
		}
		add("targets", parts)
	}
	for _, f := range m.Figures {
		add("figure_"+f.Key, study.Fields("x", f.X, "y", f.Y, "lower", f.Lower, "upper", f.Upper))
	}
	for _, l := range m.Losses {
		var d any
		if x, ok := m.Differences[l.Key]; ok {
			d = differenceJSON(x)
		}
		add(l.Key+"_difference", d)
	}
	add(r.loss().Key+"_draws", r.drawsJSON(m), "shift", r.shiftJSON(m), "groups", r.groupsJSON(m), "over_runs", m.runsJSON())
	if !m.sound() {
		add("undetermined", m.Undetermined)
	}
	add("networks", m.Networks, "deploy", r.Commands(m))
	add("stale_bn", m.StaleBN, "baseline", m.Differences == nil, "warnings", study.Texts(m.Warnings))
	return out
}

// differenceJSON returns the difference of these networks with its interval.
func differenceJSON(d Difference) study.Object {
	return append(study.Interval("value", d.Interval), study.Fields("standard_error", study.Finite(d.Standard), "p", study.Finite(d.P), "p_holm", study.Finite(d.Adjusted))...)
}

// drawsJSON returns the difference that other draws of as many members would have, and very many members.
func (r *Result) drawsJSON(m *Method) any {
	if m.Differences == nil || m.Draws.DoF == 0 {
		return nil
	}
	d := r.main(m)
	return study.Fields("standard_error", study.Finite(m.Draws.Standard()), "bias", study.Finite(m.Draws.Bias),
		"other_seeds", study.Interval("value", d.OtherDraws(m.Draws)), "very_many_members", study.Interval("value", d.ManyDraws(m.Draws)))
}

// stepsJSON returns the price list.
func (r *Result) stepsJSON() []study.Object {
	out := []study.Object{}
	for _, s := range r.Steps {
		out = append(out, append(study.Fields("from", s.From.Key, "to", s.To.Key), differenceJSON(s.Difference)...))
	}
	return out
}

func (s *Scaled) json() study.Object {
	out := study.Scores("", s.Scores)
	if v := s.Fitted.Values(); v != nil {
		out = append(out, study.Fields("temperatures", v)...)
	}
	return append(out, study.Fields("cross_fitted", s.Fitted.CrossFitted(), "warnings", study.Texts(append(s.Fitted.Warnings(), s.Evaluation.Warnings...)))...)
}
