package batchnorm_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/swagwrap/swagwrap/fixtures/infertest"
	"github.com/swagwrap/swagwrap/fixtures/testfile"
	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/infer/batchnorm"
	"github.com/swagwrap/swagwrap/onnxio"
	"github.com/swagwrap/swagwrap/swag"
	"github.com/swagwrap/swagwrap/weights"
)

// buffered fits three checkpoints of a network of fixtures/buffers/tiny.py, and reads its
// golden.
func buffered(t *testing.T, name string, golden any) *infer.Network {
	t.Helper()
	var models []*onnxio.Model
	for epoch := 1; epoch <= 3; epoch++ {
		models = append(models, infertest.Open(t, infertest.Path("fixtures", "buffers", "checkpoints", fmt.Sprintf("%s-%d.onnx", name, epoch))))
	}
	testfile.JSON(t, infertest.Path("fixtures", "buffers", "checkpoints", name+".json"), golden)
	return infertest.Network(t, infertest.FitWith(t, swag.FitOptions{DiagOnly: true}, models...))
}

// waves is 32 images, element i of which is sin(i).
func waves() array {
	a := array{shape: []int64{1, 6, 6}, values: make([]float32, 32*36)}
	for i := range a.values {
		a.values[i] = float32(math.Sin(float64(i)))
	}
	return a
}

// Batch norm that a graph writes out is recomputed as PyTorch would: mean and unbiased
// variance of what the convolution gives with the averaged weights. Both ways to put it
// into training mode give it, to float32's digits.
func TestWrittenBatchNorm(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"written-ts", "written-dynamo", "rsqrt-ts", "rsqrt-dynamo", "power-ts", "scale-ts", "last-ts", "middle-dynamo"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var golden struct{ Mean, Var []float64 }
			n := buffered(t, name, &golden)
			if n.Layers() != 1 {
				t.Fatalf("%d layers are recomputed, want 1", n.Layers())
			}
			data := batchnorm.Training{Data: waves(), Order: dataset.Order{}}
			check := func(how string) {
				infertest.SWA(t, n.Posterior, func(parameters weights.Vector) error {
					r, err := batchnorm.Recompute(t.Context(), infertest.Run(t), n, parameters, data)
					if err != nil {
						return err
					}
					for tensor, want := range map[string][]float64{"1.running_mean": golden.Mean, "1.running_var": golden.Var} {
						at, ok := n.Posterior.Layout.Find(tensor)
						if !ok || len(want) != 3 {
							t.Fatalf("%s: %v, golden %v", tensor, ok, want)
						}
						for c, w := range want {
							if got := float64(r.Statistics[at.Offset+int64(c)]); math.Abs(got-w) > 2e-6 {
								t.Errorf("%s: %s[%d] = %v, want %v", how, tensor, c, got, w)
							}
						}
					}
					return nil
				})
			}
			check("batch norm in training mode")
			if err := batchnorm.Explicit(n); err != nil {
				t.Fatal(err)
			}
			check("in operators")
		})
	}
}

// Every set of weights gets u and v of its own: σ = u·Wv is the largest singular value of
// the averaged weight, which the golden has from NumPy, and those that are stored would
// give another. A draw has u and v that fit it.
func TestSpectralNormOfMembers(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"spectral-ts", "spectral-fold", "spectral-dynamo", "parametrized-dynamo"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			golden := map[string]float64{}
			n := buffered(t, name, &golden)
			p := n.Posterior
			norms := n.Skeleton().SpectralNorms()
			if n.Recomputes() || len(norms) != 3 || len(golden) != 3 {
				t.Fatalf("norms %v, golden %v", norms, golden)
			}
			// sigma is u·Wv, and how far Wᵀu is from σv, as a share of it.
			sigma := func(s onnxio.SpectralNorm, parameters weights.Vector, state []float32) (sigma, off float64) {
				w, _ := p.Layout.Find(s.Weight)
				values := make([]float32, w.Len())
				if err := parameters.ReadAt(values, w.Offset); err != nil {
					t.Fatal(err)
				}
				ut, _ := p.Layout.Find(s.U)
				vt, _ := p.Layout.Find(s.V)
				u, v := state[ut.Offset:][:ut.Len()], state[vt.Offset:][:vt.Len()]
				before, rows, behind := s.Matrix(w.Shape)
				image := make([]float64, len(v))
				for i := range before {
					for j := range rows {
						for k := range behind {
							column := i*behind + k
							x := float64(values[(i*rows+j)*behind+k])
							sigma += float64(u[j]) * x * float64(v[column])
							image[column] += float64(u[j]) * x
						}
					}
				}
				for c, x := range image {
					off = math.Hypot(off, x-sigma*float64(v[c]))
				}
				return sigma, off / sigma
			}
			stale := 0.0
			infertest.SWA(t, p, func(parameters weights.Vector) error {
				r, err := batchnorm.Recompute(t.Context(), infertest.Run(t), n, parameters, batchnorm.Training{})
				if err != nil {
					return err
				}
				for _, s := range norms {
					// u and v are rounded to float32, which changes σ by the square of 2⁻²⁴ only; the
					// sums are float64's.
					if got, _ := sigma(s, parameters, r.Statistics); math.Abs(got/golden[s.Divided]-1) > 1e-6 {
						t.Errorf("%s: σ %v, want %v", s.Divided, got, golden[s.Divided])
					}
					was, _ := sigma(s, parameters, p.Statistics)
					stale = max(stale, 1-was/golden[s.Divided])
				}
				return nil
			})
			if stale < 1e-4 {
				t.Errorf("the stored vectors give σ within %v: this shows nothing", stale)
			}
			err := infer.EachMember(t.Context(), nil, p, swag.SampleOptions{Covariance: swag.Diagonal, Scale: 1, Seed: 3}, 0, 2, func(k int, parameters weights.Vector) error {
				r, err := batchnorm.Recompute(t.Context(), infertest.Run(t), n, parameters, batchnorm.Training{})
				if err != nil {
					return err
				}
				for _, s := range norms {
					if _, off := sigma(s, parameters, r.Statistics); off > 1e-3 {
						t.Errorf("member %d, %s: Wᵀu is off σv by %v", k, s.Divided, off)
					}
				}
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
}
