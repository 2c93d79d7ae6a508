package calibration

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/swagwrap/swagwrap/calibrate/expect"
	"github.com/swagwrap/swagwrap/internal/predictions"
	"github.com/swagwrap/swagwrap/internal/target"
	"github.com/swagwrap/swagwrap/internal/task"
)

// fromFile are the columns of rows whose numbers come from the file of the predictions, because averaged outcomes lack the members.
var fromFile = []predictions.Wanted{{Names: []string{"mutual_information"}}, {
	Names: []string{"mutual_informations"},
	Cells: []string{"mutual_information_%d"},
}}

// NotExpected is the error of a file that lacks numbers of the members.
type NotExpected struct{ Column string }

func (e *NotExpected) Error() string {
	return fmt.Sprintf("it has no %s of the members", strings.ReplaceAll(e.Column, "_", " "))
}

// Expected returns what the figures of other data are estimated from. It is nil for a task without such an estimate. Its error is
// [expect.ErrFew] if the predictions say too little, and a [NotExpected] if the file has no numbers of the members.
func (k *Result) Expected(threshold float64) (*expect.Validation, error) {
	p := k.study.Fit
	// Without noise a regression has one sign only, and no second one that could contradict it.
	if p.Task == nil || task.Missing(p.Task) != nil && k.Fitted == nil {
		return nil, nil
	}
	if p.Stored() {
		return k.expectedStored()
	}
	columns := p.Task.Columns(task.RowOptions{})
	signs := task.SignsOf(p.Task, columns)
	if signs == nil {
		return nil, nil
	}
	replaced, err := replacing(p.Path, columns)
	if err != nil {
		return nil, err
	}
	width, outcomes := p.Task.About().Width, p.Apply(k.Fitted)
	var row []float64
	rows := func(f func(row []float64, label int)) {
		for i, at := range p.Rows {
			outcome := slices.Clone(outcomes[i*width:][:width])
			row = p.Task.Values(row[:0], task.RowOptions{}, task.Average{Outcome: outcome, Threshold: threshold}, p.Known.At(i))
			replaced.into(row, at)
			fillStd(row, columns, p.Task, outcome)
			f(row, p.Known.At(i).Class())
		}
	}
	all, parts := signs.Limits(rows)
	return expect.New(p.Path, signs.Figure(), all, parts, func(f func(*expect.Seen)) {
		rows(func(row []float64, label int) { f(signs.Read(row, label, all, parts)) })
	})
}

// fillStd fills in standard deviations, which rows of networks without a noise of their own lack.
func fillStd(row []float64, columns []task.Column, t task.Task, outcome []float64) {
	numbers, ok := t.(task.Targeted)
	if !ok {
		return
	}
	at := 0
	for _, c := range columns {
		for k := range c.Len() {
			if v := &row[at+k]; c.Name == "std" && *v != *v {
				*v = numbers.Moments(outcome, k).Std()
			}
		}
		at += c.Len()
	}
}

// replacement has numbers of a file that take the place of those in rows.
type replacement struct {
	rows  *predictions.Rows
	names []string // of columns
	at    []int
}

// replacing reads those of the columns that rows have.
func replacing(path string, columns []task.Column) (*replacement, error) {
	r, err := predictions.ReadRows(path, fromFile)
	at, out := 0, &replacement{rows: r}
	for _, c := range columns {
		if slices.ContainsFunc(fromFile, func(w predictions.Wanted) bool { return w.Names[0] == c.Name }) {
			if err != nil || r.Width(c.Name) != c.Len() {
				return nil, &NotExpected{c.Name}
			}
			out.names, out.at = append(out.names, c.Name), append(out.at, at)
		}
		at += c.Len()
	}
	return out, nil
}

// into replaces the numbers of a row.
func (r *replacement) into(row []float64, i int) {
	for k, name := range r.names {
		copy(row[r.at[k]:], r.rows.Row(name, i))
	}
}

// expectedStored is Expected for pixels and tokens.
func (k *Result) expectedStored() (*expect.Validation, error) {
	p := k.study.Fit
	confidences := task.NewConfidences(p.Task)
	if confidences == nil {
		return nil, nil
	}
	if err := k.eachCalibrated(p, func(_ int, outcome []float64, label target.Target) error {
		return confidences.Add(outcome, label)
	}); err != nil {
		return nil, err
	}
	limits := expect.Limits{Threshold: confidences.Threshold()}
	if limits.Threshold == 0 {
		return nil, expect.ErrFew
	}
	want := task.RowOptions{Target: true, Signs: limits.Threshold}
	columns := p.Task.Columns(want)
	signs := task.SignsOf(p.Task, columns)
	mutual, err := replacing(p.Path, slices.DeleteFunc(slices.Clone(columns), func(c task.Column) bool {
		return c.Name == "mutual_informations"
	}))
	if err != nil {
		return nil, err
	}
	var all []expect.Seen
	reading := task.Reading{NoMaps: true}
	err = k.eachCalibrated(p, func(i int, outcome []float64, label target.Target) error {
		i = p.Rows[i] // in the file
		if err := task.Read(p.Task, &reading, want, task.Average{Outcome: outcome}, label); err != nil {
			return err
		}
		mutual.into(reading.Values, i)
		seen := *signs.Read(reading.Values, -1, limits, nil)
		one := *seen.All
		one.Predicted = slices.Clone(one.Predicted)
		seen.All = &one
		if v := one.Signs[1]; v-v != 0 {
			return fmt.Errorf("row %d: mutual information %v", i, v)
		}
		all = append(all, seen)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return expect.New(p.Path, signs.Figure(), limits, nil, func(f func(*expect.Seen)) {
		for i := range all {
			f(&all[i])
		}
	})
}

// WhyNotExpected says why nothing is stored, or returns "" for an error of another kind.
func WhyNotExpected(err error) string {
	var lacks *NotExpected
	if errors.Is(err, expect.ErrFew) || errors.As(err, &lacks) {
		return err.Error()
	}
	return ""
}
