package swag

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"

	"gonum.org/v1/gonum/mat"

	"github.com/swagwrap/swagwrap/weights"
)

// directionTolerance is the eigenvalue, as a part of the largest, at and below
// which a direction is not told from rounding. An inner product in float64 has a
// relative error of about 1e-16, so that the eigenvectors above it are orthogonal
// to 1e-6. Columns that repeat each other, and the first deviation from a running
// mean, which is 0, give such eigenvalues.
const directionTolerance = 1e-10

// Geometry is the shape of the covariance Σ_diag + Σ_lr, without the scale: the
// eigenvectors of its low-rank part, in which section 5 of the paper looks at the
// loss, and the variance along them.
//
// With D̂ᵀD̂/divisor = UΛUᵀ, which has K rows only, the eigenvectors of
// Σ_lr = D̂D̂ᵀ/divisor are v_i = D̂u_i/‖D̂u_i‖ and its eigenvalues λ_i. They are
// exact, where the paper's are those of a randomised SVD.
type Geometry struct {
	Rank int // columns of D̂
	// Eigenvalues are the λ_i of Σ_lr that are not 0, in descending order: the
	// variance of the low-rank part along v_i, a squared distance in weight space.
	Eigenvalues []float64
	// Diagonal[i][j] is v_iᵀ·Σ_diag·v_j, what the diagonal part adds to the
	// variance along the directions, and to the covariance between them.
	Diagonal [][]float64
	// DiagonalTrace and LowRankTrace are the total variances tr(Σ_diag) and
	// tr(Σ_lr). With running deviations of K < T iterates they differ.
	DiagonalTrace, LowRankTrace float64
	// Dimension is the participation ratio tr(Σ)²/tr(Σ²) of the whole covariance,
	// LowRankDimension that of Σ_lr: how many directions of equal variance would
	// be as concentrated.
	Dimension, LowRankDimension float64

	p        *Posterior
	combine  [][]float64   // u_i/‖D̂u_i‖: v_i = D̂·combine[i]
	gram     *mat.SymDense // D̂ᵀD̂
	lowRank  float64       // divisor of Σ_lr
	iterates [][]float64   // see Iterates
}

// NewGeometry reads the posterior once. rank is as in [SampleOptions]. A
// posterior without deviations is an error, and so are deviations that are all 0.
func NewGeometry(ctx context.Context, p *Posterior, rank int) (*Geometry, error) {
	columns, divisor, err := p.lowRank(rank)
	if err != nil {
		return nil, err
	}
	if len(p.Needs()) > 0 {
		return nil, fmt.Errorf("%s: its deviations are in the checkpoints, which were not attached", p.Path)
	}
	s, err := p.products(ctx, columns)
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
	g.iterates = g.project()
	return g, nil
}

// diagonalise finds the directions, and the diagonal part along them; weighted is
// D̂ᵀΣ_diagD̂.
func (g *Geometry) diagonalise(weighted *mat.SymDense) error {
	combine, values, ok := principal(g.gram, g.Rank)
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
	g.combine, g.Diagonal = combine[:n], rows[float64](n, n)
	for i, a := range g.combine {
		for j, b := range g.combine {
			g.Diagonal[i][j] = mat.Inner(mat.NewVecDense(g.Rank, a), weighted, mat.NewVecDense(g.Rank, b))
		}
	}
	return nil
}

// Directions returns how many there are: the rank of D̂, at most K.
func (g *Geometry) Directions() int { return len(g.Eigenvalues) }

// Covariance returns v_iᵀ·(Σ_diag + Σ_lr)·v_j. Members at the scale α have α times
// that as their covariance along the two directions.
func (g *Geometry) Covariance(i, j int) float64 {
	if i == j {
		return g.Eigenvalues[i] + g.Diagonal[i][i]
	}
	return g.Diagonal[i][j]
}

// Direction returns v_i, of length 1. Of the two signs it has the one with which
// the deviation that counts most goes in its direction. Where eigenvalues are
// equal, any orthogonal basis of theirs would do.
func (g *Geometry) Direction(i int) weights.Vector {
	return pointVector{g, nil, g.combine[i]}
}

// Point returns θ_SWA + Σ t_i·v_i for the first len(t) directions, each t_i a
// Euclidean distance in weight space. With all of them 0 it is the SWA member,
// bit for bit. The weights are computed when they are read, until ctx ends.
func (g *Geometry) Point(ctx context.Context, t []float64) weights.Vector {
	c := make([]float64, g.Rank)
	for i, distance := range t {
		for k, u := range g.combine[i] {
			c[k] += distance * u
		}
	}
	return pointVector{g, ctx, c}
}

// pointVector is D̂·c, and θ_SWA on top of it if there is a ctx.
type pointVector struct {
	g   *Geometry
	ctx context.Context
	c   []float64
}

func (v pointVector) Len() int64 { return v.g.p.Len() }

func (v pointVector) ReadAt(dst []float32, off int64) error {
	deviations, sum := rows[float32](v.g.Rank, tileLen), make([]float64, tileLen)
	for from := 0; from < len(dst); from += tileLen {
		if v.ctx != nil && v.ctx.Err() != nil {
			return v.ctx.Err()
		}
		out := dst[from:min(from+tileLen, len(dst))]
		sum = sum[:len(out)]
		clear(sum)
		if v.ctx != nil {
			v.g.p.Mean(sum, off+int64(from))
		}
		for k := range deviations {
			deviations[k] = deviations[k][:len(out)]
		}
		if err := v.g.p.Deviations(deviations, off+int64(from)); err != nil {
			return err
		}
		for k, row := range deviations {
			for i, d := range row {
				sum[i] += float64(v.c[k] * float64(d))
			}
		}
		for i, s := range sum {
			out[i] = float32(s)
		}
	}
	v.g.p.read(int64(len(dst)) * int64(8+4*v.g.Rank))
	return nil
}

// Project returns the coordinates v_iᵀ·(θ − θ_SWA) of a vector of weights, and its
// distance ‖θ − θ_SWA‖. It reads the posterior once.
func (g *Geometry) Project(ctx context.Context, theta weights.Vector) (t []float64, distance float64, err error) {
	if theta.Len() != g.p.Len() {
		return nil, 0, fmt.Errorf("%d weights, want %d as in %s", theta.Len(), g.p.Len(), g.p.Path)
	}
	type block struct {
		theta      []float32
		mean       []float64
		deviations [][]float32
		inner      []float64 // D̂ᵀ(θ − θ_SWA)
		squares    float64
	}
	inner, squares := make([]float64, g.Rank), 0.0
	err = inOrder(ctx, int((g.p.Len()+drawBlock-1)/drawBlock), runtime.GOMAXPROCS(0), func(i int, b *block) error {
		if b.theta == nil {
			b.theta, b.mean, b.deviations = make([]float32, drawBlock), make([]float64, drawBlock), rows[float32](g.Rank, drawBlock)
		}
		off := int64(i) * drawBlock
		n := min(drawBlock, g.p.Len()-off)
		b.theta, b.mean, b.inner, b.squares = b.theta[:n], b.mean[:n], make([]float64, g.Rank), 0
		for k := range b.deviations {
			b.deviations[k] = b.deviations[k][:n]
		}
		g.p.Mean(b.mean, off)
		if err := theta.ReadAt(b.theta, off); err != nil {
			return err
		}
		if err := g.p.Deviations(b.deviations, off); err != nil {
			return err
		}
		for i, v := range b.theta {
			delta := float64(v) - b.mean[i]
			b.mean[i] = delta
			b.squares += delta * delta
		}
		for k, row := range b.deviations {
			for i, d := range row {
				b.inner[k] += float64(d) * b.mean[i]
			}
		}
		g.p.read(n * int64(8+4*g.Rank))
		return nil
	}, func(_ int, b *block) error {
		squares += b.squares
		for k, v := range b.inner {
			inner[k] += v
		}
		return nil
	})
	return g.coordinates(inner), math.Sqrt(squares), err
}

// coordinates returns v_iᵀx for D̂ᵀx.
func (g *Geometry) coordinates(inner []float64) []float64 {
	t := make([]float64, len(g.combine))
	for i, c := range g.combine {
		for k, u := range c {
			t[i] += u * inner[k]
		}
	}
	return t
}
