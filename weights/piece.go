package weights

// Array holds the elements of one tensor that are not stored side by side, row-major and little-endian. An example is
// a view in a file. Implementations are safe for concurrent use.
type Array interface {
	// Len returns the number of elements.
	Len() int64
	// ReadBytes fills dst with the little-endian bytes of the elements, starting at element off in row-major order.
	ReadBytes(dst []byte, off int64)
}

// Piece is the stored elements of one tensor, and a part of a [Concat].
type Piece struct {
	DType DType
	Data  []byte // little-endian
	Array Array  // if not nil, holds the elements, and Data is unused
}

// Len returns the number of elements.
func (p Piece) Len() int64 {
	if p.Array != nil {
		return p.Array.Len()
	}
	return int64(len(p.Data)) / p.DType.Size()
}

// Stretch returns the little-endian bytes of elements [off, off+n). They are part of Data, or a copy.
func (p Piece) Stretch(off, n int64) []byte {
	size := p.DType.Size()
	if p.Array == nil {
		return p.Data[off*size : (off+n)*size : (off+n)*size]
	}
	b := make([]byte, n*size)
	p.Array.ReadBytes(b, off)
	return b
}

// arrayBlock is the number of elements of an [Array] that are read at a time.
const arrayBlock = 1 << 14

// float32s decodes elements [off, off+len(dst)).
func (p Piece) float32s(dst []float32, off int64) {
	if p.Array == nil {
		p.DType.Float32s(dst, p.Data[off*p.DType.Size():])
		return
	}
	for len(dst) > 0 {
		n := min(len(dst), arrayBlock)
		p.DType.Float32s(dst[:n], p.Stretch(off, int64(n)))
		dst, off = dst[n:], off+int64(n)
	}
}
