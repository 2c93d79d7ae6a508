package ensemble

import (
	"context"

	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/weights"
)

// Member is one of an ensemble's members while it is in memory.
type Member struct {
	Number     int // from 0, over all components
	Component  int
	Network    *infer.Network
	Parameters weights.Vector // valid during the call that it was handed to
	Statistics weights.Slice  // nil as long as they have not been recomputed
	// Weight is that of its probabilities in the average, as a multiple of 1/S: 1
	// where all members count alike.
	Weight float64
}

// EachMember calls f with each member in turn. networks are the components'.
// Members of different components have random numbers of their own: they are
// drawn by their number in the ensemble. workers are the sampler's.
func (e *Ensemble) EachMember(ctx context.Context, networks []*infer.Network, workers int, f func(Member) error) error {
	return e.EachMemberOf(ctx, networks, workers, e.PartOf(0, 1), f)
}

// EachMemberOf is EachMember for those of a part.
func (e *Ensemble) EachMemberOf(ctx context.Context, networks []*infer.Network, workers int, p Part, f func(Member) error) error {
	for i, c := range e.Components {
		m := Member{Component: i, Network: networks[i], Weight: e.weight(i)}
		first := e.first(i)
		from, to := max(p.First, first), min(p.End, first+c.Members)
		if from >= to {
			continue
		}
		d, err := e.drawer(ctx, i, m.Network, workers, infer.DrawnBytes)
		if err != nil {
			return err
		}
		err = d.Each(ctx, from, to-from, func(k int, parameters weights.Vector) error {
			m.Number, m.Parameters = k, parameters
			if len(c.Statistics) > 0 {
				m.Statistics = c.Statistics[k-first]
			}
			return f(m)
		})
		if err != nil {
			return err
		}
	}
	return nil
}
