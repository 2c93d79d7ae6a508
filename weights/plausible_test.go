package weights

import (
	"encoding/binary"
	"math"
	"testing"
)

// Both ways to look at numbers agree, at the limits, at any place and in both types.
func TestFirstImpossible(t *testing.T) {
	values := []float64{0, math.Copysign(0, -1), 1, -1, -1e-300, 1e-300, 1e18, -1e18, math.Nextafter(0x1p64, 0), 0x1p64, -0x1p64, 1e24, 0x1p81, 0x1.1p81, -0x1.1p81, 1e30, -1e30,
		0x1p104, 0x1.1p104, 3e38, 0x1p128, 0x1.1p128, 1e300, math.MaxFloat64, math.Inf(1), math.Inf(-1), math.NaN(), math.Float64frombits(1<<63 | 0x7ff8000000000001)}
	for q := Weight; q <= Number; q++ {
		for _, d := range []DType{F32, F64} {
			for _, v := range values {
				if d == F32 {
					v = float64(float32(v))
				}
				for _, at := range []int{0, 1, 2, 1023, 1024, 2046, 2047} {
					all := make([]float64, 2048)
					all[at] = v
					var data []byte
					for _, x := range all {
						if d == F32 {
							data = binary.LittleEndian.AppendUint32(data, math.Float32bits(float32(x)))
						} else {
							data = binary.LittleEndian.AppendUint64(data, math.Float64bits(x))
						}
					}
					want := int64(at)
					if q.Possible(v) {
						want = -1
					}
					if got := q.FirstImpossible(d, data); got != want {
						t.Errorf("%v %v at %d, %s: %d, want %d", d, v, at, q.Want(), got, want)
					}
				}
			}
		}
	}
	if Weight.FirstImpossible(F32, make([]byte, 12)) != -1 || Weight.FirstImpossible(F32, []byte{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xc0, 0x7f}) != 2 {
		t.Error("an odd number of elements")
	}
}

func TestPossible(t *testing.T) {
	for _, tt := range []struct {
		q    Quantity
		v    float64
		want bool
	}{
		{Weight, 1.8e19, true}, {Weight, -1.9e19, false}, {Variance, 0, true}, {Variance, -1e-30, false}, {Variance, 3.4e38, true}, {Variance, 1e39, false},
		{Deviation, -2e19, true}, {Deviation, 1e30, false}, {BatchMean, -5, true}, {BatchMean, 1e20, false}, {BatchVariance, -1, false}, {BatchVariance, 2e31, true}, {BatchVariance, 3e31, false},
		{Number, -1e300, true}, {Number, math.Inf(-1), false}, {Number, math.NaN(), false}, {Variance, math.NaN(), false},
	} {
		if tt.q.Possible(tt.v) != tt.want {
			t.Errorf("%v, %s: possible is %v, want %v", tt.v, tt.q.Want(), !tt.want, tt.want)
		}
	}
}

func BenchmarkFirstImpossible(b *testing.B) {
	data := make([]byte, 64<<20)
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		Deviation.FirstImpossible(F32, data)
	}
}

func BenchmarkCRC(b *testing.B) {
	data := make([]byte, 64<<20)
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		CRC32C(0, data)
	}
}
