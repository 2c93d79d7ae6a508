package swag_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/swagwrap/swagwrap/fixtures/testfile"
	"github.com/swagwrap/swagwrap/swag"
	"github.com/swagwrap/swagwrap/weights"
)

// memory is an io.WriterAt in memory.
type memory []byte

func (m *memory) WriteAt(p []byte, off int64) (int, error) {
	if grow := int(off) + len(p) - len(*m); grow > 0 {
		*m = append(*m, make([]byte, grow)...)
	}
	return copy((*m)[off:], p), nil
}

// small is a network of 12 weights in 3 tensors, with batch-norm statistics
// and a constant between them.
func small(t testing.TB) *weights.Layout {
	return layout(t,
		weights.Tensor{Name: "conv.weight", Shape: []int64{2, 3}, DType: weights.F32, Role: weights.Parameter},
		weights.Tensor{Name: "bn.running_mean", Shape: []int64{2}, DType: weights.F32, Role: weights.Statistic},
		weights.Tensor{Name: "bn.running_var", Shape: []int64{2}, DType: weights.F32, Role: weights.Statistic},
		weights.Tensor{Name: "conv.bias", Shape: []int64{2}, DType: weights.F32, Role: weights.Parameter},
		weights.Tensor{Name: "axes", Shape: []int64{1}, DType: weights.I64},
		weights.Tensor{Name: "fc.weight", Shape: []int64{2, 2}, DType: weights.F32, Role: weights.Parameter},
	)
}

// flat is a network of d weights in one tensor.
func flat(t testing.TB, d int) *weights.Layout {
	return layout(t, weights.Tensor{Name: "w", Shape: []int64{int64(d)}, DType: weights.F32, Role: weights.Parameter})
}

func layout(t testing.TB, tensors ...weights.Tensor) *weights.Layout {
	t.Helper()
	l, err := weights.NewLayout(tensors)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// iterates are n checkpoints of l whose weights are value(checkpoint, weight).
func iterates(l *weights.Layout, n int, value func(t, i int) float64) swag.Input {
	it := swag.Input{Layout: l}
	for t := range n {
		theta := make(weights.Slice, l.Len(weights.Parameter))
		for i := range theta {
			theta[i] = float32(value(t, i))
		}
		it.Checkpoints = append(it.Checkpoints, swag.Checkpoint{Path: fmt.Sprintf("ckpt-%03d.onnx", t), SHA256: fmt.Sprint(t), Theta: theta,
			Statistics: make(weights.Slice, l.Len(weights.Statistic))})
	}
	return it
}

// noisy gives weights around mean with standard deviation sd.
func noisy(mean, sd float64) func(t, i int) float64 {
	r := rand.New(rand.NewPCG(1, 2))
	return func(t, i int) float64 { return mean + sd*r.NormFloat64() }
}

func fitBytes(t testing.TB, it swag.Input, opts swag.FitOptions) []byte {
	t.Helper()
	var file memory
	if err := swag.Fit(t.Context(), &file, it, opts); err != nil {
		t.Fatal(err)
	}
	return file
}

func fit(t testing.TB, it swag.Input, opts swag.FitOptions) *swag.Posterior {
	t.Helper()
	p, err := swag.Parse("p.swag", fitBytes(t, it, opts))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// contents reads the whole posterior.
func contents(p *swag.Posterior) (mean, variance []float64, deviations [][]float32) {
	mean, variance = make([]float64, p.Len()), make([]float64, p.Len())
	p.Mean(mean, 0)
	p.Variance(variance, 0)
	for range p.Options.Columns {
		deviations = append(deviations, make([]float32, p.Len()))
	}
	if err := p.Deviations(deviations, 0); err != nil {
		panic(err)
	}
	return mean, variance, deviations
}

func wantError(t *testing.T, err error, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Fatalf("error %v, want one with %q", err, part)
		}
	}
}

// TestFitGolden compares with testdata/make.py: exact rational arithmetic.
func TestFitGolden(t *testing.T) {
	var cases []struct {
		Name       string
		Rank       int
		DiagOnly   bool `json:"diag_only"`
		Theta0     weights.Slice
		Given      weights.Slice
		Thetas     [][]float64
		Mean       []float64
		Variance   []float64
		Deviations []float32
	}
	testfile.JSON(t, "testdata/golden.json", &cases)
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			it := iterates(small(t), len(c.Thetas), func(t, i int) float64 { return c.Thetas[t][i] })
			want := swag.Options{Rank: c.Rank, Columns: min(c.Rank, len(c.Thetas)), Deviations: "running", Models: len(c.Thetas)}
			if c.Theta0 != nil {
				it.Theta0 = &swag.Checkpoint{Path: "theta0.onnx", Theta: c.Theta0}
				want.Theta0 = true
				want.Models++
			}
			if c.Given != nil {
				it.Mean = &swag.Checkpoint{Path: "average.pt", SHA256: "ab", StateDict: "ema", Theta: c.Given}
				want.Deviations = swag.Given
			}
			if c.DiagOnly {
				want.Rank, want.Columns = 0, 0
			} else {
				want.Divisor = want.Columns - 1
			}
			p := fit(t, it, swag.FitOptions{Rank: c.Rank, DiagOnly: c.DiagOnly})
			if !reflect.DeepEqual(p.Options, want) {
				t.Errorf("options %+v, want %+v", p.Options, want)
			}
			if m := p.GivenMean; (m == nil) != (c.Given == nil) || m != nil && (m.Path != "average.pt" || m.SHA256 != "ab" || m.StateDict != "ema") {
				t.Errorf("given mean %+v", m)
			}
			mean, variance, deviations := contents(p)
			for i := range mean {
				if d := math.Abs(mean[i] - c.Mean[i]); d > 1e-12*math.Abs(c.Mean[i]) {
					t.Errorf("mean %d: %v, want %v", i, mean[i], c.Mean[i])
				}
				if d := math.Abs(variance[i] - c.Variance[i]); d > 1e-12*c.Variance[i] {
					t.Errorf("variance %d: %v, want %v (%.1e)", i, variance[i], c.Variance[i], d/c.Variance[i])
				}
			}
			if k := want.Columns; len(mean)*k != len(c.Deviations) {
				t.Fatalf("%d columns of deviations, want %d", k, len(c.Deviations)/len(mean))
			}
			for k, column := range deviations {
				for i, d := range column {
					w := c.Deviations[i*len(deviations)+k]
					if d != w && math.Nextafter32(w, d) != d {
						t.Errorf("deviation %d of weight %d: %v, want %v", k, i, d, w)
					}
				}
			}
		})
	}
}

func TestFitRefuses(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	theta := func(it *swag.Input, t int) weights.Slice { return it.Checkpoints[t].Theta.(weights.Slice) }
	for _, c := range []struct {
		name string
		edit func(*swag.Input, *swag.FitOptions)
		want []string
	}{
		{"NaN", func(it *swag.Input, _ *swag.FitOptions) { theta(it, 2)[7] = nan },
			[]string{"ckpt-002.onnx", `"conv.bias"`, "NaN", "index 1"}},
		{"+Inf", func(it *swag.Input, _ *swag.FitOptions) { theta(it, 0)[0] = inf },
			[]string{"ckpt-000.onnx", `"conv.weight"`, "+Inf", "index 0"}},
		{"-Inf in θ0", func(it *swag.Input, _ *swag.FitOptions) {
			it.Theta0 = &swag.Checkpoint{Path: "theta0.onnx", Theta: make(weights.Slice, 12)}
			it.Theta0.Theta.(weights.Slice)[11] = -inf
		}, []string{"theta0.onnx", `"fc.weight"`, "-Inf", "index 3"}},
		{"no checkpoint", func(it *swag.Input, _ *swag.FitOptions) { it.Checkpoints = nil },
			[]string{"0 checkpoints", "at least 2"}},
		{"one checkpoint and θ0", func(it *swag.Input, _ *swag.FitOptions) {
			it.Theta0, it.Checkpoints = &it.Checkpoints[0], it.Checkpoints[1:2]
		},
			[]string{"1 checkpoints", "at least 2"}},
		{"rank 1", func(_ *swag.Input, o *swag.FitOptions) { o.Rank = 1 }, []string{"rank 1", "K must be at least 2"}},
		{"rank below 0", func(_ *swag.Input, o *swag.FitOptions) { o.Rank = -1 }, []string{"rank -1"}},
		{"no parameters", func(it *swag.Input, _ *swag.FitOptions) { it.Layout = &weights.Layout{} },
			[]string{"nothing to fit"}},
		{"another network", func(it *swag.Input, _ *swag.FitOptions) { it.Checkpoints[1].Theta = make(weights.Slice, 11) },
			[]string{"ckpt-001.onnx: 11 weights, want 12"}},
		{"no statistics", func(it *swag.Input, _ *swag.FitOptions) { it.Checkpoints[0].Statistics = nil },
			[]string{"ckpt-000.onnx: 0 batch-norm statistics and buffers, want 4"}},
		{"statistics of another network", func(it *swag.Input, _ *swag.FitOptions) { it.Checkpoints[1].Statistics = make(weights.Slice, 5) },
			[]string{"ckpt-001.onnx: 5 batch-norm statistics and buffers, want 4"}},
		{"a statistic that is not finite", func(it *swag.Input, _ *swag.FitOptions) {
			it.Checkpoints[1].Statistics = weights.Slice{0, 1, float32(math.Inf(1)), 1}
		}, []string{"ckpt-001.onnx", "+Inf at index 0", "finite batch-norm statistics"}},
		{"unreadable", func(it *swag.Input, _ *swag.FitOptions) { it.Checkpoints[1].Theta = broken{theta(it, 1)} },
			[]string{"disk on fire"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			it, opts := iterates(small(t), 4, noisy(0, 1)), swag.FitOptions{BlockLen: 5}
			c.edit(&it, &opts)
			wantError(t, swag.Fit(t.Context(), new(memory), it, opts), c.want...)
		})
	}
}

var errFire = errors.New("disk on fire")

type broken struct{ weights.Slice }

func (broken) ReadAt([]float32, int64) error { return errFire }

// full is an io.WriterAt that fails from some offset on.
type full int64

func (f full) WriteAt(p []byte, off int64) (int, error) {
	if off > int64(f) {
		return 0, io.ErrShortWrite
	}
	return len(p), nil
}

func TestFitStops(t *testing.T) {
	it := iterates(flat(t, 5000), 3, noisy(0, 1))
	ctx, cancel := context.WithCancel(t.Context())
	calls := 0
	opts := swag.FitOptions{BlockLen: 10, Workers: 2, Progress: func(_, _ int64) {
		if calls++; calls == 3 {
			cancel()
		}
	}}
	if err := swag.Fit(ctx, new(memory), it, opts); !errors.Is(err, context.Canceled) || calls > 10 {
		t.Errorf("cancelled at block 3: %v after %d blocks of 500", err, calls)
	}
	if err := swag.Fit(ctx, new(memory), it, swag.FitOptions{}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled before: %v", err)
	}
	if err := swag.Fit(t.Context(), full(20_000), it, swag.FitOptions{BlockLen: 10}); !errors.Is(err, io.ErrShortWrite) {
		t.Errorf("full disk: %v", err)
	}
}

// The largest weights that a fit takes, and the first that it does not. Kills: a
// bound for one model where there are several.
func TestFitHugeWeights(t *testing.T) {
	at := func(v float64, models int) swag.Input {
		return iterates(flat(t, 1), models, func(t, _ int) float64 { return v * float64(1-2*(t%2)) })
	}
	p := fit(t, at(1.8e19, 4), swag.FitOptions{Rank: 2})
	mean, variance, deviations := contents(p)
	v := float64(float32(1.8e19))
	if mean[0] != 0 || math.Abs(variance[0]/(v*v)-1) > 1e-12 || deviations[1][0] != -1.8e19 {
		t.Errorf("mean %v, variance %v, deviations %v", mean, variance, deviations)
	}
	for _, huge := range []float64{1.9e19, 1e38, -3e38} {
		for _, reference := range []bool{false, true} {
			it := at(1, 50)
			it.Checkpoints[31].Theta = weights.Slice{float32(huge)}
			wantError(t, swag.Fit(t.Context(), new(memory), it, swag.FitOptions{Reference: reference}),
				"ckpt-031.onnx: tensor \"w\": value ", fmt.Sprint(float32(huge)), " at index 0, want finite weights of less than 1.8e+19")
		}
	}
}

// Kills: the first checkpoint weighted twice (1…5 gives 2.667); an exponential
// moving average instead of a mean; a mean buffer that is not zeroed: blocks of
// small weights follow blocks of large ones in the same buffer.
func TestMeanIsPlain(t *testing.T) {
	unit := func(i int) float64 { return []float64{1 << 60, 1}[i/50] }
	p := fit(t, iterates(flat(t, 100), 5, func(t, i int) float64 { return float64(t+1) * unit(i) }), swag.FitOptions{BlockLen: 5, Workers: 1})
	mean, variance, _ := contents(p)
	for i := range mean {
		if m, v := mean[i]/unit(i), variance[i]/unit(i)/unit(i); m != 3 || math.Abs(v-2) > 1e-15 {
			t.Fatalf("weight %d: mean %v and variance %v of 1…5, want 3 and 2", i, m, v)
		}
	}
}

// Kills: moments in float32, θ̄²-moment minus squared mean: at mean 1 and
// standard deviation 1e-4 half of the variances come out at or below 0.
func TestVarianceDoesNotCancel(t *testing.T) {
	const T, d = 140, 500
	it := iterates(flat(t, d), T, noisy(1, 1e-4))
	_, variance, _ := contents(fit(t, it, swag.FitOptions{}))
	for i, got := range variance {
		var sum, squares float64
		for _, c := range it.Checkpoints {
			sum += float64(c.Theta.(weights.Slice)[i]) - 1 // exact: the weights are near 1
		}
		for _, c := range it.Checkpoints {
			v := float64(c.Theta.(weights.Slice)[i]) - 1 - sum/T
			squares += v * v
		}
		if want := squares / T; math.Abs(got/want-1) > 1e-10 {
			t.Fatalf("variance %d: %v, want %v", i, got, want)
		}
	}
}

// Kills: batch-norm statistics averaged into the posterior.
func TestStatisticsStayOut(t *testing.T) {
	it := iterates(small(t), 3, noisy(0, 1))
	for t := range it.Checkpoints {
		it.Checkpoints[t].Statistics = weights.Slice{7e7, 8e7, 7e7, float32(t)}
	}
	p := fit(t, it, swag.FitOptions{})
	mean, variance, deviations := contents(p)
	if p.Len() != 12 || len(p.Layout.Role(weights.Parameter)) != 3 {
		t.Errorf("posterior over %d weights, want 12", p.Len())
	}
	if slices.Max(mean) > 100 || slices.Max(variance) > 100 || slices.Max(slices.Concat(deviations...)) > 100 {
		t.Error("a statistic is in the posterior")
	}
	for t0, row := range p.StoredStatistics {
		if want := it.Checkpoints[t0].Statistics.(weights.Slice); !slices.Equal(row, want) {
			t.Errorf("statistics %v, want %v", row, want)
		}
	}
	if last := p.StoredStatistics[2]; !slices.Equal(p.Statistics, last) {
		t.Errorf("statistics of the last checkpoint: %v, want %v", p.Statistics, last)
	}
	statistics := p.Layout.Role(weights.Statistic)
	if !p.Frozen(statistics[0]) || p.Frozen(statistics[1]) {
		t.Error("the first statistic is frozen, the second is not")
	}
}
