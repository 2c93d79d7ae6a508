package task

import (
	"fmt"
	"math"

	"github.com/swagwrap/swagwrap/internal/setting"
	"github.com/swagwrap/swagwrap/internal/target"
)

// None is the name of the task of networks whose outputs have no meaning here, such as detectors, generators and embeddings.
// Weights are averaged and batch norm is recomputed for them. Nothing compares their outputs with labels.
const None = "none"

// Scoreless reports whether the named task is [None].
func Scoreless(name string) bool { return name == None }

// NoScores says why a command is not for networks of the task [None]. path is the file that names the task.
func NoScores(path string) error {
	return fmt.Errorf("%s: its task is %s: nothing says what a right output is, so there is no verdict, no calibration and no prediction",
		path, None)
}

// NoScoresHint says what else there is to do.
func NoScoresHint() string {
	return setting.Sample.String() + ", " + setting.Export.String() + " and " +
		setting.Score.String() + " work: average weights, recomputed batch norm, and means and standard deviations of outputs. If an " +
		"output holds scores, " + setting.Compare.String() + " and " + setting.Score.String() + " take " +
		setting.Both(setting.OutputName.With("NAME"), setting.Task.With("classes"))
}

// ForNone is the hint for a network that fits no other task.
func ForNone() string {
	return "a network without such scores, such as a detector, a generator or an embedding: " +
		setting.Fit.With(setting.Task.With(None)) + " averages its weights and recomputes batch norm"
}

// unscored implements [Task] for the task [None]. An outcome holds each number of the output, and then the square of each. So an average
// gives means and standard deviations.
type unscored struct {
	described
	count int
}

func newNone(s OutputSpec) (Task, bool, error) {
	about := &About{
		Name:    None,
		Meaning: fmt.Sprintf("output %q: %d numbers without a meaning here", s.Output, s.Count),
		Size:    fmt.Sprintf("%d numbers", s.Count),
		Width:   2 * s.Count,
	}
	return unscored{described{about}, s.Count}, s.Count > 0, nil
}

func (t unscored) Outcome(dst []float64, scores []float32) (float64, error) {
	for i, v := range scores {
		x := float64(v)
		if x-x != 0 {
			return 0, fmt.Errorf("the network's output is not finite: %v", v)
		}
		dst[i], dst[t.count+i] = x, x*x
	}
	return 0, nil
}

// Moments returns the mean and the standard deviation of each number, from an average of outcomes. Both have the memory of the
// average.
func Moments(average []float64) (mean, std []float64) {
	n := len(average) / 2
	mean, std = average[:n], average[n:]
	for i, m := range mean {
		std[i] = math.Sqrt(max(0, std[i]-m*m))
	}
	return mean, std
}

func (unscored) Likelihoods([]float64, target.Target) []float64 { return nil }
func (unscored) Uncertainties() []Uncertainty                   { return nil }
func (unscored) Divergence([]float64, []float64) float64        { return math.NaN() }
func (unscored) CheckLabel(target.Target) error                 { return nil }
func (unscored) Columns(RowOptions) []Column                    { return nil }
func (unscored) Calibrators() []Calibrator                      { return nil }

func (unscored) Values(dst []float64, _ RowOptions, _ Average, _ target.Target) []float64 { return dst }

func (t unscored) Shown(outcomes []float64) (values []float64, width int) {
	for at := 0; at < len(outcomes); at += 2 * t.count {
		values = append(values, outcomes[at:at+t.count]...)
	}
	return values, t.count
}

// NewReducer panics: commands refuse the task before they score anything.
func (unscored) NewReducer(EvaluateOptions) Reducer { panic("task: " + None + " has no metrics") }

func (unscored) Apply(dst []float64, _ *Calibration, outcomes []float64) []float64 {
	return append(dst[:0], outcomes...)
}
