package jpeg

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// A huffman decodes one Huffman code, annex C.
type huffman struct {
	values [256]byte
	// fast maps the next 9 bits to length<<8 | value, or to 0 if the code is longer.
	fast [1 << fastBits]uint16
	// For codes of length n, limit[n] lies after the last code, in 16 bits. A code minus offset[n] is the index of
	// its value.
	limit  [17]int32
	offset [17]int32
}

const fastBits = 9

// huffmanTables reads Huffman tables, B.2.4.2.
func (f *Image) huffmanTables(b []byte) error {
	for len(b) > 0 {
		if len(b) < 17 {
			return errors.New("short Huffman table")
		}
		class, id := b[0]>>4, b[0]&15
		t, n, err := newHuffman(b[1:17], b[17:])
		if err != nil {
			return err
		}
		switch {
		case class > 1 || id > 3:
			return fmt.Errorf("bad Huffman table: number %d of class %d", id, class)
		case class == 1:
			f.ac[id] = t
		default:
			for _, v := range t.values[:n] {
				if v > 15 {
					return fmt.Errorf("bad Huffman table %d: a difference of %d bits", id, v)
				}
			}
			f.dc[id] = t
		}
		b = b[17+n:]
	}
	return nil
}

// newHuffman builds a decoder from the number of codes of each length, 1 to 16, and their values. It returns the
// number n of values.
func newHuffman(counts, values []byte) (t *huffman, n int, err error) {
	for _, c := range counts {
		n += int(c)
	}
	if n > 256 || n > len(values) {
		return nil, 0, errors.New("bad Huffman table")
	}
	t = new(huffman)
	copy(t.values[:], values[:n])
	code, index := int32(0), int32(0)
	for i, c := range counts {
		length := i + 1
		t.offset[length] = code - index
		for range c {
			if length <= fastBits {
				first := code << (fastBits - length)
				for j := range int32(1) << (fastBits - length) {
					if first+j < int32(len(t.fast)) {
						t.fast[first+j] = uint16(length)<<8 | uint16(t.values[index])
					}
				}
			}
			code++
			index++
		}
		if code > 1<<length {
			return nil, 0, errors.New("bad Huffman table")
		}
		t.limit[length] = code << (16 - length)
		code <<= 1
	}
	return t, n, nil
}

// bitReader reads the entropy-coded data of a scan, F.2.2.5.
type bitReader struct {
	data    []byte
	at      int
	bits    uint64 // the lowest n are not used yet
	n       int
	padding int // number of zero bits that were added beyond the end of the data
	bad     bool
}

// fill makes n at least 57. Beyond the data, which end at a marker, it adds zeros.
func (r *bitReader) fill() {
	if r.at+8 <= len(r.data) {
		v := binary.BigEndian.Uint64(r.data[r.at:])
		// If none of the next eight bytes is 0xff, take as many as fit.
		if (^v-0x0101010101010101)&v&0x8080808080808080 == 0 {
			k := (64 - r.n) / 8
			r.bits = r.bits<<(8*k) | v>>(64-8*k)
			r.n += 8 * k
			r.at += k
			return
		}
	}
	for r.n <= 56 {
		b := byte(0)
		switch {
		case r.at < len(r.data) && r.data[r.at] != 0xff:
			b = r.data[r.at]
			r.at++
		case r.at+1 < len(r.data) && r.data[r.at+1] == 0:
			b = 0xff
			r.at += 2
		default:
			r.padding += 8
		}
		r.bits = r.bits<<8 | uint64(b)
		r.n += 8
	}
}

// err returns the first error so far.
func (r *bitReader) err() error {
	switch {
	case r.padding > r.n && r.at >= len(r.data)-1:
		return io.ErrUnexpectedEOF
	case r.padding > r.n:
		return errors.New("too little data in a scan")
	case r.bad:
		return errors.New("bad Huffman code")
	}
	return nil
}

// symbol decodes the next code. At least 16 bits remain after it.
func (r *bitReader) symbol(t *huffman) byte {
	if r.n < 32 {
		r.fill()
	}
	e := t.fast[r.bits>>(r.n-fastBits)&(1<<fastBits-1)]
	if e != 0 {
		r.n -= int(e >> 8)
		return byte(e)
	}
	next := int32(r.bits >> (r.n - 16) & 0xffff)
	for length := fastBits + 1; length <= 16; length++ {
		if next < t.limit[length] {
			r.n -= length
			return t.values[(next>>(16-length)-t.offset[length])&0xff]
		}
	}
	r.bad = true
	return 0
}

// take returns the next k bits, at most 16.
func (r *bitReader) take(k int) int32 {
	if r.n < k {
		r.fill()
	}
	r.n -= k
	return int32(r.bits >> r.n & (1<<k - 1))
}

// signed returns the next k bits as a value of magnitude category k, F.2.2.1.
func (r *bitReader) signed(k int) int32 {
	v := r.take(k)
	if v < 1<<k>>1 {
		v += -1<<k + 1
	}
	return v
}

// A scan is a scan header, B.2.3.
type scan struct {
	*Image
	parts      []scanPart
	start, end int // spectral selection
	high, low  int // successive approximation
	r          bitReader
	eobRun     int // remaining blocks without new coefficients
}

type scanPart struct {
	*component
	dc, ac *huffman
	last   int32 // DC value of the previous block
}

// scan decodes the scan with header b at the start of data. It returns the length of the scan.
func (f *Image) scan(b, data []byte) (used int, err error) {
	s := scan{Image: f, r: bitReader{data: data}}
	if err := s.header(b); err != nil {
		return 0, err
	}
	if f.scans++; f.scans > maxScans {
		return 0, fmt.Errorf("more than %d scans", maxScans)
	}
	// A scan of one component omits the blocks that only complete an MCU, A.2.2.
	single := len(s.parts) == 1
	across, down := f.mcusX, f.mcusY
	if single {
		across, down = ceilDiv(s.parts[0].w, 8), ceilDiv(s.parts[0].ht, 8)
	}
	// Each DC value needs at least one bit, so the data bound the number of blocks and the memory.
	if s.start == 0 && across*down > 8*len(data) {
		return 0, io.ErrUnexpectedEOF
	}
	for _, p := range s.parts {
		if err := f.prepare(p.component); err != nil {
			return 0, err
		}
	}
	decode := s.pickDecoder()
	for mcu := range across * down {
		if f.restart > 0 && mcu > 0 && mcu%f.restart == 0 {
			if err := s.nextInterval(mcu / f.restart); err != nil {
				return 0, err
			}
		}
		x, y := mcu%across, mcu/across
		if single {
			decode(&s.parts[0], x, y)
		} else {
			for i := range s.parts {
				p := &s.parts[i]
				for j := range p.h * p.v {
					decode(p, x*p.h+j%p.h, y*p.v+j/p.h)
				}
			}
		}
		if s.r.bad || s.r.padding > s.r.n {
			return 0, s.r.err()
		}
	}
	return s.r.at, nil
}

func (s *scan) header(b []byte) error {
	if s.components == nil {
		return errors.New("a scan before the frame header")
	}
	if len(b) < 1 || len(b) != 4+2*int(b[0]) || b[0] < 1 || b[0] > 4 {
		return errors.New("bad scan header")
	}
	blocks := 0
	for i := range int(b[0]) {
		id, tables := b[1+2*i], b[2+2*i]
		var p scanPart
		for j := range s.components {
			if s.components[j].id == id {
				p.component = &s.components[j]
			}
		}
		if p.component == nil || tables>>4 > 3 || tables&15 > 3 {
			return errors.New("bad scan header")
		}
		for _, q := range s.parts {
			if q.component == p.component {
				return errors.New("a scan with a component twice")
			}
		}
		p.dc, p.ac = s.dc[tables>>4], s.ac[tables&15]
		blocks += p.h * p.v
		s.parts = append(s.parts, p)
	}
	const most = 10 // B.2.3
	if len(s.parts) > 1 && blocks > most {
		return fmt.Errorf("%d blocks in an MCU, want at most %d", blocks, most)
	}
	b = b[1+2*len(s.parts):]
	s.start, s.end, s.high, s.low = 0, 63, 0, 0
	if s.progressive {
		s.start, s.end, s.high, s.low = int(b[0]), int(b[1]), int(b[2]>>4), int(b[2]&15)
		if s.start > s.end || s.end > 63 || s.low > 13 || s.start == 0 && s.end != 0 ||
			s.start > 0 && len(s.parts) > 1 || s.high > 0 && s.high != s.low+1 {
			return errors.New("bad progression in a scan header")
		}
	}
	for _, p := range s.parts {
		needDC := s.start == 0 && s.high == 0
		needAC := s.end > 0
		if needDC && p.dc == nil || needAC && p.ac == nil {
			return errors.New("a scan without its Huffman table")
		}
	}
	return nil
}

// prepare allocates a component before its first scan.
func (f *Image) prepare(c *component) error {
	if c.quant != nil {
		return nil
	}
	if c.quant = f.quant[c.table]; c.quant == nil {
		return errors.New("a scan without its quantisation table")
	}
	size := c.stride * f.mcusY * c.v * 8
	c.plane = make([]byte, size)
	if f.progressive {
		c.coeffs = make([][64]int16, size/64)
	}
	return nil
}

// nextInterval moves to restart marker number n, F.2.2.5.
func (s *scan) nextInterval(n int) error {
	r := &s.r
	for ; ; r.at++ {
		if r.at+1 >= len(r.data) {
			return io.ErrUnexpectedEOF
		}
		if m := r.data[r.at+1]; r.data[r.at] == 0xff && m != 0 && m != 0xff {
			if want := markerRST0 + byte(n-1)%8; m != want {
				return fmt.Errorf("marker %#x, want restart marker %#x", m, want)
			}
			break
		}
	}
	s.r = bitReader{data: r.data, at: r.at + 2}
	s.eobRun = 0
	for i := range s.parts {
		s.parts[i].last = 0
	}
	return nil
}

// pickDecoder returns the method that decodes a block of the scan.
func (s *scan) pickDecoder() func(p *scanPart, x, y int) {
	switch {
	case !s.progressive:
		return s.baseline
	case s.start == 0 && s.high == 0:
		return s.firstDC
	case s.start == 0:
		return s.refineDC
	case s.high == 0:
		return s.firstAC
	}
	return s.refineAC
}

// baseline decodes a block and computes its samples, F.2.2. Most files spend most of their time here, so symbol and
// signed are written out.
func (s *scan) baseline(p *scanPart, x, y int) {
	b, r := &s.block, &s.r
	*b = [64]int16{}
	p.last += r.signed(int(r.symbol(p.dc)))
	b[0] = int16(p.last)
	ac := p.ac
	bits, n := r.bits, r.n
	for k := 1; k < 64; k++ {
		if n < 32 {
			r.bits, r.n = bits, n
			r.fill()
			bits, n = r.bits, r.n
		}
		e := ac.fast[bits>>((n-fastBits)&63)&(1<<fastBits-1)]
		if e == 0 {
			r.bits, r.n = bits, n
			e = uint16(r.symbol(ac))
			n = r.n
		}
		n -= int(e >> 8)
		k += int(e >> 4 & 15)
		size := int(e & 15)
		if size == 0 {
			if e&0xff != 0xf0 {
				break
			}
			continue
		}
		n -= size
		v := int32(bits>>(n&63)) & (1<<(size&31) - 1)
		if v < 1<<(size&31)>>1 {
			v += -1<<(size&31) + 1
		}
		b[zigzag[k]&63] = int16(v)
	}
	r.bits, r.n = bits, n
	inverseDCT(p.plane[y*8*p.stride+x*8:], p.stride, b, p.quant)
}

// coefficients returns block x, y of a component.
func (c *component) coefficients(x, y int) *[64]int16 { return &c.coeffs[y*c.stride/8+x] }

// The decoders of progressive scans, G.1.2.

func (s *scan) firstDC(p *scanPart, x, y int) {
	p.last += s.r.signed(int(s.r.symbol(p.dc)))
	p.coefficients(x, y)[0] = int16(p.last << s.low)
}

func (s *scan) refineDC(p *scanPart, x, y int) {
	p.coefficients(x, y)[0] |= int16(s.r.take(1) << s.low)
}

func (s *scan) firstAC(p *scanPart, x, y int) {
	if s.eobRun > 0 {
		s.eobRun--
		return
	}
	b, r := p.coefficients(x, y), &s.r
	for k := s.start; k <= s.end; k++ {
		v := r.symbol(p.ac)
		run, size := int(v>>4), int(v&15)
		if size == 0 && run < 15 {
			s.eobRun = 1<<run - 1 + int(r.take(run))
			return
		}
		k += run
		if size > 0 {
			b[zigzag[k]] = int16(r.signed(size) << s.low)
		}
	}
}

// refineAC adds a bit to the coefficients that are not zero and inserts new ones, figures G.7 to G.9.
func (s *scan) refineAC(p *scanPart, x, y int) {
	b, r := p.coefficients(x, y), &s.r
	k := s.start
	for ; k <= s.end && s.eobRun == 0; k++ {
		v := r.symbol(p.ac)
		run, size := int(v>>4), int(v&15)
		fresh := int16(0)
		switch {
		case size > 0: // always 1
			fresh = -1 << s.low
			if r.take(1) == 1 {
				fresh = 1 << s.low
			}
		case run < 15:
			s.eobRun = 1<<run + int(r.take(run))
		}
		if s.eobRun > 0 {
			break
		}
		k = s.refine(b, k, run)
		if fresh != 0 {
			b[zigzag[k]] = fresh
		}
	}
	if s.eobRun > 0 {
		s.refine(b, k, 64)
		s.eobRun--
	}
}

// refine reads a bit for each nonzero coefficient from k on and skips run zeros. It returns the position of the next
// zero.
func (s *scan) refine(b *[64]int16, k, run int) int {
	for ; k <= s.end; k++ {
		c := &b[zigzag[k]]
		if *c == 0 {
			if run == 0 {
				break
			}
			run--
			continue
		}
		if bit := int16(1) << s.low; s.r.take(1) == 1 && *c&bit == 0 {
			if *c > 0 {
				*c += bit
			} else {
				*c -= bit
			}
		}
	}
	return k
}
