package weights

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"testing"
)

// golden opens the file that Python's safetensors wrote; see testdata/make.py.
func golden(t *testing.T) *Safetensors {
	t.Helper()
	st, err := OpenSafetensors("testdata/golden.safetensors")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { st.Close() })
	return st
}

func view(t *testing.T, st *Safetensors, name string) View {
	t.Helper()
	v, ok := st.View(name)
	if !ok {
		t.Fatalf("section %q is missing", name)
	}
	return v
}

// All patterns of the 16-bit types widen to what torch says, and come back.
func TestAll16BitPatterns(t *testing.T) {
	src := make([]byte, 2<<16)
	for i := range 1 << 16 {
		binary.LittleEndian.PutUint16(src[2*i:], uint16(i))
	}
	for d, name := range map[DType]string{F16: "float16", BF16: "bfloat16"} {
		wide := make([]float32, 1<<16)
		d.Float32s(wide, src)

		sum, nans := sha256.New(), 0
		for _, v := range wide {
			if v != v {
				nans++
				continue
			}
			binary.Write(sum, binary.LittleEndian, v)
		}
		if got, want := fmt.Sprintf("%x", sum.Sum(nil)), golden(t).Metadata[name]; got != want {
			t.Errorf("%v widened: SHA-256 %s, want torch's %s", d, got, want)
		}
		if want := map[DType]int{F16: 2 * 1023, BF16: 2 * 127}[d]; nans != want {
			t.Errorf("%v: %d NaNs, want %d", d, nans, want)
		}

		back := make([]byte, len(src))
		d.PutFloat32s(back, wide)
		for i, v := range wide {
			got := binary.LittleEndian.Uint16(back[2*i:])
			if v == v && got != uint16(i) {
				t.Fatalf("%v %04x: round trip gives %04x", d, i, got)
			}
			// A NaN may be made quiet, but keeps its sign and must not become infinity.
			d.Float32s(wide[i:i+1], back[2*i:])
			if v != v && (wide[i] == wide[i] || got>>15 != uint16(i)>>15) {
				t.Fatalf("%v %04x: NaN becomes %04x", d, i, got)
			}
		}
	}
}

// Rounding to 16 bits is torch's, ties, subnormals and overflow included.
func TestRounding(t *testing.T) {
	st := golden(t)
	in := make([]float32, view(t, st, "float32").Len())
	view(t, st, "float32").Float32s(in, 0)
	for d, name := range map[DType]string{F16: "to_float16", BF16: "to_bfloat16"} {
		want := view(t, st, name)
		if want.DType != d {
			t.Fatalf("%s is %v", name, want.DType)
		}
		got := make([]byte, len(want.Data))
		d.PutFloat32s(got, in)
		for i, v := range in {
			g, w := binary.LittleEndian.Uint16(got[2*i:]), binary.LittleEndian.Uint16(want.Data[2*i:])
			if v != v { // only that it is a NaN counts
				back := make([]float32, 1)
				if d.Float32s(back, got[2*i:]); back[0] == back[0] {
					t.Errorf("%v of the NaN %08x = %04x, a number", d, math.Float32bits(v), g)
				}
			} else if g != w {
				t.Errorf("%v of %v (%08x) = %04x, want %04x", d, v, math.Float32bits(v), g, w)
			}
		}
	}
}

func TestWideTypes(t *testing.T) {
	tiny := math.Nextafter(1, 2) // not a float32
	cases := []struct {
		d        DType
		in       float64
		float32s float32
	}{
		{F32, -2.5, -2.5},
		{F64, tiny, 1},
		{F64, 1e300, float32(math.Inf(1))},
		{F64, 0x1.000001p0, 1}, // a tie, to even
		{F64, 0x1.000003p0, 0x1.000004p0},
	}
	for _, c := range cases {
		src := binary.LittleEndian.AppendUint64(nil, math.Float64bits(c.in))
		if c.d == F32 {
			src = binary.LittleEndian.AppendUint32(nil, math.Float32bits(float32(c.in)))
		}
		narrow, wide := make([]float32, 1), make([]float64, 1)
		c.d.Float32s(narrow, src)
		c.d.Float64s(wide, src)
		if narrow[0] != c.float32s || wide[0] != c.in {
			t.Errorf("%v %v: decoded as %v and %v", c.d, c.in, narrow[0], wide[0])
		}
		back := make([]byte, c.d.Size())
		c.d.PutFloat32s(back, narrow)
		c.d.Float32s(narrow, back)
		if narrow[0] != c.float32s {
			t.Errorf("%v %v: round trip gives %v", c.d, c.float32s, narrow[0])
		}
	}
}

// A short buffer must panic even where its capacity, the rest of a mapped
// file, would do: what lies there is another tensor.
func TestConversionsStayInside(t *testing.T) {
	b := make([]byte, 64)
	for _, d := range []DType{F16, BF16, F32, F64} {
		short := b[:3*d.Size()-1]
		mustPanic(t, fmt.Sprintf("%v.Float32s", d), func() { d.Float32s(make([]float32, 3), short) })
		mustPanic(t, fmt.Sprintf("%v.PutFloat32s", d), func() { d.PutFloat32s(short, make([]float32, 3)) })
		if d == F32 || d == F64 {
			mustPanic(t, fmt.Sprintf("%v.Float64s", d), func() { d.Float64s(make([]float64, 3), short) })
		}
	}
	for _, d := range []DType{Invalid, U8, I64, Bool} {
		mustPanic(t, fmt.Sprintf("%v.Float32s", d), func() { d.Float32s(make([]float32, 1), b) })
		mustPanic(t, fmt.Sprintf("%v.PutFloat32s", d), func() { d.PutFloat32s(b, make([]float32, 1)) })
		mustPanic(t, fmt.Sprintf("%v.Float64s", d), func() { d.Float64s(make([]float64, 1), b) })
	}
}

func mustPanic(t *testing.T, what string, f func()) {
	t.Helper()
	defer func() {
		if recover() == nil {
			t.Errorf("%s: no panic", what)
		}
	}()
	f()
}

func TestDTypeNames(t *testing.T) {
	var floats []DType
	for d := F16; d <= Bool; d++ {
		text, err := d.MarshalText()
		if err != nil {
			t.Fatal(err)
		}
		var back DType
		if err := back.UnmarshalText(text); err != nil || back != d {
			t.Errorf("%s reads back as %v, %v", text, back, err)
		}
		if d.IsFloat() {
			floats = append(floats, d)
		}
	}
	if want := []DType{F16, BF16, F32, F64}; !slices.Equal(floats, want) {
		t.Errorf("float types %v, want %v", floats, want)
	}
	for _, name := range []string{"", "invalid", "f32", "F8_E4M3"} {
		var d DType
		if err := d.UnmarshalText([]byte(name)); err == nil {
			t.Errorf("%q is taken for %v", name, d)
		}
	}
	if got := DType(200).String(); got != "DType(200)" {
		t.Errorf("unknown type prints as %q", got)
	}
}
