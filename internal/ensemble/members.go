package ensemble

import (
	"context"

	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/weights"
)

// Member is a member of an ensemble while it is in memory.
type Member struct {
	Number     int // from 0, over all components
	Component  int
	Network    *infer.Network
	Parameters weights.Vector // valid only during the call of the function that gets it
	Statistics weights.Slice  // nil until they have been recomputed
	// Weight is the weight of its probabilities in the average, as a multiple of 1/S. It is 1 if all members have the
	// same weight.
	Weight float64
}

// EachMember calls f with each member in turn. networks has one network per component. Each member is drawn by its
// number in the ensemble, so members of different components use different random numbers. workers is the number of
// goroutines of the sampler.
func (e *Ensemble) EachMember(ctx context.Context, networks []*infer.Network, workers int, f func(Member) error) error {
	return e.EachMemberOf(ctx, networks, workers, e.PartOf(0, 1), f)
}

// EachMemberOf is like [Ensemble.EachMember], for the members of part p.
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
