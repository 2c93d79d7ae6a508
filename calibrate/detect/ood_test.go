package detect_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/swagwrap/swagwrap/calibrate/detect"
	"github.com/swagwrap/swagwrap/fixtures/testfile"
)

// The area is the share of pairs in the right order.
func TestAUROCCountsPairs(t *testing.T) {
	rng := rand.New(rand.NewPCG(31, 0))
	in, out := make([]float64, 70), make([]float64, 30)
	for i := range in {
		in[i] = float64(rng.IntN(12))
	}
	for i := range out {
		out[i] = float64(rng.IntN(12) + 2)
	}
	var pairs float64
	for _, a := range in {
		for _, b := range out {
			switch {
			case b > a:
				pairs++
			case b == a:
				pairs += 0.5
			}
		}
	}
	testfile.Near(t, "AUROC", detect.AUROC(in, out), pairs/70/30)
	testfile.Near(t, "AUROC, turned round", detect.AUROC(out, in), 1-pairs/70/30)
}

func TestDetectionExtremes(t *testing.T) {
	inf, nan := math.Inf(1), math.NaN()
	for _, test := range []struct {
		name             string
		in, out          []float64
		auroc, aupr, fpr float64
	}{
		{"constant", []float64{1, 1, 1}, []float64{1}, 0.5, 0.25, 1},
		{"one each", []float64{0}, []float64{1}, 1, 1, 0},
		{"infinite", []float64{-inf, 0}, []float64{inf, inf}, 1, 1, 0},
		{"wrong way", []float64{1}, []float64{0}, 0, 0.5, 1},
	} {
		testfile.Near(t, test.name+": AUROC", detect.AUROC(test.in, test.out), test.auroc)
		testfile.Near(t, test.name+": AUPR", detect.AUPR(test.in, test.out), test.aupr)
		testfile.Near(t, test.name+": FPR", detect.FPRAt(test.in, test.out, 0.95), test.fpr)
		// With one image on a side nothing is known of the AUROC; without it all pairs agree.
		want := detect.Detection{AUROC: test.auroc, High: 1, AUPR: test.aupr, FPR95: test.fpr}
		if len(test.out) > 1 {
			want.Low = math.Sqrt(0.025) // two pairs: see TestPerfectAUROC
		}
		testfile.Near(t, test.name, detect.Detect(test.in, test.out), want)
	}
	for _, x := range []float64{
		detect.AUROC([]float64{nan}, []float64{1}), detect.AUPR([]float64{0}, []float64{nan}), detect.FPRAt([]float64{nan}, []float64{1}, 0.95),
	} {
		if !math.IsNaN(x) {
			t.Errorf("%v of a score that is NaN, want NaN", x)
		}
	}
}

// Kills: H < 1e-8 lost.
// Edges are the least and the largest positive value, and with a constant factor between them.
func TestLogarithmicEdges(t *testing.T) {
	for _, test := range []struct {
		values      [][]float64
		least, most float64
	}{
		{[][]float64{{0, 3, 0.7}, {1.1}, {}}, 0.7, 3},
		{[][]float64{{5, 5}}, 2.5, 10},
		{[][]float64{{0}, nil}, 0.5, 2},
	} {
		edges := detect.LogarithmicEdges(test.values...)
		if len(edges) != 30 || edges[0] != test.least || edges[29] != test.most {
			t.Errorf("%v: edges %v", test.values, edges)
		}
		for i := 1; i < len(edges); i++ {
			if f := math.Pow(test.most/test.least, 1.0/29); math.Abs(edges[i]/edges[i-1]-f) > 1e-12 {
				t.Errorf("%v: edge %d is %v times the one before, want %v", test.values, i, edges[i]/edges[i-1], f)
			}
		}
		for _, list := range test.values {
			if h := detect.NewHistogram(edges, list); h.Above != 0 {
				t.Errorf("%v: %+v", test.values, h)
			}
		}
	}
}

func TestEntropyHistogramLosesNothing(t *testing.T) {
	h := detect.EntropyHistogram([]float64{0, 1e-300, 9.9e-9, 1e-8, 0.5, math.Sqrt(10), 3.2, math.Inf(1)})
	inside := 0
	for _, k := range h.Counts {
		inside += k
	}
	if h.Below != 3 || inside != 3 || h.Above != 2 {
		t.Errorf("%d below, %d inside, %d above; want 3, 3, 2", h.Below, inside, h.Above)
	}
	if len(h.Edges) != 30 || len(h.Counts) != 29 || h.Edges[0] != 1e-8 || h.Counts[0] != 1 || h.Counts[28] != 1 {
		t.Errorf("edges %v, counts %v", h.Edges, h.Counts)
	}
}

func TestSymmetrizedKL(t *testing.T) {
	a := detect.Histogram{Edges: []float64{0, 1, 2}, Counts: []int{3, 1}}
	b := detect.Histogram{Edges: []float64{0, 1, 2}, Counts: []int{2, 2}}
	// (3/4 − 1/2)·ln(3/2) + (1/4 − 1/2)·ln(1/2)
	want := 0.25 * math.Log(3)
	if got := detect.SymmetrizedKL(a, b, 1e-12); math.Abs(got-want) > 1e-10 || got != detect.SymmetrizedKL(b, a, 1e-12) {
		t.Errorf("%v, want %v", got, want)
	}
	if got := detect.SymmetrizedKL(a, a, detect.DefaultSmoothing); got != 0 {
		t.Errorf("%v to itself", got)
	}
	none := detect.EntropyHistogram([]float64{0, 0})
	some := detect.EntropyHistogram([]float64{0.1})
	if got := detect.SymmetrizedKL(none, some, detect.DefaultSmoothing); !math.IsNaN(got) {
		t.Errorf("%v with nothing in the bins, want NaN", got)
	}
}
