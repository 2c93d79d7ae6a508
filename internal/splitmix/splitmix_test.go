package splitmix

import "testing"

// TestSplitMix64 compares with the values that the generator's authors and
// Rosetta Code publish.
func TestSplitMix64(t *testing.T) {
	for seed, want := range map[uint64][]uint64{
		0:       {0xe220a8397b1dcdaf, 0x6e789e6aa1b965f4, 0x06c45d188009454f, 0xf88bb8a8724c81ec},
		1234567: {6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431, 16408922859458223821},
	} {
		for n, w := range want {
			if got := Nth(seed, uint64(n)); got != w {
				t.Errorf("seed %d: output %d is %v, want %v", seed, n, got, w)
			}
		}
	}
}
