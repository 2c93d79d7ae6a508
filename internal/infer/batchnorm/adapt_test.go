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
// al. 2020 mix variances without the difference of the means. In the first layer, whose inputs are the same, the means are theirs,
// and so are the variances without that difference. In deeper layers the statistics differ.
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
	layout, source := n.Posterior.Layout, n.Posterior.Statistics
	adapted := map[string][]float32{}
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
		adapted[name] = got
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
	const first = "stem_bn"
	w := golden.Weight
	means, ok := layout.Find(first + ".running_mean")
	variances, found := layout.Find(first + ".running_var")
	if !ok || !found || len(golden.Schneider) != len(golden.Moments) {
		t.Fatal("no first layer, or other tensors in the golden file")
	}
	for c, mean := range golden.Schneider[first+".running_mean"] {
		i, k := means.Offset+int64(c), variances.Offset+int64(c)
		distance := float64(source[i]) - float64(adapted["Nado"][i])
		variance := float64(adapted["moments"][k]) - w*(1-w)*distance*distance
		for _, p := range [][2]float64{{float64(adapted["moments"][i]), mean}, {variance, golden.Schneider[first+".running_var"][c]}} {
			if math.Abs(p[0]-p[1]) > 1e-6*math.Max(1, math.Abs(p[1])) {
				t.Errorf("Schneider: channel %d: %v, want %v", c, p[0], p[1])
			}
		}
	}
}
