package numpy

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"math/bits"
	"regexp"
	"strconv"
	"strings"
)

// Type is the type of an array's elements.
type Type struct {
	Name string // as NumPy spells it
	Kind byte   // 'u', 'i', 'f', 'b' for bool, or 0 for types that are not supported
	Size int    // bytes
	big  bool   // big endian
}

// header describes the array that follows it.
type header struct {
	dtype   Type
	shape   []int
	fortran bool
	size    int64 // bytes of the header itself
}

// bytes returns the size of the data. On success every dimension is at least 1.
func (h header) bytes() (int64, error) {
	n := uint64(max(1, h.dtype.Size)) // a type that is not supported has at least a byte
	for _, d := range h.shape {
		if d == 0 {
			return 0, fmt.Errorf("shape %d, want at least one element", h.shape)
		}
		hi, lo := bits.Mul64(n, uint64(d))
		if hi != 0 || lo > math.MaxInt {
			return 0, fmt.Errorf("shape %d overflows", h.shape)
		}
		n = lo
	}
	return int64(n), nil
}

const maxDims = 32 // NumPy's own limit before version 2

func readHeader(r *bufio.Reader) (header, error) {
	magic, err := r.Peek(6)
	if err != nil && err != io.EOF {
		return header{}, err
	}
	switch {
	case isNPY(magic):
		return readNPYHeader(r)
	case isIDX(magic):
		return readIDXHeader(r)
	case len(magic) == 0:
		return header{}, fmt.Errorf("empty, want a .npy, .npz or IDX file")
	}
	return header{}, fmt.Errorf("starts with %q, want a .npy, .npz or IDX file", magic)
}

func isNPY(head []byte) bool { return bytes.HasPrefix(head, []byte("\x93NUMPY")) }

func isIDX(head []byte) bool {
	return len(head) >= 4 && head[0] == 0 && head[1] == 0 && idxTypes[head[2]].Size > 0
}

// idxTypes maps the type codes of IDX to types, all big endian.
var idxTypes = map[byte]Type{
	0x08: {"uint8", 'u', 1, false},
	0x09: {"int8", 'i', 1, false},
	0x0b: {"int16", 'i', 2, true},
	0x0c: {"int32", 'i', 4, true},
	0x0d: {"float32", 'f', 4, true},
	0x0e: {"float64", 'f', 8, true},
}

// readIDXHeader reads two zero bytes, the type, the number of dimensions, and each dimension as a big-endian uint32.
func readIDXHeader(r *bufio.Reader) (header, error) {
	var b [4]byte
	if _, err := io.ReadFull(r, b[:]); err != nil {
		return header{}, err
	}
	ndim := int(b[3])
	if ndim == 0 || ndim > maxDims {
		return header{}, fmt.Errorf("%d dimensions, want 1 to %d", ndim, maxDims)
	}
	h := header{dtype: idxTypes[b[2]], size: int64(4 + 4*ndim)}
	for range ndim {
		if _, err := io.ReadFull(r, b[:]); err != nil {
			return header{}, err
		}
		h.shape = append(h.shape, int(binary.BigEndian.Uint32(b[:])))
	}
	return h, nil
}

// maxNPYHeader is far more than arrays of numbers need. NumPy refuses more than 10,000 bytes by default.
const maxNPYHeader = 1 << 16

// readNPYHeader reads magic, version, length and a Python dict. It does not use npyio's reader, which panics on
// damaged headers because it slices without checks.
func readNPYHeader(r *bufio.Reader) (header, error) {
	pre := make([]byte, 12)
	width := 2 // bytes of the length
	if _, err := io.ReadFull(r, pre[:8]); err != nil {
		return header{}, err
	}
	switch major := pre[6]; major {
	case 1:
	case 2, 3:
		width = 4
	default:
		return header{}, fmt.Errorf("npy format version %d, want 1 to 3", major)
	}
	if _, err := io.ReadFull(r, pre[8:8+width]); err != nil {
		return header{}, err
	}
	n := binary.LittleEndian.Uint32(pre[8:])
	if n > maxNPYHeader {
		return header{}, fmt.Errorf("npy header of %d bytes, want at most %d", n, maxNPYHeader)
	}
	dict := make([]byte, n)
	if _, err := io.ReadFull(r, dict); err != nil {
		return header{}, err
	}
	h, err := parseDict(dict)
	if err != nil {
		return header{}, fmt.Errorf("npy header: %w", err)
	}
	h.size = int64(8+width) + int64(n)
	return h, nil
}

// npyEntry matches one entry of the dict. Keys may come in any order, and Python 2 wrote dimensions as 3L. A list is
// a structured type, whose details are not needed.
var npyEntry = regexp.MustCompile(`^\s*['"](descr|fortran_order|shape)['"]\s*:\s*('[^']*'|"[^"]*"|True|False|\([0-9, L]*\)|\[.*\])\s*(?:,|$)`)

func parseDict(dict []byte) (header, error) {
	s := bytes.TrimSpace(dict)
	if len(s) < 2 || s[0] != '{' || s[len(s)-1] != '}' {
		return header{}, fmt.Errorf("%.40q, want a dict", s)
	}
	s = s[1 : len(s)-1]
	entries := map[string]string{}
	for len(bytes.TrimSpace(s)) > 0 {
		m := npyEntry.FindSubmatch(s)
		if m == nil {
			return header{}, fmt.Errorf("at %.40q, want descr, fortran_order or shape", s)
		}
		key := string(m[1])
		if _, dup := entries[key]; dup {
			return header{}, fmt.Errorf("%s given twice", key)
		}
		entries[key] = string(m[2])
		s = s[len(m[0]):]
	}
	if len(entries) != 3 {
		return header{}, fmt.Errorf("%d entries, want descr, fortran_order and shape", len(entries))
	}
	order, shape := entries["fortran_order"], entries["shape"]
	if order != "True" && order != "False" {
		return header{}, fmt.Errorf("fortran_order %.20q, want True or False", order)
	}
	if shape[0] != '(' {
		return header{}, fmt.Errorf("shape %.20q, want a tuple", shape)
	}
	h := header{dtype: parseDescr(entries["descr"]), fortran: order == "True"}
	for tok := range strings.SplitSeq(shape[1:len(shape)-1], ",") {
		tok = strings.TrimSuffix(strings.TrimSpace(tok), "L")
		if tok == "" {
			continue // "()" and the comma of "(5,)"
		}
		d, err := strconv.Atoi(tok)
		if err != nil {
			return header{}, fmt.Errorf("shape %.60q: dimension %w", shape, err)
		}
		h.shape = append(h.shape, d)
	}
	if len(h.shape) > maxDims {
		return header{}, fmt.Errorf("%d dimensions, want at most %d", len(h.shape), maxDims)
	}
	return h, nil
}

// npyDescr matches byte order, kind and size, such as '<f4'.
var npyDescr = regexp.MustCompile(`^([<>|])([uif])([1248])$`)

// npyText matches the type of texts: see [Text].
var npyText = regexp.MustCompile(`^([<>])U([0-9]+)$`)

// maxText is the largest width of a text in characters.
const maxText = 1 << 20

// parseDescr never fails. A type that is not supported gets kind 0, and the array's [Role] reports its name in an
// error.
func parseDescr(quoted string) Type {
	switch {
	case quoted == "'|O'" || quoted == "'O'":
		return Type{Name: "object"}
	case quoted[0] == '[':
		return Type{Name: "record"}
	}
	descr := quoted[1:max(1, len(quoted)-1)]
	if descr == "|b1" {
		return Type{Name: "bool", Kind: 'b', Size: 1}
	}
	if m := npyText.FindStringSubmatch(descr); m != nil {
		if width, err := strconv.Atoi(m[2]); err == nil && width > 0 && width <= maxText {
			return Type{Name: fmt.Sprintf("%.40q", descr), Size: 4 * width, big: m[1] == ">"}
		}
	}
	m := npyDescr.FindStringSubmatch(descr)
	if m == nil || m[3] == "1" && m[2] == "f" || m[1] == "|" && m[3] != "1" {
		return Type{Name: fmt.Sprintf("%.40q", descr)}
	}
	size := int(m[3][0] - '0')
	t := Type{Kind: m[2][0], Size: size, big: m[1] == ">"}
	t.Name = map[byte]string{'u': "uint", 'i': "int", 'f': "float"}[t.Kind] + strconv.Itoa(8*size)
	return t
}

// Text returns the type of texts of at most width characters, which take four bytes each.
func Text(width int) string { return fmt.Sprintf("<U%d", width) }

// Header returns the header of an array in version 1 of the .npy format. The type is spelled as in NumPy, such as
// "<f4".
func Header(dtype string, shape ...int) []byte {
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

// reordered reports whether the elements of an array are stored in Fortran order, and that differs from C order.
func (h header) reordered() bool {
	long := 0
	for _, d := range h.shape {
		if d > 1 {
			long++
		}
	}
	return h.fortran && long > 1
}

// rowMajor returns the elements of an array in C order, as all arrays have them. pandas and MATLAB save arrays in Fortran
// order, in which the first index changes fastest.
func (h header) rowMajor(data []byte) []byte {
	if !h.reordered() || len(data) == 0 {
		return data
	}
	size := h.dtype.Size
	strides, stride := make([]int, len(h.shape)), size
	for k, d := range h.shape {
		strides[k], stride = stride, stride*d
	}
	out := make([]byte, len(data))
	index, from := make([]int, len(h.shape)), 0
	for to := 0; to < len(out); to += size {
		copy(out[to:to+size], data[from:from+size])
		for k := len(index) - 1; k >= 0; k-- { // the next element in C order
			index[k]++
			from += strides[k]
			if index[k] < h.shape[k] {
				break
			}
			from -= index[k] * strides[k]
			index[k] = 0
		}
	}
	return out
}
