package bnupdate

import (
	"encoding/json"
	"math"
	"os"
	"slices"
	"testing"

	"github.com/swagwrap/swagwrap/onnxio"
)

// σ is the largest singular value, by NumPy, and u and v are those of PyTorch's own
// spectral norm after thousands of forward passes in training mode (testdata/spectral.py).
func TestPowerIterateAsPyTorch(t *testing.T) {
	raw, err := os.ReadFile("testdata/spectral.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		Name          string
		Shape         []int64
		Axis          int
		Weight        []float32
		BeforeU       []float32 `json:"before_u"`
		BeforeV       []float32 `json:"before_v"`
		U, V          []float64
		Sigma, Second float64
	}
	if err := json.Unmarshal(raw, &cases); err != nil || len(cases) < 4 {
		t.Fatal(err, len(cases))
	}
	for _, c := range cases {
		before, rows, behind := onnxio.SpectralNorm{Axis: c.Axis}.Matrix(c.Shape)
		w := rowsFirst(c.Weight, int(before), int(rows), int(behind))
		u, v := slices.Clone(c.BeforeU), slices.Clone(c.BeforeV)
		sigma := PowerIterate(w, u, v)
		// The weights are float32 exactly, and σ is computed in float64. It stops where a
		// step adds 1e-8 of it: what is left is that over 1 − (σ₂/σ₁)².
		if left := 1e-8 / (1 - math.Pow(c.Second/c.Sigma, 2)); math.Abs(sigma/c.Sigma-1) > left {
			t.Errorf("%s: σ %v, want %v within %v of it", c.Name, sigma, c.Sigma, left)
		}
		// The vectors converge with the root of that; PyTorch's are float32.
		for i := range u {
			if math.Abs(float64(u[i])-c.U[i]) > 3e-4 {
				t.Errorf("%s: u[%d] = %v, want %v", c.Name, i, u[i], c.U[i])
			}
		}
		for i := range v {
			if math.Abs(float64(v[i])-c.V[i]) > 3e-4 {
				t.Errorf("%s: v[%d] = %v, want %v", c.Name, i, v[i], c.V[i])
			}
		}
		// From there it does not move: those are fixed points.
		again, right := slices.Clone(u), slices.Clone(v)
		if s := PowerIterate(w, again, right); math.Abs(s/sigma-1) > 1e-7 {
			t.Errorf("%s: σ goes on to %v", c.Name, s)
		}
	}
}

func TestPowerIterateOddMatrices(t *testing.T) {
	for name, c := range map[string]struct {
		w, u, v []float32
		want    float64
	}{
		"zeros":           {[]float32{0, 0, 0, 0}, []float32{1, 0}, []float32{0, 1}, 0},
		"orthogonal u":    {[]float32{0, 0, 0, 3}, []float32{1, 0}, []float32{1, 0}, 3},
		"u of zeros":      {[]float32{2, 0, 0, 1}, []float32{0, 0}, []float32{0, 0}, 2},
		"u is not finite": {[]float32{2, 0, 0, 1}, []float32{float32(math.NaN()), 0}, []float32{0, 0}, 2},
		"equal values":    {[]float32{2, 0, 0, 2}, []float32{0.6, 0.8}, []float32{1, 0}, 2},
		"one number":      {[]float32{-4}, []float32{1}, []float32{1}, 4},
		"large":           {[]float32{1e18, 0, 0, 1e17}, []float32{0.6, 0.8}, []float32{1, 0}, float64(float32(1e18))},
		"small":           {[]float32{1e-38, 0, 0, 1e-39}, []float32{0.6, 0.8}, []float32{1, 0}, float64(float32(1e-38))},
	} {
		if got := PowerIterate(c.w, c.u, c.v); math.Abs(got-c.want) > 1e-6*c.want {
			t.Errorf("%s: σ %v, want %v", name, got, c.want)
		}
		for _, x := range append(c.u, c.v...) {
			if x != x {
				t.Errorf("%s: u %v, v %v", name, c.u, c.v)
			}
		}
	}
}
