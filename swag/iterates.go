package swag

import "math"

// An Iterate is an SGD iterate as seen from θ_SWA.
type Iterate struct {
	Model    int       // its place among [Posterior.Models]
	Along    []float64 // v_iᵀ·(θ − θ_SWA) for all directions
	Distance float64   // ‖θ − θ_SWA‖
}

// Iterates returns where the iterates are whose deviations the posterior holds,
// in order: the last K, or with deviations from the final mean all models. No
// checkpoint is read: their positions follow from the inner products of the
// deviations, to the rounding of float32 (and, from the final mean with T > K+1
// models, their distances leave out what the K directions do).
func (g *Geometry) Iterates() []Iterate {
	first := g.p.Options.Models - len(g.iterates)
	out := make([]Iterate, len(g.iterates))
	for t, a := range g.iterates {
		inner := make([]float64, g.Rank)
		squares := 0.0
		for k := range inner {
			for j, v := range a {
				inner[k] += g.gram.At(k, j) * v
			}
			squares += a[k] * inner[k]
		}
		out[t] = Iterate{Model: first + t, Along: g.coordinates(inner), Distance: math.Sqrt(max(squares, 0))}
	}
	return out
}

// project returns for each iterate the a with θ − θ_SWA = D̂a.
//
// Deviations from a running mean m_n are d_n = θ_n − m_n, and m_n is that of n
// models: m_{n−1} = m_n − d_n/(n−1). From the last one, whose mean is θ_SWA,
// θ_n − θ_SWA = d_n − Σ_{j>n} d_j/(j−1).
//
// Deviations from the final mean are Δ, of all models, times orthonormal columns
// V: Δ = ΔVVᵀ + what K directions leave out, so that a is a row of V.
func (g *Geometry) project() [][]float64 {
	o := g.p.Options
	if o.Deviations == Final {
		out := rows[float64](o.Models, g.Rank)
		for t := range out {
			for k := range out[t] {
				out[t][k] = g.p.mixing[k][t]
			}
		}
		return out
	}
	out := rows[float64](g.Rank, g.Rank)
	for t, a := range out {
		a[t] = 1
		for k := t + 1; k < g.Rank; k++ {
			a[k] = -1 / float64(o.Models-g.Rank+k) // column k is of model Models−K+k+1
		}
	}
	return out
}
