package calibrate_test

import (
	"math"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/swagwrap/swagwrap/calibrate"
	"github.com/swagwrap/swagwrap/calibrate/detect"
	"github.com/swagwrap/swagwrap/fixtures/testfile"
)

// extended is testdata/extended.json; testdata/extended.py says what is in it and
// where the tolerances are from.
type extended struct {
	Seed    uint64
	Metrics []struct {
		Name      string
		Top5      *float64 // nil: NaN
		Entropy   float64
		Classwise map[string]float64
		Risks     []float64
		Selective map[string]float64
		APS       []struct {
			Level, Threshold, Coverage float64
			Sizes                      []int
		}
	}
	Detection []struct {
		Name        string
		In, Out     []float64
		AUROC, AUPR float64
		FPR         map[string]float64
	}
	Entropies []struct {
		Name          string
		In, Out       []float64
		Smoothing, KL float64
		Counts        [2][]int
		Below, Above  [2]int
	}
}

func readExtended(t *testing.T) extended {
	t.Helper()
	var e extended
	testfile.JSON(t, "testdata/extended.json", &e)
	if len(e.Metrics) == 0 || len(e.Detection) == 0 || len(e.Entropies) == 0 {
		t.Fatal("testdata/extended.json lacks problems")
	}
	return e
}

// share parses a key of the file.
func share(t *testing.T, key string) float64 {
	t.Helper()
	x, err := strconv.ParseFloat(key, 64)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

func TestExtendedMetrics(t *testing.T) {
	t.Parallel()
	g, e := readGolden(t), readExtended(t)
	for i, want := range e.Metrics {
		t.Run(want.Name, func(t *testing.T) {
			source := g.Metrics[i]
			p := predictions(t, g.probs(source.Counts), source.Classes, source.Labels...)
			m := calibrate.Evaluate(p, calibrate.EvaluateOptions{})
			if want.Top5 == nil {
				want.Top5 = new(math.NaN())
			}
			if diff := cmp.Diff(*want.Top5, m.Top5, approx, cmpopts.EquateNaNs()); diff != "" {
				t.Errorf("top 5 (-want +got):\n%s", diff)
			}
			diff(t, "entropy", m.Entropy, want.Entropy)
			diff(t, "classwise ECE", m.ClasswiseECE, want.Classwise["equal-mass"])
			diff(t, "classwise ECE, equal width", calibrate.ClasswiseECE(p, calibrate.ECEOptions{Binning: calibrate.EqualWidth}), want.Classwise["equal-width"])
			for _, other := range source.ECE { // of golden.py
				if other.Bins == 20 {
					got := map[string]float64{"equal_mass": m.ECE, "equal_width": m.ECEEqualWidth, "swag_reference": m.ECEReference}
					diff(t, "ECE "+other.Binning, got[other.Binning], other.ECE)
				}
			}

			var curve []float64
			var mean float64
			for k, point := range calibrate.RiskCoverage(p) {
				curve = append(curve, point.Risk)
				mean += want.Risks[k] / float64(p.Len())
				diff(t, "coverage", point.Coverage, float64(k+1)/float64(p.Len()))
			}
			diff(t, "risk–coverage curve", curve, want.Risks)
			diff(t, "AURC", m.AURC, mean)
			diff(t, "AURC", calibrate.AURC(p), mean)
			diff(t, "selective risk", m.SelectiveRisk, want.Selective["0.9"])
			for coverage, risk := range want.Selective {
				diff(t, "risk at "+coverage, calibrate.SelectiveRisk(p, share(t, coverage)), risk)
			}
		})
	}
}

func TestExtendedAPS(t *testing.T) {
	g, e := readGolden(t), readExtended(t)
	sets := 0
	for i, metrics := range e.Metrics {
		source := g.Metrics[i]
		p := predictions(t, g.probs(source.Counts), source.Classes, source.Labels...)
		for _, want := range metrics.APS {
			sets++
			a, err := calibrate.FitAPS(p, want.Level, e.Seed)
			if err != nil {
				t.Fatalf("%s: %v", metrics.Name, err)
			}
			diff(t, metrics.Name+": threshold", a.Thresholds[0], want.Threshold)
			diff(t, metrics.Name+": sizes", a.Sizes(nil, p), want.Sizes)
			var mean float64
			for _, s := range want.Sizes {
				mean += float64(s) / float64(len(want.Sizes))
			}
			got := a.Judge(p)
			diff(t, metrics.Name+": set size", got.Size, mean)
			diff(t, metrics.Name+": set coverage", got.Coverage, want.Coverage)
		}
	}
	if sets < 15 {
		t.Errorf("%d fits, want at least 15", sets)
	}
}

func TestExtendedDetection(t *testing.T) {
	for _, want := range readExtended(t).Detection {
		diff(t, want.Name+": AUROC", detect.AUROC(want.In, want.Out), want.AUROC)
		diff(t, want.Name+": AUPR", detect.AUPR(want.In, want.Out), want.AUPR)
		for tpr, fpr := range want.FPR {
			diff(t, want.Name+": FPR at "+tpr, detect.FPRAt(want.In, want.Out, share(t, tpr)), fpr)
		}
	}
}

func TestExtendedEntropies(t *testing.T) {
	for _, want := range readExtended(t).Entropies {
		var h [2]detect.Histogram
		for i, x := range [][]float64{want.In, want.Out} {
			h[i] = detect.EntropyHistogram(x)
			diff(t, want.Name+": counts", h[i].Counts, want.Counts[i])
			diff(t, want.Name+": below", h[i].Below, want.Below[i])
			diff(t, want.Name+": above", h[i].Above, want.Above[i])
		}
		diff(t, want.Name+": KL", detect.SymmetrizedKL(h[0], h[1], want.Smoothing), want.KL)
	}
}
