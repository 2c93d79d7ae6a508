package onnxio

import "slices"

// SpectralNorm is a weight W that the graph divides by σ = uᵀWv, with stored u and v: spectral normalisation (Miyato
// et al. 2018, algorithm 1). In training, power iteration turns u and v towards the first singular vectors of W, so
// that σ is its largest singular value. The rows of the matrix W are axis Axis of the tensor. Its columns are all
// other axes, in their order.
type SpectralNorm struct {
	Weight, U, V string // names of tensors
	Axis         int
	// Divided is the name of the tensor that is divided by σ. It is Weight, unless an exporter that folds constants
	// stored W a second time, as the matrix.
	Divided string
}

// Matrix returns how W lies in the tensor of the given shape, seen as an array of before × rows × behind. Element (i,
// j, k) is in row j and column i·behind + k.
func (s SpectralNorm) Matrix(shape []int64) (before, rows, behind int64) {
	before, behind = 1, 1
	for _, d := range shape[:s.Axis] {
		before *= d
	}
	for _, d := range shape[s.Axis+1:] {
		behind *= d
	}
	return before, shape[s.Axis], behind
}

// SpectralNorms returns the spectrally normalised weights of the main graph, in the order of its nodes: W/σ with σ =
// u·(W v) or (uᵀW)·v. PyTorch's exporters write torch.nn.utils.spectral_norm and parametrizations.spectral_norm in
// this form, in evaluation mode.
func (m *Model) SpectralNorms() (out []SpectralNorm) {
	v := m.viewer()
	for _, p := range v.places {
		if len(p.Node.Inputs) != 2 {
			continue
		}
		switch p.Node.OpType {
		case "Div":
			if s := v.spectralNorm(p, 0, p, 1); s != nil {
				out = append(out, *s)
			}
		case "Mul":
			for k := range 2 {
				if of, ok := v.producer(p, k); ok && of.Node.OpType == "Reciprocal" {
					if s := v.spectralNorm(p, 1-k, of, 0); s != nil {
						out = append(out, *s)
					}
				}
			}
		}
	}
	return out
}

// spectralNorm returns the norm if input i of p is a weight, and input k of q is its σ; otherwise nil.
func (v *viewer) spectralNorm(p Place, i int, q Place, k int) *SpectralNorm {
	weight := v.view(p, i)
	if weight == nil || !weight.tensor.IsFloat() || len(weight.tensor.Shape) < 2 {
		return nil
	}
	outer, ok := v.product(q, k)
	if !ok {
		return nil
	}
	for side := range 2 {
		vector := v.vector(outer, side)
		inner, ok := v.product(outer, 1-side)
		if vector == nil || !ok {
			continue
		}
		for side := range 2 {
			matrix, other := v.view(inner, side), v.vector(inner, 1-side)
			if matrix == nil || other == nil || matrix.tensor.ElemType != weight.tensor.ElemType ||
				matrix.tensor.Len() != weight.tensor.Len() {
				continue
			}
			s := &SpectralNorm{Weight: matrix.tensor.Name, Divided: weight.tensor.Name, U: vector.Name, V: other.Name}
			if side == 1 { // uᵀW comes first
				s.U, s.V, vector, other = s.V, s.U, other, vector
			}
			if s.fits(matrix.tensor, matrix.perm, vector, other) {
				return s
			}
		}
	}
	return nil
}

// fits sets the axis. It reports whether u has as many elements as W has rows, and v as many as W has columns.
func (s *SpectralNorm) fits(weight *Tensor, perm []int64, u, v *Tensor) bool {
	if len(perm) > 0 {
		s.Axis = int(perm[0])
		if len(perm) != len(weight.Shape) || s.Axis < 0 || s.Axis >= len(perm) || !slices.IsSorted(perm[1:]) {
			return false
		}
	}
	_, rows, _ := s.Matrix(weight.Shape)
	return rows > 0 && u != v && u.Len() == rows && v.Len() == weight.Len()/rows
}

// product returns the node that computes input k of p, if it is an inner product: a MatMul, or a Mul followed by
// ReduceSum.
func (v *viewer) product(p Place, k int) (Place, bool) {
	of, ok := v.producer(p, k)
	for range maxView {
		if !ok || !v.isView(of) && of.Node.OpType != "ReduceSum" {
			break
		}
		of, ok = v.producer(of, 0)
	}
	return of, ok && (of.Node.OpType == "MatMul" || of.Node.OpType == "Mul") && len(of.Node.Inputs) == 2
}

// vector returns the float tensor that input k of p is a view of, if at most one of its dimensions is not 1.
// Otherwise it returns nil.
func (v *viewer) vector(p Place, k int) *Tensor {
	w := v.view(p, k)
	if w == nil || !w.tensor.IsFloat() || !IsVector(w.tensor.Shape) {
		return nil
	}
	return w.tensor
}

// IsVector reports whether at most one dimension of a shape is not 1.
func IsVector(shape []int64) bool {
	long := 0
	for _, d := range shape {
		if d != 1 {
			long++
		}
	}
	return long <= 1
}
