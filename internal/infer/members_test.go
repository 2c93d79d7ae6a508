package infer_test

import (
	"context"
	"slices"
	"testing"

	"github.com/swagwrap/swagwrap/fixtures/infertest"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/memory"
	"github.com/swagwrap/swagwrap/swag"
	"github.com/swagwrap/swagwrap/weights"
)

// Members are the same bits for any budget: all at a time, one at a time, or drawn block by block.
func TestMembersOfAnyBudget(t *testing.T) {
	t.Parallel()
	p := infertest.Posterior(t)
	const count = 3
	drawn := func(b *memory.Budget, antithetic bool) (all []float32) {
		d, err := infer.NewDrawer(p, swag.SampleOptions{Seed: 1, Scale: 0.5, Antithetic: antithetic}, b)
		if err != nil {
			t.Fatal(err)
		}
		err = d.Each(t.Context(), 0, count, func(_ int, v weights.Vector) error {
			all = append(all, make([]float32, p.Len())...)
			return v.ReadAt(all[int64(len(all))-p.Len():], 0)
		})
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	for _, antithetic := range []bool{false, true} {
		want := drawn(nil, antithetic)
		if int64(len(want)) != count*p.Len() || slices.Equal(want[:p.Len()], want[p.Len():2*p.Len()]) {
			t.Fatalf("%d numbers of %d members", len(want), count)
		}
		one := 4 * p.Len()
		for _, share := range []int64{2 * one, one, one - 1, 0} {
			if b := memory.New(8*share + 1); b.Weights() != share {
				t.Errorf("weights have %d bytes, want %d", b.Weights(), share)
			} else if !slices.Equal(drawn(b, antithetic), want) {
				t.Errorf("antithetic %v, with %d bytes for weights of %d bytes, members differ", antithetic, share, one)
			}
		}
	}
}

// The partner of an antithetic member is drawn with it and kept, whichever members are asked for at a time.
func TestPairsAreDrawnTogether(t *testing.T) {
	t.Parallel()
	p := infertest.Posterior(t)
	how := swag.SampleOptions{Seed: 1, Scale: 0.5, Antithetic: true}
	sampler, err := swag.NewSampler(p, how)
	if err != nil {
		t.Fatal(err)
	}
	want := map[int][]float32{}
	for k := range 12 {
		v := make([]float32, p.Len())
		if err := sampler.Vector(t.Context(), k).ReadAt(v, 0); err != nil {
			t.Fatal(err)
		}
		want[k] = v
	}
	room := 8 * 4 * p.Len() // of weights that a budget gives one eighth to
	for _, most := range []int64{1, 2, 3, 11, 16, 100} {
		for _, calls := range [][2]int{{1, 12}, {2, 6}, {3, 4}, {5, 2}, {12, 1}} {
			d, err := infer.NewDrawer(p, how, memory.New(most*room))
			if err != nil {
				t.Fatal(err)
			}
			for first := 0; first < calls[0]*calls[1]; first += calls[0] {
				drawn := t.Context()
				if calls[0] == 1 && first%2 == 1 && most > 1 {
					ended, end := context.WithCancel(drawn)
					end() // nothing can be drawn
					drawn = ended
				}
				err := d.Each(drawn, first, calls[0], func(k int, v weights.Vector) error {
					got := make([]float32, p.Len())
					if err := v.ReadAt(got, 0); err != nil || !slices.Equal(got, want[k]) {
						t.Errorf("room for %d, %d at a time: member %d differs; %v", most, calls[0], k, err)
					}
					return nil
				})
				if err != nil {
					t.Fatalf("room for %d, %d at a time: %v", most, calls[0], err)
				}
			}
		}
	}
	d, err := infer.NewDrawer(p, how, nil) // without a limit
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range []int{3, 2, 0, 7, 1} { // in any order
		if err := d.Each(t.Context(), k, 1, func(k int, v weights.Vector) error {
			got := make([]float32, p.Len())
			if err := v.ReadAt(got, 0); err != nil || !slices.Equal(got, want[k]) {
				t.Errorf("member %d differs; %v", k, err)
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
}
