package jpeg

// colours converts the planes to pixels.
func (f *Image) colours() (pix []byte, channels int) {
	if len(f.components) == 1 {
		c := &f.components[0]
		pix = make([]byte, f.W*f.H)
		for y := range f.H {
			copy(pix[y*f.W:(y+1)*f.W], c.plane[y*c.stride:])
		}
		return pix, 1
	}
	ycc := f.hasLuma()
	pix = make([]byte, 3*f.W*f.H)
	var rows [4][]byte
	buf := make([]byte, len(f.components)*(f.W+8))
	for y := range f.H {
		for i := range f.components {
			rows[i] = f.upsample(buf[i*(f.W+8):(i+1)*(f.W+8)], &f.components[i], y)[:f.W]
		}
		row := pix[3*y*f.W : 3*(y+1)*f.W]
		if ycc {
			yccRow(row, rows[0], rows[1], rows[2])
		} else {
			for x, v := range rows[0] {
				row[3*x], row[3*x+1], row[3*x+2] = v, rows[1][x], rows[2][x]
			}
		}
		if rows[3] != nil {
			inkRow(row, rows[3], ycc)
		}
	}
	return pix, 3
}

// hasLuma reports whether the components are YCbCr rather than RGB, or YCbCr and K rather than CMYK. It follows
// default_decompress_parms of libjpeg's jdapimin.c.
func (f *Image) hasLuma() bool {
	if len(f.components) == 4 {
		return f.adobe > 0
	}
	switch {
	case f.jfif:
		return true
	case f.adobe >= 0:
		return f.adobe > 0
	}
	c := f.components
	return c[0].id != 'R' || c[1].id != 'G' || c[2].id != 'B'
}

// yccRow converts a row of YCbCr to RGB in 16-bit fixed point, as jdcolor.c of libjpeg does.
func yccRow(dst, y, cb, cr []byte) {
	cb, cr = cb[:len(y)], cr[:len(y)]
	for i, l := range y {
		l, u, v := int32(l), &chroma[cb[i]], &chroma[cr[i]]
		d := dst[3*i : 3*i+3 : 3*i+3]
		d[0], d[1], d[2] = clip(l+v.red), clip(l+(u.greenOfBlue+v.greenOfRed)>>16), clip(l+u.blue)
	}
}

// chroma holds what a value of Cb or Cr adds to each colour.
var chroma = func() (table [256]struct{ red, greenOfBlue, greenOfRed, blue int32 }) {
	const half = 1 << 15
	for i := range table {
		x := int32(i) - 128
		t := &table[i]
		t.red, t.greenOfBlue, t.greenOfRed, t.blue = (91881*x+half)>>16, -22554*x, -46802*x+half, (116130*x+half)>>16
	}
	return table
}()

// inkRow converts a row of colours and black ink to RGB. Like Pillow, it assumes inverted values as Adobe's programs
// write them: 255 is no ink. So converted YCbCr holds the amounts of the inks CMY, and other values hold the light
// that CMY leave.
func inkRow(row, black []byte, ycc bool) {
	for x, light := range black {
		d := row[3*x : 3*x+3 : 3*x+3]
		for c, ink := range d {
			if !ycc {
				ink = 255 - ink
			}
			t := uint32(ink)*uint32(light) + 128
			d[c] = light - byte((t+t>>8)>>8)
		}
	}
}

// upsample returns row y of a component with at least as many samples as the image has. It uses dst as a buffer if
// needed. It follows jdsample.c of libjpeg ("fancy upsampling").
func (f *Image) upsample(dst []byte, c *component, y int) []byte {
	fx, fy := f.hmax/c.h, f.vmax/c.v
	near, far := y/fy, y/fy // the nearest and the second nearest row of samples
	// Rows of one or two samples, and other factors, repeat samples.
	fancy := fx == 2 && fy <= 2 && c.w > 2 || fx == 1 && fy == 2
	if fancy && fy == 2 {
		far = max(0, min(near-1+y%2*2, c.ht-1))
	}
	n, o := c.plane[near*c.stride:][:c.w], c.plane[far*c.stride:][:c.w]
	switch {
	case fx == 1 && !fancy:
		return n
	case !fancy:
		for x := range f.W {
			dst[x] = n[x/fx]
		}
	case fy == 1:
		triangleAcross(dst, n)
	case fx == 1:
		// Halves are rounded down and up in alternating rows.
		bias := 1 + uint32(y%2)
		for x := range n {
			dst[x] = byte((3*uint32(n[x]) + uint32(o[x]) + bias) >> 2)
		}
	default:
		triangleBoth(dst, n, o)
	}
	return dst
}

// triangleAcross doubles the length of a row, as h2v1_fancy_upsample does. Each result is 3/4 of the nearer and 1/4
// of the farther sample. Halves are rounded down and up in turn.
func triangleAcross(dst, src []byte) {
	last := len(src) - 1
	dst[0], dst[2*last+1] = src[0], src[last]
	a := uint32(src[0])
	for x := range last {
		b := uint32(src[x+1])
		d := dst[2*x+1 : 2*x+3 : 2*x+3]
		d[0] = byte((3*a + b + 2) >> 2)
		d[1] = byte((3*b + a + 1) >> 2)
		a = b
	}
}

// triangleBoth is triangleAcross in both directions, as h2v2_fancy_upsample does.
func triangleBoth(dst, near, far []byte) {
	last := len(near) - 1
	far = far[:len(near)]
	a := 3*uint32(near[0]) + uint32(far[0])
	dst[0] = byte((4*a + 8) >> 4)
	for x := range last {
		b := 3*uint32(near[x+1]) + uint32(far[x+1])
		d := dst[2*x+1 : 2*x+3 : 2*x+3]
		d[0] = byte((3*a + b + 7) >> 4)
		d[1] = byte((3*b + a + 8) >> 4)
		a = b
	}
	dst[2*last+1] = byte((4*a + 7) >> 4)
}
