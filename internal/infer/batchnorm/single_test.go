package batchnorm_test

import (
	"math"
	"testing"

	"github.com/swagwrap/swagwrap/fixtures/infertest"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/infer/batchnorm"
	"github.com/swagwrap/swagwrap/internal/task"
	"github.com/swagwrap/swagwrap/swag"
	"github.com/swagwrap/swagwrap/weights"
)

// centred is some images of 4×4 whose pixels have the mean 0. brighter images have another mean each.
func centred(count int, brighter bool) array {
	a := array{shape: []int64{1, 4, 4}, values: make([]float32, count*16)}
	for i := range count {
		for j := range 8 {
			v := float32(math.Sin(float64(i*8+j)) * float64(1+i))
			mean := float32(0)
			if brighter {
				mean = float32(i + 1)
			}
			a.values[i*16+j], a.values[i*16+15-j] = mean+v, mean-v
		}
	}
	return a
}

// A graph that takes one example and mixes larger batches, as whole detectors do, is shown each example alone, the last one too. The
// statistics are those of the same network with a free batch, in batches of 1.
func TestSingleExamples(t *testing.T) {
	t.Parallel()
	scoreless := func(name string) *infer.Network {
		p := infertest.FitWith(t, swag.FitOptions{DiagOnly: true}, infertest.Two(t, name)...)
		p.Card.Task = task.None
		return infertest.Network(t, p)
	}
	free := scoreless("ckpt")
	byOne := infer.Run{Engine: infer.NewEngine(infertest.Runtime(t), infer.EngineOptions{BatchSize: 1})}
	statistics := func(run infer.Run, n *infer.Network, data array) (found []float32) {
		infertest.SWA(t, n.Posterior, func(parameters weights.Vector) error {
			r, err := batchnorm.Recompute(t.Context(), run, n, parameters, batchnorm.Training{Data: data})
			if err == nil && (r.Images != data.Len() || r.Batches() != data.Len()) {
				t.Errorf("%d images in %d batches, want %d", r.Images, r.Batches(), data.Len())
			}
			found = r.Statistics
			return err
		})
		return found
	}
	for _, name := range []string{"mixing", "keeping", "nothing"} { // what is kept may be nothing, which proves nothing
		alone := scoreless(name)
		for _, examples := range []int{7, 4, 3, 2, 1} {
			got, want := statistics(infertest.Run(t), alone, centred(examples, true)), statistics(byOne, free, centred(examples, false))
			if len(got) != 4 || len(want) != 4 {
				t.Fatalf("%d and %d statistics, want 4", len(got), len(want))
			}
			for k, w := range want {
				if infertest.Far(float64(got[k]), float64(w), 1e-5, 0.1) {
					t.Errorf("%s, %d examples: statistic %d is %v, want %v", name, examples, k, got[k], w)
				}
			}
		}
	}
	// Behind a pooling one example has one value for each channel. PyTorch refuses that, too.
	pooled := scoreless("pooled")
	infertest.SWA(t, pooled.Posterior, func(parameters weights.Vector) error {
		_, err := batchnorm.Recompute(t.Context(), infertest.Run(t), pooled, parameters, batchnorm.Training{Data: centred(5, true)})
		infertest.WantError(t, err, `tensor "bn.running_mean": the graph takes single examples only, and one example has one value for each channel`)
		return nil
	})
}
