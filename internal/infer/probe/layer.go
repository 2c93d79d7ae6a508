package probe

import (
	"context"
	"slices"

	"github.com/swagwrap/swagwrap/bnupdate"
	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/infer"
)

// A shift is the difference between the values at the first batch-norm layer and those of training. Its numbers are
// root mean squares over the channels of the layer.
type shift struct {
	layer     string
	means     float64 // change of the means, in standard deviations
	variances float64 // logarithm of the ratio of variances
	spread    float64 // mean logarithm of the ratio of standard deviations
}

// Limits of a shift that matters: those of package moments, for the whole layer.
const (
	maxshift    = 0.5
	maxLogRatio = 0.95
)

func (s shift) score() float64 { return max(s.means/maxshift, s.variances/maxLogRatio) }

// shifted is the least number of examples for judging the shift of a layer.
const shifted = 16

// firstLayer is the network of the last checkpoint, and returns the statistics of its first batch-norm layer. The
// stored statistics belong to its weights.
type firstLayer struct {
	*Runner
	session *infer.Session
	plan    *bnupdate.Plan
}

func (r *Runner) firstLayer(ctx context.Context) (*firstLayer, error) {
	p, plan := r.Posterior, r.Passes.Plan
	if p.Single() { // nothing shows whether training updated its statistics
		n, err := infer.NewNetwork(p, infer.RecomputeAll, "")
		if err != nil {
			return nil, err
		}
		plan = n.Passes.Plan
	}
	if plan.Layers() == 0 {
		return nil, nil
	}
	filled, err := plan.Template.Fill(p.Layout, p.Last(), p.Statistics)
	if err != nil {
		return nil, err
	}
	s, err := r.engine.OpenShared(ctx, r.Graph, filled, plan.Outputs[:2]...)
	return &firstLayer{r, s, plan}, err
}

// Sizes of the batches that a sample is cut into.
const (
	leastBatch = 16
	batches    = 8
)

// shift runs a sample in a few batches, and compares the statistics at the layer with those that the last checkpoint
// stores. It returns the medians over the batches. A fault is in all batches, but an example with a very large value
// is in one.
func (l *firstLayer) shift(ctx context.Context, s *Sample) (shift, error) {
	size, err := l.Batch(s)
	if err != nil {
		return shift{}, err
	}
	if l.session.FixedBatch() == 0 {
		size = min(size, max(leastBatch, s.Len()/batches))
	}
	stored := l.Posterior.StoredStatistics
	var out shift
	var means, variances, spreads []float64
	for idx := range (dataset.Order{}).Batches(s.Len(), size) {
		if len(idx) < min(size, s.Len()) {
			continue // a short batch
		}
		got, err := l.session.Feed(ctx, s, idx)
		if err != nil {
			return out, err
		}
		mean, err := infer.Float32s(got[0])
		if err != nil {
			return out, err
		}
		variance, err := infer.Float32s(got[1])
		if err != nil {
			return out, err
		}
		name, m, v, r := l.plan.FirstShift(stored[len(stored)-1], mean, variance)
		out.layer, means, variances, spreads = name, append(means, m), append(variances, v), append(spreads, r)
	}
	out.means, out.variances, out.spread = median(means), median(variances), median(spreads)
	return out, nil
}

func median(x []float64) float64 {
	slices.Sort(x)
	return (x[(len(x)-1)/2] + x[len(x)/2]) / 2
}
