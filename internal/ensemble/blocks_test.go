package ensemble_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/swagwrap/swagwrap/fixtures/infertest"
	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/ensemble"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/infer/batchnorm"
	"github.com/swagwrap/swagwrap/internal/memory"
	"github.com/swagwrap/swagwrap/internal/records"
	"github.com/swagwrap/swagwrap/weights"
)

// blocksJob adapts two members to blocks of n of 500 digits.
func blocksJob(t *testing.T, n int) ensemble.Scoring {
	t.Helper()
	e, networks := ensembleOf(infertest.Network(t, infertest.Posterior(t)), 2)
	adapting, err := networks[0].Adapting(batchnorm.DefaultWeight)
	if err != nil {
		t.Fatal(err)
	}
	return ensemble.Scoring{Ensemble: e, Networks: networks, Data: dataset.Subset(infertest.Digits(t, "val.npz"), dataset.Order{Limit: 500}), Want: everything,
		Blocks: &ensemble.Blocks{Examples: n, Weight: batchnorm.DefaultWeight, Networks: []*infer.Network{adapting}}}
}

// The rows of a block are those of an ensemble that was adapted to this block alone.
func TestBlocks(t *testing.T) {
	t.Parallel()
	const n = 150 // 150, 150, and 200, since a rest of 50 joins
	job, e := blocksJob(t, n), engine(t)
	moved := 0
	job.Blocks.Told = func(by float64) {
		if moved++; !(by > 0) {
			t.Errorf("block %d moves the first layer by %v", moved, by)
		}
	}
	got := collect(t, e, job, 0)
	if moved != 3 || len(got) != 500 {
		t.Fatalf("%d rows of %d blocks", len(got), moved)
	}
	plain := ensemble.Scoring{Ensemble: job.Ensemble, Networks: job.Networks, Data: job.Data, Want: everything}
	other := collect(t, e, plain, 0)
	run := infer.Run{Engine: e}
	for _, r := range [][2]int{{0, 150}, {150, 300}, {300, 500}} {
		own, block := *job.Ensemble, dataset.Part(job.Data, r[0], r[1])
		own.Components = slices.Clone(own.Components)
		var mixed [][]float32
		err := job.Ensemble.EachMember(t.Context(), run.Memory(), job.Networks, 1, func(m ensemble.Member) error {
			to := batchnorm.Adaptation{Target: block, Weight: batchnorm.DefaultWeight, Seed: own.Sampling.Seed}
			s, _, err := to.Statistics(t.Context(), run, job.Blocks.Networks[0], m.Parameters, m.Statistics)
			mixed = append(mixed, s)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		own.Components[0].Statistics = mixed
		want, equal := collect(t, e, ensemble.Scoring{Ensemble: &own, Networks: job.Networks, Data: block, Want: everything}, 0), 0
		for i := range want {
			if want[i].Index += r[0]; !same(got[r[0]+i], want[i]) {
				t.Fatalf("row %d: %+v, want %+v", r[0]+i, got[r[0]+i], want[i])
			}
			if slices.Equal(want[i].Probabilities, other[r[0]+i].Probabilities) {
				equal++
			}
		}
		if equal > 0 {
			t.Errorf("%d rows of block %v are those without adapting", equal, r)
		}
	}
}

// Parts, and runs that go on after any chunk, give the bits of one run, with any memory and number of threads.
func TestBlocksSameBits(t *testing.T) {
	t.Parallel()
	job, plain := blocksJob(t, 200), engine(t)
	few := infer.NewEngine(plain.Runtime(), infer.EngineOptions{Threads: 3, Memory: memory.New(1)}) // a batch a chunk
	want := collect(t, plain, job, 0)
	hold := func(what string, first int, got []Row) {
		t.Helper()
		for i, r := range got {
			if r.Index = first + i; !same(r, want[first+i]) {
				t.Fatalf("%s, row %d: %+v, want %+v", what, first+i, r, want[first+i])
			}
		}
	}
	for _, first := range []int{128, 200, 400} {
		got := collect(t, few, job, first)
		if len(got) != 500-first {
			t.Fatalf("from %d: %d rows", first, len(got))
		}
		hold("from", first, got)
	}
	for _, of := range []int{2, 5} {
		at := 0
		for i := range of {
			part := job
			part.Part = &records.Part{Index: i, Of: of}
			s, err := ensemble.NewScorer(t.Context(), few, part)
			if err != nil {
				t.Fatal(err)
			}
			p := part.Part
			if p.First != at || p.All != 500 || p.End != 500 && p.End%200 > 0 {
				t.Fatalf("part %d of %d: %+v, want whole blocks from %d", i, of, *p, at)
			}
			if at = p.End; p.Rows() == 0 {
				continue
			}
			var got []Row
			err = s.Run(t.Context(), 0, nil, func(c *infer.Chunk) error {
				for r := range s.Rows(c) {
					got = append(got, named(s.Schema(1).Columns, r))
				}
				return nil
			})
			if err != nil || len(got) != p.Rows() {
				t.Fatalf("part %d of %d: %d rows, %v", i, of, len(got), err)
			}
			hold(fmt.Sprintf("part %d of %d", i, of), p.First, got)
		}
		if at != 500 {
			t.Errorf("%d parts end at %d", of, at)
		}
	}
}

// The last block has all that is left, and no block has fewer examples than statistics need.
func TestLastBlock(t *testing.T) {
	for _, tc := range []struct{ n, examples, last int }{
		{500, 100, 400}, {500, 200, 400}, {463, 200, 200}, {464, 200, 400}, {64, 64, 0}, {127, 64, 0}, {128, 64, 64}, {191, 64, 64}, {70, 512, 0}, {1, 64, 0}, {1025, 512, 512},
	} {
		if got := (&ensemble.Blocks{Examples: tc.examples}).Last(tc.n); got != tc.last {
			t.Errorf("%d examples in blocks of %d: the last begins at %d, want %d", tc.n, tc.examples, got, tc.last)
		}
	}
}

// Examples that cannot be read are no part of the statistics. A block with too few others ends the run.
func TestBlocksSkip(t *testing.T) {
	t.Parallel()
	job, e := blocksJob(t, 100), engine(t)
	whole := job.Data.(dataset.Bytes)
	broken := map[int]bool{3: true, 450: true}
	job.Data = flawed{whole, broken}
	if err := runOf(t, e, job); err == nil || !strings.Contains(err.Error(), "is broken") {
		t.Errorf("without skipping: %v", err)
	}
	job.SkipErrors = true
	for i, r := range collect(t, e, job, 0) {
		if broken[i] != (r.Error != "") || !broken[i] && math.IsNaN(r.Probabilities[0]) {
			t.Errorf("row %d: %+v", i, r)
		}
	}
	for i := 210; i < 250; i++ {
		broken[i] = true
	}
	if err := runOf(t, e, job); err == nil || !strings.Contains(err.Error(), "60 examples of the block can be read") {
		t.Errorf("a block with too few: %v", err)
	}
}

func runOf(t *testing.T, e *infer.Engine, job ensemble.Scoring) error {
	t.Helper()
	s, err := ensemble.NewScorer(t.Context(), e, job)
	if err != nil {
		t.Fatal(err)
	}
	return s.Run(t.Context(), 0, nil, func(*infer.Chunk) error { return weights.Changed() })
}
