package geometry

import (
	"math"

	"github.com/swagwrap/swagwrap/swag"
	"github.com/swagwrap/swagwrap/swag/internal/dense"
)

// Position is the position of an SGD iterate θ relative to θ_SWA.
type Position struct {
	Model    int       // index among [swag.Posterior.Models]
	Along    []float64 // v_iᵀ·(θ − θ_SWA) for all directions
	Distance float64   // ‖θ − θ_SWA‖
}

// Positions returns the iterates whose deviations the posterior holds, in order of training. These are the last K, or
// all models with deviations from the final mean.
//
// Positions reads no checkpoint. It computes positions from the inner products of the deviations, within the rounding
// of float32. With deviations from the final mean and T > K+1 models, the distances leave out the part that the K
// directions do not describe.
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
// Deviations from a running mean m_n of n models are d_n = θ_n − m_n, so m_{n−1} = m_n − d_n/(n−1). The last running
// mean is θ_SWA. Hence θ_n − θ_SWA = d_n − Σ_{j>n} d_j/(j−1). With other weights n−1 is [swag.Options.Before].
//
// Deviations from a given mean are d_n = θ_n − θ_SWA.
//
// Deviations from the final mean are columns of ΔV, where Δ holds the deviations of all models and V has orthonormal
// columns. Besides what the K directions leave out, Δ = ΔVVᵀ, so a is a row of V.
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
		for k := t + 1; k < g.Rank && o.Deviations == swag.Running; k++ {
			a[k] = -1 / o.Before(o.Models-g.Rank+k+1) // column k belongs to model Models−K+k+1
		}
	}
	return out
}
