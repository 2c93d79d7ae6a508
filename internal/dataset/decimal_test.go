package dataset

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/swagwrap/swagwrap/internal/target"
)

// Numbers with a decimal comma are those with a point, as inputs, targets and labels. What could be another number is refused.
func TestDecimalCommas(t *testing.T) {
	dir := t.TempDir()
	writePNG(t, filepath.Join(dir, "a.png"), 2, 2, 3, make([]byte, 12))
	table, list := Options{Fields: []Field{floats("x", 2)}}, Options{Shape: []int64{3, 2, 2}}
	for _, c := range []struct {
		text string
		opts Options
		kind target.Kind
		row  []float32 // of the first example
		want any       // its class or target, or words of the error
	}{
		{"x_0;x_1;target\n1,5;2;-2,25\n3;4e1;1\n", table, target.Numbers, []float32{1.5, 2}, -2.25},
		{"x_0;x_1;label\n-1,5;2,5e1;3,0\n3,25;4,0;10,0\n", table, target.Classes, []float32{-1.5, 25}, 3},
		{"x_0;x_1;label\n1.5;2;3\n", table, target.Classes, []float32{1.5, 2}, 3},
		{"path;target\na.png;1,5\n", list, target.Numbers, nil, 1.5},
		{"path;label\na.png;3,0\na.png;10,0\n", list, target.Classes, nil, 3},
		{"x_0;x_1;label\n1,5;2;3\n1.5;2;3\n", table, target.Classes, nil, "such as \"1,5\" (line 2, column \"x_0\"), and others a point, such as \"1.5\" (line 3, column \"x_0\")"},
		{"x_0;x_1;label\n0,5;1.234;3\n", table, target.Classes, nil, "such as \"1.234\" (line 2, column \"x_1\")"},
		{"x_0;x_1;label\n1.234;2.5;3\n1.5;0,5;3\n", table, target.Classes, nil, "such as \"0,5\" (line 3, column \"x_1\")"},
		{"x_0;x_1;target\n0,5;2;1.234\n", table, target.Numbers, nil, "such as \"1.234\" (line 2, column \"target\")"},
		{"x_0;x_1;target\n1.5;2;1,25\n", table, target.Numbers, nil, "some numbers have a decimal comma"},
		{"path;target_0;target_1\na.png;0,5;1.234\n", list, target.Numbers, nil, "such as \"1.234\" (line 2)"},
		{"x_0;x_1;label\n1.234;2.5;v1,5\n", table, target.Classes, []float32{1.234, 2.5}, 0},
		{"x_0;x_1;label\n1.234,5;2;3\n", table, target.Classes, nil, "without signs between thousands"},
		{"x_0;x_1;label\n1,234,567;2;3\n", table, target.Classes, nil, "without signs between thousands"},
	} {
		path := filepath.Join(dir, "a.csv")
		write(t, path, []byte(c.text))
		c.opts.Target = c.kind
		d, err := Open([]string{path}, c.opts)
		if words, refused := c.want.(string); refused || err != nil {
			if err == nil || !refused || !strings.Contains(err.Error(), words) {
				t.Errorf("%q: %v, want %v", c.text, err, c.want)
			}
			continue
		}
		if c.row != nil {
			size, _ := SizeOf(d)
			v := size.Make(1)
			if err := d.Read(v, 0); err != nil || !slices.Equal(v.Floats, c.row) {
				t.Errorf("%q: inputs %v, %v", c.text, v.Floats, err)
			}
		}
		switch l := d.Labels(); want := c.want.(type) {
		case int:
			if l.Classes[0] != want {
				t.Errorf("%q: class %d, want %d", c.text, l.Classes[0], want)
			}
		case float64:
			if l.Width != 1 || l.Values[0] != want {
				t.Errorf("%q: targets %v, want %v", c.text, l.Values, want)
			}
		}
	}
}
