package ensemble

import (
	"slices"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/swagwrap/swagwrap/internal/predictions"
	"github.com/swagwrap/swagwrap/internal/task"
)

// Row is a row of classes with names for its values.
type Row struct {
	Index int
	Error string

	Prediction                                            int
	Confidence                                            float64
	PredictiveEntropy, ExpectedEntropy, MutualInformation float64
	Loss, Square                                          float64

	Top                    []Ranked
	Probabilities, Members []float64
}

// Ranked is a class and its probability.
type Ranked struct{ Class, Probability float64 }

var sameRow = cmp.Options{cmpopts.EquateNaNs(), cmpopts.EquateEmpty()}

// named takes a row apart.
func named(columns []task.Column, r *predictions.Row) Row {
	out := Row{Index: r.Index, Error: r.Error, Prediction: -1}
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
	return out
}

// describe returns the row of example i of sums.
func describe(sums *Sums, i int, cal calibration, label int) Row {
	classes, err := task.Of("", task.Scores{Count: sums.Classes})
	if err != nil {
		panic(err)
	}
	want := task.Want{Outcomes: true}
	values := classes.Values(nil, want, sums.average(i, cal), label)
	return named(classes.Columns(want), &predictions.Row{Index: i, Values: values})
}
