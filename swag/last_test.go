package swag_test

import (
	"math"
	"strings"
	"testing"

	"github.com/swagwrap/swagwrap/swag"
	"github.com/swagwrap/swagwrap/weights"
)

// The last checkpoint is in every kind of posterior, whatever else it keeps.
func TestLast(t *testing.T) {
	it := iterates(small(t), 5, noisy(3, 0.1))
	want := it.Checkpoints[4].Theta.(weights.Slice)
	vectors := func(cs []swag.Checkpoint) (out []weights.Vector) {
		for _, c := range cs {
			out = append(out, c.Theta)
		}
		return out
	}
	for name, opts := range map[string]swag.FitOptions{
		"running":           {},
		"rank 2":            {Rank: 2},
		"diagonal":          {DiagOnly: true},
		"final":             {Deviations: swag.Final, Rank: 2},
		"reference":         {Reference: true},
		"referenced":        {ReferToCheckpoints: true, Rank: 3},
		"referenced, final": {ReferToCheckpoints: true, Deviations: swag.Final, Rank: 2},
		"given":             {},
		"given, diagonal":   {DiagOnly: true},
	} {
		t.Run(name, func(t *testing.T) {
			it := it
			if strings.HasPrefix(name, "given") {
				it.Mean = &swag.Checkpoint{Path: "mean.pt", Theta: it.Checkpoints[2].Theta}
			}
			p := fit(t, it, opts)
			if needs := p.Needs(); needs != nil {
				if err := p.Last().ReadAt(make([]float32, 1), 0); err == nil {
					t.Error("read although the checkpoints are not attached")
				}
				if err := p.Attach(vectors(it.Checkpoints[len(it.Checkpoints)-len(needs):]), nil); err != nil {
					t.Fatal(err)
				}
			}
			if p.Last().Len() != p.Len() {
				t.Errorf("%d weights, want %d", p.Last().Len(), p.Len())
			}
			got := make([]float32, 7)
			if err := p.Last().ReadAt(got, 5); err != nil {
				t.Fatal(err)
			}
			for i, g := range got {
				// A deviation is rounded to float32, which is less than half an ulp of 3.
				if w := want[5+i]; math.Abs(float64(g-w)) > 2.4e-7 {
					t.Errorf("weight %d: %v, want %v", 5+i, g, w)
				}
			}
			held := map[string]int{"running": 4, "rank 2": 2, "referenced": 3, "referenced, final": 4, "given": 4}[name]
			recent := p.Recent(4)
			if len(recent) != max(held, 1) {
				t.Fatalf("%d recent checkpoints, want %d", len(recent), held)
			}
			for k, v := range recent {
				if err := v.ReadAt(got, 5); err != nil {
					t.Fatal(err)
				}
				want := it.Checkpoints[5-len(recent)+k].Theta.(weights.Slice)
				for i, g := range got {
					// Deviations are rounded to float32, and those of later checkpoints count in parts.
					if w := want[5+i]; math.Abs(float64(g-w)) > 3e-7 {
						t.Errorf("checkpoint %d of the last %d, weight %d: %v, want %v", k, len(recent), 5+i, g, w)
					}
				}
			}
		})
	}
}

// A posterior that was extended has the statistics of all its checkpoints, and
// the last of them.
func TestLastAfterExtension(t *testing.T) {
	for _, opts := range []swag.FitOptions{{}, {DiagOnly: true}} {
		whole := iterates(small(t), 6, noisy(0, 1))
		for i := range whole.Checkpoints {
			whole.Checkpoints[i].Statistics = weights.Slice{1, 2, 3, float32(max(i, 3))}
		}
		first := whole
		first.Checkpoints = whole.Checkpoints[:4]
		p := fit(t, first, opts)
		statistics := p.Layout.Role(weights.Statistic)
		if !p.Frozen(statistics[1]) {
			t.Error("equal so far, but not frozen")
		}
		p = fit(t, swag.Input{Layout: whole.Layout, Previous: p, Checkpoints: whole.Checkpoints[4:]}, swag.FitOptions{})
		if len(p.StoredStatistics) != 6 || !p.Frozen(statistics[0]) || p.Frozen(statistics[1]) {
			t.Errorf("statistics %v: only the first is frozen", p.StoredStatistics)
		}
		got := make([]float32, p.Len())
		if err := p.Last().ReadAt(got, 0); err != nil {
			t.Fatal(err)
		}
		for i, w := range whole.Checkpoints[5].Theta.(weights.Slice) {
			if math.Abs(float64(got[i]-w)) > 1e-6 {
				t.Errorf("weight %d: %v, want %v", i, got[i], w)
			}
		}
	}
}
