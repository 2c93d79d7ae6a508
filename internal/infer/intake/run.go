package intake

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/moments"
	"github.com/swagwrap/swagwrap/internal/ort"
	"github.com/swagwrap/swagwrap/internal/tally"
	"github.com/swagwrap/swagwrap/internal/task"
	"github.com/swagwrap/swagwrap/internal/truth"
)

// A Runner is a trained network that examples are sent through, to see what it returns
// before anything is averaged. It is the last checkpoint with the batch-norm statistics
// that the checkpoint stores: a network as training left it, which needs no pass over
// training data. It computes on the CPU in float32: in 16 bits, probabilities do not add up to 1 exactly enough to show
// what they are.
type Runner struct {
	*infer.Network
	engine  *infer.Engine
	session *infer.Session // nil until Open
	few     bool           // a few examples left no doubt about the last scores
	model   infer.Model
}

// NewRunner returns a Runner of the last checkpoint of n. The caller closes it.
func NewRunner(e *infer.Engine, n *infer.Network) (r *Runner, err error) {
	r = &Runner{Network: n, engine: e.With(ort.Provider{}, e.Options().Passes)}
	r.model, err = n.LastCheckpoint()
	return r, err
}

// Open opens the checkpoint, unless it is open. The graph alone answers some questions.
func (r *Runner) Open(ctx context.Context) (err error) {
	if r.session == nil {
		r.session, err = r.engine.OpenShared(ctx, r.Graph, r.model.Filled, r.Output())
	}
	return err
}

// Close gives the session's memory back. It waits for runs in progress.
func (r *Runner) Close() (err error) {
	if r.session != nil {
		err, r.session = r.session.Close(), nil
	}
	return err
}

// Runners opens the Runners of networks. It keeps the last one open, for another data set.
type Runners struct{ last *Runner }

// Of returns the Runner of n.
func (o *Runners) Of(e *infer.Engine, n *infer.Network) (r *Runner, err error) {
	if o.last != nil && o.last.Network == n {
		return o.last, nil
	}
	o.Close()
	if r, err = NewRunner(e, n); err == nil {
		o.last = r
	}
	return r, err
}

// Close closes the last Runner.
func (o *Runners) Close() {
	if o.last != nil {
		o.last.Close()
	}
	o.last = nil
}

// Batch returns the batch size of the command's own runs.
func (r *Runner) Batch(data dataset.Dataset) (int, error) {
	return r.engine.BatchUnit(r.model, data)
}

// Run sends the examples idx of data through the network in one batch. It returns how
// many scores each example has, and the scores row by row, as the network gives them.
// A network of a fixed batch size takes at most so many; a shorter batch is filled up.
func (r *Runner) Run(ctx context.Context, data dataset.Dataset, idx []int) (count int, scores []float32, err error) {
	if err := r.Open(ctx); err != nil {
		return 0, nil, err
	}
	out, err := r.session.Feed(ctx, data, idx)
	var layout infer.Layout
	if err == nil {
		layout, scores, err = r.Scores(out[0], max(len(idx), r.session.FixedBatch()))
		count = layout.Size()
	}
	if err != nil {
		return 0, nil, fmt.Errorf("%s: %w", r.model.Name, err)
	}
	if r.Large() {
		count, scores = r.positions(data, idx, layout, scores)
	}
	return count, scores[:count*len(idx)], nil
}

// positions returns scores position by position. Short lists have NaN behind their last position, up to the longest list
// of the data.
func (r *Runner) positions(data dataset.Dataset, idx []int, l infer.Layout, scores []float32) (count int, out []float32) {
	longest := l.Positions
	for i := range data.Len() {
		longest = max(longest, dataset.Positions(data, i))
	}
	out = make([]float32, 0, len(idx)*longest*l.Count)
	for k, i := range idx {
		own := scores[k*l.Size():][:l.Size()]
		end := l.Positions
		if n := dataset.Positions(data, i); n > 0 {
			end = n
		}
		for p := range longest {
			for c := range l.Count {
				v := float32(math.NaN())
				switch {
				case p >= end:
				case r.Axis() == 1:
					v = own[c*l.Positions+p]
				default:
					v = own[p*l.Count+c]
				}
				out = append(out, v)
			}
		}
	}
	return longest * l.Count, out
}

// Raw runs the given number of examples from all over a sample, in batches of the command's own size. It returns the
// scores, and the facts that the graph and the model card give about them.
func (r *Runner) Raw(ctx context.Context, s *Sample, examples int) (*Raw, error) {
	ctx = tally.For(ctx, tally.Check("form of scores"))
	size, err := r.Batch(s)
	if err != nil {
		return nil, err
	}
	n := min(examples, s.Len())
	raw := &Raw{Task: r.Posterior.Card.Task, Batch: min(size, n), Ending: r.Ending(), Known: r.Form(), Proven: r.Proven() != ""}
	if r.Large() {
		return raw, r.rawPositions(ctx, s, raw)
	}
	rows := make([]int, n)
	for k := range rows {
		rows[k] = k * s.Len() / n
	}
	raw.Labels = s.Labels().Pick(rows)
	for idx := range slices.Chunk(rows, size) {
		count, scores, err := r.Run(ctx, s, idx)
		if err != nil {
			return nil, err
		}
		raw.Count, raw.Scores = count, append(raw.Scores, scores...)
	}
	return raw, nil
}

// rawPositions sets the scores of some positions of some examples, a row for each. Labels are left out.
func (r *Runner) rawPositions(ctx context.Context, s *Sample, raw *Raw) error {
	const examples, positions = 16, 256
	raw.Labels, raw.Batch, raw.Count = truth.Truth{}, 1, max(1, r.Layout().Count)
	n := min(examples, s.Len())
	for k := range n {
		count, scores, err := r.Run(ctx, s, []int{k * s.Len() / n})
		if err != nil {
			return err
		}
		of := count / raw.Count
		for p := range min(positions, of) {
			raw.Scores = append(raw.Scores, scores[p*of/min(positions, of)*raw.Count:][:raw.Count]...)
		}
	}
	return nil
}

// A Report is what the checks of one data set found for one network. It is kept in the
// files that a run writes.
type Report struct {
	Data     string `json:"data"`     // the path that the user gave
	Examples int    `json:"examples"` // number of examples that the checks looked at
	// Scores says what the scores were taken for; nil of a regression.
	Scores   *Decision `json:"scores,omitempty"`
	Warnings []string  `json:"warnings,omitempty"` // each names the likely cause and the fix
	// Wrong are those of the warnings that say that the inputs are not like those of training. Then no result holds. Files
	// keep them among the warnings only.
	Wrong []string `json:"-"`
	// Notes say by which rules names became numbers, and what was left out of the files.
	Notes []string `json:"notes,omitempty"`
	// Inputs are the moments of each input of the network.
	Inputs []moments.Summary `json:"inputs,omitempty"`
	// Depends says how an example's scores depend on its batch; nil if they do not.
	Depends *Dependence `json:"depends,omitempty"`
	// Apart says what told that they do not: [ByGraph] or [ByRuns]. It is "" if they depend, or if nothing was told.
	Apart string `json:"apart,omitempty"`
	// BatchSize is what the user chose for a network whose examples depend on each other.
	BatchSize int `json:"batch_size,omitempty"`
}

// Name takes over what the data says about names.
func (r *Report) Name(d dataset.Dataset) {
	var doubts []string
	r.Notes, doubts = dataset.Notes(d)
	r.Warnings = append(r.Warnings, doubts...)
}

// wrong adds a warning about inputs that are not like those of training.
func (r *Report) wrong(what string) {
	r.Warn(what)
	r.Wrong = append(r.Wrong, what)
}

// Warn adds a warning.
func (r *Report) Warn(what string) { r.Warnings = append(r.Warnings, what) }

// CheckScores decides what the scores of r's network are, and tells the network. Of a regression it checks the numbers. It
// looks at [Few] examples first, and at the whole sample only if these leave a doubt. An [*Unclear] error says that nothing
// decides, or that the model card is wrong. known says that the form was known before.
func (r *Runner) CheckScores(ctx context.Context, report *Report, s *Sample, foreign bool) (known bool, err error) {
	raw, err := r.Raw(ctx, s, Few)
	if err != nil {
		return false, err
	}
	if r.Scoreless() {
		return false, finite(raw.Scores)
	}
	raw.Foreign = foreign
	if r.few = r.settled(raw); s.Len() > Few && !r.few {
		if raw, err = r.Raw(ctx, s, s.Len()); err != nil {
			return false, err
		}
		raw.Foreign = foreign
	}
	return raw.Known != "", r.checkScores(report, raw)
}

// CheckFirst is CheckScores on the scores of the first examples of data, which a run has anyway. It reports false, and does
// nothing, if these leave a doubt. Then CheckScores looks at examples from all over the data.
func (r *Runner) CheckFirst(report *Report, first *infer.FirstScores, data dataset.Dataset) (settled bool, err error) {
	if first == nil || r.Scoreless() || r.Large() || first.Count == 0 || !first.Exact && !r.logits() {
		return false, nil
	}
	rows := make([]int, first.Examples)
	for i := range rows {
		rows[i] = i
	}
	raw := &Raw{
		Task:   r.Posterior.Card.Task,
		Count:  first.Count,
		Scores: first.Scores,
		Batch:  first.Examples,
		Labels: data.Labels().Pick(rows),
		Ending: r.Ending(),
		Known:  r.Form(),
		Proven: r.Proven() != "",
	}
	seen := raw.usable()
	alike := len(seen) == 0 || first.Examples < data.Len() && look(seen).distinct < enough
	if alike || !r.settled(raw) {
		return false, nil
	}
	return true, r.checkScores(report, raw)
}

// logits reports whether the graph ends in a layer that gives logits, and nobody says otherwise. In 16 bits, rows of
// probabilities do not add up to 1 exactly enough to look like such.
func (r *Runner) logits() bool { return r.Ending().Affine && r.Form() == "" }

// settled reports whether the scores of few examples leave no doubt.
func (r *Runner) settled(raw *Raw) bool {
	if r.Large() {
		return true // more examples would not run
	}
	if !task.TraitsOf(raw.Task).Form {
		few := &Report{}
		return raw.plainNumbers() && r.numbers(few, raw) == nil && few.Warnings == nil
	}
	d, err := raw.Decide()
	return err == nil && d != nil && raw.plain(d)
}

func (r *Runner) numbers(report *Report, raw *Raw) error {
	said, err := infer.RegressionSpec(r.Posterior.Card)
	if err != nil || said == nil {
		return r.of(err)
	}
	first, second := r.Halves()
	return raw.CheckNumbers(report, *said, first, second)
}

func (r *Runner) checkScores(report *Report, raw *Raw) error {
	if !task.TraitsOf(raw.Task).Form {
		return r.numbers(report, raw)
	}
	d, err := raw.Decide()
	if err != nil {
		return err
	}
	report.Scores = d
	if d == nil || d.By == "default" || d.Form == raw.Known {
		return nil
	}
	return r.of(r.Decide(d.Form))
}

// of names the posterior in an error.
func (r *Runner) of(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", r.Posterior.Path, err)
}
