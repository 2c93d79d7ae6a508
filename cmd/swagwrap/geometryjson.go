package main

import (
	"io"

	"github.com/swagwrap/swagwrap/internal/ensemble"
)

type lossPointJSON struct {
	At       []float64 `json:"at"` // distances along directions 1, 2 …; those beyond are 0
	NLL      *float64  `json:"nll"`
	Loss     *float64  `json:"loss"` // with weight decay
	Accuracy *float64  `json:"accuracy"`
}

func newLossPointJSON(p ensemble.LossPoint) lossPointJSON {
	return lossPointJSON{p.At, finite(p.NLL), finite(p.Loss()), finite(p.Accuracy)}
}

type directionJSON struct {
	Direction int     `json:"direction"` // from 1
	LowRank   float64 `json:"low_rank_variance"`
	Diagonal  float64 `json:"diagonal_variance"`
	Deviation float64 `json:"standard_deviation"` // with the scale
}

type lossLineJSON struct {
	Direction int             `json:"direction"`
	Points    []lossPointJSON `json:"points"`
}

type lossPlaneJSON struct {
	Directions [2]int            `json:"directions"`
	Covariance [2][2]float64     `json:"covariance"` // of members, with the scale
	X          []float64         `json:"x"`
	Y          []float64         `json:"y"`
	Points     [][]lossPointJSON `json:"points"` // rows along y
}

type iterateJSON struct {
	Model    int       `json:"model"` // from 0, among the models of the posterior
	At       []float64 `json:"at"`
	Distance float64   `json:"distance"`
}

func (g *geometry) writeJSON(w io.Writer) error {
	s := g.Geometry
	out := struct {
		Images           int                 `json:"images"`
		Weights          int64               `json:"weights"`
		Rank             int                 `json:"rank"`
		Scale            float64             `json:"scale"`
		Decay            float64             `json:"weight_decay"`
		DiagonalTrace    float64             `json:"diagonal_trace"`
		LowRankTrace     float64             `json:"low_rank_trace"`
		Dimension        float64             `json:"dimension"`
		LowRankDimension float64             `json:"low_rank_dimension"`
		Spectrum         []directionJSON     `json:"spectrum"`
		Lines            []lossLineJSON      `json:"lines"`
		Planes           []lossPlaneJSON     `json:"planes"`
		Warnings         []string            `json:"warnings"`
		BatchNorm        *ensemble.BatchNorm `json:"batch_norm"`
		Iterates         []iterateJSON       `json:"iterates"`
		Verdict          []string            `json:"verdict"`
	}{Images: g.Data.Len(), Weights: g.Network.Posterior.Len(), Rank: s.Rank, Scale: g.Scale, Decay: g.Decay, DiagonalTrace: s.DiagonalTrace,
		LowRankTrace: s.LowRankTrace, Dimension: s.Dimension, LowRankDimension: s.LowRankDimension, Verdict: g.verdict(),
		Warnings: append([]string{}, g.batchNorm.warnings()...), BatchNorm: g.batchNorm.records[0]}
	for i, v := range s.Eigenvalues {
		out.Spectrum = append(out.Spectrum, directionJSON{i + 1, v, s.Diagonal[i][i], g.Deviation(i)})
	}
	for _, l := range g.lines {
		js := lossLineJSON{Direction: l.I + 1}
		for _, p := range l.Points {
			js.Points = append(js.Points, newLossPointJSON(p))
		}
		out.Lines = append(out.Lines, js)
	}
	for _, p := range g.planes {
		js := lossPlaneJSON{Directions: [2]int{p.I + 1, p.J + 1}, Covariance: [2][2]float64{{p.XX, p.XY}, {p.XY, p.YY}}, X: p.X, Y: p.Y}
		for _, row := range p.Points {
			var points []lossPointJSON
			for _, q := range row {
				points = append(points, newLossPointJSON(q))
			}
			js.Points = append(js.Points, points)
		}
		out.Planes = append(out.Planes, js)
	}
	for _, it := range s.Positions() {
		out.Iterates = append(out.Iterates, iterateJSON{it.Model, it.Along, it.Distance})
	}
	return indentJSON(w, out)
}
