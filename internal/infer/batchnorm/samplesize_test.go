package batchnorm_test

import (
	"math"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/swagwrap/swagwrap/fixtures/infertest"
	"github.com/swagwrap/swagwrap/fixtures/reliability"
	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/infer/batchnorm"
	"github.com/swagwrap/swagwrap/weights"
)

// The loss that is estimated from halves of 16 batches is what statistics from so
// many images really cost: the divergence of their predictions from those with
// the statistics of all images, averaged over many choices, on the same examples.
// Both are known within some 20 %, so that a factor of 2 would show.
//
// Kills: a factor of 2 or 4 that is forgotten; the constant taken for the loss.
func TestLoss(t *testing.T) {
	t.Parallel()
	n, e := infertest.Network(t, augmentedRun(t, "checkpoints", 8)), infer.Run{Engine: infer.NewEngine(infertest.Runtime(t), infer.EngineOptions{BatchSize: 32})}
	data := batchnorm.Training{Data: epochs(t, 8), Order: dataset.Order{Shuffle: true, Seed: 1}}
	infertest.SWA(t, n.Posterior, func(swa weights.Vector) error {
		predict := func(statistics []float32) *infer.Sums {
			model, err := n.Model("SWA", swa, weights.Slice(statistics))
			if err != nil {
				t.Fatal(err)
			}
			sums := &infer.Sums{}
			if err := e.Predict(t.Context(), model, dataset.Subset(batchnorm.Blend(data, n, false), dataset.Order{Limit: 800}), sums); err != nil {
				t.Fatal(err)
			}
			return sums
		}
		all, err := batchnorm.Recompute(t.Context(), e, n, swa, data)
		if err != nil {
			return err
		}
		want, estimate, p := 0.0, 0.0, predict(all.Statistics)
		choices := reliability.Figure(8, 16)
		for k := range uint64(choices) {
			some := data
			some.Order.Seed, some.Order.Limit = 100+k, batchnorm.LossBatches*e.Options().BatchSize
			r, err := batchnorm.Recompute(t.Context(), e, n, swa, some)
			if err != nil {
				return err
			}
			want += p.Task.Divergence(p.Outcome, predict(r.Statistics).Outcome) / float64(choices)
			constant, err := batchnorm.Loss(t.Context(), e, n, some, swa, r)
			if err != nil {
				return err
			}
			estimate += constant / float64(r.Images) / float64(choices)
		}
		t.Logf("statistics from %d images cost %.3g, and the estimate is %.3g", batchnorm.LossBatches*e.Options().BatchSize, want, estimate)
		if math.Abs(math.Log(estimate/want)) > 0.5 {
			t.Errorf("statistics cost %v, but %v is estimated", want, estimate)
		}
		return nil
	})
}

// A pass that continues an earlier one has the statistics of a pass over all images, and runs only the rest. A batch of
// another size runs again.
func TestExtend(t *testing.T) {
	t.Parallel()
	n := infertest.Network(t, infertest.Fit(t, infertest.Two(t, "training")...))
	all := batchnorm.Training{Data: infertest.Data(t, infertest.Path(infertest.Small, "images.npz"), dataset.Options{}), Order: dataset.Order{Shuffle: true, Seed: 1}}
	var seen atomic.Int64
	e := infer.Run{Engine: infer.NewEngine(infertest.Runtime(t), infer.EngineOptions{BatchSize: 3}), Progress: func(images int) { seen.Add(int64(images)) }}
	infertest.SWA(t, n.Posterior, func(swa weights.Vector) error {
		want, err := batchnorm.Recompute(t.Context(), e, n, swa, all)
		if err != nil {
			return err
		}
		for first, rest := range map[int]int64{3: 7, 6: 4, 8: 4, 10: 0} {
			some := all
			some.Order.Limit = first
			known, err := batchnorm.Recompute(t.Context(), e, n, swa, some)
			if err != nil {
				return err
			}
			seen.Store(0)
			got, err := batchnorm.Extend(t.Context(), e, n, swa, all, known)
			if err != nil {
				return err
			}
			if !slices.Equal(got.Statistics, want.Statistics) || got.Images != want.Images || seen.Load() != rest {
				t.Errorf("after %d images: %d more, want %d; statistics %v, want %v", first, seen.Load(), rest, got.Statistics, want.Statistics)
			}
		}
		return nil
	})
}

// Examples that a network is in doubt about are averages of two.
// Networks that take integers get integers, halfway rounded down.
func TestBlend(t *testing.T) {
	t.Parallel()
	n := infertest.Network(t, infertest.Posterior(t))
	d := infertest.Digits(t, "train.npz")
	order := dataset.Order{Shuffle: true, Seed: 3}
	bn := batchnorm.Training{Data: d, Order: order}
	b, whole := batchnorm.Blend(bn, n, false), batchnorm.Blend(bn, n, true)
	if b.Len() != batchnorm.LossExamples || !b.Labels().None() {
		t.Fatalf("%d examples, want %d without labels", b.Len(), batchnorm.LossExamples)
	}
	size := 28 * 28
	got, x, y := make([]float32, size), make([]float32, size), make([]float32, size)
	rows := order.Indices(d.Len())
	for i := range 3 {
		for _, read := range []error{b.Read(dataset.Floats(got), i), d.Read(dataset.Floats(x), rows[2*i]), d.Read(dataset.Floats(y), rows[2*i+1])} {
			if read != nil {
				t.Fatal(read)
			}
		}
		for k := range got {
			if want := (x[k] + y[k]) / 2; got[k] != want {
				t.Fatalf("example %d, element %d: %v, want %v", i, k, got[k], want)
			}
		}
		if err := whole.Read(dataset.Floats(got), i); err != nil {
			t.Fatal(err)
		}
		for k := range got {
			if want := float32(math.Floor(float64((x[k] + y[k]) / 2))); got[k] != want {
				t.Fatalf("example %d, element %d: %v, want the integer %v", i, k, got[k], want)
			}
		}
	}
}

// Kept statistics that are a fresh layer's are told of; trained ones are not.
func TestWarnInitial(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		statistics []float32
		warnings   int
	}{{[]float32{0, 0, 1, 1}, 1}, {[]float32{0, 0.5, 1, 1}, 0}, {[]float32{0, 0, 1, 2}, 0}} {
		var b batchnorm.Record
		if b.WarnInitial(tc.statistics); len(b.Warnings) != tc.warnings {
			t.Errorf("%v: %q", tc.statistics, b.Warnings)
		}
	}
}
