package calibration

import (
	"slices"

	"github.com/swagwrap/swagwrap/calibrate/shares"
	"github.com/swagwrap/swagwrap/internal/moments"
	"github.com/swagwrap/swagwrap/internal/predictions"
	"github.com/swagwrap/swagwrap/internal/task"
)

// ofMembers are the numbers of rows that need the members: only some files of predictions have them.
var ofMembers = []string{"mutual_information", "epistemic_std"}

// watched are the numbers of the rows that the study fitted on, as score would show them.
type watched struct {
	task.Watched
	numbers   [][]float64 // by name
	predicted []int       // classes; nil for a task without them
}

// Validation returns what the calibrated predictions look like that the study fitted on, as score would show them by a
// threshold. It is nil for pixels and tokens.
func (k *Result) Validation(threshold float64) *moments.Predicted {
	w := k.watch(threshold)
	if w == nil {
		return nil
	}
	return moments.NewPredicted(k.study.Fit.Path, w.Names, w.numbers, w.predicted, w.Classes)
}

// Labelled returns the calibrated probabilities of examples that have one class each, or nil.
func (k *Result) Labelled() *shares.Labelled {
	p := k.study.Fit
	if p.Stored() || p.Task == nil || task.Shared(p.Task) != nil {
		return nil
	}
	return shares.NewLabelled(p.Task.About().Classes, p.Apply(k.Fitted), p.Known.Classes)
}

// watch returns the numbers of the rows by a threshold. It is nil for pixels and tokens.
func (k *Result) watch(threshold float64) *watched {
	p := k.study.Fit
	if p.Stored() || p.Task == nil {
		return nil
	}
	rows := map[string][]float64{}
	for _, name := range ofMembers {
		if r, err := predictions.ReadRows(p.Path, []predictions.Wanted{{Names: []string{name}}}); err == nil && r.Width(name) == 1 {
			rows[name] = r.Values[name]
		}
	}
	width, outcomes := p.Task.About().Width, p.Apply(k.Fitted)
	w := task.Watch(p.Task, p.Task.Columns(task.RowOptions{}))
	w, _ = w.Only(slices.DeleteFunc(slices.Clone(w.Names), func(name string) bool {
		return slices.Contains(ofMembers, name) && rows[name] == nil
	}))
	out := &watched{Watched: w, numbers: make([][]float64, len(w.Names))}
	var row, of []float64
	for i, at := range p.Rows {
		a := task.Average{Outcome: slices.Clone(outcomes[i*width:][:width]), Threshold: threshold}
		row = p.Task.Values(row[:0], task.RowOptions{}, a, p.Known.At(i))
		var class int
		of, class = w.Numbers(of, row)
		for n, v := range of {
			if own := rows[w.Names[n]]; own != nil && w.Names[n] != "epistemic_std" { // which a calibration changes
				v = own[at]
			}
			out.numbers[n] = append(out.numbers[n], v)
		}
		if class >= 0 {
			out.predicted = append(out.predicted, class)
		}
	}
	return out
}
