package swag_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/swagwrap/swagwrap/swag"
)

// Vector instructions and Go's loops have the same bits, for every length, for
// weights of all sizes, and for such as are not finite.
func TestKernelsSameBits(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(5, 6))
	bits := func(v []float64) (out []uint64) {
		for _, x := range v {
			if x != x {
				x = math.NaN() // of whatever payload
			}
			out = append(out, math.Float64bits(x))
		}
		return out
	}
	for round := range 2000 {
		n := round % 150
		row, dst, wantDst := make([]float32, n), make([]float32, n), make([]float32, n)
		mean, variance := make([]float64, n), make([]float64, n)
		for i := range row {
			row[i] = float32(r.NormFloat64() * math.Pow(10, float64(r.IntN(60)-30)))
			mean[i], variance[i] = float64(row[i])+r.NormFloat64()*math.Pow(10, float64(r.IntN(20)-15)), r.ExpFloat64()
			if r.IntN(50) == 0 {
				row[i] = []float32{float32(math.Inf(1)), float32(math.NaN()), 0, math.MaxFloat32, math.SmallestNonzeroFloat32}[r.IntN(5)]
			}
		}
		wantMean, wantVariance := slices.Clone(mean), slices.Clone(variance)
		share := 1 / float64(1+r.IntN(300))
		swag.Welford(mean, variance, row, share)
		swag.WelfordGo(wantMean, wantVariance, row, share)
		if !slices.Equal(bits(mean), bits(wantMean)) || !slices.Equal(bits(variance), bits(wantVariance)) {
			t.Fatalf("%d weights: mean %v, want %v; variance %v, want %v", n, mean, wantMean, variance, wantVariance)
		}
		swag.Subtract(dst, row, mean)
		swag.SubtractGo(wantDst, row, mean)
		for i := range dst {
			if a, b := dst[i], wantDst[i]; math.Float32bits(a) != math.Float32bits(b) && (a == a || b == b) {
				t.Fatalf("%d weights: %v − %v = %v, want %v", n, row[i], mean[i], a, b)
			}
		}

		k := r.IntN(25)
		z, low, wantLow := make([]float32, k), make([]float32, n), make([]float32, n)
		columns := swag.Rows(k, n+r.IntN(20))
		for j := range z {
			z[j] = float32(r.NormFloat64())
			for i := range columns[j] {
				columns[j][i] = float32(r.NormFloat64() * math.Pow(10, float64(r.IntN(6)-3)))
			}
		}
		swag.LowRank(low, columns, z)
		swag.LowRankGo(wantLow, columns, z, 0)
		if !slices.Equal(low, wantLow) {
			t.Fatalf("%d weights, %d columns: %v, want %v", n, k, low, wantLow)
		}
		normals := make([]float64, n)
		swag.Normals(normals, uint64(round), 0, 0)
		swag.Combine(dst, wantMean, wantVariance, normals, low)
		swag.CombineGo(wantDst, wantMean, wantVariance, normals, low)
		for i := range dst {
			if a, b := dst[i], wantDst[i]; math.Float32bits(a) != math.Float32bits(b) && (a == a || b == b) {
				t.Fatalf("%d weights: combined to %v, want %v", n, a, b)
			}
		}
	}
}
