package weights

import (
	"hash/crc32"
	"math/rand/v2"
	"testing"
)

// The sum of a whole from the sums of its parts equals the sum taken in one go,
// for parts of any length, empty ones included.
func TestChecksumOfParts(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		data := make([]byte, r.IntN(5000))
		for i := range data {
			data[i] = byte(r.Uint32())
		}
		var whole checksum
		for rest := data; len(rest) > 0; {
			n := r.IntN(len(rest) + 1)
			var part checksum
			for _, p := range [][]byte{rest[:n/2], rest[n/2 : n]} {
				part.write(p)
			}
			whole, rest = whole.then(part), rest[n:]
			if n == 0 {
				whole.write(rest[:1])
				rest = rest[1:]
			}
		}
		if want := crc32.Checksum(data, castagnoli); whole.sum != want || whole.n != int64(len(data)) {
			t.Fatalf("%d bytes: %08x of %d bytes, want %08x", len(data), whole.sum, whole.n, want)
		}
	}
}
