package baseline

import (
	"context"
	"slices"

	"github.com/swagwrap/swagwrap/internal/infer"
)

// Predictions of members are also kept in groups. A study leaves out one group at a time to estimate the effect of
// random draws: see [github.com/swagwrap/swagwrap/calibrate/chance.NewDraws]. Each member is a group of its own if the memory
// suffices.
const (
	// groupBytes bounds the memory of a method's groups. Above it members share groups, but there are at least
	// fewestGroups. Groups decide the order of sums, so groupBytes must not depend on the machine or on a limit.
	groupBytes   = 1 << 30
	fewestGroups = 5
	// otherOrders is the number of extra runs of SWA, each with another order of the batch-norm images.
	otherOrders = 4
)

// Group is the sum of some members' predictions in float32, which is precise enough for differences between averages.
type Group struct {
	Members int
	Weight  float32     // Σ w, rounded like outcome: so averages of values up to 1 stay up to 1
	outcome [][]float32 // Σ w·outcome by data set, with the validation data last
}

func (g *Group) add(p *Predicted) {
	sums := p.sums()
	if g.outcome == nil {
		g.outcome = make([][]float32, len(sums))
		for i, s := range sums {
			g.outcome[i] = make([]float32, len(s.Outcome))
		}
	}
	for i, s := range sums {
		for j, v := range s.Outcome {
			g.outcome[i][j] += float32(v)
		}
	}
	g.Members += p.Members
	g.Weight += float32(sums[0].Weight)
}

// Take adds the members of o to p and, if p has groups, to its group k.
func (p *Predicted) Take(o *Predicted, k int) {
	if p.Grouped {
		for len(p.Groups) <= k {
			p.Groups = append(p.Groups, &Group{})
		}
		p.Groups[k].add(o)
	}
	p.Members += o.Members
	if o.Models != nil {
		p.Models = append(p.Models, o.Models...)
		return
	}
	for i, s := range p.sums() {
		s.Merge(o.sums()[i])
	}
}

// group returns the group of the next member.
func (p *Predicted) group(o *Predicted) int {
	bytes := 0
	for _, s := range o.sums() {
		bytes += 4 * len(s.Outcome)
	}
	most := groupBytes / max(1, bytes)
	if p.Antithetic { // the same groups hold the members of a pair
		return p.Members % max(2*fewestGroups, most&^1)
	}
	return p.Members % max(fewestGroups, most)
}

// Units returns the units of chance: the groups of an antithetic pair together, or each group by itself.
func (p *Predicted) Units() [][]*Group {
	unit := 1
	if p.Antithetic {
		unit = 2
	}
	return slices.Collect(slices.Chunk(p.Groups, unit))
}

// Single returns the groups if each has one member, and nil otherwise.
func (p *Predicted) Single() []*Group {
	if len(p.Groups) != p.Members {
		return nil
	}
	return p.Groups
}

// Mean returns the average outcomes of the group for the first data set, n×Width.
func (g *Group) Mean() []float32 {
	if g.Weight == 1 {
		return g.outcome[0]
	}
	out := make([]float32, len(g.outcome[0]))
	for i, v := range g.outcome[0] {
		out[i] = v / g.Weight
	}
	return out
}

// Average returns the average outcomes of some groups for a data set, n×width. The validation data is the last set.
func Average(set int, groups ...*Group) []float64 {
	out, weight := make([]float64, len(groups[0].outcome[set])), 0.0
	for _, g := range groups {
		weight += float64(g.Weight)
		for j, v := range g.outcome[set] {
			out[j] += float64(v)
		}
	}
	for j := range out {
		out[j] /= weight
	}
	return out
}

// reorders returns the number of extra runs of SWA with other orders of the batch-norm images.
func (in *Inputs) reorders(t Targets) int {
	if !t.Noise || !in.Runs[0].Network.Recomputes() || !in.BatchNorm.Order.Shuffle {
		return 0
	}
	return otherOrders
}

// reorder runs SWA on the first data set with other orders of the batch-norm images.
func (w *work) reorder(ctx context.Context, p *Predicted, swa infer.Model) error {
	for k := range w.reorders(w.targets) {
		one := w.result(false)
		one.Data = one.Data[:1]
		err := w.add(ctx, one, func() (infer.Model, error) {
			return w.recomputed(ctx, w.Runs[0].Network, "SWA", swa.Filled.Parameters, w.BatchNorm.Reordered(uint64(k)+1))
		})
		if err != nil {
			return err
		}
		if one.Members > 0 { // else another job has it
			g := &Group{}
			g.add(one)
			p.Reordered = append(p.Reordered, g)
		}
	}
	return nil
}
