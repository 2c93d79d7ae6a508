package rounding_test

import (
	"testing"

	"github.com/swagwrap/swagwrap/fixtures/infertest"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/infer/probe"
	"github.com/swagwrap/swagwrap/internal/infer/rounding"
	"github.com/swagwrap/swagwrap/weights"
)

func TestMain(m *testing.M) { infertest.Main(m) }

// smaller is weights that are half as large, so that each layer amplifies less of what changes before it.
type smaller struct{ weights.Vector }

func (v smaller) ReadAt(dst []float32, off int64) error {
	err := v.Vector.ReadAt(dst, off)
	for i := range dst {
		dst[i] /= 2
	}
	return err
}

// One rounding of each weight changes probabilities about as much as sums in another order do, and less in a network that
// amplifies less.
func TestAmplify(t *testing.T) {
	t.Parallel()
	n := infertest.Network(t, infertest.Posterior(t))
	held, err := probe.HoldFew(infertest.Digits(t, "test.npz"), 64, 1<<30, 1)
	if err != nil {
		t.Fatal(err)
	}
	last, err := n.LastCheckpoint()
	if err != nil {
		t.Fatal(err)
	}
	changes := func(m infer.Model) float64 {
		change, err := rounding.Amplify(t.Context(), infertest.Engine(t), m, held)
		if err != nil {
			t.Fatal(err)
		}
		return change
	}
	plain, damped := changes(last), changes(last.With(smaller{last.Filled.Parameters}))
	if !(plain > 1e-8 && plain < 1e-5) || !(damped > 0 && damped < plain/2) {
		t.Errorf("changes of %g and %g", plain, damped)
	}
}
