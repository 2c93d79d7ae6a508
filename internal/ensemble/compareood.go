package ensemble

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sort"

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
	Entropy, Confidence Ranking
	MutualInformation   *Ranking

	// Difference is AUROC − AUROC of the baseline, by entropy, with the interval of
	// DeLong et al. 1988 over the images; zero for the baseline itself.
	Difference calibrate.Interval
	Baseline   bool
	Notes      []error

	in, out []float64 // entropies
}

// Ranking says how well a measure of uncertainty finds what is out of the domain.
type Ranking struct {
	AUROC float64 `json:"auroc"`
	AUPR  float64 `json:"aupr"`
	FPR95 float64 `json:"fpr95"` // share of images in the domain taken for others where 95 % of the others are found
}

func rank(in, out []float64) Ranking {
	return Ranking{calibrate.AUROC(in, out), calibrate.AUPR(in, out), calibrate.FPRAt(in, out, 0.95)}
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
			all[i].Difference = aurocDifference(all[i].in, all[i].out, all[base].in, all[base].out)
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
		r := rank(calibrate.MutualInformation(nil, in.Mean(), in.Classes, in.ExpectedEntropy()),
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
	x.Entropy = rank(x.in, x.out)
	x.Confidence = rank(doubts(in, classes), doubts(out, classes))
}

// doubts returns what is left to certainty: 1 − the largest probability of each
// row.
func doubts(probs []float64, classes int) []float64 {
	var out []float64
	for row := range slices.Chunk(probs, classes) {
		out = append(out, 1-slices.Max(row))
	}
	return out
}

// scaled is SWA at a temperature fitted on the validation data.
func (d *Detection) scaled(p *Predicted) (Detected, error) {
	classes := p.Validation.Classes
	t, err := calibrate.FitTemperature(calibrate.LogProbs(nil, p.Validation.Mean()), classes, d.Validation.Labels())
	if err != nil {
		return Detected{}, fmt.Errorf("temperature: %w", err)
	}
	at := func(s *Sums) []float64 {
		return calibrate.Softmax(nil, calibrate.LogProbs(nil, s.Mean()), classes, t.T)
	}
	x := Detected{Key: SWATemp, Name: fmt.Sprintf("SWA-Temp (T = %.2f)", t.T), Members: 1}
	x.score(at(p.Data[0]), at(p.Data[1]), classes)
	if t.AtBound {
		x.Notes = append(x.Notes, errors.New("the temperature is at its bound: the validation data does not determine it"))
	}
	return x, nil
}

// aurocDifference returns the AUROC of the scores a less that of b, of the same
// images, with a 95 % interval by the components of DeLong, DeLong and
// Clarke-Pearson (Biometrics 1988): the share of the other side that each image
// is ranked right against. It is too narrow for fewer than some 30 images on
// either side, and empty where both rank all images alike.
func aurocDifference(aIn, aOut, bIn, bOut []float64) calibrate.Interval {
	found := differences(placements(aOut, aIn), placements(bOut, bIn))
	kept := differences(placements(negated(aIn), negated(aOut)), placements(negated(bIn), negated(bOut)))
	mean := stat.Mean(found, nil)
	variance := 0.0
	for _, side := range [][]float64{found, kept} {
		if len(side) < 2 {
			return calibrate.Interval{Mean: mean, Low: math.NaN(), High: math.NaN()}
		}
		variance += stat.Variance(side, nil) / float64(len(side))
	}
	const z = 1.959963984540054 // the 97.5 % quantile of the normal distribution
	half := z * math.Sqrt(variance)
	return calibrate.Interval{Mean: mean, Low: mean - half, High: mean + half}
}

// placements returns for each of xs the share of others below it, and half of
// those equal.
func placements(xs, others []float64) []float64 {
	sorted := slices.Sorted(slices.Values(others))
	out := make([]float64, len(xs))
	for i, x := range xs {
		below := sort.SearchFloat64s(sorted, x)
		upTo := sort.Search(len(sorted), func(k int) bool { return sorted[k] > x })
		out[i] = float64(below+upTo) / 2 / float64(len(sorted))
	}
	return out
}

func negated(xs []float64) []float64 {
	out := make([]float64, len(xs))
	for i, x := range xs {
		out[i] = -x
	}
	return out
}

func differences(a, b []float64) []float64 {
	out := make([]float64, len(a))
	for i := range a {
		out[i] = a[i] - b[i]
	}
	return out
}
