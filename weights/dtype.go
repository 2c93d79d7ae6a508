package weights

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"unsafe"
)

// DType is the storage type of a tensor's elements.
type DType uint8

// The storage types of safetensors that networks use.
const (
	Invalid DType = iota
	F16
	BF16
	F32
	F64
	U8
	I8
	I16
	I32
	I64
	Bool
)

var dtypes = [...]struct {
	name string
	size int64
}{
	Invalid: {"invalid", 0},
	F16:     {"F16", 2},
	BF16:    {"BF16", 2},
	F32:     {"F32", 4},
	F64:     {"F64", 8},
	U8:      {"U8", 1},
	I8:      {"I8", 1},
	I16:     {"I16", 2},
	I32:     {"I32", 4},
	I64:     {"I64", 8},
	Bool:    {"BOOL", 1},
}

// String returns the name that safetensors uses, such as "F32".
func (d DType) String() string {
	if int(d) < len(dtypes) {
		return dtypes[d].name
	}
	return fmt.Sprintf("DType(%d)", uint8(d))
}

// Size returns the number of bytes of one element.
func (d DType) Size() int64 { return dtypes[d].size }

// IsFloat reports whether d is one of the floating-point types, the only ones
// that can be part of a posterior.
func (d DType) IsFloat() bool { return d == F16 || d == BF16 || d == F32 || d == F64 }

// MarshalText writes the safetensors name.
func (d DType) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads the safetensors name.
func (d *DType) UnmarshalText(b []byte) error {
	for i, t := range dtypes {
		if DType(i) != Invalid && t.name == string(b) {
			*d = DType(i)
			return nil
		}
	}
	return fmt.Errorf("dtype %q: not one of safetensors' types that swagwrap reads", b)
}

// Float32s decodes len(dst) little-endian floats of type d from src. An F64 value that float32 cannot hold becomes
// the nearest float32, or ±Inf. Float32s panics if d is not a float type or src is too short.
func (d DType) Float32s(dst []float32, src []byte) {
	src = d.first(src, len(dst))
	switch d {
	case F32:
		load(dst, src)
	case F64:
		for i := range dst {
			dst[i] = float32(math.Float64frombits(binary.LittleEndian.Uint64(src[8*i:])))
		}
	case F16:
		for i := range dst {
			dst[i] = Float16FromBits(binary.LittleEndian.Uint16(src[2*i:]))
		}
	case BF16:
		for i := range dst {
			dst[i] = math.Float32frombits(uint32(binary.LittleEndian.Uint16(src[2*i:])) << 16)
		}
	default:
		panic("weights: not a float type")
	}
}

// PutFloat32s encodes src as little-endian floats of type d into dst. It rounds to nearest even if d is narrower. It
// panics if d is not a float type or dst is too short.
func (d DType) PutFloat32s(dst []byte, src []float32) {
	dst = d.first(dst, len(src))
	switch d {
	case F32:
		if littleEndian {
			copy(dst, bytesOf(src))
			return
		}
		binary.Encode(dst, binary.LittleEndian, src)
	case F64:
		for i, v := range src {
			binary.LittleEndian.PutUint64(dst[8*i:], math.Float64bits(float64(v)))
		}
	case F16:
		for i, v := range src {
			binary.LittleEndian.PutUint16(dst[2*i:], Float16Bits(v))
		}
	case BF16:
		for i, v := range src {
			binary.LittleEndian.PutUint16(dst[2*i:], float32toBF16(v))
		}
	default:
		panic("weights: not a float type")
	}
}

// Float64s decodes len(dst) little-endian floats of type F32 or F64 from src
// without loss. It panics on any other type or if src is too short.
func (d DType) Float64s(dst []float64, src []byte) {
	src = d.first(src, len(dst))
	switch d {
	case F32:
		for i := range dst {
			dst[i] = float64(math.Float32frombits(binary.LittleEndian.Uint32(src[4*i:])))
		}
	case F64:
		load(dst, src)
	default:
		panic("weights: not F32 or F64")
	}
}

// load sets dst to the little-endian values in src.
func load[T float32 | float64](dst []T, src []byte) {
	if littleEndian {
		copy(bytesOf(dst), src)
		return
	}
	binary.Decode(src, binary.LittleEndian, dst) // src is long enough: see first
}

// WriteFloats writes values as little-endian F32 or F64.
func WriteFloats[T float32 | float64](w io.Writer, values []T) error {
	if littleEndian {
		_, err := w.Write(bytesOf(values))
		return err
	}
	return binary.Write(w, binary.LittleEndian, values)
}

// littleEndian says that elements have the same bytes in memory as in files. Then they need no conversion, and often
// no copy.
var littleEndian = binary.NativeEndian.Uint16([]byte{1, 0}) == 1

func bytesOf[T float32 | float64](s []T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(s))), len(s)*int(unsafe.Sizeof(T(0))))
}

// first returns the bytes of the first n elements. It panics if b is too short, even if its capacity, usually the
// rest of a mapped file, is not.
func (d DType) first(b []byte, n int) []byte { return b[:len(b):len(b)][:int64(n)*d.Size()] }

// Float16FromBits widens an IEEE 754 binary16 exactly.
func Float16FromBits(h uint16) float32 {
	sign := uint32(h>>15) << 31
	exp := uint32(h>>10) & 0x1f
	frac := uint32(h) & 0x3ff
	switch exp {
	case 0: // zero or subnormal: frac × 2⁻²⁴ is exact in float32
		v := float32(frac) * (1.0 / (1 << 24))
		return math.Float32frombits(math.Float32bits(v) | sign)
	case 0x1f: // infinity or NaN
		return math.Float32frombits(sign | 0x7f800000 | frac<<13)
	}
	return math.Float32frombits(sign | (exp+127-15)<<23 | frac<<13)
}

// Float16Bits rounds to the nearest binary16, ties to even. Overflow gives ±Inf.
func Float16Bits(v float32) uint16 {
	b := math.Float32bits(v)
	sign := uint16(b>>16) & 0x8000
	abs := b & 0x7fffffff
	switch {
	case abs > 0x7f800000: // NaN stays NaN
		return sign | 0x7e00
	case abs >= 0x47800000: // 65536 and above
		return sign | 0x7c00
	case abs < 0x38800000: // below 2⁻¹⁴: binary16 is subnormal, a multiple of 2⁻²⁴
		return sign | uint16(math.RoundToEven(float64(math.Float32frombits(abs))*(1<<24)))
	}
	abs += 0xfff + abs>>13&1 // round half to even; a carry moves into the exponent, as it should
	return sign | uint16(abs>>13-(127-15)<<10)
}

// float32toBF16 rounds to the nearest bfloat16, ties to even.
func float32toBF16(v float32) uint16 {
	b := math.Float32bits(v)
	if v != v {
		return uint16(b>>16) | 0x40
	}
	return uint16((b + 0x7fff + b>>16&1) >> 16)
}
