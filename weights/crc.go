package weights

import "hash/crc32"

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// CRC32C returns the CRC-32C of some bytes followed by p, where sum is that of the bytes before. The sum of no bytes
// is 0.
func CRC32C(sum uint32, p []byte) uint32 { return crc32.Update(sum, castagnoli, p) }

// checksum is the CRC-32C of a range of bytes. Parts of the range are written in any order, each from its start to
// its end.
type checksum struct {
	sum uint32
	n   int64 // bytes
}

func (c *checksum) write(p []byte) {
	c.sum = CRC32C(c.sum, p)
	c.n += int64(len(p))
}

// then returns the checksum of c's bytes followed by next's. A CRC is a remainder of polynomials over GF(2). So the
// sum of the bytes before the last n bytes is multiplied by x^8n (Mark Adler's crc32_combine in zlib).
func (c checksum) then(next checksum) checksum {
	power, square := uint32(1)<<31, uint32(1)<<30 // x⁰ and x¹, lowest power in the highest bit
	for n := 8 * next.n; n > 0; n >>= 1 {
		if n&1 == 1 {
			power = multiply(power, square)
		}
		square = multiply(square, square)
	}
	return checksum{multiply(power, c.sum) ^ next.sum, c.n + next.n}
}

// multiply returns a·b modulo CRC-32C's polynomial.
func multiply(a, b uint32) uint32 {
	var product uint32
	for ; a != 0; a <<= 1 {
		if a>>31 == 1 {
			product ^= b
		}
		b = b>>1 ^ crc32.Castagnoli*(b&1)
	}
	return product
}
