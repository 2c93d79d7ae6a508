package infer_test

import (
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
