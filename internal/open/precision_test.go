package open

import (
	"context"
	"testing"

	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/infer/rounding"
	"github.com/swagwrap/swagwrap/internal/ort"
)

// silent says nothing.
type silent struct{ Reporter }

func (silent) Logf(string, ...any)  {}
func (silent) Warnf(string, ...any) {}

// A precision that the user chose is measured only if the user asks. auto takes bf16 where it changes little and is faster.
func TestPrecision(t *testing.T) {
	little := rounding.Change{Examples: 100, RMS: 1, MonteCarlo: 100, Seconds: [2]float64{2, 1}}
	much, slow, none := little, little, little
	much.RMS, slow.Seconds[1], none.Examples = 50, 3, 0
	for name, c := range map[string]struct {
		change   rounding.Change
		free     bool
		asks     bool
		runs     int
		used     string
		measured int
	}{
		"chosen":                {much, false, false, 1_000_000, ort.BF16, 0},
		"chosen, measured":      {much, false, true, 1_000_000, ort.BF16, 1},
		"auto":                  {little, true, false, 1_000_000, ort.BF16, 1},
		"auto changes much":     {much, true, false, 1_000_000, ort.F32, 1},
		"auto is slow":          {slow, true, false, 1_000_000, ort.F32, 1},
		"auto tells too little": {none, true, false, 1_000_000, ort.F32, 1},
		"auto, few runs":        {little, true, false, 1_000, ort.F32, 0},
	} {
		if c.free && ort.FastBF16() == "" {
			c.used, c.measured = ort.F32, 0
		}
		p := ort.Provider{Name: ort.OpenVINO, Precision: ort.BF16}
		if c.free {
			p.Precision = ort.F32
		}
		n := 0
		e, r, err := (&Opener{Reporter: silent{}}).Precision(t.Context(), RuntimeOptions{Provider: p, Free: c.free, Measure: c.asks}, infer.NewEngine(nil, infer.EngineOptions{Provider: p}), c.runs,
			func(_ context.Context, e *infer.Engine, opts rounding.Options) (*rounding.Change, error) {
				n++
				if most := c.runs / 10; c.free && opts.Runs != most || !c.free && opts.Runs != 0 {
					t.Errorf("%s: may take %d runs", name, opts.Runs)
				}
				change := c.change
				change.Used = e.Provider().Precision
				return &change, nil
			})
		if err != nil || e.Provider().Precision != c.used || n != c.measured || (r == nil) != (n == 0) {
			t.Errorf("%s: %v, measured %d times, %v, %v", name, e.Provider(), n, r, err)
		}
	}
}
