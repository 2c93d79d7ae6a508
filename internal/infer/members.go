package infer

import (
	"context"
	"slices"

	"github.com/swagwrap/swagwrap/internal/memory"
	"github.com/swagwrap/swagwrap/swag"
	"github.com/swagwrap/swagwrap/weights"
)

// groupMembers and [memory.Budget.Weights] bound the weights held at a time. Members drawn together share one read of the
// deviations. More than eight gain little, because combining the deviations takes the time. Two antithetic members share the
// random numbers, too, so they have four times the room of others.
const groupMembers, pairsRoom = 8, 4

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
	pairs   bool  // members 2i and 2i + 1 are drawn at the same time
	members []int // that are drawn; −1 after their call
	drawn   [][]float32
}

// NewDrawer returns a Drawer that holds at most the weights of the budget's share.
func NewDrawer(p *swag.Posterior, opts swag.SampleOptions, b *memory.Budget) (*Drawer, error) {
	s, err := swag.NewSampler(p, opts)
	most := b.Weights() / (4 * p.Len())
	d := &Drawer{sampler: s, length: p.Len(), pairs: opts.Antithetic && most > 1}
	if d.group = min(max(most/pairsRoom, min(most, 1)), groupMembers); d.pairs {
		d.group = max(2, d.group&^1)
	}
	return d, err
}

// Each draws members first … first+count−1 and calls f with each in turn. The weights are valid only during the call. The
// partner of the last member is kept for the next call.
func (d *Drawer) Each(ctx context.Context, first, count int, f func(member int, parameters weights.Vector) error) error {
	for k := first; k < first+count; k++ {
		if d.group == 0 {
			if err := f(k, d.sampler.Vector(ctx, k)); err != nil {
				return err
			}
			continue
		}
		at := slices.Index(d.members, k)
		if at < 0 {
			if err := d.draw(ctx, k, first+count); err != nil {
				return err
			}
			at = 0
		}
		err := f(k, weights.Slice(d.drawn[at]))
		d.members[at] = -1
		memory.GiveBack(d.drawn[at])
		if err != nil {
			return err
		}
	}
	return nil
}

// draw draws members from k on, before end, and the partner of the last.
func (d *Drawer) draw(ctx context.Context, k, end int) error {
	d.members = append(d.members[:0], k)
	if !d.pairs || k%2 == 0 {
		for k++; int64(len(d.members)) < d.group && (k < end || d.pairs && k%2 == 1); k++ {
			d.members = append(d.members, k)
		}
	}
	for len(d.drawn) < len(d.members) {
		d.drawn = append(d.drawn, make([]float32, d.length))
	}
	err := d.sampler.Draw(ctx, d.drawn[:len(d.members)], d.members)
	if err != nil {
		d.members = nil
	}
	return err
}
