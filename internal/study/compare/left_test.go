package compare_test

import (
	"sync/atomic"
	"testing"

	"github.com/swagwrap/swagwrap/fixtures/infertest"
	"github.com/swagwrap/swagwrap/internal/baseline"
	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/infer/batchnorm"
	"github.com/swagwrap/swagwrap/internal/infer/store"
	"github.com/swagwrap/swagwrap/internal/study/shift"
)

// Left counts the images that networks will see. With an empty store these are all. After a part they are those of the
// other parts. After a run they are those of Laplace, which no store keeps.
func TestLeft(t *testing.T) {
	t.Parallel()
	some := func(name string) dataset.Dataset {
		return dataset.Subset(infertest.Digits(t, name), dataset.Order{Limit: 30})
	}
	c := small(t)
	c.Inputs = baseline.Inputs{Runs: []baseline.Run{{Network: infertest.Network(t, infertest.Posterior(t))}}, Members: 2, Scale: 0.5,
		Asked: []string{baseline.SWA, baseline.SWATemp, baseline.SWAG, baseline.SWAGDiag}, BatchNorm: batchnorm.Training{Data: some("train.npz"), Order: dataset.Order{Shuffle: true}}}
	c.Test, c.Validation = some("test.npz"), some("val.npz")
	damage, err := shift.Parse("fog severities=1,5 examples=20")
	if err != nil {
		t.Fatal(err)
	}
	c.Shift = &damage.Damaged
	if err := damage.Open(c.Test, c.Test, false, 1); err != nil {
		t.Fatal(err)
	}
	left := func(run infer.Run, shard *infer.Shard) [2]int64 {
		damaged, others, err := c.Left(t.Context(), run, shard)
		if err != nil {
			t.Fatal(err)
		}
		return [2]int64{damaged, others}
	}
	// seen runs a part without a store, and counts what networks see with the shift and without it.
	seen := func(part infer.Shard) (out [2]int64) {
		for i := range out {
			var count atomic.Int64
			own, one := part, *c
			if i == 1 {
				one.Shift = nil
			}
			run := infer.Run{Engine: infertest.Engine(t), Progress: func(n int) { count.Add(int64(n)) }}
			if err := one.Fill(t.Context(), run, &own); err != nil {
				t.Fatal(err)
			}
			out[i] = count.Load()
		}
		return [2]int64{out[0] - out[1], out[1]}
	}
	kept, err := store.Open(t.TempDir(), "test", "")
	if err != nil {
		t.Fatal(err)
	}
	run := infer.Run{Engine: infertest.Engine(t), Store: kept}
	if got, want := left(run, nil), seen(infer.Shard{Of: 1}); got != want || want[0] != 5*40 {
		t.Errorf("on an empty store %d are left, and networks see %d", got, want)
	}
	half := &infer.Shard{Of: 2}
	if got, want := left(run, half), seen(*half); got != want {
		t.Errorf("of one part %d are left, and its networks see %d", got, want)
	}
	if err := c.Fill(t.Context(), run, half); err != nil {
		t.Fatal(err)
	}
	found, missing := kept.Counts()
	if left(run, nil)[0] != 2*40 {
		t.Errorf("after one part %d are left", left(run, nil))
	}
	if f, m := kept.Counts(); f != found || m != missing {
		t.Error("a rehearsal counts as use of the store")
	}
	if _, err := c.Run(t.Context(), run); err != nil {
		t.Fatal(err)
	}
	if got := left(run, nil); got != [2]int64{} {
		t.Errorf("after a run %d are left", got)
	}
	c.Asked = append(c.Asked, baseline.Laplace)
	if got := left(run, nil); got != [2]int64{40, 60} {
		t.Errorf("of Laplace, which no store has, %d are left", got)
	}
}
