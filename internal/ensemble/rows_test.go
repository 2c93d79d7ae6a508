package ensemble_test

import (
	"math"
	"slices"

	"github.com/swagwrap/swagwrap/internal/ensemble"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/predictions"
	"github.com/swagwrap/swagwrap/internal/target"
	"github.com/swagwrap/swagwrap/internal/task"
)

// Row is a row of classes with names for its values.
type Row struct {
	Index, Label int
	Path, Error  string

	Prediction                                            int
	Confidence                                            float64
	PredictiveEntropy, ExpectedEntropy, MutualInformation float64
	Loss, Square                                          float64

	Top                    []Ranked
	Probabilities, Members []float64
	Ran                    float64 // members that ran, where examples settle

	values []float64 // all of them
}

// Ranked is a class and its probability.
type Ranked struct{ Class, Probability float64 }

// same reports whether rows are of the same bits.
func same(a, b Row) bool {
	return a.Index == b.Index && a.Label == b.Label && a.Path == b.Path && a.Error == b.Error &&
		slices.EqualFunc(a.values, b.values, func(x, y float64) bool { return math.Float64bits(x) == math.Float64bits(y) })
}

// named parses a row.
func named(columns []task.Column, r *predictions.Row) Row {
	out := Row{Index: r.Index, Label: r.Label, Path: r.Path, Error: r.Error, Prediction: -1, values: slices.Clone(r.Values)}
	if r.Error != "" {
		return out
	}
	of := map[string][]float64{}
	for c, values := range (&predictions.Schema{Columns: columns}).All(r) {
		of[c.Name] = slices.Clone(values)
	}
	out.Prediction, out.Confidence = int(of["prediction"][0]), of["confidence"][0]
	out.PredictiveEntropy, out.ExpectedEntropy, out.MutualInformation = of["predictive_entropy"][0], of["expected_entropy"][0], of["mutual_information"][0]
	out.Loss, out.Square = of["nll"][0], of["brier"][0]
	for top := range slices.Chunk(of["top"], 2) {
		out.Top = append(out.Top, Ranked{top[0], top[1]})
	}
	out.Probabilities, out.Members = of["probs"], of["member_probs"]
	if ran := of["members"]; ran != nil {
		out.Ran = ran[0]
	}
	return out
}

// describe returns the row of example i of sums, calibrated as e says.
func describe(sums *infer.Sums, i int, e *ensemble.Ensemble, label int) Row {
	want := task.RowOptions{Outcomes: true}
	average := sums.Average(make([]float64, sums.Task.About().Width), i)
	average.Calibrate = e.CalibrateClasses
	values := sums.Task.Values(nil, want, average, target.Target{Classes: []int{label}})
	return named(sums.Task.Columns(want), &predictions.Row{Index: i, Values: values})
}
