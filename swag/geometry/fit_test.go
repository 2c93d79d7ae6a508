package geometry_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

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

func fit(t testing.TB, in swag.Input, opts swag.FitOptions) *swag.Posterior {
	t.Helper()
	var file memory
	if err := swag.Fit(t.Context(), &file, in, opts); err != nil {
		t.Fatal(err)
	}
	p, err := swag.Parse("p.swag", file)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// attach gives a posterior that refers to its checkpoints what it needs.
func attach(t *testing.T, p *swag.Posterior, it swag.Input) *swag.Posterior {
	t.Helper()
	needs := p.Needs()
	var vectors []weights.Vector
	for _, c := range it.Checkpoints[len(it.Checkpoints)-len(needs):] {
		vectors = append(vectors, c.Theta)
	}
	if len(needs) == 0 {
		return p
	}
	if err := p.Attach(vectors, nil); err != nil {
		t.Fatal(err)
	}
	return p
}

func wantError(t *testing.T, err error, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Fatalf("error %v, want one with %q", err, part)
		}
	}
}
