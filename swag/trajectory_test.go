package swag_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"testing"

	"github.com/swagwrap/swagwrap/swag"
)

// Of a network with few weights the trajectory has all of them: the iterates are
// the checkpoints, and its deviations those that the posterior has. What is reported of
// it stays in the file.
func TestTrajectory(t *testing.T) {
	in := iterates(small(t), 5, noisy(1, 0.1))
	theta0 := in
	theta0.Theta0 = &swag.Checkpoint{Path: "theta0", Theta: in.Checkpoints[0].Theta}
	for name, c := range map[string]struct {
		in   swag.Input
		opts swag.FitOptions
	}{
		"running":   {in, swag.FitOptions{Rank: 3}},
		"θ0":        {theta0, swag.FitOptions{}},
		"diagonal":  {in, swag.FitOptions{DiagOnly: true}},
		"final":     {in, swag.FitOptions{Deviations: swag.Final}},
		"reference": {in, swag.FitOptions{Reference: true}},
	} {
		var got swag.Trajectory
		c.opts.Health = func(t swag.Trajectory) any {
			got = t
			return []int{7}
		}
		p := fit(t, c.in, c.opts)
		var printed []int
		if err := json.Unmarshal(p.Health, &printed); err != nil || !slices.Equal(printed, []int{7}) {
			t.Errorf("%s: the file says %s, %v", name, p.Health, err)
		}
		if len(got.Iterates) != 5 || got.Weights != 12 || got.Divisor != p.Options.Divisor {
			t.Errorf("%s: %d iterates of %d weights, divisor %d", name, len(got.Iterates), got.Weights, got.Divisor)
		}
		for n, row := range got.Iterates {
			want := make([]float32, 12)
			if err := c.in.Checkpoints[n].Theta.ReadAt(want, 0); err != nil || !slices.Equal(row, want) {
				t.Errorf("%s: iterate %d is %v, want %v, %v", name, n, row, want, err)
			}
		}
		if _, _, deviations := contents(p); !slices.EqualFunc(got.Deviations, deviations, slices.Equal) {
			t.Errorf("%s: deviations %v, want %v", name, got.Deviations, deviations)
		}
	}
}

// Whoever waits for the variance of isotropic noise can give up, and others get it
// all the same.
func TestIsotropicStops(t *testing.T) {
	p := fit(t, iterates(small(t), 4, noisy(0, 1)), swag.FitOptions{})
	s := sampler(t, p, swag.SampleOptions{Scale: 0.5, Covariance: swag.Isotropic})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	dst := make([]float32, p.Len())
	if err := s.Vector(ctx, 0).ReadAt(dst, 0); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if err := s.Vector(t.Context(), 0).ReadAt(dst, 0); err != nil {
		t.Error(err)
	}
}
