package summary

import (
	"fmt"
	"strings"

	"github.com/swagwrap/swagwrap/internal/moments"
	"github.com/swagwrap/swagwrap/internal/names"
	"github.com/swagwrap/swagwrap/internal/predictions"
	"github.com/swagwrap/swagwrap/internal/report"
	"github.com/swagwrap/swagwrap/internal/setting"
	"github.com/swagwrap/swagwrap/internal/task"
)

// Drift compares predictions with those of the validation data that the ensemble was calibrated on.
type Drift struct {
	Validation  *moments.Predicted `json:"validation"`
	FalseAlarms float64            `json:"false_alarms"` // the highest probability of a warning without a difference
	MinDistance float64            `json:"min_distance"`
	// Units is the number of independent examples, and Distances what was found. They are missing before the end. Units of
	// chance of unequal size count as (Σn)²/Σn² units of equal size (Kish 1965).
	Units     int                `json:"units,omitempty"`
	Distances []moments.Distance `json:"distances,omitempty"`

	watch   task.Watched
	is      *moments.Predicted
	numbers []float64
}

// NewDrift returns nil for an ensemble that has seen no validation data.
func NewDrift(v *moments.Predicted) *Drift {
	if v == nil {
		return nil
	}
	return &Drift{Validation: v, FalseAlarms: moments.FalseAlarms, MinDistance: moments.MinDistance}
}

// begin prepares for rows with these columns. It returns nil if d is nil, or if the columns lack a number of the validation data.
func (d *Drift) begin(t task.Task, columns []task.Column) *Drift {
	if d == nil || d.Validation.Sound() != nil {
		return nil
	}
	var names []string
	for _, n := range d.Validation.Numbers {
		names = append(names, n.Name)
	}
	w, ok := task.Watch(t, columns).Only(names)
	if !ok {
		return nil
	}
	d.watch, d.is = w, d.Validation.Empty()
	return d
}

func (d *Drift) add(r *predictions.Row) {
	var class int
	d.numbers, class = d.watch.Numbers(d.numbers, r.Values)
	d.is.Add(d.numbers, class)
}

// finish compares the predictions of so many units of chance. It does nothing for nil.
func (d *Drift) finish(units int) *Drift {
	if d == nil {
		return d
	}
	if units > 0 {
		d.Units = units
		d.Distances = d.Validation.Compare(d.is, d.Units)
	}
	return d
}

// warning names the distances that are off. It is "" without one.
func (d *Drift) warning(classNames []string) string {
	var off []string
	for _, x := range d.Distances {
		name := strings.ReplaceAll(x.Name, "_", " ")
		switch {
		case !x.Off:
			continue
		case x.Name == "prediction":
			name = fmt.Sprintf("%s is predicted for %s of the examples", names.Class(classNames, x.Class),
				report.InsteadOf(x.Is, x.Was, report.Percent, 1))
		default:
			is := report.InsteadOf(x.Is, x.Was, report.Significant, 3)
			if x.Bound != "" {
				is = x.Bound + " " + is
			}
			name = fmt.Sprintf("the median %s is %s", name, is)
		}
		off = append(off, fmt.Sprintf("%s (distance %.2f, and %.2f by chance at most)", name, x.Distance, x.Chance))
	}
	if off == nil {
		return ""
	}
	return fmt.Sprintf("predictions of this data are not like those of %s, so confidences and calibration may be wrong here: %s. "+
		"Data that are alike give this warning in at most 1 of %.0f runs. Check how the data were prepared. If that is right, label "+
		"some of them, and run %s on these.",
		d.Validation.Data, strings.Join(off, "; "), 1/d.FalseAlarms, setting.Calibrate)
}
