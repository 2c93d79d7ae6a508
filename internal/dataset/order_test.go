package dataset

import (
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestShuffleGolden freezes the shuffle: a change here changes the BN statistics
// of every ensemble that people have already made.
func TestShuffleGolden(t *testing.T) {
	g := readGolden(t)
	for seed, want := range g.Shuffle {
		s, err := strconv.ParseUint(seed, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, Order{Shuffle: true, Seed: s}.Indices(20)); diff != "" {
			t.Errorf("seed %s: %s", seed, diff)
		}
	}
	if diff := cmp.Diff(g.First10, Order{Shuffle: true, Seed: 7, Limit: 10}.Indices(1000)); diff != "" {
		t.Error(diff)
	}
}

func TestOrder(t *testing.T) {
	all := []int{0, 1, 2, 3, 4}
	for _, tt := range []struct {
		o    Order
		n    int
		want []int
	}{
		{Order{}, 5, all},
		{Order{Limit: 3}, 5, all[:3]},
		{Order{Limit: 5}, 5, all},
		{Order{Limit: 9}, 5, all},
		{Order{Limit: -1}, 5, all},
		{Order{Seed: 3}, 5, all},
		{Order{Shuffle: true}, 0, []int{}},
		{Order{Shuffle: true}, 1, []int{0}},
	} {
		if diff := cmp.Diff(tt.want, tt.o.Indices(tt.n)); diff != "" {
			t.Errorf("%+v: %s", tt.o, diff)
		}
	}
	shuffled := Order{Shuffle: true, Seed: 9}.Indices(1000)
	slices.Sort(shuffled)
	if !slices.Equal(shuffled, Order{}.Indices(1000)) {
		t.Error("a shuffle is not a permutation")
	}
}

// TestShuffleUniform: each of the 24 orders of 4 must come up about equally often.
func TestShuffleUniform(t *testing.T) {
	const draws = 24_000
	count := map[[4]int]int{}
	for seed := range uint64(draws) {
		count[[4]int(Order{Shuffle: true, Seed: seed}.Indices(4))]++
	}
	chi2 := 0.0
	for _, n := range count {
		d := float64(n) - draws/24
		chi2 += d * d / (draws / 24)
	}
	// 23 degrees of freedom: 0.999 quantile 49.7.
	if len(count) != 24 || chi2 > 49.7 {
		t.Errorf("%d orders, chi² %.1f", len(count), chi2)
	}
}

func TestBatches(t *testing.T) {
	got := slices.Collect(Order{Limit: 5}.Batches(9, 2))
	if diff := cmp.Diff([][]int{{0, 1}, {2, 3}, {4}}, got); diff != "" {
		t.Error(diff)
	}
}
