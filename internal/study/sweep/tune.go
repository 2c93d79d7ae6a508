package sweep

import (
	"context"
	"fmt"
	"math"

	"github.com/swagwrap/swagwrap/calibrate"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/report"
	"github.com/swagwrap/swagwrap/internal/task"
)

// UsualScales are the scales of a sweep by default.
var UsualScales = []float64{0, 0.125, 0.25, 0.5, 1, 2}

// UsualRanks returns the ranks of a sweep by default, for a posterior with the given number of columns.
func UsualRanks(columns int) (ranks []int) {
	for _, k := range []int{0, 2, 5, 10, 20} {
		if k <= columns {
			ranks = append(ranks, k)
		}
	}
	return ranks
}

// Tuned is the setting that validation data chose, with its temperature.
type Tuned struct {
	Setting
	Temperature float64 // of the members' average; 0 if none can be fitted
	NLL         float64 // on the validation data at that temperature, which was minimised
	Candidates  int
	Images      int
	// Share is the share of bootstrap resamples of the validation data in which the setting is the best, at the
	// fitted temperatures.
	Share float64
}

// String describes the choice and its basis.
func (t *Tuned) String() string {
	return fmt.Sprintf("%v at T = %s has the lowest NLL of %d settings, each at a temperature of its own, on %s validation images, and is the best in %s of bootstrap resamples of them",
		t.Setting, report.Fixed(t.Temperature, 2), t.Candidates, report.Thousands(t.Images), report.Percent(t.Share, 0))
}

// Tune chooses among the settings on the validation data, each at its best temperature. A scale that is too small
// makes probabilities overconfident, which a temperature corrects at no cost. Test data is not used and may be nil.
func (s *Sweep) Tune(ctx context.Context, e *infer.Engine) (*Tuned, error) {
	on := *s
	on.Test, on.Validation = s.Validation, nil
	var settings []Setting
	var losses [][]float64
	var temperatures []float64
	for _, set := range on.fresh() {
		a := &average{sweep: &on, setting: set, members: s.Members}
		if err := a.run(ctx, e); err != nil {
			return nil, err
		}
		temperature, l, err := on.tempered(&a.test)
		if err != nil {
			return nil, fmt.Errorf("%v: %w", set, err)
		}
		settings, losses, temperatures = append(settings, set), append(losses, l), append(temperatures, temperature)
	}
	const standard = 1 // place of the default in Settings
	c := calibrate.Choose(losses, losses, standard, s.Seed)
	return &Tuned{Setting: settings[c.Best], Temperature: temperatures[c.Best], NLL: mean(losses[c.Best]), Candidates: len(settings),
		Images: s.Validation.Len(), Share: c.Shares[c.Best]}, nil
}

// TuneImages returns the number of images that Tune sends through networks.
func (s *Sweep) TuneImages() int64 {
	on := *s
	on.Test, on.Validation = s.Validation, nil
	return on.images(on.fresh(), s.Members)
}

// fresh returns the settings with recomputed statistics, which are those that can be chosen.
func (s *Sweep) fresh() (list []Setting) {
	for _, set := range s.Settings() {
		if !set.Stale {
			list = append(list, set)
		}
	}
	return list
}

// tempered returns the temperature that fits an average of the test data best, and the losses of its images at it.
func (s *Sweep) tempered(sums *infer.Sums) (temperature float64, losses []float64, err error) {
	outcomes, labels := sums.Mean(), s.Test.Labels()
	if fitted, err := sums.Task.Calibrators()[0].Fit(outcomes, labels); err == nil {
		temperature, _ = fitted.Number()
		outcomes = sums.Task.Apply(nil, fitted, outcomes)
	} // otherwise a true class has probability 0, which no temperature corrects
	list, err := task.Losses(sums.Task, outcomes, labels, s.options())
	if err != nil {
		return 0, nil, err
	}
	return temperature, list[0].Values, nil
}

func mean(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum / math.Max(1, float64(len(values)))
}
