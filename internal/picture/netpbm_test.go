package picture

import (
	"slices"
	"strings"
	"testing"

	"github.com/swagwrap/swagwrap/fixtures/reliability"
	"github.com/swagwrap/swagwrap/fixtures/testfile"
)

// PGM and PPM files have the pixels of Pillow.
func TestNetpbm(t *testing.T) {
	var cases []struct {
		Name      string
		File      []byte
		Size      [2]int
		RGB, Grey []int
	}
	testfile.JSON(t, "testdata/netpbm.json", &cases)
	for _, c := range cases {
		for grey, want := range map[bool][]int{false: c.RGB, true: c.Grey} {
			f, err := Open(c.File)
			if err != nil {
				t.Errorf("%s: %v", c.Name, err)
				continue
			}
			p, err := f.Decode(grey)
			var got []int
			for _, v := range p.Pix {
				got = append(got, int(v))
			}
			if err != nil || [2]int{p.W, p.H} != c.Size || !slices.Equal(got, want) {
				t.Errorf("%s, grey %v: %v, %v, want %v", c.Name, grey, got, err, want)
			}
		}
	}
}

// Masks keep the numbers of the file.
func TestNetpbmLevels(t *testing.T) {
	for file, want := range map[string][]int{
		"P5 3 1 255\n\x00\x01\xff":       {0, 1, 255},
		"P5 2 1 7\n\x00\x07":             {0, 7},
		"P2 3 1 65535 0 300 2":           {0, 300, 2},
		"P5 2 1 65535\n\x01\x00\x00\x02": {256, 2},
		"P6 1 1 255\nabc":                nil,
	} {
		f, err := Open([]byte(file))
		if err != nil {
			t.Fatal(err)
		}
		l, err := f.Levels()
		if (err != nil) != (want == nil) {
			t.Errorf("%q: %v", file, err)
		}
		for k, v := range want {
			if l.At(k) != v {
				t.Errorf("%q: number %d is %d, want %d", file, k, l.At(k), v)
			}
		}
	}
}

func TestNetpbmErrors(t *testing.T) {
	for file, want := range map[string]string{
		"P5 ":                                    "truncated",
		"P5 2 2 255\nabc":                        "truncated",
		"P6 2 2 255\nabcdefgh":                   "truncated",
		"P5 2 2 300\nabcdefg":                    "truncated",
		"P2 2 2 255\n1 2 3":                      "truncated",
		"P5 x 2 255\nab":                         `header: "x", want a number`,
		"P5 2 2 0\nabcd":                         "white is 0",
		"P5 2 2 65536\nabcdefgh":                 "white is 65536",
		"P5 0 2 255\n":                           "0×2 pixels, want at least one",
		"P5 99999999 9 255\n":                    "want at most 1048576 along a side",
		"P5 12345678901234 2 255\n":              "header: ",
		"P2 2 1 10\n3 11":                        `"11", want a number from 0 to 10`,
		"P2 2 1 255\n3 -1":                       `"-1", want a number from 0 to 255`,
		"P2 1 1 255\n" + strings.Repeat("1", 20): "want a number",
	} {
		f, err := Open([]byte(file))
		if err == nil {
			_, err = f.Decode(false)
		}
		if err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "Netpbm: ") {
			t.Errorf("%q: %v, want %q", file, err, want)
		}
	}
}

func FuzzNetpbm(f *testing.F) {
	f.Add([]byte("P5 2 2 255\nabcd"))
	f.Add([]byte("P3 1 1 255\n1 2 3"))
	f.Add([]byte("P2 1000 1000 255\n1"))
	f.Fuzz(func(t *testing.T, b []byte) {
		reliability.Heap(t, 16*len(b), func() {
			if len(b) < 3 || b[0] != 'P' {
				return
			}
			if x, err := Open(b); err == nil && x.kind == "Netpbm" {
				x.Decode(false)
				x.Levels()
			}
		})
	})
}
