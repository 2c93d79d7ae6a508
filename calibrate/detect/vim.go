package detect

import (
	"errors"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
)

// ViM adds a virtual logit to those of the classes: the length of what a feature has outside the principal subspace of known features
// (Wang et al. 2022).
type ViM struct {
	layer  Layer
	origin []float64
	null   *mat.Dense // width×(width − dimension)
	// Alpha scales the length to the size of the largest logit.
	Alpha float64
}

// Principal returns the dimension of the principal subspace for features of a width: 1,000 from 2,048 features on and 512 from 1,024
// on, as the paper's code has it, or else the half.
func Principal(width int) int {
	switch {
	case width >= 2048:
		return 1000
	case width >= 1024:
		return 512
	}
	return width / 2
}

// FitViM fits to known features, n×width, which need no labels. The origin of features is −W⁺b. The principal subspace has a
// dimension below the width.
func FitViM(features *mat.Dense, layer Layer, dimension int) (*ViM, error) {
	n, width := features.Dims()
	v := &ViM{layer: layer, origin: pseudoInverse(layer.Weights, layer.Bias)}
	floats.Scale(-1, v.origin)
	scatter := mat.NewSymDense(width, nil)
	scatter.SymOuterK(1/float64(n), v.centred(features).T())
	var e mat.EigenSym
	if !e.Factorize(scatter, true) {
		return nil, errors.New("the covariance of the features has no eigenvalues")
	}
	var vectors mat.Dense
	e.VectorsTo(&vectors) // of ascending eigenvalues
	v.null = mat.DenseCopyOf(vectors.Slice(0, width, 0, width-dimension))
	residual := meanOf(v.residuals(features))
	if !(residual > 0) {
		return nil, errors.New("the features fill no more than their principal subspace")
	}
	logits, largest := layer.Logits(features), make([]float64, n)
	for i := range largest {
		largest[i] = floats.Max(logits.RawRowView(i))
	}
	v.Alpha = meanOf(largest) / residual
	return v, nil
}

func (v *ViM) centred(features *mat.Dense) *mat.Dense {
	out := mat.DenseCopyOf(features)
	n, _ := out.Dims()
	for i := range n {
		floats.Sub(out.RawRowView(i), v.origin)
	}
	return out
}

func (v *ViM) residuals(features *mat.Dense) []float64 {
	var off mat.Dense
	off.Mul(v.centred(features), v.null)
	n, _ := off.Dims()
	out := make([]float64, n)
	for i := range out {
		out[i] = floats.Norm(off.RawRowView(i), 2)
	}
	return out
}

// Scores returns the virtual logit minus log Σ exp of the logits, for each row of features. A larger number means less familiar.
func (v *ViM) Scores(features *mat.Dense) []float64 {
	out := v.residuals(features)
	floats.Scale(v.Alpha, out)
	floats.Sub(out, energies(v.layer.Logits(features)))
	return out
}
