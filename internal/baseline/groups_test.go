package baseline_test

import (
	"math"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/swagwrap/swagwrap/fixtures/infertest"
	"github.com/swagwrap/swagwrap/internal/baseline"
	"github.com/swagwrap/swagwrap/internal/infer"
)

// Each member is a group. The groups together predict what all members predict. With the batch-norm images in other
// orders SWA predicts something else. Progress announces the images that these orders send through networks.
func TestGroups(t *testing.T) {
	t.Parallel()
	in, targets := tiny(t, "training")
	in.Members, in.Asked, in.BatchNorm.Order.Shuffle = 13, []string{baseline.SWA, baseline.Dropout, baseline.Laplace, baseline.SWAG}, true
	targets.Noise, targets.Validation, targets.FitsAll = true, targets.Data[0], true
	var seen atomic.Int64
	e := infer.Run{Engine: infer.NewEngine(infertest.Runtime(t), infer.EngineOptions{BatchSize: 3}), Progress: func(images int) { seen.Add(int64(images)) }}
	methods, notes := predicted(t, e, in, targets)
	if len(methods) != 4 || notes != nil {
		t.Fatalf("%d methods, notes %q", len(methods), notes)
	}
	if images := in.Images(targets); images != seen.Load() {
		t.Errorf("%d images announced, and %d went through networks", images, seen.Load())
	}
	far := func(a, b []float64) (most float64) {
		for i := range a {
			most = max(most, math.Abs(a[i]-b[i]))
		}
		return most
	}
	for _, p := range methods {
		if p.Key == baseline.SWA {
			if len(p.Groups) != 0 || len(p.Reordered) != 4 {
				t.Errorf("%s: %d groups, %d orders", p.Name, len(p.Groups), len(p.Reordered))
			}
			for k, g := range p.Reordered {
				if d := far(baseline.Average(0, g), p.Data[0].Mean()); !(d > 1e-6 && d < 0.5) {
					t.Errorf("order %d is %v from the first", k, d)
				}
			}
			continue
		}
		if want := map[bool]int{true: 10, false: 13}[p.Key == baseline.Laplace]; len(p.Groups) != want || p.Reordered != nil {
			t.Fatalf("%s: %d groups, %d orders", p.Name, len(p.Groups), len(p.Reordered))
		}
		if far(baseline.Average(0, p.Groups...), p.Data[0].Mean()) > 1e-6 || far(baseline.Average(1, p.Groups...), p.Validation.Mean()) > 1e-6 { // float32
			t.Errorf("%s: groups are not what all say", p.Name)
		}
		if single := p.Single() != nil; single != (p.Key != baseline.Laplace) {
			t.Errorf("%s: single members %v", p.Name, single)
		}
	}
	// The last group is the sum of ten members less the sum of nine.
	in.Asked = []string{baseline.SWAG}
	in.Members = 10
	ten := one(t, e, in, targets)
	in.Members = 9
	nine := one(t, e, in, targets)
	last := slices.Clone(ten.Data[0].Outcome)
	for i, v := range nine.Data[0].Outcome {
		last[i] -= v
	}
	if far(baseline.Average(0, ten.Groups[9]), last) > 1e-6 {
		t.Error("the last group is not the last member")
	}
	if targets.Noise = false; one(t, e, in, targets).Groups != nil {
		t.Error("groups that nobody asked for")
	}
}
