package jpeg

// reconstruct computes the samples of a component from its coefficients.
func (c *component) reconstruct() {
	across := c.stride / 8
	for i := range c.coeffs {
		inverseDCT(c.plane[i/across*8*c.stride+i%across*8:], c.stride, &c.coeffs[i], c.quant)
	}
}

// The inverse DCT of C. Loeffler, A. Ligtenberg and G. Moschytz, "Practical fast 1-D DCT algorithms with 11
// multiplications", ICASSP 1989. It has 12 multiplications and 13 fractional bits, and rounds like libjpeg's
// jidctint.c ("islow", its default).
const (
	dctBits  = 13
	passBits = 2 // extra precision between the passes

	c0298 = 2446 // 0.298631336 · 2^13, and so on
	c0390 = 3196
	c0541 = 4433
	c0765 = 6270
	c0899 = 7373
	c1175 = 9633
	c1501 = 12299
	c1847 = 15137
	c1961 = 16069
	c2053 = 16819
	c2562 = 20995
	c3072 = 25172
)

// inverseDCT writes the 8 by 8 samples of block b to dst.
func inverseDCT(dst []byte, stride int, b *[64]int16, q *[64]uint16) {
	var w [64]int32
	for i := range 8 {
		x0 := int32(b[i]) * int32(q[i])
		if b[8+i]|b[16+i]|b[24+i]|b[32+i]|b[40+i]|b[48+i]|b[56+i] == 0 {
			x0 <<= passBits
			w[i], w[8+i], w[16+i], w[24+i] = x0, x0, x0, x0
			w[32+i], w[40+i], w[48+i], w[56+i] = x0, x0, x0, x0
			continue
		}
		const round, shift = 1 << (dctBits - passBits - 1), dctBits - passBits
		e0, e1, e2, e3, o0, o1, o2, o3 := butterfly(x0,
			int32(b[8+i])*int32(q[8+i]), int32(b[16+i])*int32(q[16+i]), int32(b[24+i])*int32(q[24+i]),
			int32(b[32+i])*int32(q[32+i]), int32(b[40+i])*int32(q[40+i]), int32(b[48+i])*int32(q[48+i]), int32(b[56+i])*int32(q[56+i]))
		w[i], w[56+i] = (e0+o0+round)>>shift, (e0-o0+round)>>shift
		w[8+i], w[48+i] = (e1+o1+round)>>shift, (e1-o1+round)>>shift
		w[16+i], w[40+i] = (e2+o2+round)>>shift, (e2-o2+round)>>shift
		w[24+i], w[32+i] = (e3+o3+round)>>shift, (e3-o3+round)>>shift
	}
	for i := range 8 {
		x := w[8*i : 8*i+8 : 8*i+8]
		d := dst[i*stride : i*stride+8 : i*stride+8]
		const shift = dctBits + passBits + 3
		const round = 1<<(shift-1) + 128<<shift // samples are centred at 128
		if x[1]|x[2]|x[3]|x[4]|x[5]|x[6]|x[7] == 0 {
			v := clip((x[0]<<dctBits + round) >> shift)
			d[0], d[1], d[2], d[3], d[4], d[5], d[6], d[7] = v, v, v, v, v, v, v, v
			continue
		}
		e0, e1, e2, e3, o0, o1, o2, o3 := butterfly(x[0], x[1], x[2], x[3], x[4], x[5], x[6], x[7])
		d[0], d[7] = clip((e0+o0+round)>>shift), clip((e0-o0+round)>>shift)
		d[1], d[6] = clip((e1+o1+round)>>shift), clip((e1-o1+round)>>shift)
		d[2], d[5] = clip((e2+o2+round)>>shift), clip((e2-o2+round)>>shift)
		d[3], d[4] = clip((e3+o3+round)>>shift), clip((e3-o3+round)>>shift)
	}
}

// butterfly is the inverse DCT of eight values without its last step. Result k is ek + ok, and result 7 − k is ek −
// ok, times 2^13.
func butterfly(x0, x1, x2, x3, x4, x5, x6, x7 int32) (e0, e1, e2, e3, o0, o1, o2, o3 int32) {
	z := (x2 + x6) * c0541
	a, b := z+x2*c0765, z-x6*c1847
	s, d := (x0+x4)<<dctBits, (x0-x4)<<dctBits

	z1, z2 := -(x7+x1)*c0899, -(x5+x3)*c2562
	z5 := (x7 + x3 + x5 + x1) * c1175
	z3, z4 := z5-(x7+x3)*c1961, z5-(x5+x1)*c0390
	return s + a, d + b, d - b, s - a,
		x1*c1501 + z1 + z4, x3*c3072 + z2 + z3, x5*c2053 + z2 + z4, x7*c0298 + z1 + z3
}

// clip returns the nearest byte. Most values need no change, so a branch is faster than two comparisons.
func clip(v int32) byte {
	if uint32(v) <= 255 {
		return byte(v)
	}
	return byte(^v >> 31)
}
