package detect

import (
	"errors"
	"math"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
)

// RelativeMahalanobis compares the distance of features from the nearest class with that from all features (Ren et al. 2021). It
// counts less what all unusual inputs of the domain share.
type RelativeMahalanobis struct {
	means            []*mat.VecDense
	all              *mat.VecDense
	within, together mat.Cholesky
}

// leastVariance is added to the diagonal of both scatter matrices, as pytorch-ood 0.4 does. Features that never vary then have a
// finite distance.
const leastVariance = 1e-6

// FitRelativeMahalanobis fits to features, n×width, of labelled examples. S is the sum of (f − μ_c)(f − μ_c)ᵀ, and S_0 the sum of
// (f − μ)(f − μ)ᵀ, each with 1e-6 on the diagonal.
func FitRelativeMahalanobis(features *mat.Dense, labels []int) (*RelativeMahalanobis, error) {
	n, width := features.Dims()
	if n != len(labels) || n == 0 {
		panic("detect: number of features is not labels × width")
	}
	r := &RelativeMahalanobis{}
	of := map[int]*mat.VecDense{}
	counts := map[int]float64{}
	r.all = mat.NewVecDense(width, nil)
	for i, c := range labels {
		if of[c] == nil {
			of[c] = mat.NewVecDense(width, nil)
		}
		floats.Add(of[c].RawVector().Data, features.RawRowView(i))
		floats.Add(r.all.RawVector().Data, features.RawRowView(i))
		counts[c]++
	}
	r.all.ScaleVec(1/float64(n), r.all)
	for c, mean := range of {
		mean.ScaleVec(1/counts[c], mean)
		r.means = append(r.means, mean)
	}
	factor := func(to *mat.Cholesky, mean func(i int) *mat.VecDense) bool {
		centred := mat.DenseCopyOf(features)
		for i := range n {
			floats.Sub(centred.RawRowView(i), mean(i).RawVector().Data)
		}
		scatter := mat.NewSymDense(width, nil)
		scatter.SymOuterK(1, centred.T())
		for j := range width {
			scatter.SetSym(j, j, scatter.At(j, j)+leastVariance)
		}
		return to.Factorize(scatter)
	}
	if !factor(&r.within, func(i int) *mat.VecDense {
		return of[labels[i]]
	}) || !factor(&r.together, func(int) *mat.VecDense { return r.all }) {
		return nil, errors.New("the scatter of the features is singular")
	}
	return r, nil
}

// Distances returns min_c (f − μ_c)ᵀ S⁻¹ (f − μ_c) − (f − μ)ᵀ S_0⁻¹ (f − μ) of each row of features. A larger number means less
// familiar.
func (r *RelativeMahalanobis) Distances(features *mat.Dense) []float64 {
	n, width := features.Dims()
	out := make([]float64, n)
	var lower mat.TriDense
	r.within.LTo(&lower)
	white := func(v *mat.VecDense) *mat.VecDense {
		var w mat.VecDense
		_ = w.SolveVec(&lower, v) // the factor is not singular; a condition is no error here
		return &w
	}
	var means []*mat.VecDense
	for _, m := range r.means {
		means = append(means, white(m))
	}
	for i := range out {
		f := mat.NewVecDense(width, features.RawRowView(i))
		x, nearest := white(f), math.Inf(1)
		for _, m := range means {
			d := floats.Distance(x.RawVector().Data, m.RawVector().Data, 2)
			nearest = min(nearest, d*d)
		}
		var off, down mat.VecDense
		off.SubVec(f, r.all)
		_ = r.together.SolveVecTo(&down, &off)
		out[i] = nearest - mat.Dot(&off, &down)
	}
	return out
}
