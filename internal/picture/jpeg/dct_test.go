package jpeg

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestInverseDCT compares with the definition in T.81 A.3.3 in float64. Values are
// those of photographs and worse. With factors of 13 bits and 2 more bits between
// the passes, few samples round to the other side: none may be off by more than
// 1, and no more than 3 of 100 by that.
func TestInverseDCT(t *testing.T) {
	var basis [8][8]float64 // sample, frequency
	for x := range 8 {
		for u := range 8 {
			basis[x][u] = math.Cos(float64(2*x+1)*float64(u)*math.Pi/16) / 2
			if u == 0 {
				basis[x][u] /= math.Sqrt2
			}
		}
	}
	r := rand.New(rand.NewPCG(1, 1))
	var q [64]uint16
	sum, n := 0.0, 0
	for round := range 2000 {
		var b [64]int16
		scale := []int{3, 30, 100}[round%3]
		for i := range b {
			q[i] = uint16(1 + r.IntN(8))
			if i%8+i/8 <= round%16 { // up to some frequency
				b[i] = int16((r.IntN(2*scale+1) - scale) / (1 + i%8 + i/8))
			}
		}
		var got [64]byte
		inverseDCT(got[:], 8, &b, &q)
		for y := range 8 {
			for x := range 8 {
				want := 128.0
				for v := range 8 {
					for u := range 8 {
						want += basis[y][v] * basis[x][u] * float64(b[8*v+u]) * float64(q[8*v+u])
					}
				}
				want = min(max(want, 0), 255)
				e := math.Abs(float64(got[8*y+x]) - math.RoundToEven(want))
				if e > 1 {
					t.Fatalf("sample %d, %d: %d, want %.3f", y, x, got[8*y+x], want)
				}
				sum, n = sum+e, n+1
			}
		}
	}
	if mean := sum / float64(n); mean > 0.03 {
		t.Errorf("off by %.4f on average, want at most 0.03", mean)
	}
}
