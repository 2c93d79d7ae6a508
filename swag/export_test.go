package swag

import "github.com/swagwrap/swagwrap/swag/internal/dense"

const Z2Index = z2Index

var (
	Normals    = normals
	Z2         = z2
	LowRank    = lowRank
	LowRankGo  = lowRankGo
	Combine    = combine
	CombineGo  = combineGo
	Welford    = welford
	WelfordGo  = welfordGo
	Subtract   = subtract
	SubtractGo = subtractGo
)

// Rows returns n rows of the given length, as kernels want them.
func Rows(n, length int) [][]float32 { return dense.Rows[float32](n, length) }

// Orthogonal returns z2 of a member.
func Orthogonal(s *Sampler, stream int) []float64 { return s.orthogonal(stream) }
