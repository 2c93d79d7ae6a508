package multilabel_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/swagwrap/swagwrap/calibrate/multilabel"
)

// A scaling knows whether its rows determine it, for all labels together or for each.
func TestUndetermined(t *testing.T) {
	const n = 40
	wrong := func(every int) (z []float64, y []int) { // a label that is usually right
		for i := range n {
			y = append(y, i%2)
			z = append(z, float64(4*y[i]-2))
			if i%every/2 == 1 {
				z[i] = -z[i] / 2
			}
		}
		return z, y
	}
	usual, targets := wrong(10)
	right, _ := wrong(2)
	one := slices.Repeat([]int{1}, n)
	some := slices.Concat(slices.Repeat([]int{0, 1}, 4), slices.Repeat([]int{multilabel.Unknown}, n-8))
	join := func(a, b []float64, p, q []int) (z []float64, y []int) {
		for i := range n {
			z, y = append(z, a[i], b[i]), append(y, p[i], q[i])
		}
		return z, y
	}
	for _, tt := range []struct {
		name                 string
		z                    []float64
		y                    []int
		pooled, single, plat string // the beginning of the reason, or "" for a scaling that is determined
	}{
		{"usual", usual, targets, "", "", ""},
		{"all right", right, targets, "every one of 80 rows is predicted correctly", "label 0: every one of 40 rows", "label 0: a threshold separates all 40 rows"},
		{"one value", usual, one, "all 80 rows have the same label", "each label has one value only", "each label has one value only"},
		{"few", usual, some, "", "label 0: it is fitted on 8 rows", "label 0: it is fitted on 8 rows"},
	} {
		z, y := join(tt.z, tt.z, tt.y, tt.y)
		for by, want := range map[multilabel.Scaler]string{multilabel.ByTemperature: tt.pooled, multilabel.ByTemperatures: tt.single, multilabel.ByPlatt: tt.plat} {
			s, err := by.Fit(z, 2, y)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.HasPrefix(s.Undetermined, want) || (s.Undetermined == "") != (want == "") {
				t.Errorf("%s: %s: %q, want %q", tt.name, by, s.Undetermined, want)
			}
		}
	}
	// A degenerate label stays as it is, and the others are scaled.
	z, y := join(usual, usual, targets, one)
	for _, by := range []multilabel.Scaler{multilabel.ByTemperature, multilabel.ByTemperatures, multilabel.ByPlatt} {
		if s, err := by.Fit(z, 2, y); err != nil || s.Undetermined != "" {
			t.Errorf("%s: %q, %v", by, s.Undetermined, err)
		}
	}
}
