package swag

const Z2Index = z2Index

var (
	Normals     = normals
	Z2          = z2
	AddScaled   = addScaled
	AddScaledGo = addScaledGo
	Welford     = welford
	WelfordGo   = welfordGo
	Subtract    = subtract
	SubtractGo  = subtractGo
)

// SplitMix64 returns the first n outputs of the generator.
func SplitMix64(seed uint64, n int) []uint64 {
	out := make([]uint64, n)
	for i := range out {
		out[i] = mix(seed + uint64(i+1)*weyl)
	}
	return out
}
