package picture

import (
	"bytes"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// TestInverseDCT compares with the definition in T.81 A.3.3 in float64. Values are
// those of photographs and worse. With factors of 13 bits and 2 more bits between
// the passes, few samples round to the other side: none may be off by more than
// 1, and no more than 3 of 100 by that.
func TestInverseDCT(t *testing.T) {
	var basis [8][8]float64 // sample, frequency
	for x := range 8 {
		for u := range 8 {
			basis[x][u] = math.Cos(float64(2*x+1)*float64(u)*math.Pi/16) / 2
			if u == 0 {
				basis[x][u] /= math.Sqrt2
			}
		}
	}
	r := rand.New(rand.NewPCG(1, 1))
	var q [64]uint16
	sum, n := 0.0, 0
	for round := range 2000 {
		var b [64]int16
		scale := []int{3, 30, 100}[round%3]
		for i := range b {
			q[i] = uint16(1 + r.IntN(8))
			if i%8+i/8 <= round%16 { // up to some frequency
				b[i] = int16((r.IntN(2*scale+1) - scale) / (1 + i%8 + i/8))
			}
		}
		var got [64]byte
		inverseDCT(got[:], 8, &b, &q)
		for y := range 8 {
			for x := range 8 {
				want := 128.0
				for v := range 8 {
					for u := range 8 {
						want += basis[y][v] * basis[x][u] * float64(b[8*v+u]) * float64(q[8*v+u])
					}
				}
				want = min(max(want, 0), 255)
				e := math.Abs(float64(got[8*y+x]) - math.RoundToEven(want))
				if e > 1 {
					t.Fatalf("sample %d, %d: %d, want %.3f", y, x, got[8*y+x], want)
				}
				sum, n = sum+e, n+1
			}
		}
	}
	if mean := sum / float64(n); mean > 0.03 {
		t.Errorf("off by %.4f on average, want at most 0.03", mean)
	}
}

// TestBadJPEG changes a file where it hurts.
func TestBadJPEG(t *testing.T) {
	plain, progressive := readPicture(t, "files/hopper.jpg"), readPicture(t, "files/video-001.progressive.jpeg")
	restarts := readPicture(t, "files/video-001.restart2.jpeg")
	// find returns where the body of the first segment with that marker begins.
	find := func(data []byte, marker byte) int {
		i := bytes.Index(data, []byte{0xff, marker})
		if i < 0 {
			t.Fatalf("no marker %#x", marker)
		}
		return i + 4
	}
	cut := func(data []byte, marker byte) []byte { // without the segment
		i := find(data, marker)
		return slices.Delete(data, i-4, i-2+int(data[i-2])<<8+int(data[i-1]))
	}
	set := func(data []byte, at int, b ...byte) []byte { return slices.Replace(data, at, at+len(b), b...) }
	tests := []struct {
		name string
		from []byte
		edit func(d []byte) []byte
		want string
	}{
		{"12 bits", plain, func(d []byte) []byte { return set(d, find(d, markerSOF0), 12) }, "12 bits for a sample, want 8"},
		{"no height", plain, func(d []byte) []byte { return set(d, find(d, markerSOF0)+1, 0, 0) }, "128×0 pixels, want at least one"},
		{"two components", plain, func(d []byte) []byte { return set(d, find(d, markerSOF0)+5, 2) }, "frame header of wrong length"},
		{"sampling 0", plain, func(d []byte) []byte { return set(d, find(d, markerSOF0)+7, 0x20) }, "component 0: sampling 2×0, table 0"},
		{"sampling 3 of 2", plain, func(d []byte) []byte { return set(d, find(d, markerSOF0)+10, 0x31) }, "component 0: sampling 2×2 of 3×2, want a whole ratio"},
		{"two frames", plain, func(d []byte) []byte {
			i := find(d, markerSOF0)
			return slices.Insert(d, i-4, slices.Clone(d[i-4:i+15])...)
		}, "two frame headers"},
		{"no frame", plain, func(d []byte) []byte { return cut(d, markerSOF0) }, "a scan before the frame header"},
		{"no tables", plain, func(d []byte) []byte { return cut(cut(d, markerDQT), markerDQT) }, "a scan without its quantisation table"},
		{"no codes", plain, func(d []byte) []byte { return cut(d, markerDHT) }, "a scan without its Huffman table"},
		{"too many codes", plain, func(d []byte) []byte { return set(d, find(d, markerDHT)+1, 3) }, "bad Huffman table"},
		{"unknown component", plain, func(d []byte) []byte { return set(d, find(d, markerSOS)+1, 77) }, "bad scan header"},
		{"component twice", plain, func(d []byte) []byte { return set(d, find(d, markerSOS)+3, 1) }, "a scan with a component twice"},
		{"arithmetic", plain, func(d []byte) []byte { return set(d, find(d, markerSOF0)-3, 0xc9) }, "lossless, hierarchical or arithmetic coding (marker 0xc9)"},
		{"segment of length 1", plain, func(d []byte) []byte { return set(d, find(d, markerDQT)-2, 0, 1) }, "segment 0xdb of length 1"},
		{"end in a scan", plain, func(d []byte) []byte { return set(d, find(d, markerSOS)+500, 0xff, markerEOI) }, "too little data in a scan"},
		{"end after the header", plain, func(d []byte) []byte { return set(d, find(d, markerSOS)-4, 0xff, markerEOI) }, "no image before the end marker"},
		{"no end", plain, func(d []byte) []byte { return d[:len(d)-2] }, "truncated: unexpected EOF"},
		{"wrong restart", restarts, func(d []byte) []byte { return set(d, find(d, markerRST0+1)-3, markerRST0+5) }, "marker 0xd5, want restart marker 0xd1"},
		{"restarts too often", restarts, func(d []byte) []byte { return set(d, find(d, markerDRI), 0, 1) }, "marker 0xd9, want restart marker"},
		{"bad progression", progressive, func(d []byte) []byte { return set(d, find(d, markerSOS)+7, 0, 9) }, "bad progression in a scan header"},
		{"many scans", progressive, func(d []byte) []byte {
			d = d[:len(d)-2]
			last := d[bytes.LastIndex(d, []byte{0xff, markerSOS}):]
			return append(bytes.Join(append([][]byte{d}, slices.Repeat([][]byte{last}, maxScans)...), nil), 0xff, markerEOI)
		}, "more than 500 scans"},
	}
	for _, tt := range tests {
		_, err := Decode(tt.edit(slices.Clone(tt.from)), false)
		if err == nil || !strings.HasPrefix(err.Error(), "JPEG: "+tt.want) {
			t.Errorf("%s: error %v, want %q", tt.name, err, tt.want)
		}
	}
}

// TestJunkBetweenSegments: libjpeg skips what is not a marker.
func TestJunkBetweenSegments(t *testing.T) {
	data := readPicture(t, "files/hopper.jpg")
	want := decode(t, "files/hopper.jpg", false)
	for _, marker := range []byte{markerDQT, markerDHT, markerSOS, markerEOI} {
		at := bytes.LastIndex(data, []byte{0xff, marker})
		got, err := Decode(slices.Insert(slices.Clone(data), at, 1, 2, 0xff, 0, 3, 0xff, 0xff), false)
		if err != nil || !bytes.Equal(got.Pix, want.Pix) {
			t.Errorf("junk before marker %#x: %v", marker, err)
		}
	}
}
