package compare

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"

	"github.com/swagwrap/swagwrap/calibrate/chance"
	"github.com/swagwrap/swagwrap/internal/baseline"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/report"
	"github.com/swagwrap/swagwrap/internal/report/plot"
	"github.com/swagwrap/swagwrap/internal/study"
	"github.com/swagwrap/swagwrap/internal/task"
)

// shifted evaluates a method on the clean examples of the shift, and then at each severity. What was fitted on clean data
// stays. outcomes are those of all test data.
func (r *Result) shifted(m *Method, outcomes []float64, data []*infer.Sums) error {
	width := len(outcomes) / r.Test.Len()
	var clean []float64
	for _, i := range r.Shift.Chosen() {
		clean = append(clean, outcomes[i*width:][:width]...)
	}
	opts := r.options(m)
	opts.MainOnly = true
	evaluate := func(outcomes []float64, rows []int) error {
		e, err := task.Evaluate(r.task, outcomes, r.Test.Labels().Pick(rows), opts)
		if err != nil {
			return fmt.Errorf("%s, damaged data: %w", m.Name, err)
		}
		m.Shifted = append(m.Shifted, e)
		return nil
	}
	if err := evaluate(clean, r.Shift.Chosen()); err != nil {
		return err
	}
	for k, sums := range data {
		outcomes := sums.Mean()
		for _, f := range []*task.Fitted{m.Noise, m.Scaling} {
			if f != nil {
				outcomes = f.Apply(r.task, outcomes)
			}
		}
		if err := evaluate(outcomes, r.Shift.Rows); err != nil {
			return err
		}
		if r.Save != nil {
			shown, width := r.task.Shown(outcomes)
			if err := r.Save(fmt.Sprintf("%s-severity-%d", m.Key, r.Shift.Severity(k+1)), shown, width); err != nil {
				return err
			}
		}
	}
	return nil
}

// shiftLoss returns a loss of a method for each example at severity k of the shift, or the mean over all severities if k
// is 0. Corruptions of one example are averaged. Losses of pixels and tokens are of units of chance.
func (r *Result) shiftLoss(m *Method, key string, k int) []float64 {
	if m.dense != nil && k == 0 {
		return m.dense.together.Loss(key)
	} else if m.dense != nil {
		return m.Shifted[k].Loss(key)
	}
	of := m.Shifted[1:]
	if k > 0 {
		of = m.Shifted[k:][:1]
	}
	out := make([]float64, r.Shift.Examples)
	for _, e := range of {
		for j, v := range e.Loss(key) {
			out[j/r.Shift.Each] += v
		}
	}
	floats.Scale(1/float64(len(of)*r.Shift.Each), out)
	return out
}

// shiftDifference compares two methods at severity k of the shift, or on all severities together if k is 0. An example with
// all its corruptions belongs to one unit of chance. The temperatures are those that were fitted.
func (r *Result) shiftDifference(m, base *Method, key string, k int) Difference {
	each := difference(r.shiftLoss(m, key, k), r.shiftLoss(base, key, k))
	return Difference{chance.NewDifference(r.clustered(each, r.Shift.Chosen()), 0), math.NaN()}
}

// shiftMetrics returns the metrics that tables and figures of the shift show, such as accuracy, NLL and ECE.
func (r *Result) shiftMetrics() []task.Score {
	all := r.Methods[0].Main()
	ece := slices.IndexFunc(all, func(s task.Score) bool { return s.Key == "ece" })
	return all[:min(max(3, ece+1), len(all))]
}

// shiftTables shows these metrics of each method by severity.
func (r *Result) shiftTables() (tables []report.NamedTable) {
	base := r.base()
	for _, metric := range r.shiftMetrics() {
		first := metric.Key == r.loss().Key
		columns := []report.Column{{Header: metric.Header + " at severity"}, decimal("clean")}
		for _, severity := range r.Shift.Severities {
			columns = append(columns, decimal(strconv.Itoa(severity)))
		}
		if first {
			columns = append(columns, decimal("damaged minus "+base.short()+" [95 %]"))
		}
		t := report.NewTable(columns...)
		for _, m := range r.Methods {
			if m.StaleBN {
				continue
			}
			cells := []string{m.Name}
			for _, e := range m.Shifted {
				cells = append(cells, study.Cell(e.Score(metric.Key)))
			}
			if first && m != base {
				cells = append(cells, r.shiftDifference(m, base, metric.Key, 0).text())
			} else if first {
				cells = append(cells, "")
			}
			t.Row(cells...)
		}
		named := report.NamedTable{Title: metric.Header + " when the data change", Table: t}
		if first {
			named.Explanation = r.shiftText()
		}
		tables = append(tables, named)
	}
	return tables
}

// shiftText says what the damaged data are.
func (r *Result) shiftText() string {
	return fmt.Sprintf("%s of the test data, each damaged in %s of %s. What was fitted on clean data stays. The last column is for all severities together.",
		report.Plural(r.Shift.Examples, r.Shift.Unit(r.Test)), report.Plural(r.Shift.Each, "way"), report.Thousands(len(r.Shift.Corruptions)))
}

// corruptionTable shows the first loss by corruption for the two methods that the verdict compares.
func (r *Result) corruptionTable() *report.Table {
	base, other := r.base(), r.candidate()
	columns := []report.Column{{Header: r.loss().Name}, decimal(base.short())}
	if other != nil {
		columns = append(columns, decimal(other.short()), decimal("difference [95 %]"))
	}
	t := report.NewTable(columns...)
	for k, c := range r.Shift.Corruptions {
		a := r.lossOf(base, k)
		if a == nil {
			continue // there are fewer examples than corruptions
		}
		cells := []string{strings.ReplaceAll(c.Name, "_", " "), report.Fixed(stat.Mean(a, nil), 4)}
		if other != nil {
			b, apart := r.lossOf(other, k), "—"
			if len(a) > 1 {
				apart = intervalText(chance.NewDifference(r.clustered(difference(b, a), r.Shift.With(k)), 0).Interval)
			}
			cells = append(cells, report.Fixed(stat.Mean(b, nil), 4), apart)
		}
		t.Row(cells...)
	}
	return t
}

// lossOf returns the first loss of a method for each example with corruption k: the mean over the severities.
func (r *Result) lossOf(m *Method, k int) (out []float64) {
	if m.dense != nil {
		return append(out, m.dense.each[k].Loss(r.loss().Key)...)
	}
	for i := k; i < len(r.Shift.Rows); i += len(r.Shift.Corruptions) {
		sum := 0.0
		for _, e := range m.Shifted[1:] {
			sum += e.Loss(r.loss().Key)[i]
		}
		out = append(out, sum/float64(len(m.Shifted)-1))
	}
	return out
}

// shiftLines says what the change of the data does to the two methods that the verdict compares.
func (r *Result) shiftLines() (lines []string) {
	base, other := r.base(), r.candidate()
	if r.Shift == nil || r.unranked(base) != "" {
		return nil
	}
	loss, last := r.loss(), len(r.Shift.Severities)
	where := fmt.Sprintf("On %s, damaged at %s", report.Plural(r.Shift.Examples, r.Shift.Unit(r.Test)), r.Shift.Named())
	if other == nil {
		lines = append(lines, fmt.Sprintf("%s, %s has %s %s. On clean ones it is %s.", where, base.short(), loss.Name,
			report.Fixed(stat.Mean(r.shiftLoss(base, loss.Key, 0), nil), 4), study.Cell(base.Shifted[0].Score(loss.Key))))
	} else {
		d := r.Shifted
		text := fmt.Sprintf("%s shows no difference to %s", other.short(), base.short())
		switch name := fmt.Sprintf("%s is %s than %s", other.short(), map[int]string{-1: "better", 1: "worse"}[d.sign()], base.short()); {
		case math.IsNaN(d.Mean) || math.IsInf(d.Mean, 0):
			return []string{where + fmt.Sprintf(", %s and %s have no finite %s difference: a true class has probability 0.", other.short(), base.short(), loss.Name)}
		case d.sign() != 0:
			text = name
		case d.Low > 0 || d.High < 0:
			text = fmt.Sprintf("%s differs from %s, perhaps by chance", other.short(), base.short())
		}
		lines = append(lines, fmt.Sprintf("%s, %s: %s %s.", where, text, loss.Name, d.text()))
	}
	if base.Has("ece") {
		value := func(m *Method, k int) string { return study.Cell(m.Shifted[k].Score("ece")) }
		line := fmt.Sprintf("The ECE of %s goes from %s on clean data to %s at severity %d", base.short(), value(base, 0), value(base, last), r.Shift.Severity(last))
		if other != nil {
			line += fmt.Sprintf(", and that of %s from %s to %s", other.short(), value(other, 0), value(other, last))
		}
		line += "."
		if r.Shift.Each == 1 && r.Unit == nil && base.Has("ece_calibrated") { // the noise of independent examples
			by := func(k int) string { return study.Cell(base.Shifted[k].Score("ece_calibrated")) }
			line += fmt.Sprintf(" Chance alone gives a calibrated %s about %s on clean data and %s at severity %d.", base.short(), by(0), by(last), r.Shift.Severity(last))
		}
		lines = append(lines, line)
	}
	return lines
}

// shiftCurves draws these metrics by severity, and the difference of the two methods that the verdict compares. It shows the
// user's network, the baseline and the ensembles.
func (r *Result) shiftCurves() (curves []plot.Curve) {
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
			s := plot.Series{Name: m.short()}
			for k, e := range m.Shifted {
				s.X, s.Y = append(s.X, float64(r.Shift.Severity(k))), append(s.Y, scale*e.Value(metric.Key))
			}
			c.Series = append(c.Series, s)
		}
		curves = append(curves, c)
	}
	base, other, loss, zero := r.base(), r.candidate(), r.loss(), 0.0
	if other == nil {
		return curves
	}
	var s plot.Series
	for k, severity := range r.Shift.Severities {
		d := r.shiftDifference(other, base, loss.Key, k+1)
		s.X, s.Y = append(s.X, float64(severity)), append(s.Y, d.Mean)
		s.Lower, s.Upper = append(s.Lower, d.Low), append(s.Upper, d.High)
	}
	return append(curves, plot.Curve{Title: fmt.Sprintf("%s of %s minus %s", loss.Name, other.short(), base.short()), XLabel: "severity of the damage", YLabel: "below 0 " + other.short() + " is better",
		Ideal: &zero, Series: []plot.Series{s}})
}

const shiftAxis = "severity of the damage (0 is clean)"

// shiftJSON returns the scores of a method by severity, 0 for clean data, its first loss by corruption, and its differences
// to the baseline.
func (r *Result) shiftJSON(m *Method) any {
	if r.Shift == nil {
		return nil
	}
	base := r.base()
	apart := func(k int) study.Object {
		out := study.Object{}
		for _, l := range m.Losses {
			if m != base {
				d := r.shiftDifference(m, base, l.Key, k)
				if m == r.candidate() && l.Key == r.loss().Key && k == 0 {
					d = r.Shifted
				}
				out = append(out, study.Fields(l.Key+"_difference", differenceJSON(d))...)
			}
		}
		return out
	}
	steps := []study.Object{}
	for k, e := range m.Shifted {
		step := append(study.Fields("severity", r.Shift.Severity(k)), study.Scores("", e.Main())...)
		if k > 0 {
			step = append(step, apart(k)...)
		}
		steps = append(steps, step)
	}
	corruptions := []study.Object{}
	for k, c := range r.Shift.Corruptions {
		if of := r.lossOf(m, k); of != nil {
			corruptions = append(corruptions, study.Fields("corruption", c.Name, r.loss().Key, study.Finite(stat.Mean(of, nil))))
		}
	}
	return study.Fields("examples", r.Shift.Examples, "each", r.Shift.Each, "severities", steps, "all_severities", apart(0), "corruptions", corruptions)
}
