package ood

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/gonum/mat"

	"github.com/swagwrap/swagwrap/calibrate/detect"
	"github.com/swagwrap/swagwrap/internal/baseline"
)

// score is one of [featureMeasures], fitted to known features. err says why it cannot be computed.
type score struct {
	of  func(features *mat.Dense) []float64
	err error
}

// scores fits the scores, in the order of [featureMeasures]. Each one may fail alone.
func (d *Detection) scores(ctx context.Context, p *baseline.Predicted, known *mat.Dense, classes []int) []score {
	list := make([]score, len(featureMeasures))
	if m, err := detect.FitMahalanobis(known, classes); err != nil {
		list[0].err = err
	} else {
		list[0].of = m.Distances
	}
	list[1].of = func(x *mat.Dense) []float64 { return detect.NeighbourDistances(known, x, detect.Neighbours) }
	if m, err := detect.FitRelativeMahalanobis(known, classes); err != nil {
		list[2].err = err
	} else {
		list[2].of = m.Distances
	}
	layer, err := d.layer(ctx, p, known)
	if err != nil {
		list[3].err, list[4].err = err, err
		return list
	}
	_, width := known.Dims()
	if vim, err := detect.FitViM(known, *layer, detect.Principal(width)); err != nil {
		list[3].err = err
	} else {
		list[3].of = vim.Scores
	}
	list[4].of = func(x *mat.Dense) []float64 { return detect.NNGuide(known, x, *layer, detect.Guides) }
	return list
}

var errNotANumber = errors.New("a score is not a number")

// apply computes the scores of both sides. A score that fails for one side is left out of both. The notes name each score that is
// left out, and those with the same reason together.
func apply(scores []score, features [2]*mat.Dense, sides *[2]side) (notes []string) {
	var reasons []string
	left := map[string][]string{}
	for j, s := range scores {
		var values [2][]float64
		for k, x := range features {
			if s.err != nil {
				break
			}
			if values[k] = s.of(x); slices.ContainsFunc(values[k], math.IsNaN) {
				s.err = errNotANumber
			}
		}
		if s.err != nil {
			why := s.err.Error()
			if left[why] == nil {
				reasons = append(reasons, why)
			}
			left[why] = append(left[why], featureMeasures[j].Name)
			continue
		}
		for k, v := range values {
			sides[k][len(sides[k])-len(scores)+j] = v
		}
	}
	for _, why := range reasons {
		verb := "are"
		if len(left[why]) == 1 {
			verb = "is"
		}
		notes = append(notes, fmt.Sprintf("%s %s left out: %s", strings.Join(left[why], " and "), verb, why))
	}
	return notes
}
