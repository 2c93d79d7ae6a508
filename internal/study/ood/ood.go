// Package ood measures how well uncertainty detects examples outside the training domain: section 5.3 of Maddox et al.
// 2019, and its appendix.
package ood

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"gonum.org/v1/gonum/stat"

	"github.com/swagwrap/swagwrap/calibrate/chance"
	"github.com/swagwrap/swagwrap/calibrate/detect"
	"github.com/swagwrap/swagwrap/internal/baseline"
	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/ensemble"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/report"
	"github.com/swagwrap/swagwrap/internal/setting"
	"github.com/swagwrap/swagwrap/internal/study"
	"github.com/swagwrap/swagwrap/internal/task"
	"github.com/swagwrap/swagwrap/internal/task/dense"
)

// Detection describes the methods and the data of a comparison.
type Detection struct {
	baseline.Inputs
	Validation dataset.Dataset // for SWA-Temp and Laplace, or nil
	In, Out    dataset.Dataset
	// Tensor is the tensor of the network whose values are features: see [baseline.Features]. [NoFeatures] leaves out the
	// measures of features.
	Tensor string
}

// Result is the outcome of a detection.
type Result struct {
	Methods   []Detected // the best first, by the AUROC of the main measure; those whose fit is not determined last
	Sizes     [2]int     // number of examples in the domain, and out of it
	Unit      string     // word for one of them: "image" or "example"
	Notes     []string   // methods that were left out, with the reason
	BatchNorm study.BatchNorm
	// Settings are the settings that the numbers depend on, and Provenance the inputs.
	Settings, Provenance []report.Fact

	next     []study.Step // that make and use the ensemble of the best method that can be one
	task     task.Task
	measures []task.Uncertainty // in the order of Scores
	known    string             // the data that features were compared with
}

// Detected holds the scores of one method. In all scores, examples out of the domain are the positives.
type Detected struct {
	Key, Name string
	Members   int
	StaleBN   bool

	// In and Out are histograms of the main measure of uncertainty; entropies have the paper's bins. Distance is the
	// symmetrised KL divergence between the two, smoothed by detect.DefaultSmoothing.
	In, Out         detect.Histogram
	Distance        float64
	InMean, OutMean float64

	// Scores holds a score for each measure. It is nil for measures of disagreement between members if there is only one
	// network, and for measures of logits or features if the method has none.
	Scores []*detect.Detection
	// Difference is the AUROC minus that of the best method, by the main measure, with the interval of DeLong et al.
	// 1988 over the examples. It is zero for the best method itself, which is the Baseline.
	Difference chance.Interval
	Baseline   bool
	Notes      []error

	in, out     []float64 // values of the main measure
	temperature float64   // the scores are divided by it, unless it is 0
	// undetermined is the reason why the validation data do not determine the calibration, or "". The tables show such a method
	// last, and no command makes it.
	undetermined string
}

func (d *Detection) targets() baseline.Targets {
	d.Preset = baseline.Detectors()
	return baseline.Targets{Data: []dataset.Dataset{d.In, d.Out}, Validation: d.Validation, Entropies: true}
}

// Images returns about how many examples Run sends through networks.
func (d *Detection) Images() int64 {
	t := d.targets()
	return d.Inputs.Images(t) + d.featureImages()
}

// Fill runs a shard of the methods' networks and puts their outputs into the run's store.
func (d *Detection) Fill(ctx context.Context, run infer.Run, shard *infer.Shard) error {
	t := d.targets()
	return baseline.Fill(ctx, run, shard, &d.Inputs, t)
}

// Run scores the methods.
func (d *Detection) Run(ctx context.Context, run infer.Run) (*Result, error) {
	r := &Result{Sizes: [2]int{d.In.Len(), d.Out.Len()}, Unit: dataset.Unit(d.In)}
	targets := d.targets()
	notes, err := baseline.Predict(ctx, run, &d.Inputs, targets, func(p *baseline.Predicted) error {
		if p.By != "" && d.Validation == nil {
			return nil // there is no data for the fit
		}
		if p.Models != nil {
			return d.stream(ctx, run, r, p)
		}
		r.task = p.Data[0].Task
		if p.By != "" && task.Missing(r.task) != nil {
			return nil // there is nothing to scale
		}
		x, err := d.detected(r, p)
		r.Methods = append(r.Methods, x)
		return err
	})
	if err != nil {
		return nil, err
	}
	r.Notes = append(notes, r.Notes...)
	if err := baseline.InOrder(r.Methods, r.Notes, func(m Detected) string { return m.Key }); err != nil {
		return nil, err
	}
	r.present()
	r.bin()
	last := func(x Detected) int { return map[bool]int{true: 1}[x.undetermined != ""] }
	slices.SortStableFunc(r.Methods, func(a, b Detected) int {
		return cmp.Or(last(a)-last(b), cmp.Compare(b.Scores[0].AUROC, a.Scores[0].AUROC))
	})
	best := &r.Methods[0]
	best.Baseline = true
	for i := range r.Methods[1:] {
		x := &r.Methods[1+i]
		x.Difference = detect.AUROCDifference(x.in, x.out, best.in, best.out)
	}
	for _, x := range r.Methods {
		if r.next = d.steps(&x); r.next != nil {
			break
		}
	}
	return r, nil
}

// stream scores a method whose examples have several positions. No outcome is kept.
func (d *Detection) stream(ctx context.Context, run infer.Run, r *Result, p *baseline.Predicted) error {
	x := Detected{Key: p.Key, Name: p.Name, Members: p.Members, StaleBN: p.StaleBN, Notes: p.Notes}
	var fitted *task.Calibration
	if p.By != "" {
		var err error
		if fitted, err = p.FitTemperature(ctx, run, d.Validation); err != nil {
			return fmt.Errorf("validation data: %w", err)
		}
		x.fitted(fitted)
		x.Name = fmt.Sprintf("%s (T = %s)", x.Name, task.ShortNumber(fitted.Temperature))
	}
	var values [2][][]float64
	for k, data := range d.targets().Data {
		err := p.Stream(ctx, run, data, infer.Options{Evidence: fitted == nil}, func(t dense.Task, _ int, a task.Average) error {
			r.task = t
			if values[k] == nil {
				values[k] = make([][]float64, len(measuresOf(t)))
			}
			if fitted != nil {
				t.Apply(a.Outcome, fitted, a.Outcome)
			}
			own := t.Uncertainties()
			for i, u := range own {
				values[k][i] = append(values[k][i], u.Of(a.Outcome, nil)...)
			}
			for j, v := range a.Evidence {
				values[k][len(own)+j] = append(values[k][len(own)+j], -v)
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("%s: %w", p.Name, err)
		}
	}
	x.detect(measuresOf(r.task), values[0], values[1])
	r.Methods = append(r.Methods, x)
	return nil
}

// fitted notes what was fitted for a method.
func (x *Detected) fitted(c *task.Calibration) {
	x.temperature, _ = c.Number()
	x.undetermined, x.Notes = c.Undetermined, append(x.Notes, c.Doubts()...)
	if x.undetermined != "" {
		x.Notes = append(x.Notes, errors.New("give more labelled examples: "+setting.Val.With("FILE")))
	}
}

// steps returns the steps that make the ensemble of a method and write its uncertainties, or nil if no ensemble is
// equivalent to the method.
func (d *Detection) steps(x *Detected) []study.Step {
	settings, runs := d.Deploy(x.Key)
	if settings == nil || settings.Method() == ensemble.Iterates || x.undetermined != "" {
		return nil
	}
	made := study.Sample{Output: "ensemble.safetensors", Members: *settings}
	made.Members.Temperature = x.temperature
	if slices.ContainsFunc(runs, func(run baseline.Run) bool { return run.Network.Recomputes() }) {
		made.Training = study.Training(d.BatchNorm.Data)
	}
	for _, run := range runs {
		made.Posteriors = append(made.Posteriors, run.Network.Posterior.Path)
	}
	return []study.Step{made, study.Score{Output: "predictions.csv", Ensemble: made.Output, Data: d.Out.Sources()[0].Path}}
}

// detected scores the predictions of a method.
func (d *Detection) detected(r *Result, p *baseline.Predicted) (Detected, error) {
	t, x := r.task, Detected{Key: p.Key, Name: p.Name, Members: p.Members, StaleBN: p.StaleBN, Notes: p.Notes}
	in, out := p.Data[0].Mean(), p.Data[1].Mean()
	if p.By != "" {
		by, ok := task.Find(t, p.By)
		if !ok {
			return x, fmt.Errorf("%s: the task %s has no %s scaling", p.Name, t.About().Name, p.By)
		}
		c, err := by.Fit(p.Validation.Mean(), d.Validation.Labels())
		if err != nil {
			return x, fmt.Errorf("validation data: %w", err)
		}
		in, out = t.Apply(nil, c, in), t.Apply(nil, c, out)
		x.fitted(c)
		if v, ok := c.Number(); ok {
			if stem, ok := strings.CutSuffix(x.Name, "-Temp"); ok {
				x.Name = stem + "-" + by.Name
			}
			x.Name += fmt.Sprintf(" (%s = %s)", by.Symbol, task.ShortNumber(v))
		}
	}
	sides := [2]side{{outcomes: in, expected: p.Data[0].ExpectedEntropy()}, {outcomes: out, expected: p.Data[1].ExpectedEntropy()}}
	if p.By == "" { // a temperature on probabilities leaves no logits
		sides[0].evidence, sides[1].evidence = p.Data[0].MeanEvidence(), p.Data[1].MeanEvidence()
	}
	if p.Features != nil && d.hasFeatures(t) {
		if err := d.features(r, p, &sides); err != nil {
			r.Notes = append(r.Notes, fmt.Sprintf("Mahalanobis distance and nearest neighbours are left out: %v (%s names a tensor of the graph)", err, setting.Features))
		}
	}
	x.score(t, sides)
	return x, nil
}

// Of scores predictions of examples in and out of the domain, from any source. logits holds logits of both, or is nil.
func Of(t task.Task, in, out []float64, logits [2][]float64) *Result {
	x := Detected{Name: "predictions", Baseline: true}
	sides := [2]side{{outcomes: in}, {outcomes: out}}
	for i, values := range logits {
		sides[i].evidence = evidence(t, values)
	}
	x.score(t, sides)
	r := &Result{Methods: []Detected{x}, Sizes: [2]int{len(in) / t.About().Width, len(out) / t.About().Width}, Unit: dataset.Unit(nil), task: t}
	r.present()
	r.bin()
	return r
}

// main returns the measure of uncertainty that defines the differences.
func (r *Result) main() task.Uncertainty { return r.measures[0] }

// bin computes the histograms of the main measure, with the same bins for all methods.
func (r *Result) bin() {
	count := detect.EntropyHistogram
	if bins := r.main().Bins; bins != nil {
		var all [][]float64
		for _, x := range r.Methods {
			all = append(all, x.in, x.out)
		}
		edges := bins(all...)
		count = func(values []float64) detect.Histogram { return detect.NewHistogram(edges, values) }
	}
	for i := range r.Methods {
		x := &r.Methods[i]
		x.In, x.Out = count(x.in), count(x.out)
		x.Distance = detect.SymmetrizedKL(x.In, x.Out, detect.DefaultSmoothing)
	}
}

// side holds the predictions of the examples in the domain, or of those out of it.
type side struct {
	outcomes, expected []float64
	evidence           []float64    // see [infer.Sums]; nil without logits
	features           [2][]float64 // values of featureMeasures, or nil
}

// score scores the examples in and out of the domain by the measures of the task, of logits and of features.
func (x *Detected) score(t task.Task, sides [2]side) {
	all := measuresOf(t)
	var values [2][][]float64
	for k, s := range sides {
		for _, u := range t.Uncertainties() {
			var of []float64
			if !u.Members || x.Members > 1 {
				of = u.Of(s.outcomes, s.expected)
			}
			values[k] = append(values[k], of)
		}
		for j := range logitMeasures {
			values[k] = append(values[k], negative(s.evidence, j))
		}
		values[k] = append(values[k], s.features[:]...)
	}
	x.detect(all, values[0], values[1])
}

// detect scores the uncertainties of examples in and out of the domain, by measure and example.
func (x *Detected) detect(measures []task.Uncertainty, in, out [][]float64) {
	for i, u := range measures {
		if u.Members && x.Members < 2 || in[i] == nil || out[i] == nil {
			x.Scores = append(x.Scores, nil)
			continue
		}
		a, b := in[i], out[i]
		s := detect.Detect(a, b)
		x.Scores = append(x.Scores, &s)
		if i > 0 {
			continue
		}
		x.in, x.out = a, b
		x.InMean, x.OutMean = stat.Mean(a, nil), stat.Mean(b, nil)
	}
}
