package probe

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/infer/store"
	"github.com/swagwrap/swagwrap/internal/moments"
	"github.com/swagwrap/swagwrap/internal/ort"
	"github.com/swagwrap/swagwrap/internal/tally"
	"github.com/swagwrap/swagwrap/internal/task"
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
	record  *Record        // of a few examples
	holds   Property       // what is proven of the network
	model   infer.Model
}

// NewRunner returns a Runner of the last checkpoint of n. The caller closes it.
func NewRunner(e *infer.Engine, n *infer.Network) (r *Runner, err error) {
	r = &Runner{Network: n, engine: e.With(ort.Provider{}, e.Options().Passes)}
	if n.Posterior.Single() {
		r.holds = Frozen
	}
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

// Runner returns the Runner of n.
func (o *Runners) Runner(e *infer.Engine, n *infer.Network) (r *Runner, err error) {
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

// Record runs the given number of examples from all over a sample, in batches of the command's own size. It returns the
// scores, and the facts that the graph and the model card give about them.
func (r *Runner) Record(ctx context.Context, s *Sample, examples int) (*Record, error) {
	ctx = tally.For(ctx, tally.Check("form of scores"))
	size, err := r.Batch(s)
	if err != nil {
		return nil, err
	}
	rows, large := s.spread(examples), r.Large()
	if large { // more positions would not run
		rows, size = s.spread(Few), 1
	}
	rec := r.facts(min(size, len(rows)))
	if !large {
		rec.Labels = s.Labels().Pick(rows)
	}
	for idx := range slices.Chunk(rows, size) {
		count, scores, err := r.Run(ctx, s, idx)
		if err != nil {
			return nil, err
		}
		if rec.Count = count; large { // some positions, a row for each
			rec.Count = max(1, r.Layout().Count)
			of, all := count/rec.Count, scores
			scores = nil
			for n, p := min(256, of), 0; p < n; p++ {
				scores = append(scores, all[p*of/n*rec.Count:][:rec.Count]...)
			}
		}
		rec.Scores = append(rec.Scores, scores...)
	}
	if rec.sample, rec.idx = s, rows; examples == Few {
		r.record = rec
	}
	return rec, nil
}

// facts returns what is known of scores before a run.
func (r *Runner) facts(batch int) *Record {
	return &Record{
		Task:             r.Posterior.Card.Task,
		Holds:            r.holds,
		Batch:            batch,
		OutputProperties: r.OutputProperties(),
		Known:            r.Form(),
		Proven:           r.Proven() != "",
	}
}

// A Report is what the checks of one data set found for one network. It is kept in the
// files that a run writes.
type Report struct {
	Data     string `json:"data"`     // the path that the user gave
	Examples int    `json:"examples"` // number of examples that the checks looked at
	// Scores says what the scores were taken for; nil of a regression.
	Scores   *Decision `json:"scores,omitempty"`
	Warnings []string  `json:"warnings,omitempty"` // each names the likely cause and the fix
	// Found are the faults of the warnings. Files keep their words only.
	Found []*Fault `json:"-"`
	// Notes say by which rules names became numbers, and what was left out of the files.
	Notes []string `json:"notes,omitempty"`
	// Inputs are the moments of each input of the network.
	Inputs []moments.Summary `json:"inputs,omitempty"`
	// Depends says how an example's scores depend on its batch; nil if they do not.
	Depends *Dependence `json:"depends,omitempty"`
	// Independent says what told that they do not: [ByGraph] or [ByRuns]. It is "" if they depend, or if nothing was told.
	Independent string `json:"apart,omitempty"`
	// BatchSize is what the user chose for a network whose examples depend on each other.
	BatchSize int `json:"batch_size,omitempty"`
}

// Name takes over what the data says about names.
func (r *Report) Name(d dataset.Dataset) {
	var doubts []string
	r.Notes, doubts = dataset.Notes(d)
	r.Warnings = append(r.Warnings, doubts...)
}

func (r *Report) warn(f *Fault) {
	r.Warnings, r.Found = append(r.Warnings, f.String()), append(r.Found, f)
}

// Take goes through rows in their order. Those that fire are warnings, or end it.
func (r *Report) Take(holds Property, rows ...Fault) error {
	for i := range rows {
		switch f := &rows[i]; {
		case !f.Fires(holds):
		case f.Severity <= Question:
			return f
		default:
			r.warn(f)
		}
	}
	return nil
}

// CheckScores decides what the scores of r's network are, and tells the network. Of a regression it checks the numbers. It
// looks at [Few] examples first, and at the whole sample only if these leave a doubt. A [*Fault] is the error if nothing
// decides, or if the model card is wrong.
func (r *Runner) CheckScores(ctx context.Context, report *Report, s *Sample, holds Property) error {
	for examples := Few; ; examples = s.Len() {
		rec, err := r.Record(ctx, s, examples)
		if err != nil {
			return err
		}
		if r.Scoreless() {
			if k := slices.IndexFunc(rec.Scores, infinite); k >= 0 {
				return fmt.Errorf("the network's output is not finite: %v", rec.Scores[k])
			}
			return nil
		}
		rec.Holds |= holds
		found, sure, err := r.judge(rec)
		if r.few = sure && examples == Few; sure || examples >= s.Len() {
			return r.take(report, found, rec, err)
		}
	}
}

// CheckFirst is CheckScores on the scores of the first examples of data, which a run has anyway. It reports false, and does
// nothing, if these leave a doubt. Then CheckScores looks at examples from all over the data.
func (r *Runner) CheckFirst(report *Report, first *infer.FirstScores, data dataset.Dataset) (settled bool, err error) {
	// In 16 bits, rows of probabilities do not add up to 1 exactly enough to look like such.
	if first == nil || r.Scoreless() || r.Large() || first.Count == 0 || !first.Exact && (!r.OutputProperties().Affine || r.Form() != "") {
		return false, nil
	}
	rec := r.facts(first.Examples)
	rec.Count, rec.Scores = first.Count, first.Scores
	rec.Labels = data.Labels().Pick(dataset.Order{Limit: first.Examples}.Indices(data.Len()))
	seen := rec.usable()
	if len(seen) == 0 || first.Examples < data.Len() && look(seen).distinct < enough {
		return false, nil // alike
	}
	found, sure, err := r.judge(rec)
	if !sure {
		return false, nil
	}
	return true, r.take(report, found, rec, err)
}

// judge says what scores are. sure says that more examples would show nothing else.
func (r *Runner) judge(rec *Record) (_ *Report, sure bool, err error) {
	found, dense := &Report{}, r.Large() // more positions would not run
	if task.TraitsOf(rec.Task).Form {
		found.Scores, err = rec.Decide()
		return found, dense || err == nil && found.Scores != nil && rec.plain(found.Scores), err
	}
	spec, err := infer.RegressionSpec(r.Posterior.Card)
	if err != nil {
		return found, dense, fmt.Errorf("%s: %w", r.Posterior.Path, err)
	}
	if spec != nil {
		first, second := r.Halves()
		if err = rec.CheckNumbers(found, *spec, first, second); err != nil {
			return found, dense, err
		}
	}
	rows := rec.usable()
	plain := rec.Labels.None() && len(rows)*rec.Count == len(rec.Scores) && (rec.Count < fewestSteps || !ascendOrFall(rows))
	return found, dense || plain && found.Warnings == nil, nil
}

// take keeps what was found, and tells the network.
func (r *Runner) take(report, found *Report, rec *Record, err error) error {
	report.Warnings, report.Found = append(report.Warnings, found.Warnings...), append(report.Found, found.Found...)
	if err != nil {
		return err
	}
	report.Scores = found.Scores
	if d := found.Scores; d != nil && d.By != "default" && d.Form != rec.Known {
		if err = r.Decide(d.Form); err != nil {
			return fmt.Errorf("%s: %w", r.Posterior.Path, err)
		}
	}
	return nil
}

// Known takes the form of the scores from an earlier check of the same network on the same data, and reports whether there
// was one. Such a check left no doubt with [Few] examples, and no warning. keep keeps that of the check that follows. kept
// may be nil.
func (r *Runner) Known(kept *store.Store, report *Report, s *Sample) (known bool, keep func()) {
	key := r.findingKey(s)
	if kept == nil || key == nil {
		return false, func() {}
	}
	d, before := &Decision{}, len(report.Warnings)
	if kept.Recall(key, d) && r.agrees(d) {
		report.Scores = d
		return true, nil
	}
	was := r.Form()
	return false, func() {
		if d := report.Scores; d != nil && r.few && len(report.Warnings) == before && r.Form() == was && r.agrees(d) {
			kept.Remember(key, d)
		}
	}
}

// agrees reports whether a decision teaches nothing that the graph and the card do not say.
func (r *Runner) agrees(d *Decision) bool {
	return d.Form == r.Form() && d.By != "" || d.By == "default" && d.Form == task.Logits && r.Form() == ""
}

// findingKey returns what the check of scores depends on, or nil if nothing identifies that.
func (r *Runner) findingKey(s *Sample) store.Key {
	if !r.Traits().Form || r.Scoreless() || r.Large() {
		return nil
	}
	size, err := r.Batch(s)
	if err != nil {
		return nil
	}
	k, _ := r.engine.FindingKey("form of scores", r.Network, dataset.ID(s.Dataset), s, s.spread(Few))
	if k != nil {
		k["of"], k["batch"], k["task"], k["output"], k["form"] = s.Len(), size, r.Posterior.Card.Task, r.Output(), r.Form()
	}
	return k
}
