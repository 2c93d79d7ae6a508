package swag_test

import (
	"math"
	"slices"
	"testing"

	"github.com/swagwrap/swagwrap/swag"
	"github.com/swagwrap/swagwrap/weights"
)

// Weights that rise are (t/n)^(p+1) − ((t−1)/n)^(p+1), computed without the recurrence. Continued and referenced fits
// have the same bits, and the last checkpoints come back.
func TestPower(t *testing.T) {
	t.Parallel()
	const T, K = 9, 4
	it := iterates(small(t), T, func(t, i int) float64 { return 1 + math.Sin(float64(3*t+7*i)) + 0.1*float64(t) })
	for _, power := range []int{0, 1, 3, 8} {
		opts := swag.FitOptions{Rank: K, Power: power}
		p := fit(t, it, opts)
		mean, variance, deviations := contents(p)
		weight := func(t, n int) float64 { // of model t of n, both from 1: (t/n)^(p+1) − ((t−1)/n)^(p+1)
			e := float64(power + 1)
			return math.Pow(float64(t)/float64(n), e) - math.Pow(float64(t-1)/float64(n), e)
		}
		average := func(i, n int) (sum float64) {
			for m := 1; m <= n; m++ {
				sum += weight(m, n) * float64(it.Checkpoints[m-1].Theta.(weights.Slice)[i])
			}
			return sum
		}
		for i := range mean {
			want, spread := average(i, T), 0.0
			for m := 1; m <= T; m++ {
				d := float64(it.Checkpoints[m-1].Theta.(weights.Slice)[i]) - want
				spread += weight(m, T) * d * d
			}
			if math.Abs(mean[i]-want) > 1e-13 || math.Abs(variance[i]-spread) > 1e-13 {
				t.Errorf("power %d: weight %d: mean %v and variance %v, want %v and %v", power, i, mean[i], variance[i], want, spread)
			}
			for k := range K {
				n := T - K + k + 1
				want := float64(it.Checkpoints[n-1].Theta.(weights.Slice)[i]) - average(i, n)
				if math.Abs(float64(deviations[k][i])-want) > 1e-6 {
					t.Errorf("power %d: deviation %d of weight %d: %v, want %v", power, k, i, deviations[k][i], want)
				}
			}
		}
		for k, v := range p.Recent(K) {
			got := make([]float32, p.Len())
			if err := v.ReadAt(got, 0); err != nil {
				t.Fatal(err)
			}
			for i, want := range it.Checkpoints[T-K+k].Theta.(weights.Slice) {
				if math.Abs(float64(got[i]-want)) > 1e-5 {
					t.Errorf("power %d: checkpoint %d: weight %d: %v, want %v", power, T-K+k, i, got[i], want)
				}
			}
		}
		early, late := it, it
		early.Checkpoints, late.Checkpoints = it.Checkpoints[:5], it.Checkpoints[5:]
		late.Previous = fit(t, early, opts)
		if m, v, d := contents(fit(t, late, swag.FitOptions{})); !slices.Equal(m, mean) || !slices.Equal(v, variance) || !equalRows(d, deviations) {
			t.Errorf("power %d: a continued fit differs", power)
		}
		opts.ReferToCheckpoints = true
		if m, v, d := contents(attach(t, fit(t, it, opts), it)); !slices.Equal(m, mean) || !slices.Equal(v, variance) || !equalRows(d, deviations) {
			t.Errorf("power %d: a fit that refers to checkpoints differs", power)
		}
	}
}

// An average without a fit is the mean of a fit, in any range.
func TestAverage(t *testing.T) {
	t.Parallel()
	it := iterates(flat(t, 40_000), 5, noisy(1, 0.1))
	for _, power := range []int{0, 4} {
		mean, _, _ := contents(fit(t, it, swag.FitOptions{Power: power}))
		for _, from := range []int{0, 3, 39_999} {
			got := make([]float32, len(mean)-from)
			if err := swag.Average(thetas(it), power).ReadAt(got, int64(from)); err != nil {
				t.Fatal(err)
			}
			for i, v := range got {
				if v != float32(mean[from+i]) {
					t.Fatalf("power %d: weight %d is %v, want %v", power, from+i, v, mean[from+i])
				}
			}
		}
	}
}

func thetas(it swag.Input) (all []weights.Vector) {
	for _, c := range it.Checkpoints {
		all = append(all, c.Theta)
	}
	return all
}

func equalRows(a, b [][]float32) bool { return slices.EqualFunc(a, b, slices.Equal[[]float32]) }

func TestPowerRefuses(t *testing.T) {
	t.Parallel()
	for name, opts := range map[string]swag.FitOptions{
		"power 101":             {Power: 101},
		"power -1":              {Power: -1},
		"go with deviations":    {Power: 1, Deviations: swag.Final},
		"from the running mean": {Power: 1, Reference: true},
	} {
		wantError(t, swag.Fit(t.Context(), new(memory), iterates(small(t), 4, noisy(0, 1)), opts), name)
	}
	wantError(t, swag.Fit(t.Context(), new(memory), given(t, 0), swag.FitOptions{Power: 1}), "go with deviations from the running mean")

	// A reader of version 1 would compute other checkpoints.
	version := func(power int) (v string) {
		data := fitBytes(t, iterates(small(t), 4, noisy(0, 1)), swag.FitOptions{Power: power})
		rewrite(t, data, func(m map[string]string, _ []weights.Section) { v = m["format_version"] })
		return v
	}
	if a, b := version(0), version(2); a != "1" || b != "2" {
		t.Errorf("versions %s and %s", a, b)
	}
	// A weight that is too large is found, however small its share.
	it := iterates(small(t), 6, noisy(1, 0.1))
	it.Checkpoints[0].Theta.(weights.Slice)[7] = 2e19
	wantError(t, swag.Fit(t.Context(), new(memory), it, swag.FitOptions{Power: 20}), "ckpt-000.onnx: ", "2e+19")
}
