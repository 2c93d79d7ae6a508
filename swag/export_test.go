package swag

const (
	Chunk   = chunk
	Z2Chunk = z2Chunk
)

var Normals = normals

// SplitMix64 returns the first n outputs of the generator.
func SplitMix64(seed uint64, n int) []uint64 {
	src := counter(seed)
	out := make([]uint64, n)
	for i := range out {
		out[i] = src.Uint64()
	}
	return out
}
