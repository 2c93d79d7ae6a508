package baseline_test

import (
	"slices"
	"testing"

	"github.com/swagwrap/swagwrap/fixtures/infertest"
	"github.com/swagwrap/swagwrap/internal/baseline"
	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/infer/batchnorm"
	"github.com/swagwrap/swagwrap/swag"
	"github.com/swagwrap/swagwrap/weights"
)

// Adapted methods predict each part with statistics that are adapted to that part, or to the target of the first data. Parts that are
// too small are one. The temperature is that of the plain method.
func TestAdapted(t *testing.T) {
	t.Parallel()
	n, run := infertest.Network(t, infertest.Posterior(t)), infertest.Run(t)
	digits := infertest.Digits(t, "test.npz")
	clean, target := dataset.Part(digits, 0, 80), dataset.Part(digits, 300, 400)
	damaged := dataset.Altered(dataset.Part(digits, 0, 140), dataset.Part(digits, 0, 140).Labels(), func(v dataset.Values, i int) {
		for k := range v.Floats {
			v.Floats[k] /= float32(2 + i%2)
		}
	}, nil, "half or a third")
	var even, odd []int
	for i := range 140 {
		if i%2 == 0 {
			even = append(even, i)
		} else {
			odd = append(odd, i)
		}
	}
	training := infertest.Training(t)
	training.Order.Limit = 200
	in := &baseline.Inputs{Runs: []baseline.Run{{Network: n}}, BatchNorm: training, Members: 2, Seed: 1, Scale: swag.LowRankPlusDiagonal.DefaultScale(),
		Adapt: &baseline.Adapt{Weight: 0.3, Target: target, Parts: [][][]int{nil, {even, odd}, {even[:40], append(slices.Clone(even[40:]), odd...)}}},
		Asked: []string{"swa-temp-adapted", "swag-temp-adapted"}}
	targets := baseline.Targets{Data: []dataset.Dataset{clean, damaged, damaged}, Validation: dataset.Part(digits, 400, 500)}
	got, notes := predicted(t, run, in, targets)
	if len(got) != 2 || notes != nil {
		t.Fatalf("%d methods, %q", len(got), notes)
	}
	adapting, err := n.Adapting(0.3)
	if err != nil {
		t.Fatal(err)
	}
	all := dataset.Order{}.Indices(140)
	for k, how := range []swag.SampleOptions{{Seed: 1}, {Seed: 1, Scale: in.Scale, Covariance: swag.LowRankPlusDiagonal}} {
		want := make([]infer.Sums, 3)
		members := []int{1, 2}[k]
		err := infer.EachMember(t.Context(), run.Memory(), n.Posterior, how, 0, members, func(m int, parameters weights.Vector) error {
			source, err := batchnorm.Recompute(t.Context(), run, n, parameters, training)
			if err != nil {
				return err
			}
			for i, parts := range [][][]int{{all[:80]}, {even, odd}, {all}} { // 40 are too few, so the parts are one
				for _, part := range parts {
					data := dataset.Picked(targets.Data[i], part)
					to := batchnorm.Adaptation{Target: data, Weight: 0.3, Seed: 1}
					if i == 0 {
						to.Target = target
					}
					statistics, _, err := to.Statistics(t.Context(), run, adapting, parameters, source.Statistics)
					if err != nil {
						return err
					}
					model, err := n.Model("adapted", parameters, weights.Slice(statistics))
					if err != nil {
						return err
					}
					var own infer.Sums
					if err := run.Predict(t.Context(), model, data, &own); err != nil {
						return err
					}
					want[i].Scatter(&own, part, targets.Data[i].Len())
				}
				want[i].Members++
				want[i].Weight++
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		for i := range want {
			if !same(got[k].Data[i], &want[i]) {
				t.Errorf("%s, data %d: other sums", got[k].Key, i)
			}
		}
	}
	in.Adapt, in.Asked = nil, []string{baseline.SWATemp}
	if plain := one(t, run, in, targets); !same(plain.Validation, got[0].Validation) || same(plain.Data[1], got[0].Data[1]) {
		t.Error("another temperature than without adapting, or the same predictions")
	}
}

// Adapted methods are left out without a target, and of networks without batch norm.
func TestAdaptedNeeds(t *testing.T) {
	t.Parallel()
	with, without := infertest.Network(t, infertest.Posterior(t)), infertest.Network(t, infertest.Fit(t, infertest.Two(t, "table")...))
	for _, tc := range []struct {
		n     *infer.Network
		adapt *baseline.Adapt
		want  string
	}{{with, nil, "data that differ (Adapt)"}, {without, &baseline.Adapt{Weight: 0.2}, "batch norm"}, {with, &baseline.Adapt{Weight: 0.2}, ""}} {
		in := &baseline.Inputs{Runs: []baseline.Run{{Network: tc.n}}, Adapt: tc.adapt, Members: 2}
		for _, key := range []string{"swa-temp-adapted", "swag-temp-adapted"} {
			if got := in.Missing(key); got != tc.want {
				t.Errorf("%s: misses %q, want %q", key, got, tc.want)
			}
		}
	}
}
