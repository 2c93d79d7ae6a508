package infer_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/swagwrap/swagwrap/fixtures/infertest"
	"github.com/swagwrap/swagwrap/fixtures/reliability"
	"github.com/swagwrap/swagwrap/fixtures/reliability/forge"
	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/infer/batchnorm"
	"github.com/swagwrap/swagwrap/internal/infer/store"
	"github.com/swagwrap/swagwrap/swag"
	"github.com/swagwrap/swagwrap/weights"
)

// storing is a run whose store is the folder dir. It counts the sessions that it opens
// by what they read, which a stored result does not.
func storing(t *testing.T, dir string) infer.Run {
	t.Helper()
	s, err := store.Open(dir, "test", "")
	if err != nil {
		t.Fatal(err)
	}
	return infer.Run{Engine: infertest.Engine(t), Store: s}
}

// counted counts the examples that are read.
type counted struct {
	dataset.Dataset
	reads atomic.Int64
}

func (c *counted) ID() string { return dataset.ID(c.Dataset) }

func (c *counted) Read(dst dataset.Values, i int) error {
	c.reads.Add(1)
	return c.Dataset.Read(dst, i)
}

// The average of members of several weights has the same bits without a store, with an
// empty one and with a full one, from which nothing is computed.
func TestStoredPredictions(t *testing.T) {
	m, data, dir := small(t, "ckpt", 3), &counted{Dataset: tinyImages(t)}, t.TempDir()
	average := func(e infer.Run) *infer.Sums {
		sums := &infer.Sums{}
		err := m.Each(t.Context(), 0, m.count, func(model infer.Model) error {
			model.Weight = 0.3 * float64(sums.Members+1) // no power of two
			return e.Predict(t.Context(), model, data, sums)
		})
		if err != nil {
			t.Fatal(err)
		}
		return sums
	}
	want := average(infertest.Run(t))
	for _, how := range []string{"empty", "full"} {
		data.reads.Store(0)
		e := storing(t, dir)
		var seen atomic.Int64
		e.Progress = func(images int) { seen.Add(int64(images)) }
		got := average(e)
		if !slices.Equal(got.Outcome, want.Outcome) || !slices.Equal(got.Entropy, want.Entropy) || got.Weight != want.Weight || got.Members != want.Members {
			t.Errorf("%s store: %+v, want %+v", how, got, want)
		}
		if n := data.reads.Load(); (n == 0) != (how == "full") || seen.Load() != int64(3*data.Len()) {
			t.Errorf("%s store: %d reads, %d images reported", how, n, seen.Load())
		}
	}
	// Another batch, other data and other weights are other results.
	reads := func(e infer.Run, d dataset.Dataset, first int) int64 {
		data.reads.Store(0)
		err := m.Each(t.Context(), first, 1, func(model infer.Model) error { return e.Predict(t.Context(), model, d, &infer.Sums{}) })
		if err != nil {
			t.Fatal(err)
		}
		return data.reads.Load()
	}
	other := storing(t, dir).On(infer.NewEngine(infertest.Runtime(t), infer.EngineOptions{BatchSize: 3}))
	for name, n := range map[string]int64{
		"batch": reads(other, data, 0), "part": reads(storing(t, dir), dataset.Part(data, 1, 4), 0), "weights": reads(storing(t, dir), data, 3),
	} {
		if n == 0 {
			t.Errorf("another %s: from the store", name)
		}
	}
	// What does not say what it is, is computed each time.
	type anonymous struct{ dataset.Dataset }
	for range 2 {
		if reads(storing(t, dir), anonymous{data}, 0) == 0 {
			t.Error("of nobody knows what: from the store")
		}
	}
}

// A pass from the store gives the statistics that were computed, corrected or not, and what
// settling makes of its batches.
func TestStoredPass(t *testing.T) {
	n := infertest.Network(t, infertest.Posterior(t))
	bn := infertest.Training(t)
	counts := &counted{Dataset: bn.Data}
	bn.Data, bn.Order = counts, dataset.Order{Shuffle: true, Seed: 1}
	dir := t.TempDir()
	settled := func(e infer.Run) (*batchnorm.Record, []float32) {
		data, records, err := batchnorm.ChooseSampleSize(t.Context(), e, []*infer.Network{n}, bn, batchnorm.SampleSizing{Auto: true, Members: swag.SampleOptions{Seed: 1, Scale: 0.5}})
		if err != nil {
			t.Fatal(err)
		}
		var statistics []float32
		err = infer.EachMember(t.Context(), nil, n.Posterior, swag.SampleOptions{Seed: 1, Scale: 0.5}, 0, 1, func(_ int, v weights.Vector) error {
			r, err := batchnorm.Recompute(t.Context(), e, n, v, data)
			statistics = r.Statistics
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return records[0], statistics
	}
	small := func(run infer.Run) infer.Run { // with small batches the number of images is open
		return run.On(infer.NewEngine(infertest.Runtime(t), infer.EngineOptions{BatchSize: 16}))
	}
	want, statistics := settled(small(infertest.Run(t)))
	for _, how := range []string{"empty", "full"} {
		counts.reads.Store(0)
		got, again := settled(small(storing(t, dir)))
		if !slices.Equal(again, statistics) || *got.Loss != *want.Loss || got.Between != want.Between || got.Examples != want.Examples || got.MemberExamples != want.MemberExamples {
			t.Errorf("%s store: %+v, want %+v", how, got, want)
		}
		if n := counts.reads.Load(); (n == 0) != (how == "full") {
			t.Errorf("%s store: %d reads", how, n)
		}
	}
	other := bn
	other.Order.Seed = 2
	counts.reads.Store(0)
	if _, err := batchnorm.Recompute(t.Context(), storing(t, dir), n, n.Posterior.Last(), other); err != nil || counts.reads.Load() == 0 {
		t.Errorf("another order: from the store, or %v", err)
	}
}

// What a stored entry says is not trusted, though its checksums are right: the pass or the predictions are computed as if it were not there,
// or fail. The same goes for every change to it.
func TestForgedEntries(t *testing.T) {
	r := rand.New(rand.NewPCG(28, 5))
	dir := t.TempDir()
	n := infertest.Network(t, infertest.Posterior(t))
	bn := infertest.Training(t)
	m, data := small(t, "ckpt", 1), tinyImages(t)
	use := func() error {
		e := storing(t, dir)
		sums := &infer.Sums{}
		err := m.Each(t.Context(), 0, 1, func(model infer.Model) error {
			model.Weight = 1
			return e.Predict(t.Context(), model, data, sums)
		})
		if err == nil {
			if bad := slices.ContainsFunc(sums.Outcome, func(v float64) bool { return v-v != 0 }); bad {
				t.Error("an outcome that is not finite")
			}
			_, err = batchnorm.Recompute(t.Context(), e, n, n.Posterior.Last(), bn)
		}
		return err
	}
	if err := use(); err != nil {
		t.Fatal(err)
	}
	paths, err := filepath.Glob(filepath.Join(dir, "*", "*.rows"))
	if err != nil || len(paths) != 2 {
		t.Fatalf("%q, %v", paths, err)
	}
	for _, path := range paths {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		whole, err := forge.OpenRows(b)
		if err != nil {
			t.Fatal(err)
		}
		for range reliability.Figure(30, 4000) {
			forged := whole.Mutated(r)
			if err := os.WriteFile(path, forged.Bytes(), 0o666); err != nil {
				t.Fatal(err)
			}
			use() // may fail, and must not panic
			if t.Failed() {
				t.Fatalf("%.3000q", fmt.Sprint(forged))
			}
		}
		if err := os.WriteFile(path, b, 0o666); err != nil {
			t.Fatal(err)
		}
	}
}

// Shards of all jobs are all networks, each once.
func TestShard(t *testing.T) {
	for _, of := range []int{1, 3, 7} {
		var taken [5]int
		for index := range of {
			s := &infer.Shard{Index: index, Of: of}
			for k := range taken {
				if s.Mine() {
					taken[k]++
				}
			}
		}
		if taken != [5]int{1, 1, 1, 1, 1} {
			t.Errorf("%d jobs: %v", of, taken)
		}
	}
	if !(*infer.Shard)(nil).Mine() {
		t.Error("without shards a network is nobody's")
	}
}
