package ood

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"gonum.org/v1/gonum/mat"

	"github.com/swagwrap/swagwrap/calibrate/detect"
	"github.com/swagwrap/swagwrap/internal/baseline"
	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/report"
	"github.com/swagwrap/swagwrap/internal/setting"
	"github.com/swagwrap/swagwrap/internal/task"
)

// NoFeatures is the [Detection] Tensor without measures of features.
const NoFeatures = "none"

// logitMeasures are computed from logits. For an ensemble they are means over the members. An average of probabilities loses
// the level of a member's logits. An average of logits belongs to no network that predicts.
var logitMeasures = []task.Uncertainty{
	{Key: "energy", Name: "energy"},       // −log Σ exp z (Liu et al. 2020)
	{Key: "max_logit", Name: "max logit"}, // −max z (Hendrycks et al. 2022)
	{Key: "gen", Name: "GEN"},             // of the averaged probabilities (Liu et al. 2023)
}

// featureMeasures are of the features of one network.
var featureMeasures = []task.Uncertainty{
	{Key: "mahalanobis", Name: "Mahalanobis"},                   // Lee et al. 2018
	{Key: "nearest_neighbours", Name: "50-NN"},                  // Sun et al. 2022
	{Key: "relative_mahalanobis", Name: "relative Mahalanobis"}, // Ren et al. 2021
	{Key: "vim", Name: "ViM"},                                   // Wang et al. 2022; this and the next need the last layer
	{Key: "nnguide", Name: "NNGuide"},                           // Park et al. 2023
}

func measuresOf(t task.Task) []task.Uncertainty {
	logits := slices.Clone(logitMeasures)
	for i := range logits {
		if task.Positions(t) > 1 && logits[i].Key != "gen" {
			logits[i].Name = "mean " + logits[i].Name
		}
	}
	return slices.Concat(t.Uncertainties(), logits, featureMeasures)
}

// present sets the measures, and removes those of logits and features that no method has.
func (r *Result) present() {
	own := len(r.task.Uncertainties())
	r.measures = measuresOf(r.task)
	for i := len(r.measures) - 1; i >= own; i-- {
		if slices.ContainsFunc(r.Methods, func(x Detected) bool { return i < len(x.Scores) && x.Scores[i] != nil }) {
			continue
		}
		r.measures = slices.Delete(r.measures, i, i+1)
		for k := range r.Methods {
			if s := r.Methods[k].Scores; i < len(s) {
				r.Methods[k].Scores = slices.Delete(s, i, i+1)
			}
		}
	}
}

// evidence returns that of saved logits, or nil. The task decides whether logits say more than probabilities.
func evidence(t task.Task, logits []float64) (out []float64) {
	e, ok := t.(task.Evident)
	if !ok || !e.Evident() {
		return nil
	}
	width := t.About().Classes
	row := make([]float32, width)
	for at := 0; at < len(logits); at += width {
		for c, z := range logits[at:][:width] {
			row[c] = float32(z)
		}
		total, largest := e.Evidence(row, 1)
		out = append(out, total, largest)
	}
	return out
}

// bank is the largest number of examples that features are compared with.
const bank = 10000

// known returns the examples that features are compared with: training images, or validation images if the former have no
// labels.
func (d *Detection) known() (data dataset.Dataset, rows []int) {
	if train := d.BatchNorm; train.Data != nil && train.Data.Labels().Classes != nil {
		data, rows = train.Data, train.Order.Indices(train.Data.Len())
	} else if d.Validation != nil && d.Validation.Labels().Classes != nil {
		data, rows = d.Validation, dataset.Order{}.Indices(d.Validation.Len())
	}
	rows = slices.DeleteFunc(rows, func(i int) bool { return data.Labels().Classes[i] < 0 })
	return data, rows[:min(len(rows), bank)]
}

func (d *Detection) hasFeatures(t task.Task) bool {
	_, classes := t.(task.Evident)
	return d.Tensor != NoFeatures && classes
}

// featureImages returns about how many examples the measures of features send through a network.
func (d *Detection) featureImages() int64 {
	if d.Tensor == NoFeatures || d.Runs[0].Network.Large() {
		return 0
	}
	_, rows := d.known()
	if len(rows) == 0 {
		return 0
	}
	return int64(len(rows) + d.In.Len() + d.Out.Len())
}

// features computes the measures of features.
func (d *Detection) features(ctx context.Context, r *Result, p *baseline.Predicted, sides *[2]side) error {
	data, rows := d.known()
	if len(rows) == 0 && d.Tensor == "" {
		return nil
	}
	if len(rows) == 0 {
		return errors.New("they need labelled examples of training (" + setting.BNData.String() + ") or validation (" +
			setting.Val.String() + ")")
	}
	of := p.Features
	known, err := of(ctx, d.Tensor, data, rows)
	if err != nil {
		return err
	}
	scores := d.scores(ctx, p, known, data.Labels().Pick(rows).Classes)
	var unfamiliar [2]*mat.Dense
	for k, data := range d.targets().Data {
		if unfamiliar[k], err = of(ctx, d.Tensor, data, dataset.Order{}.Indices(data.Len())); err != nil {
			return err
		}
	}
	r.Notes = append(r.Notes, apply(scores, unfamiliar, sides)...)
	_, width := known.Dims()
	if data == d.Validation && d.BatchNorm.Data != nil {
		r.Notes = append(r.Notes, "Mahalanobis distance and nearest neighbours compare with "+setting.Val.String()+", because "+
			setting.BNData.String()+" has no labels of classes")
	}
	if dataset.ID(data) != "" && dataset.ID(data) == dataset.ID(d.In) {
		r.Notes = append(r.Notes, "Mahalanobis distance and nearest neighbours compare IN with itself, so they look better than on new "+
			"examples. Give other examples of training as "+setting.BNData.String()+" with labels, or as "+setting.Val.String())
	}
	if len(rows) <= width {
		r.Notes = append(r.Notes, fmt.Sprintf("Mahalanobis distance: %s are few for %d features. It sees only the directions in which "+
			"these vary", report.Plural(len(rows), "example"), width))
	}
	if len(rows) < detect.Neighbours {
		r.Notes = append(r.Notes, fmt.Sprintf("50-NN is the distance to the farthest of %s: there are fewer than %d",
			report.Plural(len(rows), "example"), detect.Neighbours))
	}
	where := "the input of the last linear layer"
	if d.Tensor != "" {
		where = d.Tensor
	}
	r.known = fmt.Sprintf("Mahalanobis, 50-NN: distances of features from %s of %s. The %d features are %s",
		report.Plural(len(rows), dataset.Unit(data)), data.Sources()[0].Path, width, where)
	return nil
}

// layer returns the last linear layer, which ViM and NNGuide need.
func (d *Detection) layer(ctx context.Context, p *baseline.Predicted, known *mat.Dense) (*detect.Layer, error) {
	if d.Tensor != "" {
		return nil, errors.New("they need the features that the last linear layer reads, without " + setting.Features.String())
	}
	weights, bias, err := p.Head(ctx)
	if err != nil {
		return nil, err
	}
	_, width := known.Dims()
	if _, inputs := weights.Dims(); inputs != width {
		return nil, fmt.Errorf("the last linear layer reads %d features, and there are %d", inputs, width)
	}
	return &detect.Layer{Weights: weights, Bias: bias}, nil
}
