package show

import (
	"fmt"
	"slices"

	"github.com/swagwrap/swagwrap/internal/baseline"
	"github.com/swagwrap/swagwrap/internal/report"
	"github.com/swagwrap/swagwrap/internal/report/plot"
	"github.com/swagwrap/swagwrap/internal/study"
	"github.com/swagwrap/swagwrap/internal/study/compare"
	"github.com/swagwrap/swagwrap/internal/task"
	"gonum.org/v1/gonum/stat"
)

// shiftMetrics returns the metrics that tables and figures of the shift show, such as accuracy, NLL and ECE.
func (r words) shiftMetrics() []task.Score {
	all := r.Methods[0].Main()
	ece := slices.IndexFunc(all, func(s task.Score) bool { return s.Key == "ece" })
	return all[:min(max(3, ece+1), len(all))]
}

// shiftLines says what the change of the data does to the two methods that the verdict compares.
func (r sentences) shiftLines() (lines []string) {
	base, other := r.verdict.Base, r.verdict.Candidate
	if r.Shift == nil || r.verdict.Unranked != compare.Ranked {
		return nil
	}
	loss, last := r.Loss(), len(r.Shift.Severities)
	where := fmt.Sprintf("On %s, damaged at %s", report.Plural(r.Shift.Examples, r.Shift.Unit(r.Test)), r.Shift.Named())
	if other == nil {
		lines = append(lines, fmt.Sprintf("%s, %s has %s %s. On clean ones it is %s.", where, short(base), loss.Name,
			report.Fixed(stat.Mean(base.ShiftLoss(loss.Key, 0), nil), 4), study.Format(base.Shifted.Steps[0].Score(loss.Key))))
	} else {
		d := r.Shifted
		text := fmt.Sprintf("%s shows no difference to %s", short(other), short(base))
		switch name := fmt.Sprintf("%s is %s than %s", short(other), map[int]string{-1: "better", 1: "worse"}[d.Sign()], short(base)); {
		case !d.Finite():
			return []string{where + fmt.Sprintf(", %s and %s have no finite %s difference: a true class has probability 0.", short(other),
				short(base), loss.Name)}
		case d.Sign() != 0:
			text = name
		case d.Low > 0 || d.High < 0:
			text = fmt.Sprintf("%s differs from %s, perhaps by chance", short(other), short(base))
		}
		lines = append(lines, fmt.Sprintf("%s, %s: %s %s.", where, text, loss.Name, study.IntervalText(d.Interval)))
	}
	if base.Has("ece") {
		value := func(m *compare.Method, k int) string { return study.Format(m.Shifted.Steps[k].Score("ece")) }
		line := fmt.Sprintf("The ECE of %s goes from %s on clean data to %s at severity %d", short(base), value(base, 0),
			value(base, last), r.Shift.Severity(last))
		if other != nil {
			line += fmt.Sprintf(", and that of %s from %s to %s", short(other), value(other, 0), value(other, last))
		}
		line += "."
		if r.Shift.Each == 1 && r.Unit == nil && base.Has("ece_calibrated") { // the noise of independent examples
			by := func(k int) string { return study.Format(base.Shifted.Steps[k].Score("ece_calibrated")) }
			line += fmt.Sprintf(" Chance alone gives a calibrated %s about %s on clean data and %s at severity %d.", short(base), by(0),
				by(last), r.Shift.Severity(last))
		}
		lines = append(lines, line)
	}
	return lines
}

// shiftCurves draws these metrics by severity, and the difference of the two methods that the verdict compares. It shows the
// user's network, the baseline and the ensembles.
func (r figures) shiftCurves() (curves []plot.Curve) {
	for _, metric := range r.shiftMetrics() {
		c := plot.Curve{Title: metric.Header + " by severity", XLabel: shiftAxis, YLabel: metric.Header}
		scale := 1.0
		if metric.Percent {
			scale = 100
		}
		for _, m := range r.Methods {
			if m.StaleBN || !r.major(m) && m.Key != baseline.SGD {
				continue
			}
			s := plot.Series{Name: short(m)}
			for k, e := range m.Shifted.Steps {
				s.X, s.Y = append(s.X, float64(r.Shift.Severity(k))), append(s.Y, scale*e.Value(metric.Key))
			}
			c.Series = append(c.Series, s)
		}
		curves = append(curves, c)
	}
	base, other, loss, zero := r.verdict.Base, r.verdict.Candidate, r.Loss(), 0.0
	if other == nil {
		return curves
	}
	var s plot.Series
	for k, severity := range r.Shift.Severities {
		d := r.ShiftDifference(other, base, loss.Key, k+1)
		s.X, s.Y = append(s.X, float64(severity)), append(s.Y, d.Mean)
		s.Lower, s.Upper = append(s.Lower, d.Low), append(s.Upper, d.High)
	}
	return append(curves, plot.Curve{
		Title:  fmt.Sprintf("%s of %s minus %s", loss.Name, short(other), short(base)),
		XLabel: "severity of the damage",
		YLabel: "below 0 " + short(other) + " is better",
		Ideal:  &zero,
		Series: []plot.Series{s},
	})
}

const shiftAxis = "severity of the damage (0 is clean)"
