package bnupdate

import (
	"bytes"
	"math"
	"runtime"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/swagwrap/swagwrap/onnxio"
	"github.com/swagwrap/swagwrap/weights"
)

// SpectralNorms brings the vectors u and v of spectral norm into step with weights that no training run visited. The
// graph divides a weight W by σ = uᵀWv. That is the largest singular value of W only if u and v are its first
// singular vectors. PyTorch stores the vectors, improves them by one power iteration in each forward pass of
// training, and uses the stored ones in evaluation. Those of a checkpoint do not fit an average or a draw: σ comes
// out too small, and the layer too large.
type SpectralNorms struct {
	norms []spectralNorm
}

type spectralNorm struct {
	onnxio.SpectralNorm
	weight, u, v weights.Tensor
}

// NewSpectralNorms finds the weights of m whose vectors are buffers in l.
func NewSpectralNorms(m *onnxio.Model, l *weights.Layout) *SpectralNorms {
	s := &SpectralNorms{}
	seen := make(map[string]bool)
	for _, n := range m.SpectralNorms() {
		x := spectralNorm{SpectralNorm: n}
		var ok [3]bool
		x.weight, ok[0] = l.Find(n.Weight)
		x.u, ok[1] = l.Find(n.U)
		x.v, ok[2] = l.Find(n.V)
		if ok != [3]bool{true, true, true} || x.weight.Role != weights.Parameter || x.u.Role != weights.Buffer ||
			x.v.Role != weights.Buffer || seen[n.U] {
			continue
		}
		seen[n.U] = true // a layer that is called twice has one norm
		s.norms = append(s.norms, x)
	}
	return s
}

// Weights names the weights, in the order of the graph.
func (s *SpectralNorms) Weights() (names []string) {
	for _, n := range s.norms {
		names = append(names, n.Divided)
	}
	return names
}

// Has reports whether a tensor is the u or v of one of the weights.
func (s *SpectralNorms) Has(name string) bool {
	return slices.ContainsFunc(s.norms, func(n spectralNorm) bool { return n.U == name || n.V == name })
}

// Update replaces u and v in state, a flat vector of statistics and buffers, by those of the given weights. Power
// iteration starts from the stored u.
func (s *SpectralNorms) Update(state []float32, parameters weights.Vector) error {
	var g errgroup.Group
	g.SetLimit(runtime.GOMAXPROCS(0))
	for _, n := range s.norms {
		g.Go(weights.Guarded(func() error { return n.update(state, parameters) }))
	}
	return g.Wait()
}

func (n spectralNorm) update(state []float32, parameters weights.Vector) error {
	// w holds the weights as the file will: rounded to its type.
	var raw bytes.Buffer
	raw.Grow(int(n.weight.Len() * n.weight.DType.Size()))
	if err := weights.WriteTensor(&raw, n.weight, parameters); err != nil {
		return err
	}
	w := make([]float32, n.weight.Len())
	n.weight.DType.Float32s(w, raw.Bytes())
	before, rows, behind := n.Matrix(n.weight.Shape)
	if before > 1 {
		w = rowsFirst(w, int(before), int(rows), int(behind))
	}
	u, v := state[n.u.Offset:][:rows], state[n.v.Offset:][:before*behind]
	PowerIterate(w, u, v)
	return nil
}

// rowsFirst returns a before×rows×behind tensor as a matrix of rows, each before×behind.
func rowsFirst(w []float32, before, rows, behind int) []float32 {
	out := make([]float32, 0, len(w))
	for r := range rows {
		for b := range before {
			out = append(out, w[(b*rows+r)*behind:][:behind]...)
		}
	}
	return out
}

// Power iteration ends when a step raises σ by less than sigmaTolerance of it, which
// float32 cannot show, or after mostIterations. Where the two largest singular values are
// nearly equal it ends early. σ is right all the same: both vectors give nearly that value.
const (
	sigmaTolerance = 1e-8
	mostIterations = 1000
)

// PowerIterate replaces u and v by the first left and right singular vectors of w. It
// returns the largest singular value, σ = uᵀwv. The matrix w has len(u) rows and len(v)
// columns, and is stored row by row. Each step is that of torch.nn.utils.spectral_norm,
// in float64: v ← wᵀu/‖wᵀu‖, u ← wv/‖wv‖. The first step starts from u, and the last is
// the one after which σ no longer grows. For a matrix of zeros, u and v do not change,
// and σ is 0.
func PowerIterate(w, u, v []float32) float64 {
	left, right := make([]float64, len(u)), make([]float64, len(v))
	for i, x := range u {
		left[i] = float64(x)
	}
	if !normalise(left) { // never true for a file that training wrote
		for i := range left {
			left[i] = 1
		}
		normalise(left)
	}
	columns, sigma := len(v), 0.0
	for range mostIterations {
		clear(right)
		for r, a := range left {
			for c, x := range w[r*columns:][:columns] {
				right[c] += a * float64(x)
			}
		}
		if !normalise(right) {
			if slices.ContainsFunc(w, func(x float32) bool { return x != 0 }) && sigma == 0 && perturb(left) {
				continue // u was orthogonal to all of w
			}
			return 0
		}
		for r := range left {
			sum := 0.0
			for c, x := range w[r*columns:][:columns] {
				sum += float64(x) * right[c]
			}
			left[r] = sum
		}
		was := sigma
		sigma = length(left)
		normalise(left)
		if sigma-was <= sigmaTolerance*sigma {
			break
		}
	}
	for i, x := range left {
		u[i] = float32(x)
	}
	for i, x := range right {
		v[i] = float32(x)
	}
	return sigma
}

// perturb changes x into another vector of length 1.
func perturb(x []float64) bool {
	for i := range x {
		x[i] += 1 / float64(i+2)
	}
	return normalise(x)
}

// length returns the Euclidean norm. The squares of plausible weights stay within float64.
func length(x []float64) float64 {
	sum := 0.0
	for _, v := range x {
		sum += v * v
	}
	return math.Sqrt(sum)
}

// normalise divides a vector by its length, and reports whether it has one.
func normalise(x []float64) bool {
	n := length(x)
	if !(n > 0) || math.IsInf(n, 0) {
		return false
	}
	for i := range x {
		x[i] /= n
	}
	return true
}
