package show

import (
	"math"

	"github.com/swagwrap/swagwrap/calibrate"
	"github.com/swagwrap/swagwrap/calibrate/chance"
	"github.com/swagwrap/swagwrap/internal/study"
	"github.com/swagwrap/swagwrap/internal/study/compare"
	"github.com/swagwrap/swagwrap/internal/task"
	"gonum.org/v1/gonum/stat"
)

// fields makes the JSON.
type fields struct{ words }

// all returns all numbers, unrounded. Numbers that are not finite become null. Differences are those of losses:
// positive is worse.
func (r fields) all(verdict, next, code []string) any {
	validation := 0
	if r.Validation != nil {
		validation = r.Validation.Len()
	}
	paths, ids := []string{}, []string{}
	for _, n := range r.Networks() {
		paths, ids = append(paths, n.Posterior.Path), append(ids, n.Posterior.ID)
	}
	methods := []study.Object{}
	for _, m := range r.Methods {
		methods = append(methods, r.methodJSON(m))
	}
	return study.Fields(
		"examples", r.Test.Len(), "members", r.Members, "scale", r.Scale, "rank", r.rank(), "seed", r.Seed,
		"ece_binning", calibrate.ECEOptions{}.Name(), "ece_of", r.eceOf(), "best_t_splits", calibrate.Splits,
		"validation_examples", validation, "posteriors", paths, "posterior_ids", ids, "test", r.TestPath, "methods", methods,
		"steps", r.stepsJSON(), "tests", r.Tests, "tuned", r.Tuned, "notes", append([]string{}, r.Notes...),
		"warnings", r.BatchNorm.Warnings(), "data_notes", r.BatchNorm.Notes(), "batch_norm", r.BatchNorm.Records,
		"recommended", r.recommendedJSON(), "against", r.againstJSON(), "floor", r.floorJSON(), "verdict", verdict,
		"next", append([]string{}, next...), "code", append([]string{}, code...),
	)
}

// eceOf returns whose probabilities the calibration errors are about, or nil.
func (r fields) eceOf() any {
	if of := task.ECEOf(r.Task); of != "" {
		return of
	}
	return nil
}

// recommendedJSON returns the key of the method to deploy, or nil.
func (r fields) recommendedJSON() any {
	if m := r.verdict.Choice; m != nil {
		return m.Key
	}
	return nil
}

func (r fields) methodJSON(m *compare.Method) study.Object {
	out := study.Fields("method", m.Name, "key", m.Key, "members", m.Members)
	add := func(pairs ...any) { out = append(out, study.Fields(pairs...)...) }
	out = append(out, study.Scores("", m.Scores)...)
	add(r.Loss().Key+"_at_best_t", study.Finite(m.AtBestT))
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
	for i, c := range r.Listed() {
		var scaled any
		if m.Scaled != nil && m.Scaled[i] != nil {
			scaled = scaledJSON(m.Scaled[i])
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
	add(r.Loss().Key+"_draws", r.drawsJSON(m), "shift", r.shiftJSON(m), "groups", r.groupsJSON(m), "over_runs", runsJSON(m))
	if !m.Sound() {
		add("undetermined", m.Undetermined)
	}
	deploy := r.Spell.Lines(nil)
	if r.verdict.Against == nil {
		deploy = r.Spell.Lines(r.StepsOf(m))
	}
	add("intervals", r.intervalsJSON(m), "settings", settingsJSON(m))
	add("networks", m.Networks, "deploy", deploy)
	add("stale_bn", m.StaleBN, "baseline", m.Differences == nil, "warnings", study.Texts(m.Warnings))
	return out
}

// intervalsJSON returns the 95 % intervals of a method's own figures on new examples.
func (r fields) intervalsJSON(m *compare.Method) study.Object {
	out := study.Object{}
	for _, l := range m.Losses {
		i := chance.NewDifference(r.Clustered(l.Values, nil), 0).Interval
		key := l.Key
		if key == compare.ErrorLoss {
			key, i = "accuracy", chance.Interval{Mean: 1 - i.Mean, Low: max(0, 1-i.High), High: min(1, 1-i.Low)}
		}
		if !math.IsNaN(i.Low) && !math.IsInf(i.Mean, 0) {
			out = append(out, study.Fields(key, study.Fields("low", study.Finite(i.Low), "high", study.Finite(i.High)))...)
		}
	}
	return out
}

// settingsJSON returns the settings with which sample makes the method's ensemble, or nil.
func settingsJSON(m *compare.Method) any {
	if m.Deploy == nil {
		return nil
	}
	return m.Deploy.Form()
}

// differenceJSON returns the difference of these networks with its interval.
func differenceJSON(d compare.Difference) study.Object {
	return append(study.Interval("value", d.Interval),
		study.Fields("standard_error", study.Finite(d.Standard), "p", study.Finite(d.P), "p_holm", study.Finite(d.Adjusted))...)
}

// drawsJSON returns the difference that other draws of as many members would have, and very many members.
func (r fields) drawsJSON(m *compare.Method) any {
	if m.Differences == nil || m.Draws.DoF == 0 {
		return nil
	}
	d := r.Main(m)
	return study.Fields("standard_error", study.Finite(m.Draws.Standard()), "bias", study.Finite(m.Draws.Bias),
		"other_seeds", study.Interval("value", d.OtherDraws(m.Draws)), "very_many_members", study.Interval("value", d.ManyDraws(m.Draws)))
}

// stepsJSON returns the price list.
func (r fields) stepsJSON() []study.Object {
	out := []study.Object{}
	for _, s := range r.Steps {
		out = append(out, append(study.Fields("from", s.From.Key, "to", s.To.Key), differenceJSON(s.Difference)...))
	}
	return out
}

func scaledJSON(s *compare.Scaled) study.Object {
	out := study.Scores("", s.Scores)
	if v := s.Fitted.Values(); v != nil {
		out = append(out, study.Fields("temperatures", v)...)
	}
	return append(out, study.Fields("cross_fitted", s.Fitted.CrossFitted(), "warnings",
		study.Texts(append(s.Fitted.Warnings(), s.Evaluation.Warnings...)))...)
}

// shiftJSON returns the scores of a method by severity, 0 for clean data, its first loss by corruption, and its differences
// to the baseline.
func (r fields) shiftJSON(m *compare.Method) any {
	if r.Shift == nil {
		return nil
	}
	base := r.verdict.Base
	apart := func(k int) study.Object {
		out := study.Object{}
		for _, l := range m.Losses {
			if m != base {
				d := r.ShiftDifference(m, base, l.Key, k)
				if m == r.verdict.Candidate && l.Key == r.Loss().Key && k == 0 {
					d = r.Shifted
				}
				out = append(out, study.Fields(l.Key+"_difference", differenceJSON(d))...)
			}
		}
		return out
	}
	steps := []study.Object{}
	for k, e := range m.Shifted.Steps {
		step := append(study.Fields("severity", r.Shift.Severity(k)), study.Scores("", e.Main())...)
		if k > 0 {
			step = append(step, apart(k)...)
		}
		steps = append(steps, step)
	}
	corruptions := []study.Object{}
	for k, c := range r.Shift.Corruptions {
		if of := m.Shifted.ByCorruption(k); of != nil {
			corruptions = append(corruptions, study.Fields("corruption", c, r.Loss().Key, study.Finite(stat.Mean(of, nil))))
		}
	}
	return study.Fields("examples", r.Shift.Examples, "each", r.Shift.Each, "severities", steps, "all_severities", apart(0),
		"corruptions", corruptions)
}

// runsJSON returns the differences of a method over runs, or nil.
func runsJSON(m *compare.Method) any {
	o := m.OverRuns
	if o == nil {
		return nil
	}
	return study.Fields("runs", len(o.PerRun), "difference",
		differenceJSON(compare.Difference{Difference: o.Difference, Adjusted: math.NaN()}), "each_run", o.PerRun, "sd",
		study.Finite(o.Spread),
		"p_better", study.Interval("value", o.Better), "p_better_bootstrap", study.Interval("value", o.Bootstrap), "p_paired_t",
		study.Finite(o.PairedT), "p_sign_flip", study.Finite(o.SignFlip))
}
