package bnupdate

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/swagwrap/swagwrap/weights"
)

// Rule says how the batches' statistics are combined.
type Rule int

const (
	// Reference weights each batch by its number of images, as bn_update of the
	// reference implementation does.
	Reference Rule = iota
	// EqualBatches weights all batches equally, as
	// torch.optim.swa_utils.update_bn does: a short last batch counts in full.
	EqualBatches
	// Pooled is the mean and the unbiased variance over all elements of all
	// batches, between-batch variance included.
	Pooled
)

var rules = []string{"reference", "equal-batches", "pooled"}

// String returns the rule's name in files.
func (r Rule) String() string { return rules[r] }

// Batch is the output of the rewritten network for one batch.
type Batch struct {
	Images int
	// Mean and Var hold the batch's mean and population variance per channel, for each layer in the plan's order.
	// Shapes holds the shape of each layer's input, N×C×….
	Mean, Var [][]float32
	Shapes    [][]int64
}

// A Runner runs the rewritten network on the training batches. Run must be
// safe for concurrent use.
type Runner interface {
	Batches() int
	Run(ctx context.Context, k int) (Batch, error)
}

// variance returns the unbiased variance of channel c of layer i, which PyTorch keeps. ONNX gives the population
// variance.
func (b Batch) variance(i, c int) float64 {
	m := count(b.Shapes[i])
	return float64(b.Var[i][c]) * m / (m - 1)
}

// Options are the options of [Recompute]. The zero value runs all batches, one at a time, and combines them as the
// reference does.
type Options struct {
	Rule    Rule
	Workers int // number of batches that run at the same time; 0 means 1
	// State is the flat vector of statistics and buffers of these weights. The result keeps the elements that no
	// batch computes. Nil means the state of the plan.
	State []float32
}

// Result is the outcome of a recomputation.
type Result struct {
	// Statistics is the flat vector of statistics, in the layout's order.
	Statistics []float32
	// BetweenShare is, for each layer, the share of the variance that lies between the batches' means, averaged over
	// channels. It is about 1/b for batches of b images in random order. The reference rule leaves this share out of
	// the running variance. So a large share means that the variances are too small, as happens if the data is sorted
	// by class.
	BetweenShare []float64
	Images       int
	BatchSize    int // images in the largest batch

	rule    Rule
	state   []float32 // see [Options]
	batches []Batch
}

// Recompute runs the batches and combines their statistics. It fails if a statistic is not finite or a layer sees
// fewer than two elements per channel. The error names the layer and the batch.
func Recompute(ctx context.Context, p *Plan, r Runner, opts Options) (Result, error) {
	if opts.State == nil {
		opts.State = p.kept
	}
	res := Result{Statistics: slices.Clone(opts.State), state: opts.State}
	if len(p.layers) == 0 {
		return res, nil
	}
	if r.Batches() == 0 {
		return res, fmt.Errorf("no batches to recompute batch-norm statistics from")
	}
	batches, err := p.run(ctx, r, opts.Workers)
	if err != nil {
		return res, err
	}
	res.rule, res.batches = opts.Rule, batches
	res.summarise(p)
	return res, p.finite(res.Statistics)
}

// summarise computes the fields that follow from the batches.
func (r *Result) summarise(p *Plan) {
	r.Images, r.BatchSize = 0, 0
	for _, b := range r.batches {
		r.Images += b.Images
		r.BatchSize = max(r.BatchSize, b.Images)
	}
	r.Statistics, r.BetweenShare = p.combine(r.state, r.batches, r.rule)
}

// Batches returns the number of batches in the result.
func (r Result) Batches() int { return len(r.batches) }

// Batch returns batch k of the result.
func (r Result) Batch(k int) Batch { return r.batches[k] }

// Split returns the statistics of two random halves of the result's batches. There must be at least two batches.
// Results with the same number of batches are split alike if rng has the same seed.
func (p *Plan) Split(r Result, rng *rand.Rand) (first, second []float32) {
	shuffled := slices.Clone(r.batches)
	rng.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
	half := len(shuffled) / 2
	first, _ = p.combine(r.state, shuffled[:half], r.rule)
	second, _ = p.combine(r.state, shuffled[half:2*half], r.rule)
	return first, second
}

// run returns the batches in their order.
func (p *Plan) run(ctx context.Context, r Runner, workers int) ([]Batch, error) {
	batches := make([]Batch, r.Batches())
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(max(workers, 1))
	if p.serial {
		g.SetLimit(1)
	}
	for k := range batches {
		g.Go(weights.Guarded(func() (err error) {
			if err = ctx.Err(); err == nil {
				batches[k], err = r.Run(ctx, k)
			}
			return err
		}))
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	for k, b := range batches {
		if err := p.check(k, b); err != nil {
			return nil, err
		}
	}
	return batches, nil
}

// finite fails if a combined statistic is beyond float32. The statistics of single batches are finite.
func (p *Plan) finite(statistics []float32) error {
	for _, l := range p.layers {
		for c := range l.mean.Len() {
			if mean, v := statistics[l.mean.Offset+c], statistics[l.vari.Offset+c]; mean-mean != 0 || v-v != 0 {
				return fmt.Errorf("tensor %q: the batches' statistics of channel %d are beyond float32 together (mean %v, variance %v)",
					l.name, c, mean, v)
			}
		}
	}
	return nil
}

// combine applies the rule to all layers. It returns state with the layers' new
// statistics, and [Result.BetweenShare].
func (p *Plan) combine(state []float32, batches []Batch, rule Rule) (statistics []float32, between []float64) {
	statistics = slices.Clone(state)
	for i, l := range p.layers {
		shares := 0.0
		for c := range l.mean.Len() {
			mean, variance, share := combine(batches, i, int(c), rule)
			statistics[l.mean.Offset+c] = float32(mean)
			statistics[l.vari.Offset+c] = float32(variance)
			shares += share
		}
		between = append(between, shares/float64(l.mean.Len()))
	}
	return statistics, between
}

// combine applies the rule to channel c of layer i.
func combine(batches []Batch, i, c int, rule Rule) (mean, variance, between float64) {
	weight := func(b Batch) float64 {
		switch rule {
		case EqualBatches:
			return 1
		case Pooled:
			return count(b.Shapes[i])
		}
		return float64(b.Images)
	}
	var total, elements float64
	for _, b := range batches {
		total += weight(b)
		elements += count(b.Shapes[i])
	}
	for _, b := range batches {
		mean += weight(b) / total * float64(b.Mean[i][c])
	}
	var within, spread float64
	for _, b := range batches {
		w := weight(b) / total
		variance += w * b.variance(i, c)
		within += w * float64(b.Var[i][c])
		d := float64(b.Mean[i][c]) - mean
		spread += w * d * d
	}
	if spread+within > 0 {
		between = spread / (spread + within)
	}
	if rule == Pooled {
		variance = (within + spread) * elements / (elements - 1)
	}
	return mean, variance, between
}

// count returns m, the number of elements per channel of an N×C×… tensor.
func count(shape []int64) float64 {
	m := 1.0
	for axis, d := range shape {
		if axis != 1 {
			m *= float64(d)
		}
	}
	return m
}

func (p *Plan) check(k int, b Batch) error {
	if n := len(p.layers); len(b.Mean) != n || len(b.Var) != n || len(b.Shapes) != n {
		return fmt.Errorf("batch %d: statistics of %d layers, want %d", k, len(b.Mean), n)
	}
	for i, l := range p.layers {
		if n := l.mean.Len(); int64(len(b.Mean[i])) != n || int64(len(b.Var[i])) != n {
			return fmt.Errorf("tensor %q: batch %d: statistics of %d channels, want %d", l.name, k, len(b.Mean[i]), n)
		}
		if m := count(b.Shapes[i]); m < 2 {
			return &SingleError{l.name, k}
		}
		for c := range b.Mean[i] {
			if mean, v := float64(b.Mean[i][c]), float64(b.Var[i][c]); math.IsNaN(mean-mean) || math.IsNaN(v-v) {
				return fmt.Errorf("tensor %q: batch %d: statistics of channel %d are not finite (mean %v, variance %v)",
					l.name, k, c, mean, v)
			}
		}
	}
	return nil
}

// Control is a control variate (Glasserman, "Monte Carlo Methods in Financial Engineering", section 4.1). It holds
// statistics of a network with nearby weights, from some batches and from many more. The difference between the two
// is the noise of the smaller set, which is nearly the same for all networks nearby. A member's statistics from the
// same small set, minus that noise, are nearly as good as from all batches.
type Control struct {
	Some, All []float32 // in the layout's order
}

// mostCorrection bounds what a control may change. A mean changes by at most this many standard deviations, a
// variance at most by a factor of 2 up or down. The noise of whole batches is far smaller, except in channels that
// hardly any image excites. There one network says little about another.
const mostCorrection = 0.5

// Correct removes the noise that the control shows from statistics, which must come from the batches of by.Some. Each
// mean moves by the number of standard deviations between Some and All. Each variance is multiplied by the ratio of
// All to Some. The control's own Some becomes its All.
func (p *Plan) Correct(statistics []float32, by Control) {
	for _, l := range p.layers {
		for c := range l.mean.Len() {
			mean, variance := l.mean.Offset+c, l.vari.Offset+c
			m, v := &statistics[mean], &statistics[variance]
			some, all := float64(by.Some[variance]), float64(by.All[variance])
			switch {
			case *m == by.Some[mean] && *v == by.Some[variance]:
				*m, *v = by.All[mean], by.All[variance]
			case some > 0: // else the channel is dead in the control, which shows nothing
				shift := (float64(by.All[mean]) - float64(by.Some[mean])) / math.Sqrt(some)
				shift = min(max(shift, -mostCorrection), mostCorrection)
				*m = float32(float64(*m) + shift*math.Sqrt(float64(*v)))
				*v = float32(float64(*v) * min(max(all/some, mostCorrection), 1/mostCorrection))
			}
		}
	}
}

// First returns the result of the first batches only.
func (p *Plan) First(r Result, batches int) Result {
	r.batches = r.batches[:min(batches, len(r.batches))]
	r.summarise(p)
	return r
}

// A SingleError says that a batch has one element for each channel of a layer, which has no variance.
type SingleError struct {
	Tensor string // the layer's mean
	Batch  int
}

func (e *SingleError) Error() string {
	return fmt.Sprintf("tensor %q: batch %d has one element per channel, and a variance needs 2: choose a batch size that leaves no "+
		"single example over", e.Tensor, e.Batch)
}
