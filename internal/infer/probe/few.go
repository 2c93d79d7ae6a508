package probe

import (
	"math"
	"slices"

	"github.com/swagwrap/swagwrap/internal/task"
)

// Few is the number of examples that show the form of most networks' scores.
const Few = 16

// plain reports whether few rows decide as more rows would. Sums of rows, labels and the steps of an ordinal scale show in
// more rows only.
func (r *Raw) plain(d *Decision) bool {
	if d.By == "values" || d.By == "labels" {
		return false
	}
	rows := r.usable()
	if len(rows)*r.Count < len(r.Scores) {
		return false
	}
	if r.Count == 1 || task.TraitsOf(r.Task).Alone {
		return r.Count < fewestSteps || !ascendOrFall(rows)
	}
	one := func(row []float32) bool {
		return slices.Min(row) >= 0 && math.Abs(total(row, itself)-1) <= task.SumTolerance
	}
	return d.Form == task.Probabilities || !slices.ContainsFunc(rows, one)
}

// ascendOrFall reports whether the scores of every row rise, or whether they fall in every row.
func ascendOrFall(rows [][]float32) bool {
	rises, falls := true, true
	for _, row := range rows {
		back := slices.Clone(row)
		slices.Reverse(back)
		rises, falls = rises && slices.IsSorted(row), falls && slices.IsSorted(back)
	}
	return rises || falls
}
