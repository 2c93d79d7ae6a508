package dataset

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"strings"
)

// NPYHeader returns what stands before the elements of an array in version 1 of
// https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html. The
// type is in NumPy's words, such as "<f4".
func NPYHeader(dtype string, shape ...int) []byte {
	var dims strings.Builder
	for i, d := range shape {
		if i > 0 {
			dims.WriteByte(' ')
		}
		fmt.Fprintf(&dims, "%d,", d)
	}
	dict := fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': (%s), }", dtype, &dims)
	const align, before = 64, 10
	dict += strings.Repeat(" ", (align-(before+len(dict)+1)%align)%align) + "\n"
	return append(binary.LittleEndian.AppendUint16([]byte("\x93NUMPY\x01\x00"), uint16(len(dict))), dict...)
}

// WriteBatch writes the first n examples, or all if there are fewer, as the
// network sees them: a .npy array of shape [n, Shape...], float32, or uint8 for
// a network that takes that.
func WriteBatch(w io.Writer, d Dataset, n int, asBytes bool) error {
	n = min(n, d.Len())
	shape, size := []int{n}, 1
	for _, s := range d.Shape() {
		shape, size = append(shape, int(s)), size*int(s)
	}
	dtype := "<f4"
	if asBytes {
		dtype = "|u1"
	}
	out := bufio.NewWriter(w)
	out.Write(NPYHeader(dtype, shape...)) // a bufio.Writer keeps its error for Flush
	values, encoded := make([]float32, size), make([]byte, 0, 4*size)
	for i := range n {
		if err := d.Read(values, i); err != nil {
			return err
		}
		encoded = encoded[:0]
		for _, v := range values {
			if asBytes {
				encoded = append(encoded, byte(v))
			} else {
				encoded = binary.LittleEndian.AppendUint32(encoded, math.Float32bits(v))
			}
		}
		out.Write(encoded)
	}
	return out.Flush()
}
