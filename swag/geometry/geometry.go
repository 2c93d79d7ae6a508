package geometry

import (
	"context"
	"errors"
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"

	"github.com/swagwrap/swagwrap/swag"
	"github.com/swagwrap/swagwrap/swag/internal/dense"
	"github.com/swagwrap/swagwrap/weights"
)

// directionTolerance bounds the eigenvalues that are treated as rounding errors, relative to the largest. An inner
// product in float64 has a relative error of about 1e-16, so eigenvectors above the bound are orthogonal to 1e-6.
// Repeated columns give eigenvalues below it, and so does the first deviation from a running mean, which is 0.
const directionTolerance = 1e-10

// Geometry is the shape of the covariance Σ_diag + Σ_lr, without the scale. It holds the eigenvectors of the low-rank
// part, along which section 4 of the paper plots the loss, and the variance along them.
//
// The K×K matrix D̂ᵀD̂/divisor = UΛUᵀ gives the eigenvectors v_i = D̂u_i/‖D̂u_i‖ of Σ_lr = D̂D̂ᵀ/divisor and its
// eigenvalues λ_i. They are exact; the paper uses a randomised SVD.
type Geometry struct {
	Rank int // columns of D̂
	// Eigenvalues are the λ_i of Σ_lr that are not 0, in descending order. Each is the variance of the low-rank part
	// along v_i, a squared distance in weight space.
	Eigenvalues []float64
	// Diagonal[i][j] is v_iᵀ·Σ_diag·v_j, the contribution of the diagonal part to the covariance between two
	// directions.
	Diagonal [][]float64
	// DiagonalTrace and LowRankTrace are the total variances tr(Σ_diag) and tr(Σ_lr). They differ for running
	// deviations of K < T iterates.
	DiagonalTrace, LowRankTrace float64
	// Dimension is the participation ratio tr(Σ)²/tr(Σ²) of the whole covariance, and LowRankDimension that of Σ_lr.
	// It is the number of directions of equal variance that would be as concentrated.
	Dimension, LowRankDimension float64

	p       *swag.Posterior
	combine [][]float64   // u_i/‖D̂u_i‖: v_i = D̂·combine[i]
	gram    *mat.SymDense // D̂ᵀD̂
	lowRank float64       // divisor of Σ_lr
	weights [][]float64   // for each iterate, the a with θ − θ_SWA = D̂a
}

// New reads the posterior once. The argument rank is as in [swag.SampleOptions]. New fails if the posterior has no
// deviations, or if they are all 0.
func New(ctx context.Context, p *swag.Posterior, rank int) (*Geometry, error) {
	columns, divisor, err := p.LowRank(rank)
	if err != nil {
		return nil, err
	}
	s, err := newProducts(ctx, p, columns)
	if err != nil {
		return nil, err
	}
	g := &Geometry{Rank: columns, p: p, gram: s.gram, lowRank: float64(divisor), DiagonalTrace: s.variance}
	if err := g.diagonalise(s.weighted); err != nil {
		return nil, fmt.Errorf("%s: %w", p.Path, err)
	}
	g.LowRankTrace = mat.Trace(s.gram) / g.lowRank
	// tr(Σ²) = tr(Σ_diag²) + 2·tr(Σ_diag·Σ_lr) + tr(Σ_lr²)
	squares := 0.0
	for _, v := range g.Eigenvalues {
		squares += v * v
	}
	total := g.DiagonalTrace + g.LowRankTrace
	g.Dimension = total * total / (s.varianceSquares + 2*mat.Trace(s.weighted)/g.lowRank + squares)
	g.LowRankDimension = g.LowRankTrace * g.LowRankTrace / squares
	g.weights = g.combinations()
	return g, nil
}

// diagonalise computes the directions and the diagonal part along them. The matrix weighted is D̂ᵀΣ_diagD̂.
func (g *Geometry) diagonalise(weighted *mat.SymDense) error {
	combine, values, ok := dense.Principal(g.gram, g.Rank)
	switch {
	case !ok:
		return errors.New("the eigenvectors of the deviations' inner products were not found")
	case values[0] == 0:
		return errors.New("all deviations are 0: the covariance has no directions")
	}
	for i, v := range values {
		if v <= directionTolerance*values[0] {
			break
		}
		g.Eigenvalues = append(g.Eigenvalues, v/g.lowRank)
		for k := range combine[i] {
			combine[i][k] /= math.Sqrt(v)
		}
	}
	n := len(g.Eigenvalues)
	g.combine, g.Diagonal = combine[:n], dense.Rows[float64](n, n)
	for i, a := range g.combine {
		for j, b := range g.combine {
			g.Diagonal[i][j] = mat.Inner(mat.NewVecDense(g.Rank, a), weighted, mat.NewVecDense(g.Rank, b))
		}
	}
	return nil
}

// Directions returns the number of directions: the rank of D̂, at most K.
func (g *Geometry) Directions() int { return len(g.Eigenvalues) }

// Covariance returns v_iᵀ·(Σ_diag + Σ_lr)·v_j. At the scale α, members have α times this covariance.
func (g *Geometry) Covariance(i, j int) float64 {
	if i == j {
		return g.Eigenvalues[i] + g.Diagonal[i][i]
	}
	return g.Diagonal[i][j]
}

// Direction returns v_i, of length 1. Its sign is chosen so that the deviation with the largest coefficient has a
// positive one. Directions with equal eigenvalues are one of many orthogonal bases. The weights are computed when
// they are read, until ctx ends.
func (g *Geometry) Direction(ctx context.Context, i int) weights.Vector {
	return g.vector(ctx, g.combine[i], false)
}

// Point returns θ_SWA + Σ t_i·v_i for the first len(t) directions. Each t_i is a Euclidean distance in weight space.
// If all are 0, the point is the SWA member, bit for bit. The weights are computed when they are read, until ctx
// ends.
func (g *Geometry) Point(ctx context.Context, t []float64) weights.Vector {
	c := make([]float64, g.Rank)
	for i, distance := range t {
		for k, u := range g.combine[i] {
			c[k] += distance * u
		}
	}
	return g.vector(ctx, c, true)
}

// tileLen is the number of weights that are computed together.
const tileLen = 1 << 10

// vector is D̂·combine, plus θ_SWA if fromMean is true.
func (g *Geometry) vector(ctx context.Context, combine []float64, fromMean bool) weights.Vector {
	return weights.Func{N: g.p.Len(), Read: func(dst []float32, off int64) error {
		deviations, sum := dense.Rows[float32](g.Rank, tileLen), make([]float64, tileLen)
		for from := 0; from < len(dst); from += tileLen {
			if err := ctx.Err(); err != nil {
				return err
			}
			out := dst[from:min(from+tileLen, len(dst))]
			sum = sum[:len(out)]
			clear(sum)
			if fromMean {
				g.p.Mean(sum, off+int64(from))
			}
			deviations = dense.Cut(deviations, 0, len(out))
			if err := g.p.Deviations(deviations, off+int64(from)); err != nil {
				return err
			}
			for k, row := range deviations {
				for i, d := range row {
					sum[i] += float64(combine[k] * float64(d))
				}
			}
			for i, s := range sum {
				out[i] = float32(s)
			}
		}
		return nil
	}}
}

// coordinates returns v_iᵀx for all i, given inner = D̂ᵀx.
func (g *Geometry) coordinates(inner []float64) []float64 {
	t := make([]float64, len(g.combine))
	for i, c := range g.combine {
		for k, u := range c {
			t[i] += u * inner[k]
		}
	}
	return t
}
