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
func EachMember(ctx context.Context, p *swag.Posterior, opts swag.SampleOptions, first, count int, f func(member int, parameters weights.Vector) error) error {
	d, err := newDrawer(p, opts, groupBytes)
	if err != nil {
		return err
	}
	return d.each(ctx, first, count, f)
}

// A drawer draws members of one posterior, some at a time, into memory that it
// keeps.
type drawer struct {
	sampler *swag.Sampler
	length  int64 // of a member
	group   int64 // members at a time
	drawn   [][]float32
}

// newDrawer makes a drawer that holds so many bytes of weights, or one member.
func newDrawer(p *swag.Posterior, opts swag.SampleOptions, bytes int64) (*drawer, error) {
	s, err := swag.NewSampler(p, opts)
	return &drawer{sampler: s, length: p.Len(), group: max(1, bytes/(4*p.Len()))}, err
}

func (d *drawer) each(ctx context.Context, first, count int, f func(member int, parameters weights.Vector) error) error {
	if 4*d.length > groupBytes { // a large member is never held whole
		for k := first; k < first+count; k++ {
			if err := f(k, d.sampler.Vector(ctx, k)); err != nil {
				return err
			}
		}
		return nil
	}
	for end := first + count; first < end; {
		var members []int
		for k := first; k < end && int64(len(members)) < d.group; k++ {
			members = append(members, k)
		}
		for len(d.drawn) < len(members) {
			d.drawn = append(d.drawn, make([]float32, d.length))
		}
		if err := d.sampler.Draw(ctx, d.drawn[:len(members)], members); err != nil {
			return err
		}
		for j, k := range members {
			if err := f(k, weights.Slice(d.drawn[j])); err != nil {
				return err
			}
		}
		first += len(members)
	}
	return nil
}

// Member is one of an ensemble's members while it is in memory.
type Member struct {
	Number     int // from 0, over all components
	Component  int
	Network    *Network
	Parameters weights.Vector // valid during the call that it was handed to
	Statistics weights.Slice  // nil as long as they have not been recomputed
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
		m := Member{Component: i, Network: networks[i], Weight: e.weight(i)}
		first := e.first(i)
		err := EachMember(ctx, m.Network.Posterior, opts, first, c.Members, func(k int, parameters weights.Vector) error {
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
