package chance_test

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/swagwrap/swagwrap/calibrate/chance"
)

// approx is the tolerance of the scripts that make the goldens.
var approx = cmpopts.EquateApprox(1e-9, 1e-9)

func diff[T any](t *testing.T, what string, got, want T) {
	t.Helper()
	if diff := cmp.Diff(want, got, approx); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func TestShapeMistakesPanic(t *testing.T) {
	x := make([]float64, 6)
	for name, f := range map[string]func(){
		"bootstrap: unpaired":  func() { chance.PairedBootstrap(x, x[:1], chance.BootstrapOptions{}) },
		"bootstrap: empty":     func() { chance.PairedBootstrap(nil, nil, chance.BootstrapOptions{}) },
		"bootstrap: resamples": func() { chance.PairedBootstrap(x, x, chance.BootstrapOptions{Resamples: -1}) },
		"bootstrap: level":     func() { chance.PairedBootstrap(x, x, chance.BootstrapOptions{Level: 95}) },
		"bootstrap: level NaN": func() { chance.PairedBootstrap(x, x, chance.BootstrapOptions{Level: math.NaN()}) },
		"bootstrap: no losses": func() { chance.MeanBootstrap(nil, chance.BootstrapOptions{}) },
		"Wilson: no images":    func() { chance.Wilson(0, 0) },
		"members: none":        func() { chance.NewMonteCarloError(nil, 0) },
		"members: ragged":      func() { chance.NewMonteCarloError([][]float64{x, x[:1]}, 0) },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if s, ok := recover().(string); !ok || !strings.HasPrefix(s, "chance: ") {
					t.Errorf("recovered %q, want a text of this package", s)
				}
			}()
			f()
		})
	}
}
