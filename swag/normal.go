package swag

import "math/rand/v2"

// Normals come from a counter-based generator, so that any stretch of any
// member can be made without making what lies before it. The counter is cut
// into slots: a member has 2³¹ chunks, a chunk of 4,096 normals has 2¹³ counter
// values, twice what the ziggurat uses on average (it rejects 1 % of its
// draws). No two chunks of a seed share a value: 2²⁰·2³¹·2¹³ = 2⁶⁴.
const (
	chunk       = 1 << 12
	chunkSlots  = 13 // bits
	memberSlots = 31 // bits
	z2Chunk     = 1<<memberSlots - 1
)

// normals fills dst with standard normal variates of one chunk of a member.
// The sequence is part of the format: a member must come out the same next
// year. SplitMix64 is fixed here, and math/rand/v2's ziggurat by Go's own
// regression test.
func normals(dst []float64, seed uint64, member int, chunk int64) {
	slot := uint64(member)<<memberSlots | uint64(chunk)
	src := counter(mix(seed) + (slot<<chunkSlots)*weyl)
	r := rand.New(&src)
	for i := range dst {
		dst[i] = r.NormFloat64()
	}
}

// counter is SplitMix64: the mixed values of a Weyl sequence (Steele, Lea and
// Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014).
type counter uint64

const weyl = 0x9e3779b97f4a7c15

// Uint64 implements rand.Source.
func (c *counter) Uint64() uint64 {
	*c += weyl
	return mix(uint64(*c))
}

// mix is SplitMix64's output function, variant 13 of Stafford's mixers.
func mix(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}
