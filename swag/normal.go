package swag

import (
	"math"

	"github.com/swagwrap/swagwrap/internal/splitmix"
)

// Standard normal variates are a pure function of (seed, member, index). So any range of any member can be drawn
// without the variates before it.
//
// Variate i of a member comes from output member·2⁴⁰ + i of SplitMix64, whose state is Mix(seed), through a ziggurat.
// No two variates of a seed share an output: weights take the indices from 0 up, and z2 those from the top down.
//
// The bits are part of the format: a member must be the same next year.
const (
	indexBits = 40
	z2Index   = 1<<indexBits - 1 // of its first number; the others have lower indices

	// MaxMembers bounds the index of a member, exclusive.
	MaxMembers = 1 << 20
)

// normals sets dst to variates first, first+1 … of a member.
func normals(dst []float64, seed uint64, member int, first int64) {
	state := splitmix.Mix(seed) + (uint64(member)<<indexBits|uint64(first))*splitmix.Step
	for i := range dst {
		state += splitmix.Step
		u := splitmix.Mix(state)
		layer := u % layers
		j := int32(u >> 32)
		x := float64(j) * float64(zigWidth[layer])
		if magnitude(j) >= zigInner[layer] {
			x = outside(u, j, layer, x)
		}
		dst[i] = x
	}
}

// z2 returns the n variates of a member that all its tensors share.
func z2(seed uint64, member, n int) []float64 {
	z := make([]float64, n)
	for k := range z {
		normals(z[k:k+1], seed, member, int64(z2Index-k))
	}
	return z
}

// The ziggurat (Marsaglia and Tsang, "The ziggurat method for generating random variables", Journal of Statistical
// Software 5(8), 2000) covers the right half of exp(−x²/2) with 256 layers of equal area. 255 are rectangles. The
// base strip below them includes the tail beyond zigTail. Layer and position come from different bits of an output.
// With the same bits, as in the paper, they would be correlated (Doornik, "An improved ziggurat method", 2005).
const (
	layers  = 256
	zigTail = 3.654152885361009    // where the base strip's rectangle ends
	zigArea = 0.004928673233974658 // area of a layer
	zigUnit = 1.0 / (1 << 31)      // positions are 32-bit integers with a sign
)

var (
	zigWidth  [layers]float32 // width of a layer, per unit of position
	zigInner  [layers]uint32  // a position below this one lies under the curve for sure
	zigHeight [layers]float64 // height of the curve at a layer's width
)

func init() {
	curve := func(x float64) float64 { return math.Exp(-x * x / 2) }
	// Layer 0 is the base strip, stretched so that its rectangle has the whole layer's area. Layer 255 ends at the
	// top of the curve.
	edge := [layers + 1]float64{zigArea / curve(zigTail), zigTail}
	for i := 2; i < layers; i++ {
		edge[i] = math.Sqrt(-2 * math.Log(zigArea/edge[i-1]+curve(edge[i-1])))
	}
	for i := range layers {
		zigWidth[i] = float32(edge[i] * zigUnit)
		zigInner[i] = uint32(edge[i+1] / edge[i] * (1 << 31))
		zigHeight[i] = curve(edge[i])
	}
}

// outside decides about a position that may lie above the curve; x is the position in units of the variate. It takes
// further random bits from the output u, by mixing it again.
func outside(u uint64, j int32, layer uint64, x float64) float64 {
	uniform := func() float64 { // in (0, 1)
		u = splitmix.Mix(u + splitmix.Step)
		return (float64(u>>12) + 0.5) / (1 << 52)
	}
	for {
		if layer == 0 { // the tail: Marsaglia 1964
			for {
				a := -math.Log(uniform()) / zigTail
				if b := -math.Log(uniform()); b+b >= float64(a*a) {
					return math.Copysign(zigTail+a, float64(j))
				}
			}
		}
		// This is the wedge between the rectangle and the end of the layer. Heights grow with the layer: the lower end is
		// the height at its own width, the ceiling the height at the next layer's width.
		below, ceiling := zigHeight[layer], 1.0
		if layer+1 < layers {
			ceiling = zigHeight[layer+1]
		}
		if below+float64(uniform()*(ceiling-below)) < math.Exp(-float64(x*x)/2) {
			return x
		}
		// The position is rejected: draw another one.
		u = splitmix.Mix(u + splitmix.Step)
		layer, j = u%layers, int32(u>>32)
		x = float64(j) * float64(zigWidth[layer])
		if magnitude(j) < zigInner[layer] {
			return x
		}
	}
}

// magnitude returns |j|, which is 2³¹ for the lowest int32.
func magnitude(j int32) uint32 {
	sign := j >> 31
	return uint32((j ^ sign) - sign)
}
