package calibration

import (
	"slices"

	"github.com/swagwrap/swagwrap/internal/moments"
	"github.com/swagwrap/swagwrap/internal/predictions"
	"github.com/swagwrap/swagwrap/internal/task"
)

// ofMembers are the numbers of rows that need the members. They come from the file of the predictions.
var ofMembers = []string{"mutual_information", "epistemic_std"}

// Validation returns what the calibrated predictions look like that the study fitted on, as score would show them by a
// threshold. It is nil for pixels and tokens.
func (k *Result) Validation(threshold float64) *moments.Predicted {
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
	w, _ = w.Only(slices.DeleteFunc(slices.Clone(w.Names), func(name string) bool { return slices.Contains(ofMembers, name) && rows[name] == nil }))
	numbers := make([][]float64, len(w.Names))
	var predicted []int
	var row, of []float64
	for i, at := range p.Rows {
		a := task.Average{Outcome: slices.Clone(outcomes[i*width:][:width]), Threshold: threshold}
		row = p.Task.Values(row[:0], task.RowOptions{}, a, p.Known.At(i))
		var class int
		of, class = w.Of(of, row)
		for n, v := range of {
			if own := rows[w.Names[n]]; own != nil {
				v = own[at]
			}
			numbers[n] = append(numbers[n], v)
		}
		if class >= 0 {
			predicted = append(predicted, class)
		}
	}
	return moments.NewPredicted(p.Path, w.Names, numbers, predicted, w.Classes)
}
