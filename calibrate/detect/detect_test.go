package detect_test

import (
	"math"
	"testing"

	"github.com/swagwrap/swagwrap/calibrate/detect"
	"github.com/swagwrap/swagwrap/fixtures/testfile"
)

func TestShapeMistakesPanic(t *testing.T) {
	x := make([]float64, 6)
	testfile.Panics(t, "detect: ", map[string]func(){
		"AUROC difference: unpaired": func() { detect.AUROCDifference(x, x, x, x[:1]) },
		"AUROC difference: empty":    func() { detect.AUROCDifference(x, nil, x, nil) },
		"AUROC: nothing in":          func() { detect.AUROC(nil, x) },
		"AUPR: nothing out":          func() { detect.AUPR(x, nil) },
		"FPR: rate 0":                func() { detect.FPRAt(x, x, 0) },
		"FPR: rate NaN":              func() { detect.FPRAt(x, x, math.NaN()) },
		"entropy NaN":                func() { detect.EntropyHistogram([]float64{math.NaN()}) },
		"KL: other bins":             func() { detect.SymmetrizedKL(detect.Histogram{}, detect.EntropyHistogram(x), 1) },
		"KL: smoothing":              func() { detect.SymmetrizedKL(detect.Histogram{}, detect.Histogram{}, 0) },
	})
}
