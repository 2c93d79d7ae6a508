package text

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/swagwrap/swagwrap/fixtures/reliability"
)

// tokens is a text of n tokens whose documents have the given lengths. The last one has the rest.
func tokens(n int, lengths ...int) *Tokens {
	t := &Tokens{IDs: make([]int32, n)}
	if lengths == nil {
		return t
	}
	t.Document = make([]int32, n)
	k := 0
	for i := range n {
		for k < len(lengths) && lengths[k] <= 0 {
			k++
		}
		t.Document[i] = int32(k)
		if k < len(lengths) {
			lengths[k]--
		}
	}
	return t
}

// Every number of a SPEC has bounds.
func TestNumbersOfCutting(t *testing.T) {
	t.Parallel()
	for _, key := range []string{"rows", "bptt", "window", "stride", "context"} {
		for _, value := range []string{"0", "-1", "9223372036854775807", "-9223372036854775808", "1000000000000000000", "2147483648", "99999999999999999999999", "1e3", "1e-300", "nan", "inf", "1.5", "", "0x10", "1_0"} {
			if _, err := ParseCutting(key + "=" + value); err == nil || !strings.Contains(err.Error(), "want a whole number from 1 to 2147483647") {
				t.Errorf("%s=%s: error %v", key, value, err)
			}
		}
	}
}

// The largest numbers that a SPEC may have do not overflow, and take memory for the windows of the text only.
func TestLargeCuttings(t *testing.T) {
	t.Parallel()
	const most = math.MaxInt32
	for _, c := range []struct {
		cutting Cutting
		text    *Tokens
		windows int
		want    string
	}{
		{Cutting{Rows: most}, tokens(100), 0, "a text of 100 tokens, want at least 2 for each of 2147483647 rows"},
		{Cutting{Rows: most, Fresh: true}, tokens(100), 0, "want at least 2"},
		{Cutting{Rows: most, Reset: true}, tokens(100, 10, 10), 0, "want at least 2"},
		{Cutting{Rows: 51}, tokens(100), 0, "want at least 2"},
		{Cutting{Rows: 50, BPTT: most}, tokens(100), 50, ""},
		{Cutting{Rows: 1, BPTT: most, Context: most}, tokens(100), 1, ""},
		{Cutting{Rows: 50, BPTT: most, Reset: true}, tokens(100, 90), 50, ""},
		{Cutting{Window: most}, tokens(100), 1, ""},
		{Cutting{Window: most, Stride: most}, tokens(100), 1, ""},
		{Cutting{Window: most, Stride: 1}, tokens(100), 1, ""},
		{Cutting{Window: 2, Stride: 1}, tokens(100), 99, ""},
		{Cutting{Rows: 1, BPTT: 1}, tokens(1<<24 + 2), 0, "16777217 windows, want at most 16777216: say fewer rows or a larger bptt"},
		{Cutting{Window: 2, Stride: 1}, tokens(1<<24 + 1), 0, "16777217 windows, want at most 16777216: say a larger stride"},
		{Cutting{Rows: 1 << 13, BPTT: 1, Reset: true}, tokens(1<<16, 1<<15), 0, "268427264 windows, want at most 16777216: say fewer rows"},
		{Cutting{Rows: 100, BPTT: 1, Reset: true}, tokens(1<<16, 1<<16), 0, "6553500 windows, of which 6487965 are empty, because one row has 65535: say fewer rows"},
		{Cutting{Rows: 10, BPTT: 1, Reset: true}, tokens(1<<16, 1<<16), 655350, ""},
	} {
		c.cutting.Preset(0)
		name := fmt.Sprintf("%+v of %d tokens", c.cutting, len(c.text.IDs))
		reliability.Heap(t, 10*len(c.text.IDs), func() {
			rows, err := c.cutting.Cut(c.text, c.cutting.Longest())
			switch {
			case c.want != "":
				if !errors.As(err, new(CutError)) || !strings.Contains(err.Error(), c.want) {
					t.Errorf("%s: error %v, want %q", name, err, c.want)
				}
			case err != nil:
				t.Errorf("%s: %v", name, err)
			case len(rows)*len(rows[0]) != c.windows:
				t.Errorf("%s: %d rows of %d windows, want %d windows", name, len(rows), len(rows[0]), c.windows)
			}
		})
	}
	wide := Cutting{Rows: 1}
	wide.Preset(math.MaxInt)
	if _, err := wide.Cut(tokens(100), wide.Longest()); !errors.As(err, new(CutError)) {
		t.Errorf("a network that takes %d tokens: error %v", math.MaxInt, err)
	}
}

// Any SPEC is refused, or cuts the text into windows that lie in it and score no token twice, all rows equally many.
func FuzzCutting(f *testing.F) {
	for _, spec := range []string{"", "rows=4 bptt=5", "rows=3 bptt=4 reset=documents", "rows=2 reset=windows context=7", "window=8 stride=3", "window=2147483647 stride=1", "rows=9223372036854775807", "bptt=1 vocabulary=a array=b"} {
		f.Add(spec, uint16(100), uint16(30), uint16(0))
	}
	f.Fuzz(func(t *testing.T, spec string, n, document, fixed uint16) {
		c, err := ParseCutting(spec)
		if err != nil {
			return
		}
		c.Preset(int(fixed))
		of := tokens(int(n))
		if document > 0 {
			of = tokens(int(n), int(document), int(document)/2)
		}
		const each = 40 // bytes of a window
		reliability.Heap(t, each*maxEmpty*(int(n)+1), func() {
			rows, err := c.Cut(of, c.Longest())
			if err != nil {
				return
			}
			scored := make([]bool, n)
			for _, row := range rows {
				if len(row) != len(rows[0]) {
					t.Fatalf("rows of %d and %d windows", len(row), len(rows[0]))
				}
				for _, w := range row {
					if w.First < 0 || w.N < 1 || w.First+w.N > int(n) || w.N > c.Longest() || w.From < 0 || w.From > w.To || w.To > w.N || w.Past < 0 {
						t.Fatalf("%+v of %d tokens", w, n)
					}
					for p := w.From; p < w.To; p++ {
						at := w.First + p + 1
						if at >= int(n) || scored[at] {
							t.Fatalf("%+v of %d tokens scores token %d again, or behind the end", w, n, at)
						}
						scored[at] = true
					}
				}
			}
		})
	})
}
