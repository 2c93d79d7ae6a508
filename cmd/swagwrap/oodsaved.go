package main

import (
	"fmt"
	"math"

	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/flags"
	"github.com/swagwrap/swagwrap/internal/predictions"
	"github.com/swagwrap/swagwrap/internal/report"
	"github.com/swagwrap/swagwrap/internal/study"
	"github.com/swagwrap/swagwrap/internal/study/ood"
)

// measures lists the columns of a task that measure uncertainty, the main one first.
var measures = map[string][]struct{ column, key, name string }{
	"labels":     {{"predictive_entropy", "entropy", "entropy"}, {"mutual_information", "mutual_information", "mutual information"}},
	"regression": {{"std", "std", "standard deviation"}, {"epistemic_std", "epistemic_std", "epistemic standard deviation"}},
}

// measuredDetection scores saved rows by the columns of the task that both files have.
func measuredDetection(task, in, out string) (*ood.Result, error) {
	var wanted []predictions.Wanted
	for _, m := range measures[task] {
		wanted = append(wanted, predictions.Wanted{Names: []string{m.column}, Cells: []string{m.column + "_%d"}})
	}
	var rows [2]*predictions.Rows
	var settings, provenance []report.Fact
	for i, path := range []string{in, out} {
		var err error
		if rows[i], err = predictions.ReadRows(path, wanted); err != nil {
			return nil, flags.BadInput(err)
		}
		settings = append(settings, study.Fact([]string{"in the domain", "out of it"}[i], "%s predictions of %s", report.Thousands(rows[i].Len), path))
		provenance = append(provenance, report.Fact{Name: path, Value: rows[i].SHA256})
	}
	var found []ood.Measure
	for _, m := range measures[task] {
		a, b := rows[0].Width(m.column), rows[1].Width(m.column)
		if a != b {
			return nil, flags.BadInput(fmt.Errorf("%s: %d numbers %q for a row, want %d as in %s", out, b, m.column, a, in))
		}
		if a == 0 {
			continue
		}
		x := ood.Measure{Key: m.key, Name: m.name, Entropy: task == "labels", In: geometricMeans(rows[0].Values[m.column], a), Out: geometricMeans(rows[1].Values[m.column], a)}
		for i, values := range [2][]float64{x.In, x.Out} {
			if len(values) == 0 {
				return nil, flags.BadInput(fmt.Errorf("%s: no row has %q", []string{in, out}[i], m.column))
			}
		}
		found = append(found, x)
	}
	if found == nil {
		return nil, flags.BadInput(fmt.Errorf("%s: predictions of the task %s without what says how uncertain they are", in, task), "want what score writes: "+measures[task][0].column)
	}
	r := ood.Measured(found)
	r.Settings, r.Provenance = settings, provenance
	return r, nil
}

// geometricMeans returns the geometric mean of each row of width numbers. Rows with missing numbers, such as those of
// unreadable examples, are left out.
func geometricMeans(values []float64, width int) (means []float64) {
	for at := 0; at < len(values); at += width {
		mean := values[at]
		if width > 1 {
			sum := 0.0
			for _, v := range values[at : at+width] {
				sum += math.Log(v)
			}
			mean = math.Exp(sum / float64(width))
		}
		if mean == mean {
			means = append(means, mean)
		}
	}
	return means
}
