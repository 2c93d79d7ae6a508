package geometry

import (
	"math"

	"github.com/swagwrap/swagwrap/swag"
	"github.com/swagwrap/swagwrap/swag/internal/dense"
)

// Position is where an SGD iterate is, as seen from θ_SWA.
type Position struct {
	Model    int       // its place among [swag.Posterior.Models]
	Along    []float64 // v_iᵀ·(θ − θ_SWA) for all directions
	Distance float64   // ‖θ − θ_SWA‖
}

// Positions returns where the iterates are whose deviations the posterior holds,
// in order of training: the last K, or with deviations from the final mean all models. No
// checkpoint is read: their positions follow from the inner products of the
// deviations, to the rounding of float32 (and, from the final mean with T > K+1
// models, their distances leave out what the K directions do).
func (g *Geometry) Positions() []Position {
	first := g.p.Options.Models - len(g.weights)
	out := make([]Position, len(g.weights))
	for t, a := range g.weights {
		inner := make([]float64, g.Rank)
		squares := 0.0
		for k := range inner {
			for j, v := range a {
				inner[k] += g.gram.At(k, j) * v
			}
			squares += a[k] * inner[k]
		}
		out[t] = Position{Model: first + t, Along: g.coordinates(inner), Distance: math.Sqrt(max(squares, 0))}
	}
	return out
}

// combinations returns for each iterate the a with θ − θ_SWA = D̂a.
//
// Deviations from a running mean m_n are d_n = θ_n − m_n, and m_n is that of n
// models: m_{n−1} = m_n − d_n/(n−1). From the last one, whose mean is θ_SWA,
// θ_n − θ_SWA = d_n − Σ_{j>n} d_j/(j−1).
//
// Deviations from the final mean are Δ, of all models, times orthonormal columns
// V: Δ = ΔVVᵀ + what K directions leave out, so that a is a row of V.
func (g *Geometry) combinations() [][]float64 {
	o := g.p.Options
	if o.Deviations == swag.Final {
		out := dense.Rows[float64](o.Models, g.Rank)
		for t := range out {
			for k := range out[t] {
				out[t][k] = g.p.Mixing[k][t]
			}
		}
		return out
	}
	out := dense.Rows[float64](g.Rank, g.Rank)
	for t, a := range out {
		a[t] = 1
		for k := t + 1; k < g.Rank; k++ {
			a[k] = -1 / float64(o.Models-g.Rank+k) // column k is of model Models−K+k+1
		}
	}
	return out
}
