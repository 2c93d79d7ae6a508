package probe

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/setting"
	"github.com/swagwrap/swagwrap/internal/tally"
	"github.com/swagwrap/swagwrap/weights"
)

// What [Runner.Dependence] looks at: so many examples in a batch, and so many of them alone and
// among others.
const (
	batchExamples = 16
	aloneExamples = 4
	denseExamples = 4 // examples in a batch, if each has many pixels
)

// Two runs of one example in batches of different sizes differ by rounding. Measured on
// convolutions, transformers and recurrent networks it is at most 3e-7 of the range of the
// scores in float32; other processors sum in other orders. Float16 has 13 bits less. Every
// dependence that was tried is above 0.3: fixtures/batches has the figures.
const (
	tolerance     = 1e-3
	tolerance16   = 5e-2
	leastExamples = 2
)

// A Dependence says that the scores of an example depend on the examples that run with
// it. Changes are the largest difference of a score, in units of the range that this
// score has over the examples. One that rounding explains is 0.
type Dependence struct {
	Batch float64 `json:"batch,omitempty"` // alone, at another place or among other examples
	// Padding is the change when a list is filled up to the length of a longer one: no
	// mask says where the list ends.
	Padding float64 `json:"padding,omitempty"`
}

// What told that the examples of a batch are independent: see [Report].Independent.
const (
	ByGraph = "graph"
	ByRuns  = "runs"
)

// CheckBatches finds whether the scores of an example depend on its batch: in the report of an earlier check, in the graph, or else by
// runs. If they do, the user must choose the batch size: chosen is 0 without such a choice.
func (r *Runner) CheckBatches(ctx context.Context, report, earlier *Report, s *Sample, chosen int) (err error) {
	switch {
	case earlier != nil && earlier.Depends != nil:
		report.Depends = earlier.Depends
	case longest(s) < 0 && r.States() == nil && r.Skeleton().Independent(r.Output()):
		report.Independent = ByGraph // no graph tells whether the filling of short lists matters, nor what states do
	case earlier != nil && earlier.Independent == ByRuns:
		report.Independent = ByRuns
	default:
		if report.Depends, err = r.Dependence(ctx, s); report.Depends == nil && s.Len() >= batchExamples {
			report.Independent = ByRuns
		}
	}
	d := report.Depends
	if d == nil || err != nil {
		return err
	}
	mixed := fmt.Sprintf("a score changes by %.2g %% of its range with the other examples in the batch. ", 100*d.Batch)
	if nodes := r.Skeleton().AcrossBatch(); len(nodes) == 0 {
		mixed += "The network mixes the examples of a batch"
	} else if mixed += "The cause may be the node " + nodes[0].Node; nodes[0].Certain {
		mixed = strings.Replace(mixed, "may be", "is", 1) + ": batch norm without running statistics"
	}
	if d.Padding == 0 {
		report.BatchSize = max(chosen, int(r.Input.Shape[0]))
	}
	return report.Take(r.holds, Fault{Name: "lists without a mask", Severity: Warning, When: d.Padding > 0 && chosen != 1,
		Cause: fmt.Sprintf("a score changes by %.2g %% of its range when an example is filled up to the length of a longer one in "+
			"its batch. The network has no mask, or does not use it: predictions depend on the batch size and on the order of the "+
			"examples", 100*d.Padding),
		Hint: fmt.Sprintf("Give the mask as an input of the network, or run one example at a time (%s)", setting.BatchSize.With("1")),
	}, Fault{Name: "mixed examples", When: d.Padding == 0 && report.BatchSize < 1, Cause: report.Data + ": " + mixed,
		Hint: "export a network whose examples do not depend on each other. For batch norm in PyTorch: train with " +
			"track_running_stats=True, the default\n" + setting.BatchSize.With("N") + " runs it in batches of N examples all the same: " +
			"give the batch size of training. Predictions then depend on the order of the examples, which must be random",
	}, Fault{Name: "mixed examples of a chosen batch", Severity: Warning, When: d.Padding == 0 && report.BatchSize > 0,
		Cause: fmt.Sprintf("%s. Predictions hold for batches of %d in this order only: sorted examples are predicted worse, and so "+
			"is a short last batch", mixed, report.BatchSize)})
}

// Dependence runs some examples in a batch, alone, at another place of the batch, and
// among other examples. It returns nil if the scores stay the same, if there is one
// example only, or if the network takes one example at a time. A network that cannot run
// the examples at all returns nil as well: the run itself then says why.
func (r *Runner) Dependence(ctx context.Context, s *Sample) (*Dependence, error) {
	ctx = tally.For(ctx, tally.Check("dependence on the batch"))
	if err := r.Open(ctx); err != nil {
		return nil, err
	}
	fixed := r.session.FixedBatch()
	size := min(batchExamples, s.Len())
	if r.Large() {
		own, err := r.Batch(s)
		if err != nil || own == 1 { // the run itself takes one example at a time, because they are large
			return nil, err
		}
		size = min(denseExamples, size)
	}
	if fixed > 0 {
		size = min(size, fixed)
	}
	if s.Len() < leastExamples || size < leastExamples {
		return nil, ctx.Err()
	}
	t := &trial{r: r, s: s, longest: longest(s), batch: s.spread(size)}
	if t.longest >= 0 { // all batches are filled up to the same length
		t.batch[0] = t.longest
	}
	if !t.reference(ctx) {
		return nil, ctx.Err()
	}
	d := &Dependence{Batch: t.change(ctx, append(slices.Clone(t.batch[1:]), t.batch[0]))}
	var places []int // of examples that also run alone
	for k := range min(aloneExamples, size-1) {
		places = append(places, (k+1)*(size-1)/min(aloneExamples, size-1))
	}
	others := make([]int, size) // neighbours of the examples
	for i := range others {
		others[i] = (t.batch[i] + 1) % s.Len()
	}
	for _, at := range append([]int{0}, places[:max(1, size/4)]...) { // these stay
		others[at] = t.batch[at]
	}
	d.Batch = max(d.Batch, t.change(ctx, others))
	for _, at := range places {
		alone := t.change(ctx, []int{t.batch[at]})
		if t.longest < 0 {
			d.Batch = max(d.Batch, alone)
			continue
		}
		d.Batch = max(d.Batch, t.change(ctx, []int{t.batch[at], t.longest}))
		d.Padding = max(d.Padding, alone)
	}
	if d.Batch > 0 {
		d.Padding = 0 // the effect of padding cannot be separated
	}
	if *d == (Dependence{}) {
		return nil, ctx.Err()
	}
	return d, ctx.Err()
}

// longest returns the index of the example with the longest lists, or −1 if no lists are padded.
func longest(s *Sample) int {
	best, at := 0, -1
	for i := range s.Len() {
		total := 0
		for f := range s.Fields() {
			total += max(dataset.Length(s, f, i), 0)
		}
		if total > best {
			best, at = total, i
		}
	}
	return at
}

// trial holds the reference batch, with which other batches are compared.
type trial struct {
	r       *Runner
	s       *Sample
	longest int
	batch   []int
	count   int // scores of an example
	scores  []float32
	ranges  []float64 // of each score
	least   float64   // a change that rounding does not explain
}

// reference runs the batch, and reports whether it has usable scores.
func (t *trial) reference(ctx context.Context) bool {
	var err error
	if known := t.r.record; known != nil && known.sample == t.s && known.Batch == len(t.batch) && slices.Equal(known.idx, t.batch) {
		t.count, t.scores = known.Count, known.Scores
	} else if t.count, t.scores, err = t.r.Run(ctx, t.s, t.batch); err != nil {
		return false
	}
	t.least = tolerance
	if slices.ContainsFunc(t.r.Posterior.Layout.Tensors, func(of weights.Tensor) bool { return of.DType.Size() == 2 }) {
		t.least = tolerance16
	}
	for c := range t.count {
		low, high, size := math.Inf(1), math.Inf(-1), 0.0
		for i := range t.batch {
			v := float64(t.scores[i*t.count+c])
			low, high, size = min(low, v), max(high, v), max(size, math.Abs(v))
		}
		if high-low <= 1e-6*size { // the same for all examples
			low, high = 0, size
		}
		t.ranges = append(t.ranges, high-low)
	}
	return true
}

// change runs another batch, and compares the examples that the reference has too. It returns the largest difference of a
// score, or 0 if rounding explains it or if one of the two has no usable scores.
func (t *trial) change(ctx context.Context, batch []int) (largest float64) {
	count, scores, err := t.r.Run(ctx, t.s, batch)
	if err != nil || count != t.count {
		return 0
	}
	for k, example := range batch {
		at := slices.Index(t.batch, example)
		if at < 0 {
			continue
		}
		for c, wide := range t.ranges {
			d := math.Abs(float64(scores[k*count+c]) - float64(t.scores[at*count+c]))
			if d-d == 0 && wide > 0 && wide-wide == 0 { // all finite
				largest = max(largest, d/wide)
			}
		}
	}
	if largest <= t.least {
		return 0
	}
	return largest
}
