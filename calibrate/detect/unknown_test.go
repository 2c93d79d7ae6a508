package detect_test

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/swagwrap/swagwrap/calibrate/detect"
	"github.com/swagwrap/swagwrap/fixtures/testfile"
)

// Against pytorch-ood and torch-uncertainty; testdata/unknown.py says more.
func TestUnknown(t *testing.T) {
	t.Parallel()
	var problems []struct {
		Width, Dimension                    int
		Labels                              []int
		Features, New, Weights, Bias, Probs []float64
		Relative, ViM, GEN, NNGuide         []float64
		Scores                              []float64
		Wrong                               []bool
		SCOD                                float64
	}
	testfile.JSON(t, "testdata/unknown.json", &problems)
	if len(problems) < 3 {
		t.Fatal("testdata/unknown.json lacks problems")
	}
	for k, p := range problems {
		check := func(what string, got, want []float64) {
			if len(got) != len(want) {
				t.Fatalf("problem %d: %s: %d scores, want %d", k, what, len(got), len(want))
			}
			for i := range got {
				if !(math.Abs(got[i]-want[i]) <= 1e-6*math.Max(1, math.Abs(want[i]))) {
					t.Errorf("problem %d: %s: row %d: %v, want %v", k, what, i, got[i], want[i])
				}
			}
		}
		known, others := mat.NewDense(len(p.Labels), p.Width, p.Features), mat.NewDense(len(p.GEN), p.Width, p.New)
		layer := detect.Layer{Weights: mat.NewDense(len(p.Bias), p.Width, p.Weights), Bias: p.Bias}
		r, err := detect.FitRelativeMahalanobis(known, p.Labels)
		if err != nil {
			t.Fatal(err)
		}
		check("relative Mahalanobis", r.Distances(others), p.Relative)
		v, err := detect.FitViM(known, layer, p.Dimension)
		if err != nil {
			t.Fatal(err)
		}
		check("ViM", v.Scores(others), p.ViM)
		check("GEN", detect.GEN(p.Probs, len(p.Bias)), p.GEN)
		check("NNGuide", detect.NNGuide(known, others, layer, detect.Guides), p.NNGuide)
		check("SCOD", []float64{detect.SCOD(p.Scores[:40], p.Wrong, p.Scores[40:])}, []float64{p.SCOD})
	}
}

// Equal scores say nothing, whatever the order of examples. A perfect score accepts all others first.
func TestSCOD(t *testing.T) {
	t.Parallel()
	equal := make([]float64, 4)
	a, b := detect.SCOD(equal, []bool{true, false, false, false}, equal), detect.SCOD(equal, []bool{false, false, false, true}, equal)
	testfile.Near(t, "order", a, b)
	testfile.Near(t, "equal scores", a, 0.5*5/8)
	if perfect := detect.SCOD([]float64{0, 1, 2, 3}, []bool{false, false, false, true}, []float64{4, 5, 6, 7}); !(perfect < a/2) {
		t.Error(perfect)
	}
	testfile.Panics(t, "detect: ", map[string]func(){"lengths": func() { detect.SCOD(equal, nil, equal) }, "nothing": func() { detect.SCOD(nil, nil, nil) }})
}
