package batchnorm_test

import (
	"encoding/json"
	"math"
	"os"
	"testing"

	"github.com/swagwrap/swagwrap/fixtures/infertest"
	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/infer/batchnorm"
)

// Adapted statistics are those of PyTorch: fixtures/adapt/golden.py. At weight 1 they are those of Nado et al. 2020. Schneider et
// al. 2020 mix variances without the difference of the means. Their means in the first layer are the same.
func TestAdaptGolden(t *testing.T) {
	t.Parallel()
	js, err := os.ReadFile("../../../fixtures/adapt/golden.json")
	if err != nil {
		t.Fatal(err)
	}
	var golden struct {
		Weight                   float64
		Nado, Moments, Schneider map[string][]float64
	}
	if err := json.Unmarshal(js, &golden); err != nil {
		t.Fatal(err)
	}
	n, run := infertest.Network(t, infertest.Posterior(t)), infertest.Run(t)
	pictures := dataset.Part(infertest.Digits(t, "val.npz"), 0, 100)
	target := dataset.Altered(pictures, pictures.Labels(), func(v dataset.Values, _ int) {
		for i := range v.Floats {
			v.Floats[i] /= 3
		}
	}, nil, "a third")
	for tensor, want := range golden.Schneider {
		if same := golden.Moments[tensor]; len(same) != len(want) {
			t.Errorf("%s: %d and %d numbers", tensor, len(same), len(want))
		}
	}
	layout, source := n.Posterior.Layout, n.Posterior.Statistics
	for name, tc := range map[string]struct {
		weight float64
		want   map[string][]float64
	}{"Nado": {1, golden.Nado}, "moments": {golden.Weight, golden.Moments}} {
		adapting, err := n.Adapting(tc.weight)
		if err != nil {
			t.Fatal(err)
		}
		got, moved, err := batchnorm.Adaptation{Target: target, Weight: tc.weight, Seed: 1}.Statistics(t.Context(), run, adapting, n.Posterior.Last(), source)
		if err != nil || moved < 0.01 {
			t.Fatalf("moved %v, %v", moved, err)
		}
		if len(tc.want) != 2*adapting.Layers() {
			t.Fatalf("%d tensors in the golden file, want %d", len(tc.want), 2*adapting.Layers())
		}
		for tensor, want := range tc.want {
			at, ok := layout.Find(tensor)
			if !ok {
				t.Fatalf("no tensor %s", tensor)
			}
			for c, v := range want {
				if g := float64(got[at.Offset+int64(c)]); math.Abs(g-v) > 1e-6*math.Max(1, math.Abs(v)) {
					t.Errorf("%s: %s[%d]: %v, want %v", name, tensor, c, g, v)
				}
			}
		}
	}
}
