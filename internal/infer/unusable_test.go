package infer_test

import (
	"math"
	"sync/atomic"
	"testing"

	"github.com/swagwrap/swagwrap/fixtures/infertest"
	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/infer/rounding"
)

// An example without usable scores ends the measurement as it does a run, or is left out as
// it is there; the others say what they say without it.
func TestRoundingUnusable(t *testing.T) {
	t.Parallel()
	m, e := small(t, "brightest", 3), infertest.Run(t)
	black := infertest.Data(t, infertest.Path(infertest.Small, "black.npz"), dataset.Options{}) // image 3 is
	_, err := rounding.Measure(t.Context(), e.Engine, m, rounding.Options{}, black)
	infertest.WantError(t, err, ": member 0: black.npz[3]: the network's output is not finite")
	r, err := rounding.Measure(t.Context(), e.Engine, m, rounding.Options{SkipErrors: true}, black)
	if err != nil || r.Unusable != 1 || r.Lost != 0 || r.Examples != black.Len()-1 || r.RMS != 0 || !(r.MonteCarlo > 0) || r.Objection() != "" {
		t.Errorf("%+v, %v", r, err)
	}
	first, err := rounding.Measure(t.Context(), e.Engine, m, rounding.Options{}, dataset.Part(black, 0, 3))
	if err != nil {
		t.Fatal(err)
	}
	rest, err := rounding.Measure(t.Context(), e.Engine, m, rounding.Options{}, dataset.Part(black, 4, black.Len()))
	if err != nil {
		t.Fatal(err)
	}
	squares := func(r *rounding.Change) float64 { return float64(r.Examples) * r.MonteCarlo * r.MonteCarlo }
	if got, want := squares(r), squares(first)+squares(rest); math.Abs(got-want) > 1e-6*want {
		t.Errorf("Monte Carlo error² × examples %v, want %v", got, want)
	}

	// Nothing to measure by.
	r, err = rounding.Measure(t.Context(), e.Engine, m, rounding.Options{SkipErrors: true}, dataset.Part(black, 3, 4))
	if err != nil || r.Examples != 0 || r.Unusable != 1 || r.Objection() == "" {
		t.Errorf("%+v, %v", r, err)
	}
	broken := flawed{black.(dataset.Bytes), new(atomic.Int64), map[int]bool{}}
	for i := range black.Len() {
		broken.broken[i] = true
	}
	if _, err = rounding.Measure(t.Context(), e.Engine, m, rounding.Options{}, broken); err == nil {
		t.Error("no example can be read: no error")
	}
	r, err = rounding.Measure(t.Context(), e.Engine, m, rounding.Options{SkipErrors: true}, broken)
	if err != nil || r.Examples != 0 || r.Unusable != black.Len() || r.Objection() == "" {
		t.Errorf("%+v, %v", r, err)
	}
}
