package ensemble

import (
	"context"

	"github.com/swagwrap/swagwrap/swag"
	"github.com/swagwrap/swagwrap/weights"
)

// groupBytes bounds the weights held at a time. Members drawn together share
// one read of the deviations.
const groupBytes = 256 << 20

// EachMember draws members first … first+count−1 and calls f with each in turn.
// The weights are valid during the call only.
func EachMember(ctx context.Context, p *swag.Posterior, opts swag.SampleOptions, first, count int, f func(member int, parameters weights.Slice) error) error {
	s, err := swag.NewSampler(p, opts)
	if err != nil {
		return err
	}
	group := int(max(1, min(int64(count), groupBytes/(4*p.Len()))))
	drawn := make([][]float32, group)
	for j := range drawn {
		drawn[j] = make([]float32, p.Len())
	}
	for end := first + count; first < end; first += group {
		var members []int
		for k := first; k < min(first+group, end); k++ {
			members = append(members, k)
		}
		if err := s.Draw(ctx, drawn[:len(members)], members); err != nil {
			return err
		}
		for j, k := range members {
			if err := f(k, drawn[j]); err != nil {
				return err
			}
		}
	}
	return nil
}

// Member is one of an ensemble's members while it is in memory.
type Member struct {
	Number     int // from 0, over all components
	Component  int
	Network    *Network
	Parameters weights.Slice // valid during the call that it was handed to
	Statistics weights.Slice // nil as long as they have not been recomputed
	// Weight is that of its probabilities in the average, as a multiple of 1/S: 1
	// where all members count alike.
	Weight float64
}

// EachMember calls f with each member in turn. networks are the components'.
// Members of different components have random numbers of their own: they are
// drawn by their number in the ensemble. workers are the sampler's.
func (e *Ensemble) EachMember(ctx context.Context, networks []*Network, workers int, f func(Member) error) error {
	opts, err := e.Sampling.Options()
	if err != nil {
		return err
	}
	opts.Workers = workers
	for i, c := range e.Components {
		m := Member{Component: i, Network: networks[i], Weight: c.Weight * float64(e.Members()) / float64(c.Members)}
		first := e.first(i)
		err := EachMember(ctx, m.Network.Posterior, opts, first, c.Members, func(k int, parameters weights.Slice) error {
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
