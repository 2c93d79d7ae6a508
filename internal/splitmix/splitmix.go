// Package splitmix is the SplitMix64 generator (Steele, Lea and Flood, "Fast splittable pseudorandom number
// generators", OOPSLA 2014). Any output can be computed without the earlier ones.
//
// # Invariants
//
// Outputs are part of file formats: they never change.
//
// # Concurrency
//
// Functions have no state.
package splitmix

// Step is the increment of the generator's state.
const Step = 0x9e3779b97f4a7c15

// Nth returns output n, counted from 0, of the generator with the given seed.
func Nth(seed, n uint64) uint64 { return Mix(seed + (n+1)*Step) }

// Mix returns the output for a state: variant 13 of Stafford's mixers.
func Mix(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}
