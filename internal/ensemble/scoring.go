package ensemble

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/guarantee"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/infer/rounding"
	"github.com/swagwrap/swagwrap/internal/names"
	"github.com/swagwrap/swagwrap/internal/predictions"
	"github.com/swagwrap/swagwrap/internal/preprocess"
	"github.com/swagwrap/swagwrap/internal/records"
	"github.com/swagwrap/swagwrap/internal/setting"
	"github.com/swagwrap/swagwrap/internal/target"
	"github.com/swagwrap/swagwrap/internal/task"
)

// Scoring describes a scoring job.
type Scoring struct {
	Ensemble *Ensemble
	Networks []*infer.Network // of the ensemble's components
	Data     dataset.Dataset
	// Preprocess is the preprocessing that the data has.
	Preprocess preprocess.Settings
	Want       task.RowOptions // Members only says whether to keep them; its value is ignored
	// Threshold replaces the threshold of the ensemble. 0 keeps the threshold of the ensemble.
	Threshold float64
	// GroupOf names the group of an example, for a guarantee with thresholds of groups. It may be nil.
	GroupOf func(i int, name string) string
	// SkipErrors gives an example a row with an error if it cannot be read or its scores are unusable. Without
	// SkipErrors the run fails.
	SkipErrors bool
	// Settled lets an example skip members by the ensemble's stopping rule. Rows get a column "members".
	Settled bool
	// Choosing runs all members in the batches of such a run, to choose a rule.
	Choosing bool
	// Positions, if not nil, is called with what each example says, for a task with several positions. The reading is
	// valid only during the call.
	Positions func(name string, t task.Task, r *task.Reading) error
	// Original resamples the averages of pixels to the size that pictures had before they were resized. Data was opened
	// with the option of that name.
	Original bool
	// Adapted says that the statistics in force are not those of the ensemble's file: see [Ensemble.GoBack] and
	// Component.Adapted.
	Adapted bool
	// Blocks, if not nil, adapt the statistics to each block of the data. Examples that continue each other, and tiles, have none.
	Blocks *Blocks
	// EstimateShares says that rows get their probabilities, from which class shares will be estimated.
	EstimateShares bool
	// Part is the part of the data to score, in whole batches or blocks. nil stands for all data. NewScorer sets its range and
	// its number of examples.
	Part *records.Part
	// Ran and Look are those of [infer.Options]. A part and blocks have no Ran.
	Ran  *infer.Ran
	Look func(*infer.Graph, *infer.FirstScores) error
}

// A Scorer runs an ensemble over data, and makes rows from the averages over its members.
type Scorer struct {
	*infer.Scorer
	// Warnings are problems that the user should know before relying on the result.
	Warnings []error

	job     Scoring
	engine  *infer.Engine
	labels  target.Target
	names   []string  // of the classes, or nil
	weights []float64 // of the members, if they are kept
	reading task.Reading
	join    *joiner            // nil unless the examples are tiles
	decider *guarantee.Decider // nil if nothing is guaranteed
}

// NewScorer returns a Scorer for the job. See [infer.NewScorer].
func NewScorer(ctx context.Context, e *infer.Engine, job Scoring) (*Scorer, error) {
	m := job.members(e)
	var err error
	var join *joiner
	if t := job.pictures(); t != nil {
		join = &joiner{Tiles: t}
	}
	if job.Data, err = job.part(e, m); err != nil {
		return nil, err
	}
	if join != nil && job.Part != nil {
		join.first = min(job.Part.First, job.Part.All-1)
	}
	if job.Threshold == 0 {
		job.Threshold = job.Ensemble.Threshold
	}
	job.Want.Settled = job.Settled
	s := &Scorer{job: job, engine: e, join: join}
	if s.Scorer, err = s.newScorer(ctx, &s.job, job.Data); err != nil {
		return nil, err
	}
	if task.Large(s.Task()) && job.Want.Members > 0 {
		return nil, fmt.Errorf("%s: %s: members are not kept for networks with scores at several positions, pixels or tokens",
			setting.KeepMembers, s.Task().About().Size)
	}
	if err := job.Ensemble.CheckCalibration(s.Task()); err != nil {
		return nil, err
	}
	if err := s.checkNoise(); err != nil {
		return nil, err
	}
	if err := checkThreshold(job.Ensemble.Path, s.job.Threshold, s.Task()); err != nil {
		return nil, err
	}
	if err := s.guarantee(); err != nil {
		return nil, fmt.Errorf("%s: %w", job.Ensemble.Path, err)
	}
	if v := job.Ensemble.Expected; v != nil && v.All != nil && task.Large(s.Task()) {
		s.job.Want.Signs = v.All.Threshold
	}
	if job.Want.Members > 0 {
		s.job.Want.Members = s.Members()
		s.weights = job.Ensemble.Weights()
	}
	return s, s.name()
}

// checkNoise refuses to scale unknown variances. Without a calibration it only warns that they are unknown.
func (s *Scorer) checkNoise() error {
	if task.Missing(s.Task()) == nil {
		return nil
	}
	path := s.job.Ensemble.Path
	if s.job.Ensemble.Calibration != nil {
		return fmt.Errorf("%s: scales variances, and there are none: no variance head, and no noise", path)
	}
	s.Warnings = append(s.Warnings, errors.New("no variance head and no noise: rows have means and the spread of the members, but no "+
		"standard deviations, intervals and likelihoods. "+
		fmt.Sprintf("%s fits the noise, if PREDICTIONS are those of %s on validation data",
			setting.Line(setting.Calibrate.With(setting.Output.With("calibrated.safetensors"), setting.Ensemble.With(path),
				"PREDICTIONS")), setting.Score.With(setting.KeepMembers.String()))))
	return nil
}

// checkThreshold refuses a threshold for any task except binary classification.
func checkThreshold(path string, threshold float64, t task.Task) error {
	if _, ok := t.(task.Decided); threshold > 0 && !ok {
		return fmt.Errorf("%s: a threshold is on the probability of class 1 of the task binary, and the task is %s", path, t.About().Name)
	}
	return nil
}

// newScorer returns what runs the members of a job over data.
func (s *Scorer) newScorer(ctx context.Context, job *Scoring, data dataset.Dataset) (own *infer.Scorer, err error) {
	settling, err := job.settling(func() task.Task { return own.Task() })
	if err != nil {
		return nil, err
	}
	own, err = infer.NewScorer(ctx, s.engine, job.members(s.engine), data, infer.Options{
		SkipErrors:  job.SkipErrors,
		KeepMembers: job.Want.Members > 0,
		Settling:    settling,
		Ran:         job.Ran,
		Look:        job.Look,
	})
	return own, err
}

// settling returns the rule for the runs, or nil if all members run. t returns the task, which is known after the first
// run.
func (job *Scoring) settling(t func() task.Task) (*infer.Settling, error) {
	e := job.Ensemble
	out := &infer.Settling{Checks: e.StoppingChecks(), Unit: e.Unit()}
	switch {
	case job.Choosing:
		out.Settled = func(int, task.Average, []float64) bool { return false }
		return out, nil
	case !job.Settled:
		return nil, nil
	case e.Stopping == nil:
		return nil, fmt.Errorf("%s: has no stopping rule", e.Path)
	}
	out.Checks, out.Weights = e.Stopping.Checks, e.Stopping.Weights
	threshold := sync.OnceValue(func() float64 { return e.RawThreshold(t(), job.Threshold) })
	out.Settled = func(check int, average task.Average, variance []float64) bool {
		of := t().(task.Settling)
		nats, errors := of.Unsettled(average.Outcome, variance, threshold())
		return e.Stopping.Settled(check, nats, task.Doubt(of, average.Outcome), errors)
	}
	return out, nil
}

// guarantee prepares for what the ensemble guarantees of its predictions.
func (s *Scorer) guarantee() (err error) {
	if s.job.Choosing {
		return nil
	}
	if s.decider, err = guarantee.NewDecider(s.job.Ensemble.Guarantee, s.Task(), s.job.GroupOf); err != nil || s.decider == nil {
		return err
	}
	s.decider.Want(&s.job.Want)
	if task.Large(s.Task()) {
		s.reading.Sizes = s.decider
	}
	return nil
}

// Rounding measures how the engine's precision changes the averages over the ensemble's members. It always uses all
// data, also if the job scores a part, so that all parts get the same result.
func (job Scoring) Rounding(ctx context.Context, e *infer.Engine, opts rounding.Options) (*rounding.Change, error) {
	opts.Antithetic, opts.SkipErrors, opts.Ran = job.Ensemble.Sampling.Antithetic, job.SkipErrors, job.Ran
	return rounding.Measure(ctx, e, job.members(e), opts, job.Data)
}

// Own loads the examples of the job's part, and returns them.
func (job *Scoring) Own(e *infer.Engine) (dataset.Dataset, error) {
	return job.part(e, job.members(e))
}

func (job *Scoring) members(e *infer.Engine) *memberSource {
	numbers := job.Ensemble.All()
	if rule := job.Ensemble.Stopping; job.Settled && rule != nil {
		numbers = rule.Order
	}
	return &memberSource{e: job.Ensemble, networks: job.Networks, numbers: numbers, workers: e.Options().Threads, memory: e.Memory()}
}

// pictures returns the tiles that the job scores, or nil if its examples are whole.
func (job *Scoring) pictures() *dataset.Tiles {
	t, _ := job.Data.(*dataset.Tiles)
	return t
}

// part returns the examples to score. If the part is empty, it returns one example, which shows the shape of the rows.
func (job *Scoring) part(e *infer.Engine, m infer.MemberSource) (dataset.Dataset, error) {
	p := job.Part
	if p == nil {
		return job.Data, nil
	}
	if t := job.pictures(); t != nil {
		p.Range(t.Pictures(), 1)
		first := min(p.First, p.All-1)
		return dataset.Part(t, t.First(first), t.First(max(p.End, first+1))), nil
	}
	unit, err := e.BatchUnit(m, job.Data)
	if err != nil {
		return nil, err
	}
	if rows, windows := dataset.RowsOf(job.Data); rows > 0 { // whole rows of a text, whose windows continue each other
		p.Range(rows, unit)
		first := min(p.First, p.All-1)
		own := dataset.Rows(job.Data, first, max(p.End, first+1))
		p.First, p.End, p.All = p.First*windows, p.End*windows, p.All*windows
		return own, nil
	}
	if job.Blocks != nil {
		job.Blocks.span(p, job.Data.Len())
	} else {
		p.Range(job.Data.Len(), unit)
	}
	first := min(p.First, p.All-1)
	end := max(p.End, first+1)
	if err := dataset.Load(job.Data, first, end); err != nil {
		return nil, err
	}
	return dataset.Part(job.Data, first, end), nil
}

// span sets the range of a part of n examples to whole blocks.
func (b *Blocks) span(p *records.Part, n int) {
	end := b.Last(n) + 1 // stands for all of the last block
	p.Range(end, b.Examples)
	whole := func(at int) int {
		if at == end {
			return n
		}
		return at
	}
	p.First, p.End, p.All = whole(p.First), whole(p.End), n
}

// name checks labels and class names against the task. It leaves both out if their number of classes differs, for
// example because the folder has only a few of the classes.
func (s *Scorer) name() error {
	named, labels := s.job.Data.ClassNames(), s.job.Data.Labels()
	if s.join != nil {
		labels = s.join.PictureLabels
	}
	if card := s.job.Ensemble.Card; card.ClassNames != nil {
		named = card.ClassNames
	}
	if err := names.CheckCount(named, s.job.Data.Name(0), s.Task().About().Classes); err != nil {
		s.Warnings = append(s.Warnings, fmt.Errorf("%w: names and labels are left out", err))
		return nil
	}
	if err := task.CheckLabels(s.Task(), labels, s.job.Data.Name); err != nil {
		return err
	}
	s.names, s.labels, s.job.Want.Target = named, labels, labels.Width > 0 || labels.Dense()
	return nil
}

// Schema describes the rows. Files show the first top classes of each ranking. A ranking of one class only repeats
// other columns, so it is hidden.
func (s *Scorer) Schema(top int) *predictions.Schema {
	columns := task.RowColumns(s.Task(), s.job.Want)
	for i := range columns {
		if c := &columns[i]; c.Kind == task.Ranked {
			c.Hidden, c.Shown = c.Hidden || min(top, c.Shape[0]) < 2, top
		}
	}
	schema := &predictions.Schema{
		Columns:    columns,
		Want:       s.job.Want,
		ClassNames: s.names,
		Labels:     s.labels.Classes != nil && !s.labels.Dense(),
		Errors:     s.job.SkipErrors,
		Width:      s.Task().About().Width,
	}
	schema.Sides = task.SpecOf(s.Task()).Sides
	_, schema.Windows = dataset.RowsOf(s.job.Data)
	return schema
}

// Tasks describes the task of each network.
func (s *Scorer) Tasks() []string {
	var out []string
	for _, n := range s.job.Networks {
		out = append(out, n.Posterior.Path+": "+n.Known().About().Meaning)
	}
	return out
}

// Parameters returns everything that the rows depend on. Two runs with equal parameters give equal rows. producer is
// the program and its version.
func (s *Scorer) Parameters(producer string) (records.Parameters, error) {
	var tasks []string
	for _, n := range s.job.Networks {
		tasks = append(tasks, n.Known().About().Meaning)
	}
	examples := s.job.Examples()
	if s.job.Part != nil {
		examples = s.job.Part.All
	} else if s.join != nil {
		examples = s.join.Pictures()
	}
	values := map[string]any{
		"producer":    producer,
		"onnxruntime": s.engine.Runtime().Version(),
		"provider":    s.engine.Provider().String(),
		"ensemble":    s.job.Ensemble.ID,
		"preprocess":  s.job.Preprocess,
		"data":        s.job.Data.Sources(),
		"examples":    examples,
		"batch_size":  s.BatchSizes(),
		"tasks":       tasks,
		"class_names": nameSum(s.names),
		"columns":     s.job.Want,
	}
	if s.job.Settled {
		values["settled"] = true
	}
	if c := s.job.Ensemble.Calibration; s.job.EstimateShares {
		values["shares"] = "estimate"
	} else if c != nil && c.Shares != nil {
		values["shares"] = c.Shares
	}
	if s.job.Adapted {
		values["adapted"] = s.job.Ensemble.statisticsSum()
	}
	if b := s.job.Blocks; b != nil {
		values["blocks"] = map[string]any{"examples": b.Examples, "weight": b.Weight, "batch": s.engine.Options().BatchSize}
	}
	if s.join != nil {
		values["tiles"] = s.join.Tiling
	}
	if task.Large(s.Task()) {
		values["at"] = map[bool]string{true: "original", false: "network"}[s.job.Original]
	}
	if s.job.Threshold > 0 {
		values["threshold"] = s.job.Threshold
	}
	return records.NewParameters(values)
}

// MadeWith says how predictions with these parameters were made.
func MadeWith(p records.Parameters) guarantee.Made {
	digest := func(keys ...string) string {
		if p[keys[0]] == nil {
			return ""
		}
		sum := sha256.New()
		for _, key := range keys {
			var text bytes.Buffer
			if json.Compact(&text, p[key]) == nil { // a file for people has spaces
				fmt.Fprintf(sum, "%s %s\n", key, &text)
			}
		}
		return hex.EncodeToString(sum.Sum(nil))
	}
	return guarantee.Made{Statistics: digest("adapted", "blocks"), Shares: digest("shares")}
}

// Labels returns the labels of the data. They have no width if there are none.
func (s *Scorer) Labels() target.Target { return s.labels }

// Threshold returns the threshold of the rows, or 0 for the usual one.
func (s *Scorer) Threshold() float64 { return s.job.Threshold }

// nameSum returns a hash of a list of names, or "" for nil.
func nameSum(names []string) string {
	if names == nil {
		return ""
	}
	sum := sha256.Sum256([]byte(strings.Join(names, "\n")))
	return hex.EncodeToString(sum[:])
}
