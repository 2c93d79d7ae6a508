package infer_test

import (
	"math"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/swagwrap/swagwrap/fixtures/infertest"
	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/ort"
)

// A batch that a GPU has no memory for is divided, also if scores are added up by the processor. Other tests wait: the
// memory is that of the process.
func TestGPURoom(t *testing.T) {
	rows := make([]int, 300)
	for i := range rows {
		rows[i] = i
	}
	m, data := members{infertest.Network(t, infertest.Posterior(t)), 3}, dataset.Picked(infertest.Digits(t, "val.npz"), rows)
	for i, opts := range []infer.Options{{}, {KeepMembers: true}, {}, {KeepMembers: true}} {
		want := collect(t, parameterizedRun(t), m, data, opts, 0)
		if i >= 2 { // the trial finds it
			defer ort.SimulateGPU(&ort.Simulation{Room: 40})()
		}
		s, err := infer.NewScorer(t.Context(), parameterizedRun(t).Engine, m, data, opts)
		if err != nil {
			t.Fatal(err)
		}
		end := ort.SimulateGPU(&ort.Simulation{Room: 40})
		defer end()
		var got []float64
		var counted atomic.Int64
		err = s.Run(t.Context(), 0, func(n int) { counted.Add(int64(n)) }, func(c *infer.Chunk) error {
			got = append(got, c.Outcome...)
			return nil
		})
		end()
		if err != nil {
			t.Fatal(err)
		}
		for i, v := range got {
			if math.Abs(v-want.outcome[i]) > 1e-6 {
				t.Fatalf("number %d is %v, want %v", i, v, want.outcome[i])
			}
		}
		if len(got) != len(want.outcome) || counted.Load() != int64(3*data.Len()) {
			t.Errorf("%d numbers, want %d; progress of %d runs, want %d", len(got), len(want.outcome), counted.Load(), 3*data.Len())
		}
		if printed := infer.Waited(s); !strings.Contains(printed, "32 examples at a time") {
			t.Error(printed)
		}
	}
}
