package ensemble

import (
	"context"
	"fmt"
	"slices"

	"gonum.org/v1/gonum/stat"

	"github.com/swagwrap/swagwrap/calibrate"
	"github.com/swagwrap/swagwrap/internal/dataset"
)

// Detection asks of each method how well its uncertainty tells images of the
// training domain from others: section 5.3 of Maddox et al. 2019, and its
// appendix.
type Detection struct {
	Lineup
	Validation dataset.Dataset // for SWA-Temp and Laplace, or nil
	In, Out    dataset.Dataset
}

// Detected is what one method's uncertainty says of the images. Entropies are in
// nats. In all scores, images out of the domain are those to be found.
type Detected struct {
	Key, Name string
	Members   int
	StaleBN   bool

	// In and Out count the entropies of the averaged probabilities, in the paper's
	// bins, and Distance is the symmetrised KL divergence between the two, smoothed
	// by calibrate.DefaultSmoothing.
	In, Out               calibrate.Histogram
	Distance              float64
	InEntropy, OutEntropy float64 // means

	// Scores by three measures of uncertainty. MutualInformation is nil of a single
	// network, whose members cannot disagree.
	Entropy, Confidence calibrate.Detection
	MutualInformation   *calibrate.Detection

	// Difference is AUROC − AUROC of the baseline, by entropy, with the interval of
	// DeLong et al. 1988 over the images; zero for the baseline itself.
	Difference calibrate.Interval
	Baseline   bool
	Notes      []error

	in, out []float64 // entropies
}

// DetectionMethods are those that run unless others are named: not the ones that
// show what a mistake costs, or have classes in view only.
func DetectionMethods() []string {
	return slices.DeleteFunc(DefaultMethods(), func(m string) bool { return m == StaleSWA || m == SWAVector })
}

func (d *Detection) targets() Targets {
	d.preset = DetectionMethods()
	return Targets{Data: []dataset.Dataset{d.In, d.Out}, Validation: d.Validation}
}

// Images returns about how many images Run sends through networks.
func (d *Detection) Images() int64 { return d.Lineup.Images(d.targets()) }

// Run scores the methods, and returns them in the order of [Methods]. The baseline
// of the differences is SWA; where it is not among the methods, the first of them.
func (d *Detection) Run(ctx context.Context, e *Engine) ([]Detected, error) {
	var all []Detected
	err := d.Each(ctx, e, d.targets(), func(p *Predicted) error {
		if p.Method != SWA || d.wants(SWA) {
			all = append(all, detected(p))
		}
		if p.Method != SWA || d.Validation == nil || !d.wants(SWATemp) {
			return nil
		}
		scaled, err := d.scaled(p)
		if err == nil {
			all = append(all, scaled)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	if err := inOrder(all, func(m Detected) string { return m.Key }); err != nil {
		return nil, err
	}
	base := max(0, slices.IndexFunc(all, func(x Detected) bool { return x.Key == SWA }))
	all[base].Baseline = true
	for i := range all {
		if i != base {
			all[i].Difference = calibrate.AUROCDifference(all[i].in, all[i].out, all[base].in, all[base].out)
		}
	}
	return all, nil
}

// detected scores what a method predicts.
func detected(p *Predicted) Detected {
	x := Detected{Key: p.Method, Name: p.Name, Members: p.Members, StaleBN: p.StaleBN, Notes: p.Notes}
	in, out := p.Data[0], p.Data[1]
	x.score(in.Mean(), out.Mean(), in.Classes)
	if p.Members > 1 {
		r := calibrate.Detect(calibrate.MutualInformation(nil, in.Mean(), in.Classes, in.ExpectedEntropy()),
			calibrate.MutualInformation(nil, out.Mean(), out.Classes, out.ExpectedEntropy()))
		x.MutualInformation = &r
	}
	return x
}

// DetectionOf scores probabilities, n×classes each, of images in and out of the
// domain, wherever they come from.
func DetectionOf(name string, in, out []float64, classes int) Detected {
	x := Detected{Name: name, Baseline: true}
	x.score(in, out, classes)
	return x
}

// score scores probabilities in and out of the domain.
func (x *Detected) score(in, out []float64, classes int) {
	x.in, x.out = calibrate.PredictiveEntropy(nil, in, classes), calibrate.PredictiveEntropy(nil, out, classes)
	x.In, x.Out = calibrate.EntropyHistogram(x.in), calibrate.EntropyHistogram(x.out)
	x.Distance = calibrate.SymmetrizedKL(x.In, x.Out, calibrate.DefaultSmoothing)
	x.InEntropy, x.OutEntropy = stat.Mean(x.in, nil), stat.Mean(x.out, nil)
	x.Entropy = calibrate.Detect(x.in, x.out)
	x.Confidence = calibrate.Detect(calibrate.LeastConfidence(nil, in, classes), calibrate.LeastConfidence(nil, out, classes))
}

// scaled is SWA at a temperature fitted on the validation data.
func (d *Detection) scaled(p *Predicted) (Detected, error) {
	s, err := p.fit(calibrate.ByTemperature, d.Validation)
	if err != nil {
		return Detected{}, err
	}
	at := func(sums *Sums) []float64 {
		z := calibrate.LogProbs(nil, sums.Mean())
		return s.Apply(z, z, sums.Classes)
	}
	x := Detected{Key: SWATemp, Name: fmt.Sprintf("SWA-Temp (T = %.2f)", s.Temperatures[0]), Members: 1, Notes: s.Warnings}
	x.score(at(p.Data[0]), at(p.Data[1]), p.Validation.Classes)
	return x, nil
}
