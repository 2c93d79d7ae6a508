package multilabel_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/swagwrap/swagwrap/calibrate"
	"github.com/swagwrap/swagwrap/calibrate/multilabel"
)

func TestFitRefuses(t *testing.T) {
	inf, nan := math.Inf(1), math.NaN()
	for _, tt := range []struct {
		by      multilabel.Scaler
		logits  []float64
		targets []int
		want    string
	}{
		{multilabel.ByTemperature, nil, nil, "no rows to fit on"},
		{multilabel.ByPlatt, []float64{1, 2}, []int{-1, -1}, "nothing is known of any label"},
		{multilabel.ByTemperatures, []float64{1, nan}, []int{1, -1}, "row 0: label 1: logit NaN, want a number"},
		{multilabel.ByTemperature, []float64{1, 2, inf, 2}, []int{1, 0, 0, 1}, "row 1: label 0: its value has probability 0 at every temperature"},
		{multilabel.ByTemperature, []float64{1, 2, inf, -inf}, []int{1, 0, 1, 0}, ""},
		{multilabel.ByPlatt, []float64{1, 2, inf, 2}, []int{1, 0, 0, 1}, "row 1: label 0: its value has probability 0 at every temperature"},
		{multilabel.ByPlatt, []float64{1, 2, inf, 2, -3, 1, 2, 0, -2, 1}, []int{0, 0, 1, 1, 1, 1, 0, 0, 1, 0}, "label 0: want finite logits: Platt scaling of the finite ones reverses their order, against the infinite ones"},
		{multilabel.ByPlatt, []float64{1, 2}, []int{1, 3}, "row 0: label 1: value 3, want 0, 1 or -1"},
		{multilabel.ByPlatt, []float64{1, 2}, []int{1, 0}, ""}, // one row: both are kept
	} {
		_, err := tt.by.Fit(tt.logits, 2, tt.targets)
		refused(t, err, tt.want)
	}
}

// Logits that are all right, or rather wrong, have a temperature at a bound. Infinite ones stay as they are.
func TestTemperatureAtBound(t *testing.T) {
	z, y := []float64{3, 2, -1, 1, math.Inf(-1), -2}, []int{1, 0, 0, 1, 0, 1} // label 0 all right, label 1 rather wrong
	s, err := multilabel.ByTemperatures.Fit(z, 2, y)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(s.AtBound, []int{0, 1}) || s.A[0] != 1/calibrate.MinTemperature || s.A[1] != 1/calibrate.MaxTemperature {
		t.Errorf("at bound %v, A %v", s.AtBound, s.A)
	}
	if s.Undetermined != "label 0: it is fitted on 3 rows, want at least 10" {
		t.Errorf("undetermined: %q", s.Undetermined)
	}
	if p := s.Apply(z); p[4] != 0 || slices.ContainsFunc(p, math.IsNaN) {
		t.Errorf("probabilities %v", p)
	}
}

// Platt's fit ends where the gradient vanishes, whatever the scale of the logits, and
// never above where it began.
func TestPlattOnAnyScale(t *testing.T) {
	rng := rand.New(rand.NewPCG(17, 18))
	for range 400 {
		scale, offset := math.Exp(24*rng.Float64()-12), 0.0
		if rng.IntN(2) == 0 {
			offset = 30 * scale * rng.NormFloat64()
		}
		n := 2 + rng.IntN(40)
		z, y := make([]float64, n), make([]int, n)
		for i := range z {
			x := rng.NormFloat64()
			z[i] = offset + scale*x
			if rng.Float64() < 1/(1+math.Exp(-3*x)) {
				y[i] = 1
			}
		}
		y[0], y[1] = 0, 1
		s, err := multilabel.ByPlatt.Fit(z, 1, y)
		if err != nil {
			t.Fatal(err)
		}
		a, b := s.A[0], s.B[0]
		if math.IsNaN(a+b) || math.IsInf(a+b, 0) || s.NLLAfter > s.NLLBefore {
			t.Fatalf("scale %v, offset %v: a %v, b %v, NLL %v then %v", scale, offset, a, b, s.NLLBefore, s.NLLAfter)
		}
		ga, gb, size := multilabel.PlattRidge*(a-1), multilabel.PlattRidge*b, 0.0
		for i := range z {
			off := 1/(1+math.Exp(-a*z[i]-b)) - float64(y[i])
			ga += off * z[i] / float64(n)
			gb += off / float64(n)
			size = max(size, math.Abs(z[i]))
		}
		if math.Abs(ga) > 1e-8*(1+size) || math.Abs(gb) > 1e-8 {
			t.Errorf("scale %v, offset %v, %d rows: gradient (%v, %v) at a %v, b %v", scale, offset, n, ga, gb, a, b)
		}
	}
}

// Nine digits of a probability may be 1. Platt's fit is the same as with a log-odds that is as good as infinite.
func TestPlattOfInfiniteLogits(t *testing.T) {
	rng := rand.New(rand.NewPCG(19, 20))
	z, y := make([]float64, 60), make([]int, 60)
	for i := range z {
		z[i], y[i] = 2*rng.NormFloat64(), i%2
		z[i] += float64(2*y[i] - 1)
	}
	sure := slices.Clone(z)
	for _, i := range []int{3, 8, 20, 21} {
		z[i], sure[i] = math.Inf(2*y[i]-1), 1e4*float64(2*y[i]-1)
	}
	infinite, err := multilabel.ByPlatt.Fit(z, 1, y)
	if err != nil {
		t.Fatal(err)
	}
	finite, err := multilabel.ByPlatt.Fit(sure, 1, y)
	if err != nil {
		t.Fatal(err)
	}
	if a, b := infinite.A[0]-finite.A[0], infinite.B[0]-finite.B[0]; math.Abs(a)+math.Abs(b) > 1e-6 {
		t.Errorf("a %v, b %v, want %v, %v", infinite.A, infinite.B, finite.A, finite.B)
	}
	if p := infinite.Apply(z); p[3] != 1 || p[8] != 0 || math.Abs(infinite.NLLAfter-finite.NLLAfter) > 1e-9 || slices.ContainsFunc(p, math.IsNaN) {
		t.Errorf("probabilities %v, NLL %v, want %v", p, infinite.NLLAfter, finite.NLLAfter)
	}
}

// Labels with one value are left as they are, each other is fitted as if it were alone,
// and unknown ones do not count.
func TestEachLabelAlone(t *testing.T) {
	z := []float64{1, 5, 2, 5, -1, 5, 0.5, 5, -2, 5}
	y := []int{1, 1, 0, 1, 0, 1, 1, -1, 0, 1}
	for _, by := range []multilabel.Scaler{multilabel.ByTemperatures, multilabel.ByPlatt} {
		both, err := by.Fit(z, 2, y)
		if err != nil {
			t.Fatal(err)
		}
		alone, err := by.Fit([]float64{1, 2, -1, 9, 0.5, -2}, 1, []int{1, 0, 0, multilabel.Unknown, 1, 0})
		if err != nil {
			t.Fatal(err)
		}
		if both.A[0] != alone.A[0] || both.B[0] != alone.B[0] || both.A[1] != 1 || both.B[1] != 0 || !slices.Equal(both.Kept, []int{1}) {
			t.Errorf("%s: %+v together, %+v alone", by, both, alone)
		}
	}
}

// A label that goes the other way is turned round by Platt's fit, which warns of it.
func TestPlattTurnsRound(t *testing.T) {
	s, err := multilabel.ByPlatt.Fit([]float64{2, 1, -1, -2, 1.5, -0.5}, 1, []int{0, 0, 1, 1, 1, 0})
	if err != nil {
		t.Fatal(err)
	}
	if s.A[0] >= 0 || len(s.Warnings) != 1 {
		t.Errorf("a = %v, warnings %v", s.A[0], s.Warnings)
	}
	s, err = multilabel.ByPlatt.Fit([]float64{2, 1, -1, -2}, 1, []int{0, 0, 1, 1})
	if err != nil {
		t.Fatal(err)
	}
	if s.A[0] >= 0 || s.Undetermined == "" || !slices.Equal(s.AtBound, []int{0}) {
		t.Errorf("told apart the wrong way: a = %v, warnings %v", s.A[0], s.Warnings)
	}
}
