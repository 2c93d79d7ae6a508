package tally

import (
	"context"
	"testing"
)

// The outer purpose of a pass counts, and a context without a Tally counts nothing.
func TestTally(t *testing.T) {
	Add(context.Background(), 1)
	if c := From(context.Background()).Counts(); c != nil {
		t.Errorf("without a tally: %v", c)
	}
	ctx, all := Start(context.Background())
	Add(ctx, 30)
	checks := For(ctx, Check("form"))
	Add(checks, 4)
	Add(For(checks, Plan), 2)
	Add(For(ctx, Check("batch")), 8)
	Add(For(ctx, Plan), 16)
	Add(For(For(ctx, Rounding), Plan), 32)
	got := all.Counts()
	const want = "30 wanted, 14 checks (batch 8, form 6), 16 plan, 32 rounding (examples through one network)"
	if got.String() != want || got.Hidden() != 62 {
		t.Errorf("%v, want %s", got, want)
	}
}
