package compare

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/gonum/stat"

	"github.com/swagwrap/swagwrap/calibrate"
	"github.com/swagwrap/swagwrap/internal/baseline"
	"github.com/swagwrap/swagwrap/internal/corrupt"
	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/picture"
	"github.com/swagwrap/swagwrap/internal/report"
	"github.com/swagwrap/swagwrap/internal/report/plot"
	"github.com/swagwrap/swagwrap/internal/splitmix"
	"github.com/swagwrap/swagwrap/internal/study"
	"github.com/swagwrap/swagwrap/internal/task"
)

// Shift is test data that change while temperatures stay (Ovadia et al. 2019): the same pictures, damaged in several
// severities. At each severity, picture i has corruption i modulo their number, so that a severity costs one pass.
type Shift struct {
	Corruptions []corrupt.Corruption
	Severities  []int
	Examples    int // pictures of the test data

	rows []int             // their indexes in the test data
	data []dataset.Dataset // by severity
}

// ParseShift reads corruptions as [corrupt.Parse] does, followed by severities=1,3,5 and examples=N. Without these it
// uses all severities, and 1,000 pictures.
func ParseShift(text string) (*Shift, error) {
	s := &Shift{Severities: []int{1, 2, 3, 4, 5}, Examples: 1000}
	for i, word := range strings.Fields(text) {
		key, value, ok := strings.Cut(word, "=")
		var err error
		switch {
		case i == 0 && !ok:
			s.Corruptions, err = corrupt.Parse(word)
		case key == "examples":
			if s.Examples, err = strconv.Atoi(value); err != nil || s.Examples < 1 {
				err = fmt.Errorf("%s: want a number of pictures from 1", word)
			}
		case key == "severities":
			s.Severities = nil
			for _, v := range strings.Split(value, ",") {
				n, err := strconv.Atoi(v)
				if err != nil || n < 1 || n > corrupt.Severities {
					return nil, fmt.Errorf("%s: want numbers from 1 to %d", word, corrupt.Severities)
				}
				s.Severities = append(s.Severities, n)
			}
			slices.Sort(s.Severities)
			s.Severities = slices.Compact(s.Severities)
		default:
			err = fmt.Errorf("%q: want corruptions, severities=1,3,5 or examples=1000", word)
		}
		if err != nil {
			return nil, err
		}
	}
	if s.Corruptions == nil {
		s.Corruptions = corrupt.Common()
	}
	return s, nil
}

// keptBytes limits the damaged pictures of all severities that stay in memory. 7,000 of 224×224 fit.
const keptBytes = 1 << 30

// Open prepares the damaged pictures of the test data. The seed chooses the pictures and the random numbers. It fails for
// data without pictures.
func (s *Shift) Open(test dataset.Dataset, seed uint64) error {
	o := dataset.Order{Shuffle: true, Seed: seed, Limit: s.Examples}
	s.rows = o.Indices(test.Len())
	s.Examples = len(s.rows)
	var names []string
	for _, c := range s.Corruptions {
		names = append(names, c.Name)
	}
	subset := dataset.Subset(test, o)
	for _, severity := range s.Severities {
		own := splitmix.At(seed, uint64(severity))
		d, err := dataset.Changed(subset, keptBytes/int64(len(s.Severities)), func(p picture.Picture, i int) picture.Picture {
			return s.corruption(i).Apply(p, severity, splitmix.At(own, uint64(s.rows[i])))
		}, "corrupt", names, severity, seed)
		if err != nil {
			return err
		}
		s.data = append(s.data, d)
	}
	return nil
}

// corruption returns the corruption of the picture with index i.
func (s *Shift) corruption(i int) corrupt.Corruption { return s.Corruptions[i%len(s.Corruptions)] }

// shifted evaluates a method on the clean pictures of the shift, and then at each severity. What was fitted on clean data
// stays.
func (r *Result) shifted(m *Method, clean []float64, data []*infer.Sums) ([]*task.Evaluation, error) {
	width := len(clean) / r.Test.Len()
	labels := r.Test.Labels().Pick(r.Shift.rows)
	var picked []float64
	for _, i := range r.Shift.rows {
		picked = append(picked, clean[i*width:][:width]...)
	}
	all := [][]float64{picked}
	for _, sums := range data {
		outcomes := sums.Mean()
		for _, f := range []*task.Fitted{m.Noise, m.Scaling} {
			if f != nil {
				outcomes = f.Apply(r.task, outcomes)
			}
		}
		all = append(all, outcomes)
	}
	var out []*task.Evaluation
	for _, outcomes := range all {
		e, err := task.Evaluate(r.task, outcomes, labels, r.options(m))
		if err != nil {
			return nil, fmt.Errorf("%s, damaged pictures: %w", m.Name, err)
		}
		out = append(out, e)
	}
	return out, nil
}

// severity returns the severity of evaluation k of [Method.Shifted]. Clean pictures have severity 0.
func (s *Shift) severity(k int) int {
	if k == 0 {
		return 0
	}
	return s.Severities[k-1]
}

// shiftTables shows the main metrics of each method by severity.
func (r *Result) shiftTables() (tables []report.NamedTable) {
	for _, metric := range r.Methods[0].Main() {
		columns := []report.Column{{Header: metric.Header + " at severity"}, decimal("clean")}
		for _, severity := range r.Shift.Severities {
			columns = append(columns, decimal(strconv.Itoa(severity)))
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
			t.Row(cells...)
		}
		tables = append(tables, report.NamedTable{Title: metric.Header + " when the pictures change", Table: t})
	}
	tables[0].Explanation = fmt.Sprintf("%s of the test data, damaged by %s in turn. What was fitted on clean data stays.",
		report.Plural(r.Shift.Examples, "picture"), report.Plural(len(r.Shift.Corruptions), "corruption"))
	return tables
}

// corruptionTable shows the first loss by corruption for the two methods that the verdict compares.
func (r *Result) corruptionTable() *report.Table {
	base, other := &r.Methods[r.baseline()], r.candidate()
	columns := []report.Column{{Header: r.loss().Name}, decimal(base.short())}
	if other != nil {
		columns = append(columns, decimal(other.short()), decimal("difference [95 %]"))
	}
	t := report.NewTable(columns...)
	for k, c := range r.Shift.Corruptions {
		a := r.lossOf(base, k)
		if a == nil {
			continue // there are fewer pictures than corruptions
		}
		cells := []string{strings.ReplaceAll(c.Name, "_", " "), report.Fixed(stat.Mean(a, nil), 4)}
		if other != nil {
			b := r.lossOf(other, k)
			cells = append(cells, report.Fixed(stat.Mean(b, nil), 4), Difference{calibrate.NewDifference(r.clustered(difference(b, a), r.rowsOf(k)), 0), math.NaN()}.text())
		}
		t.Row(cells...)
	}
	return t
}

// lossOf returns the first loss of a method for each picture with corruption k: the mean over the severities.
func (r *Result) lossOf(m *Method, k int) (out []float64) {
	for i := k; i < r.Shift.Examples; i += len(r.Shift.Corruptions) {
		sum := 0.0
		for _, e := range m.Shifted[1:] {
			sum += e.Loss(r.loss().Key)[i]
		}
		out = append(out, sum/float64(len(m.Shifted)-1))
	}
	return out
}

// rowsOf returns the indexes of the pictures with corruption k in the test data.
func (r *Result) rowsOf(k int) (rows []int) {
	for i := k; i < r.Shift.Examples; i += len(r.Shift.Corruptions) {
		rows = append(rows, r.Shift.rows[i])
	}
	return rows
}

// shiftLines says what the change of the pictures does to the two methods that the verdict compares.
func (r *Result) shiftLines() (lines []string) {
	base, other := &r.Methods[r.baseline()], r.candidate()
	if r.Shift == nil || r.unranked(base) != "" {
		return nil
	}
	key, last := r.loss().Key, len(r.Shift.Severities)
	severity := r.Shift.severity(last)
	value := func(m *Method, i int, key string) string { return study.Cell(m.Shifted[i].Score(key)) }
	if other == nil {
		lines = append(lines, fmt.Sprintf("On pictures damaged at severity %d, %s has %s %s; on clean ones %s.", severity, base.short(), r.loss().Name, value(base, last, key), value(base, 0, key)))
	} else {
		a, b := *base, *other
		a.Evaluation, b.Evaluation, a.fits, b.fits = base.Shifted[last], other.Shifted[last], nil, nil
		d := r.differOn(r.Shift.rows, &b, &a)[key]
		what := "no difference shows"
		if d.Interval.High < 0 {
			what = other.short() + " is better"
		} else if d.Interval.Low > 0 {
			what = base.short() + " is better"
		}
		lines = append(lines, fmt.Sprintf("On pictures damaged at severity %d, %s: %s has %s %s, and %s %s: %s.", severity, what,
			other.short(), r.loss().Name, value(other, last, key), base.short(), value(base, last, key), d.text()))
	}
	if base.Has("ece") {
		line := fmt.Sprintf("The ECE of %s goes from %s on clean pictures to %s", base.short(), value(base, 0, "ece"), value(base, last, "ece"))
		if other != nil {
			line += fmt.Sprintf(", and that of %s from %s to %s", other.short(), value(other, 0, "ece"), value(other, last, "ece"))
		}
		lines = append(lines, line+".")
	}
	return lines
}

// shiftCurves draws the main metrics by severity. It shows the user's network, the baseline and the ensembles.
func (r *Result) shiftCurves() (curves []plot.Curve) {
	for _, metric := range r.Methods[0].Main() {
		c := plot.Curve{Title: metric.Header + " by severity", XLabel: "severity of the damage (0 is clean)", YLabel: metric.Header}
		scale := 1.0
		if metric.Percent {
			scale = 100
		}
		for i, m := range r.Methods {
			if m.StaleBN || !r.major(i) && m.Key != baseline.SGD {
				continue
			}
			s := plot.Series{Name: m.short()}
			for k, e := range m.Shifted {
				s.X, s.Y = append(s.X, float64(r.Shift.severity(k))), append(s.Y, scale*e.Value(metric.Key))
			}
			c.Series = append(c.Series, s)
		}
		curves = append(curves, c)
	}
	return curves
}

// shiftJSON returns the scores of a method by severity, 0 for clean pictures, and its first loss by corruption.
func (r *Result) shiftJSON(m *Method) any {
	if r.Shift == nil {
		return nil
	}
	steps := []study.Object{}
	for k, e := range m.Shifted {
		steps = append(steps, append(study.Fields("severity", r.Shift.severity(k)), study.Scores("", e.Main())...))
	}
	corruptions := []study.Object{}
	for k, c := range r.Shift.Corruptions {
		corruptions = append(corruptions, study.Fields("corruption", c.Name, r.loss().Key, study.Finite(stat.Mean(r.lossOf(m, k), nil))))
	}
	return study.Fields("examples", r.Shift.Examples, "severities", steps, "corruptions", corruptions)
}
