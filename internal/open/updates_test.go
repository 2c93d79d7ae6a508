package open

import (
	"maps"
	"testing"

	"github.com/swagwrap/swagwrap/weights"
)

// Layers are distinguished only if their numbers of updates differ. Names in the graph and in the checkpoints may begin otherwise.
func TestUpdatesOf(t *testing.T) {
	t.Parallel()
	layout := func(names ...string) *weights.Layout {
		var tensors []weights.Tensor
		for _, name := range names {
			tensors = append(tensors, weights.Tensor{Name: name, DType: weights.F32, Shape: []int64{2}, Role: weights.Statistic})
		}
		l, err := weights.NewLayout(tensors)
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	plain := layout("bn.running_mean", "bn.running_var", "block.bn.running_mean", "block.bn.running_var")
	before := map[string]int64{"bn.running_mean": 100, "block.bn.running_mean": 300}
	twice := map[string]int64{"bn.running_mean": 120, "block.bn.running_mean": 360}
	for what, c := range map[string]struct {
		layout       *weights.Layout
		before, last map[string]int64
		want         map[string]int64
	}{
		"equally many":  {plain, before, map[string]int64{"bn.running_mean": 120, "block.bn.running_mean": 320}, nil},
		"three times":   {plain, before, twice, map[string]int64{"bn.running_mean": 20, "block.bn.running_mean": 60}},
		"one is frozen": {plain, before, map[string]int64{"bn.running_mean": 100, "block.bn.running_mean": 320}, nil},
		"no counters":   {plain, nil, nil, nil},
		"a graph with more around": {layout("net.bn.running_mean", "net.block.bn.running_mean"), before, twice,
			map[string]int64{"net.bn.running_mean": 20, "net.block.bn.running_mean": 60}},
		"checkpoints with more around": {plain, map[string]int64{"m.bn.running_mean": 1, "m.block.bn.running_mean": 1},
			map[string]int64{"m.bn.running_mean": 2, "m.block.bn.running_mean": 3}, map[string]int64{"bn.running_mean": 1, "block.bn.running_mean": 2}},
	} {
		if got := updatesOf(c.layout, c.before, c.last); !maps.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", what, got, c.want)
		}
	}
}
