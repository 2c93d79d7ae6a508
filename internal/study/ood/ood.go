// Package ood measures how well uncertainty detects examples outside the training domain: section 5.3 of Maddox et al.
// 2019, and its appendix.
package ood

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"

	"github.com/swagwrap/swagwrap/calibrate/chance"
	"github.com/swagwrap/swagwrap/calibrate/detect"
	"github.com/swagwrap/swagwrap/internal/baseline"
	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/report"
	"github.com/swagwrap/swagwrap/internal/setting"
	"github.com/swagwrap/swagwrap/internal/study"
	"github.com/swagwrap/swagwrap/internal/task"
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

	next     []study.Step // that make and use the ensemble of the best method that can be one, if the best of all finds OUT
	made     int          // the place of that method
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
	// SCOD is the area under the curve of errors and unknown inputs together: see [detect.SCOD]. It is nil without labels of IN.
	SCOD  *float64
	Notes []error

	in, out     []float64 // values of the main measure
	temperature float64   // the scores are divided by it, unless it is 0
	// undetermined is the reason why the validation data do not determine the calibration, or "". The tables show such a method
	// last, and no command makes it.
	undetermined string
}

func (d *Detection) targets() baseline.Targets {
	d.Preset = baseline.Detectors()
	return baseline.Targets{Data: []dataset.Dataset{d.In, d.Out}, Validation: d.Validation, Entropies: true, Leaves: d.leaves}
}

// leaves reports whether a method has nothing to fit its calibration on, or nothing to scale.
func (d *Detection) leaves(p *baseline.Predicted, t task.Task) (out bool, why string) {
	return p.By != "" && (d.Validation == nil || t != nil && task.Missing(t) != nil), ""
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
		x, err := d.detected(ctx, run, r, p)
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
	for i := range r.Methods {
		if r.next = d.steps(&r.Methods[i]); r.next != nil {
			r.made = i
			break
		}
	}
	if !best.finds() {
		r.next = nil // there is nothing to recommend
	}
	return r, nil
}

// finds reports whether the main measure of the method is clearly better than guessing.
func (x *Detected) finds() bool { return x.Scores[0].Low > guessing }

// fitted notes what was fitted for a method.
func (x *Detected) fitted(f *task.Fitted) {
	c := f.Single()
	v, ok := c.Number()
	if ok {
		if stem, ok := strings.CutSuffix(x.Name, "-Temp"); ok {
			x.Name = stem + "-" + f.By.Name
		}
		x.Name += fmt.Sprintf(" (%s = %s)", f.By.Symbol, task.ShortNumber(v))
	}
	x.temperature = v
	x.undetermined, x.Notes = c.Undetermined, append(x.Notes, c.Doubts()...)
	if x.undetermined != "" {
		x.Notes = append(x.Notes, errors.New("give more labelled examples: "+setting.Val.With("FILE")))
	}
}

// steps returns the steps that make the ensemble of a method and write its uncertainties, or nil if no ensemble is
// equivalent to the method.
func (d *Detection) steps(x *Detected) []study.Step {
	settings, runs := d.Deploy(x.Key)
	if settings == nil || x.undetermined != "" {
		return nil
	}
	made := study.Sample{Output: "ensemble.safetensors", Members: *settings}
	made.Members.Temperature = x.temperature
	if settings.Checkpoints() {
		made.Folders = baseline.MovedCheckpoints(runs)
	} else if slices.ContainsFunc(runs, func(run baseline.Run) bool { return run.Network.Recomputes() }) {
		made.Training = study.Training(d.BatchNorm.Data)
	}
	for _, run := range runs {
		made.Posteriors = append(made.Posteriors, run.Network.Posterior.Path)
	}
	return []study.Step{made, study.Score{Output: "predictions.csv", Ensemble: made.Output, Data: d.Out.Sources()[0].Path}}
}

// detected scores the predictions of a method.
func (d *Detection) detected(ctx context.Context, run infer.Run, r *Result, p *baseline.Predicted) (Detected, error) {
	x := Detected{Key: p.Key, Name: p.Name, Members: p.Members, StaleBN: p.StaleBN, Notes: p.Notes}
	var calibration *task.Calibration
	if p.By != "" {
		f, err := p.Fit(ctx, run, p.By)
		if err != nil {
			return x, fmt.Errorf("validation data: %w", err)
		}
		calibration = f.Single()
		x.fitted(f)
	}
	var sides [2]side
	wrong := []bool{}
	for k := range sides {
		err := p.Each(ctx, run, k, calibration == nil, func(t task.Task, i int, a task.Average) error {
			r.task = t
			if calibration != nil { // a temperature on probabilities leaves no logits
				t.Apply(a.Outcome, calibration, a.Outcome)
				a.Evidence = nil
			}
			sides[k].add(t, a)
			if k == 0 && wrong != nil {
				wrong = d.errors(wrong, t, i, a.Outcome)
			}
			return nil
		})
		if err != nil {
			return x, fmt.Errorf("%s: %w", p.Name, err)
		}
	}
	if p.Features != nil && d.hasFeatures(r.task) {
		if err := d.features(ctx, r, p, &sides); err != nil {
			r.Notes = append(r.Notes, fmt.Sprintf("the scores of features are left out: %v (%s names a tensor of the graph)", err,
				setting.Features))
		}
	}
	x.detect(measuresOf(r.task), sides)
	if wrong != nil && len(wrong) == len(x.in) && len(wrong)+len(x.out) > 1 {
		joint := detect.SCOD(x.in, wrong, x.out)
		x.SCOD = &joint
	}
	return x, nil
}

// errors adds whether example i of IN is predicted wrong. It returns nil if the label is not known, or if the task has no single class.
func (d *Detection) errors(wrong []bool, t task.Task, i int, outcome []float64) []bool {
	labels := d.In.Labels().Classes
	if _, ok := t.(task.Evident); !ok || task.Positions(t) > 1 || i >= len(labels) || labels[i] < 0 {
		return nil
	}
	return append(wrong, floats.MaxIdx(outcome) != labels[i])
}

// Detect scores predictions of examples in and out of the domain, from any source. logits holds logits of both, or is nil.
func Detect(t task.Task, in, out []float64, logits [2][]float64) *Result {
	x := Detected{Name: "predictions", Baseline: true}
	var sides [2]side
	width := t.About().Width
	for k, outcomes := range [2][]float64{in, out} {
		evidence := evidence(t, logits[k])
		for i := range len(outcomes) / width {
			a := task.Average{Outcome: outcomes[i*width:][:width]}
			if evidence != nil {
				a.Evidence = evidence[2*i:][:2]
			}
			sides[k].add(t, a)
		}
	}
	x.detect(measuresOf(t), sides)
	r := &Result{Methods: []Detected{x}, Sizes: [2]int{len(in) / width, len(out) / width}, Unit: dataset.Unit(nil), task: t}
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

// side holds the values of the measures for the examples in the domain, or for those out of it: by measure and example. A
// measure without values is nil.
type side [][]float64

// add adds the values of an example: of the measures of its task, and of logits.
func (s *side) add(t task.Task, a task.Average) {
	if *s == nil {
		*s = make(side, len(measuresOf(t)))
	}
	own := t.Uncertainties()
	for i, u := range own {
		(*s)[i] = append((*s)[i], u.Of(a.Outcome, []float64{a.Entropy})...)
	}
	for j, v := range a.Evidence {
		(*s)[len(own)+j] = append((*s)[len(own)+j], -v)
	}
	if at, classes := len(own)+len(a.Evidence), t.About().Classes; len(a.Evidence) > 0 && task.Positions(t) == 1 &&
		len(a.Outcome) == classes {
		(*s)[at] = append((*s)[at], detect.GEN(a.Outcome, classes)...)
	}
}

func (x *Detected) detect(measures []task.Uncertainty, sides [2]side) {
	in, out := sides[0], sides[1]
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
