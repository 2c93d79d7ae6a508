package infer

import (
	"context"

	"github.com/swagwrap/swagwrap/internal/memory"
	"github.com/swagwrap/swagwrap/swag"
	"github.com/swagwrap/swagwrap/weights"
)

// groupMembers and [memory.Budget.Weights] bound the weights held at a time. Members drawn together share one read of the
// deviations. More than eight gain little, because combining the deviations takes the time.
const groupMembers = 8

// EachMember draws members first … first+count−1 and calls f with each in turn. The weights are valid only during the
// call.
func EachMember(ctx context.Context, b *memory.Budget, p *swag.Posterior, opts swag.SampleOptions, first, count int,
	f func(member int, parameters weights.Vector) error) error {
	d, err := NewDrawer(p, opts, b)
	if err != nil {
		return err
	}
	return d.Each(ctx, first, count, f)
}

// A Drawer draws members of one posterior, several at a time, into memory that it keeps.
type Drawer struct {
	sampler *swag.Sampler
	length  int64 // of a member
	group   int64 // members at a time; 0 if one is too large to be held
	drawn   [][]float32
}

// NewDrawer returns a Drawer that holds at most the weights of the budget's share.
func NewDrawer(p *swag.Posterior, opts swag.SampleOptions, b *memory.Budget) (*Drawer, error) {
	s, err := swag.NewSampler(p, opts)
	return &Drawer{sampler: s, length: p.Len(), group: min(b.Weights()/(4*p.Len()), groupMembers)}, err
}

// Each draws members first … first+count−1 and calls f with each in turn. The weights are valid only during the call.
func (d *Drawer) Each(ctx context.Context, first, count int, f func(member int, parameters weights.Vector) error) error {
	if d.group == 0 {
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
