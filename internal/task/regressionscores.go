package task

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/swagwrap/swagwrap/calibrate"
	"github.com/swagwrap/swagwrap/calibrate/chance"
	"github.com/swagwrap/swagwrap/calibrate/regression"
	"github.com/swagwrap/swagwrap/internal/setting"
	"github.com/swagwrap/swagwrap/internal/target"
)

// found returns the figures of one target, or their means over all targets.
func found(m regression.Metrics, mace float64) *result {
	return &result{Metrics: calibrate.Metrics{NLL: -m.Gaussian.LogLikelihood}, numbers: m, mace: mace}
}

// regressionReducer implements [Reducer] for regressions. It keeps some 130 bytes for each target of an example.
type regressionReducer struct {
	t      regressionTask
	opts   EvaluateOptions
	scores []regression.Score // n × targets
}

func (t regressionTask) NewReducer(opts EvaluateOptions) Reducer {
	return &regressionReducer{t: t, opts: opts}
}

func (e *regressionReducer) Add(outcome []float64, target target.Target, _ string) error {
	if err := e.t.check(outcome, target); err != nil {
		return err
	}
	e.scores = append(e.scores, e.t.scores(outcome, target)...)
	return nil
}

// AddRow also adds rows without noise. Then only the errors of their means are known.
func (e *regressionReducer) AddRow(values []float64, _ int, _ []byte, _ string) bool {
	n := e.t.targets
	if values[0] != values[0] {
		return false
	}
	for k := range n {
		at := func(column int) float64 { return values[column*n+k] }
		score := regression.Moments{Mean: at(1), Aleatoric: at(3) * at(3), Epistemic: at(4) * at(4)}.Score(at(0))
		if marks := values[7*n+3*k:]; marks[2] >= 0 && marks[2] <= 1 { // else there are none, or a file has what is no PIT value
			score.Mixture = regression.Marks{LogLikelihood: marks[0], CRPS: marks[1], PIT: marks[2], Low: at(5), High: at(6)}
		}
		e.scores = append(e.scores, score)
	}
	return true
}

func (e *regressionReducer) Merge(other Reducer) {
	e.scores = append(e.scores, other.(*regressionReducer).scores...)
}

func (e *regressionReducer) Metrics() []Metric { return metrics(regressionMeasures) }

func (e *regressionReducer) Losses() []Loss {
	if e.opts.NoLosses {
		return nil
	}
	list := []Loss{{Key: "nll", Name: "NLL"}, {Key: "crps", Name: "CRPS"}, {Key: "squared_error", Name: "squared error"}}
	for k, loss := range []func(regression.Score) float64{
		func(s regression.Score) float64 { return -s.Gaussian.LogLikelihood },
		func(s regression.Score) float64 { return s.Gaussian.CRPS },
		func(s regression.Score) float64 { return s.Error() * s.Error() },
	} {
		list[k].Values = make([]float64, len(e.scores)/e.t.targets)
		for i, s := range e.scores {
			list[k].Values[i/e.t.targets] += loss(s) / float64(e.t.targets)
		}
	}
	return list
}

func (e *regressionReducer) Evaluation() *Evaluation {
	if e.opts.Maps != nil {
		e = &regressionReducer{t: e.t, opts: e.opts, scores: slices.Clone(e.scores)}
		e.t.recalibrate(e.scores, e.opts.Maps)
	}
	all := regression.Evaluate(e.scores, e.t.targets)
	out := &Evaluation{Losses: e.Losses()}
	if !math.IsNaN(e.scores[0].Moments.Aleatoric) { // else there are no variances to warn of
		out.Warnings = all.Mean.Warnings
	}
	if !e.opts.MainOnly {
		out.Figures = e.t.figures(e.scores)
	}
	mean := 0.0
	for k, m := range all.Targets {
		mace := math.NaN()
		if pits := e.t.pits(e.scores, k); !e.opts.MainOnly && !slices.ContainsFunc(pits, math.IsNaN) {
			mace = regression.MACE(pits)
		}
		mean += mace / float64(e.t.targets)
		if e.t.targets > 1 {
			out.Parts = append(out.Parts, Part{fmt.Sprintf("target %d", k),
				found(m, mace).scores(regressionMeasures, e.opts.MainOnly)})
		}
	}
	out.Scores = found(all.Mean, mean).scores(regressionMeasures, e.opts.MainOnly)
	return out
}

// pits are those of target k.
func (t regressionTask) pits(scores []regression.Score, k int) (pits []float64) {
	for i := k; i < len(scores); i += t.targets {
		pits = append(pits, scores[i].Gaussian.PIT)
	}
	return pits
}

// MixtureLoss implements [Mixed].
func (t regressionTask) MixtureLoss() string { return "NLL of the mixture" }

// EvaluateMixture implements [Mixed].
func (t regressionTask) EvaluateMixture(e *Evaluation, members [][]float32, weights []float64, known target.Target, c *Calibration) error {
	scaling := slices.Repeat([]regression.VarianceScaling{{Factor: 1}}, t.targets)
	if c != nil {
		for k := range scaling {
			scaling[k].Factor = c.Factor(k)
		}
	}
	for _, m := range members {
		if len(m) != known.Len()*t.width() {
			return fmt.Errorf("members say %d numbers, want %d", len(m), known.Len()*t.width())
		}
	}
	scores := make([]regression.Score, len(known.Values))
	row := make([]float32, len(members)*t.width())
	for i := range known.Len() {
		for s, m := range members {
			copy(row[s*t.width():], m[i*t.width():][:t.width()])
		}
		for k := range t.targets {
			scores[i*t.targets+k] = t.mixture(Average{Members: row, Weights: weights}, k, scaling[k]).Score(known.Values[i*t.targets+k])
		}
	}
	all := regression.Evaluate(scores, t.targets)
	fill := func(scores []Score, m regression.Metrics) {
		for i, own := range found(m, 0).scores(regressionMeasures, false) {
			if own.Optional {
				scores[i] = own
			}
		}
	}
	fill(e.Scores, all.Mean)
	for k := range e.Parts {
		fill(e.Parts[k].Scores, all.Targets[k])
	}
	return nil
}

// recalibrate replaces the intervals and probabilities in scores, n × targets, by those of the maps. There is no
// likelihood then.
func (t regressionTask) recalibrate(scores []regression.Score, by *Fitted) {
	each := func(c *Calibration, i int) {
		for k, m := range c.Maps {
			s := &scores[i*t.targets+k]
			s.Gaussian = m.Marks(s.Moments.Gaussian(), s.Y)
		}
	}
	for f, c := range by.Each {
		if by.Folds == nil {
			for i := range len(scores) / t.targets {
				each(c, i)
			}
			continue
		}
		for _, i := range by.Folds[f] {
			each(c, i)
		}
	}
}

const (
	pitBins        = 10
	coverageLevels = 19 // 5, 10 … 95 %
)

// figures show how often the target lies where it is predicted to, and how large errors are where they
// are predicted to be. They are nil where scores have no distribution.
func (t regressionTask) figures(scores []regression.Score) []Figure {
	var pits []float64
	for _, s := range scores {
		if s.Gaussian.PIT != s.Gaussian.PIT {
			return nil
		}
		pits = append(pits, s.Gaussian.PIT)
	}
	note := ""
	if t.targets > 1 {
		note = " All targets are counted together, as if they were independent of each other: the intervals are too narrow where they " +
			"are not."
	}
	coverage := Figure{
		Key:    "coverage",
		Title:  "Coverage of intervals",
		XLabel: "share that the interval is to hold",
		YLabel: "share that it holds − that",
		Note:   "Above zero intervals are too wide, below it too narrow." + note,
	}
	for i := range coverageLevels {
		coverage.X = append(coverage.X, float64(i+1)/(coverageLevels+1))
	}
	for i, c := range regression.Coverages(pits, coverage.X) {
		w := chance.Wilson(c, len(pits))
		coverage.add(c-coverage.X[i], w.Low-coverage.X[i], w.High-coverage.X[i])
	}
	pit := Figure{
		Key:    "pit",
		Title:  "PIT histogram",
		XLabel: "predicted probability of a value up to the true one (PIT)",
		YLabel: "density",
		Ideal:  1,
		Note: "Flat where predicted distributions are right. Higher at both ends: they are too narrow; in the middle: too wide; at " +
			"one end: they lie to one side." + note,
	}
	for b, count := range regression.PITHistogram(pits, pitBins) {
		share := float64(count) / float64(len(pits))
		w := chance.Wilson(share, len(pits))
		pit.X = append(pit.X, (float64(b)+0.5)/pitBins)
		pit.add(pitBins*share, pitBins*w.Low, pitBins*w.High)
	}
	figures := []Figure{coverage, pit}
	for k := range t.targets {
		var column []regression.Score
		for i := k; i < len(scores); i += t.targets {
			column = append(column, scores[i])
		}
		figures = append(figures, errorFigure(column, k, t.targets))
	}
	return figures
}

// errorFigure is the reliability of the variances of target k of several, over the bins of the ENCE.
func errorFigure(scores []regression.Score, k, targets int) Figure {
	f := Figure{
		Key:    fmt.Sprintf("error_%d", k),
		Title:  "Errors by predicted standard deviation",
		XLabel: "root of the mean predicted variance",
		YLabel: "RMSE / that",
		Ideal:  1,
		Note: "A point for each group of examples of similar predicted variance, the groups that the ENCE is made of. Above one " +
			"standard deviations are too small. The intervals are those of errors that are Gaussian.",
	}
	if targets > 1 {
		f.Title += fmt.Sprintf(", target %d", k)
	}
	for _, b := range regression.ErrorBins(scores, 0) {
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

// ErrNoNoise is the error of figures that need the likelihood of a regression, if nothing is known about its noise.
var ErrNoNoise error = noNoise{}

type noNoise struct{}

func (noNoise) Error() string {
	return fmt.Sprintf("there is no variance head and no noise about the means, and so no likelihood (%s sets the noise, and %s fits it "+
		"to validation data)",
		setting.Fit.With(setting.NoiseStd.With("STD")), setting.Compare)
}

// lacksNoise reports whether nothing is known about the noise.
func (t regressionTask) lacksNoise() bool { n := t.numbers(); return n.Head == "" && n.Noise == nil }

// Missing implements [Incomplete].
func (t regressionTask) Missing() *Calibrator {
	if !t.lacksNoise() {
		return nil
	}
	c := noise.Calibrator
	c.Fit = t.fit(noise)
	return &c
}

// noiseless reports whether some outcomes have no noise.
func (t regressionTask) noiseless(outcomes []float64) bool {
	for i := 2; i < len(outcomes); i += perTarget {
		if outcomes[i] == 0 {
			return true
		}
	}
	return false
}

// hide hides the columns that have no meaning without noise.
func (t regressionTask) hide(list []Column) []Column {
	if !t.lacksNoise() {
		return list
	}
	for i, c := range list {
		switch c.Name {
		case "target", "mean", "epistemic_std", "member_mean":
		default:
			list[i].Hidden = true
		}
	}
	return list
}
