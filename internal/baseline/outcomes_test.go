package baseline_test

import (
	"math"
	"slices"
	"testing"

	"github.com/swagwrap/swagwrap/fixtures/infertest"
	"github.com/swagwrap/swagwrap/internal/baseline"
	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/task"
)

// Outcomes come one at a time: from memory, some of them in any order, and from networks that run again.
func TestEachOutcome(t *testing.T) {
	t.Parallel()
	models := infertest.Two(t, "training")
	n := infertest.Network(t, infertest.Fit(t, models...))
	in := &baseline.Inputs{Runs: []baseline.Run{{Network: n, Checkpoints: models}}, Members: 1, Seed: 1, Scale: 0.5, Asked: []string{baseline.SGD}}
	data := infertest.Data(t, infertest.Path(infertest.Small, "images.npz"), dataset.Options{Shape: []int64{1, 4, 4}})
	run := infertest.Run(t)
	all, _ := predicted(t, run, in, baseline.Targets{Data: []dataset.Dataset{data}})
	p := all[0]
	if len(all) != 1 || !p.Kept() {
		t.Fatalf("%d results", len(all))
	}
	var got []float64
	collect := func(_ task.Task, _ int, a task.Average) error {
		got = append(got, a.Outcome...)
		return nil
	}
	want, width := p.Data[0].Mean(), p.Task().About().Width
	if err := p.Each(t.Context(), run, 0, false, collect); err != nil || !slices.Equal(got, want) {
		t.Errorf("from memory %v, want %v; %v", got, want, err)
	}
	got = nil
	if err := p.Some([]int{4, 1}, collect); err != nil || !slices.Equal(got, slices.Concat(want[4*width:5*width], want[width:2*width])) {
		t.Errorf("some are %v of %v; %v", got, want, err)
	}
	last, err := n.AsIs(models[1])
	if err != nil {
		t.Fatal(err)
	}
	got = nil
	if err := baseline.Stream(t.Context(), run, []infer.Model{last}, data, infer.Options{}, collect); err != nil || len(got) != len(want) {
		t.Fatalf("%d numbers from networks, want %d; %v", len(got), len(want), err)
	}
	for i, v := range got {
		if math.Abs(v-want[i]) > 1e-6 { // the batches differ
			t.Errorf("number %d is %v from networks, %v from memory", i, v, want[i])
		}
	}
}
