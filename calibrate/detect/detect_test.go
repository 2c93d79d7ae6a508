package detect_test

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/swagwrap/swagwrap/calibrate/detect"
)

// approx is the tolerance of the scripts that make the goldens.
var approx = cmpopts.EquateApprox(1e-9, 1e-9)

func diff[T any](t *testing.T, what string, got, want T) {
	t.Helper()
	if diff := cmp.Diff(want, got, approx); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func TestShapeMistakesPanic(t *testing.T) {
	x := make([]float64, 6)
	for name, f := range map[string]func(){
		"AUROC difference: unpaired": func() { detect.AUROCDifference(x, x, x, x[:1]) },
		"AUROC difference: empty":    func() { detect.AUROCDifference(x, nil, x, nil) },
		"AUROC: nothing in":          func() { detect.AUROC(nil, x) },
		"AUPR: nothing out":          func() { detect.AUPR(x, nil) },
		"FPR: rate 0":                func() { detect.FPRAt(x, x, 0) },
		"FPR: rate NaN":              func() { detect.FPRAt(x, x, math.NaN()) },
		"entropy NaN":                func() { detect.EntropyHistogram([]float64{math.NaN()}) },
		"KL: other bins":             func() { detect.SymmetrizedKL(detect.Histogram{}, detect.EntropyHistogram(x), 1) },
		"KL: smoothing":              func() { detect.SymmetrizedKL(detect.Histogram{}, detect.Histogram{}, 0) },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if s, ok := recover().(string); !ok || !strings.HasPrefix(s, "detect: ") {
					t.Errorf("recovered %q, want a text of this package", s)
				}
			}()
			f()
		})
	}
}
