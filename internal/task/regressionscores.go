package task

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/swagwrap/swagwrap/calibrate"
	gauss "github.com/swagwrap/swagwrap/calibrate/regression"
	"github.com/swagwrap/swagwrap/internal/truth"
)

// evaluation has what scores say, n × targets, of all targets and of each.
func (t regression) evaluation(scores []gauss.Score, mainOnly bool) *Evaluation {
	all := gauss.Evaluate(scores, t.targets, gauss.EvaluateOptions{})
	e := &Evaluation{Warnings: all.Mean.Warnings}
	if !mainOnly {
		e.Figures = t.figures(scores)
	}
	mean := 0.0
	for k, m := range all.Targets {
		mace := math.NaN()
		if pits := t.pits(scores, k); !mainOnly && !slices.ContainsFunc(pits, math.IsNaN) {
			mace = gauss.MACE(pits)
		}
		mean += mace / float64(t.targets)
		if t.targets > 1 {
			e.Parts = append(e.Parts, Part{fmt.Sprintf("target %d", k), regressionValues(m, mace)})
		}
	}
	e.Values = regressionValues(all.Mean, mean)
	return e
}

// pits are those of target k.
func (t regression) pits(scores []gauss.Score, k int) (pits []float64) {
	for i := k; i < len(scores); i += t.targets {
		pits = append(pits, scores[i].Gaussian.PIT)
	}
	return pits
}

// regressionValues are in the order of Metrics.
func regressionValues(m gauss.Metrics, mace float64) []float64 {
	g, x := m.Gaussian, m.Mixture
	return []float64{-g.LogLikelihood, m.RMSE, m.MAE, g.CRPS, g.Coverage, g.Width, m.ENCE, m.Std, m.Aleatoric, m.Epistemic, mace,
		-x.LogLikelihood, x.CRPS, x.Coverage, x.Width}
}

// MixtureLoss implements [Mixed].
func (t regression) MixtureLoss() string { return "NLL of the mixture" }

// EvaluateMixture implements [Mixed].
func (t regression) EvaluateMixture(e *Evaluation, members [][]float32, weights []float64, known truth.Truth, s *calibrate.Scaling) error {
	scaling := gauss.VarianceScaling{Factor: 1}
	if s != nil {
		if len(s.Temperatures) != 1 {
			return nil // of halves of the data: no single distribution is meant
		}
		scaling.Factor = s.Temperatures[0]
	}
	for _, m := range members {
		if len(m) != known.Len()*t.Width() {
			return fmt.Errorf("members say %d numbers, want %d", len(m), known.Len()*t.Width())
		}
	}
	scores := make([]gauss.Score, len(known.Values))
	row := make([]float32, len(members)*t.Width())
	for i := range known.Len() {
		for s, m := range members {
			copy(row[s*t.Width():], m[i*t.Width():][:t.Width()])
		}
		for k := range t.targets {
			scores[i*t.targets+k] = t.mixture(Average{Members: row, Weights: weights}, k, scaling).Score(known.Values[i*t.targets+k])
		}
	}
	all := gauss.Evaluate(scores, t.targets, gauss.EvaluateOptions{})
	fill := func(values []float64, m gauss.Metrics) {
		own := regressionValues(m, math.NaN())
		for i, metric := range t.Metrics() {
			if metric.Optional {
				values[i] = own[i]
			}
		}
	}
	fill(e.Values, all.Mean)
	for k := range e.Parts {
		fill(e.Parts[k].Values, all.Targets[k])
	}
	return nil
}

// Recalibration implements [Recalibrator].
func (t regression) Recalibration() Calibrator {
	return Calibrator{Name: "Isotonic", Words: "isotonic recalibration", Columns: []Metric{
		{Key: "coverage", Header: "isotonic coverage", Digits: 1, Percent: true}, {Key: "width", Header: "isotonic width", Digits: 4}, {Key: "mace", Header: "isotonic MACE", Digits: 4}}}
}

// Recalibrate implements [Recalibrator] by an isotonic map of the PIT of each target
// ([gauss.FitIsotonic]): intervals and probabilities have it, and no likelihood.
func (t regression) Recalibrate(outcomes []float64, known truth.Truth, parts []Repair) (*Evaluation, error) {
	if err := t.check(outcomes, known); err != nil {
		return nil, err
	}
	scores := t.scores(outcomes, known)
	var warnings []error
	for _, p := range parts {
		if err := t.check(p.Outcomes, p.Labels); err != nil {
			return nil, err
		}
		fitted := t.scores(p.Outcomes, p.Labels)
		for k := range t.targets {
			r, err := gauss.FitIsotonic(t.pits(fitted, k))
			if err != nil {
				return nil, err
			}
			if k == 0 {
				warnings = append(warnings, r.Warnings...)
			}
			rows := p.Rows
			if rows == nil {
				rows = everyRow(known.Len())
			}
			for _, i := range rows {
				s := &scores[i*t.targets+k]
				s.Gaussian = r.Marks(s.Moments.Gaussian(), s.Y)
			}
		}
	}
	e := t.evaluation(scores, false)
	e.Warnings = append(e.Warnings, warnings...)
	return e, nil
}

func everyRow(n int) []int {
	rows := make([]int, n)
	for i := range rows {
		rows[i] = i
	}
	return rows
}

const (
	pitBins        = 10
	coverageLevels = 19 // 5, 10 … 95 %
)

// figures show how often truth lies where it is said to, and how large errors are where they
// are said to be. They are nil where scores have no distribution.
func (t regression) figures(scores []gauss.Score) []Figure {
	var pits []float64
	for _, s := range scores {
		if s.Gaussian.PIT != s.Gaussian.PIT {
			return nil
		}
		pits = append(pits, s.Gaussian.PIT)
	}
	note := ""
	if t.targets > 1 {
		note = " All targets are counted together, as if they were independent of each other: the intervals are too narrow where they are not."
	}
	coverage := Figure{Key: "coverage", Title: "Coverage of intervals", XLabel: "share that the interval is to hold", YLabel: "share that it holds − that",
		Note: "Above zero intervals are too wide, below it too narrow." + note}
	for i := range coverageLevels {
		coverage.X = append(coverage.X, float64(i+1)/(coverageLevels+1))
	}
	for i, c := range gauss.Coverages(pits, coverage.X) {
		w := calibrate.Wilson(c, len(pits))
		coverage.add(c-coverage.X[i], w.Low-coverage.X[i], w.High-coverage.X[i])
	}
	pit := Figure{Key: "pit", Title: "PIT histogram", XLabel: "predicted probability of a value up to the true one (PIT)", YLabel: "density", Ideal: 1,
		Note: "Flat where predicted distributions are right. Higher at both ends: they are too narrow; in the middle: too wide; at one end: they lie to one side." + note}
	for b, count := range gauss.PITHistogram(pits, pitBins) {
		share := float64(count) / float64(len(pits))
		w := calibrate.Wilson(share, len(pits))
		pit.X = append(pit.X, (float64(b)+0.5)/pitBins)
		pit.add(pitBins*share, pitBins*w.Low, pitBins*w.High)
	}
	figures := []Figure{coverage, pit}
	for k := range t.targets {
		var column []gauss.Score
		for i := k; i < len(scores); i += t.targets {
			column = append(column, scores[i])
		}
		figures = append(figures, t.errorFigure(column, k))
	}
	return figures
}

// errorFigure is the reliability of the variances of one target, over the bins of the ENCE.
func (t regression) errorFigure(scores []gauss.Score, k int) Figure {
	f := Figure{Key: fmt.Sprintf("error_%d", k), Title: "Errors by predicted standard deviation", XLabel: "root of the mean predicted variance", YLabel: "RMSE / that", Ideal: 1,
		Note: "A point for each group of examples of similar predicted variance, the groups that the ENCE is made of. Above one standard deviations are too small. The intervals are those of errors that are Gaussian."}
	if t.targets > 1 {
		f.Title += fmt.Sprintf(", target %d", k)
	}
	for _, b := range gauss.ErrorBins(scores, 0) {
		chi := distuv.ChiSquared{K: float64(b.Count)}
		f.X = append(f.X, b.RMV)
		ratio := b.RMSE / b.RMV
		f.add(ratio, ratio*math.Sqrt(chi.K/chi.Quantile(0.975)), ratio*math.Sqrt(chi.K/chi.Quantile(0.025)))
	}
	return f
}

func (f *Figure) add(y, lower, upper float64) {
	f.Y, f.Lower, f.Upper = append(f.Y, y), append(f.Lower, lower), append(f.Upper, upper)
}
