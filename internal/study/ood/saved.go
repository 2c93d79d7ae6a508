package ood

import (
	"math"

	"gonum.org/v1/gonum/stat"

	"github.com/swagwrap/swagwrap/calibrate/detect"
	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/task"
)

// Measure holds the uncertainty of saved predictions, by one of their own measures, for each example in and out of
// the domain.
type Measure struct {
	Key, Name string
	In, Out   []float64
	// Entropy reports that the values are entropies in nats, which get the bins of the paper.
	Entropy bool
}

// Measured scores predictions by their own measures of uncertainty, the main measure first.
func Measured(measures []Measure) *Result {
	x := Detected{Name: "predictions", Baseline: true, Distance: math.NaN()}
	r := &Result{Sizes: [2]int{len(measures[0].In), len(measures[0].Out)}, Unit: dataset.Unit(nil)}
	for i, m := range measures {
		s := detect.Detect(m.In, m.Out)
		x.Scores = append(x.Scores, &s)
		r.measures = append(r.measures, task.Uncertainty{Key: m.Key, Name: m.Name})
		if i > 0 {
			continue
		}
		x.in, x.out, x.InMean, x.OutMean = m.In, m.Out, stat.Mean(m.In, nil), stat.Mean(m.Out, nil)
		if m.Entropy {
			x.In, x.Out = detect.EntropyHistogram(m.In), detect.EntropyHistogram(m.Out)
			x.Distance = detect.SymmetrizedKL(x.In, x.Out, detect.DefaultSmoothing)
		}
	}
	r.Methods = []Detected{x}
	return r
}

// binned reports whether the main measure has histograms.
func (r *Result) binned() bool { return r.Methods[0].In.Counts != nil }
