package calibrate_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/swagwrap/swagwrap/calibrate"
)

// Kills: p = 1 lost in ECE. Of 1,000 predictions 700 are certain and 5 % of these
// wrong; the other 300 are calibrated but for a few percent.
func TestECECountsSaturated(t *testing.T) {
	var probs []float64
	var labels []int
	add := func(confidence float64, right bool) {
		probs = append(probs, confidence, 1-confidence)
		label := 0
		if !right {
			label = 1
		}
		labels = append(labels, label)
	}
	for i := range 700 {
		add(1, i%20 != 0)
	}
	for i := range 300 {
		add(0.6+0.001*float64(i), i%4 != 0)
	}
	p := predictions(t, probs, 2, labels...)

	certain := 0.7 * 0.05 // their share of the ECE
	ece := map[calibrate.Binning]float64{}
	for b := calibrate.EqualMass; b <= calibrate.SwagReference; b++ {
		ece[b] = calibrate.ECE(p, calibrate.ECEOptions{Binning: b})
		t.Logf("%v: %.4f", b, ece[b])
	}
	if ece[calibrate.EqualMass] < certain || ece[calibrate.EqualWidth] < certain {
		t.Errorf("equal mass %.4f, equal width %.4f, want at least %.4f", ece[calibrate.EqualMass], ece[calibrate.EqualWidth], certain)
	}
	if ece[calibrate.SwagReference] >= certain {
		t.Errorf("swag-reference %.4f does not lose the saturated predictions", ece[calibrate.SwagReference])
	}

	bins := calibrate.Reliability(p, calibrate.ECEOptions{})
	last := calibrate.ReliabilityBin{Lower: 1, Upper: 1, Count: 700, Confidence: 1, Accuracy: 0.95}
	if !slices.Contains(bins, last) {
		t.Errorf("no bin %+v in %+v", last, bins)
	}
}

func TestEqualMassBins(t *testing.T) {
	// Six predictions in four bins: cuts before 1, 3 and 4, of which the second
	// would part the three 0.7 and moves to 5, and the third follows it.
	p := predictions(t, []float64{
		0.7, 0.3,
		0.9, 0.1,
		0.6, 0.4,
		0.7, 0.3,
		0.5, 0.5,
		0.3, 0.7,
	}, 2, 0, 0, 1, 0, 0, 0)
	want := []calibrate.ReliabilityBin{
		{Lower: 0.5, Upper: 0.5, Count: 1, Confidence: 0.5, Accuracy: 1},
		{Lower: 0.6, Upper: 0.7, Count: 4, Confidence: 0.675, Accuracy: 0.5},
		{Lower: 0.9, Upper: 0.9},
		{Lower: 0.9, Upper: 0.9, Count: 1, Confidence: 0.9, Accuracy: 1},
	}
	got := calibrate.Reliability(p, calibrate.ECEOptions{Bins: 4})
	diff(t, "bins", got, want)
	diff(t, "ECE", calibrate.ECE(p, calibrate.ECEOptions{Bins: 4}), (0.5+4*0.175+0.1)/6)
}

func TestEqualWidthBins(t *testing.T) {
	p := predictions(t, []float64{0.5, 0.5, 0.75, 0.25, 0, 1}, 2, 0, 0, 1)
	want := []calibrate.ReliabilityBin{
		{Lower: 0, Upper: 0.25},
		{Lower: 0.25, Upper: 0.5, Count: 1, Confidence: 0.5, Accuracy: 1},
		{Lower: 0.5, Upper: 0.75, Count: 1, Confidence: 0.75, Accuracy: 1},
		{Lower: 0.75, Upper: 1, Count: 1, Confidence: 1, Accuracy: 1},
	}
	got := calibrate.Reliability(p, calibrate.ECEOptions{Binning: calibrate.EqualWidth, Bins: 4})
	diff(t, "bins", got, want)
}

// Kills: equal confidences split between bins by the order of the input.
func TestReliabilityIgnoresOrder(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 0))
	for _, b := range []calibrate.Binning{calibrate.EqualMass, calibrate.EqualWidth, calibrate.SwagReference} {
		const n = 101
		var probs []float64
		var labels []int
		for range n {
			x := float64(rng.IntN(9)) / 8
			probs = append(probs, x, 1-x)
			labels = append(labels, rng.IntN(2))
		}
		opts := calibrate.ECEOptions{Binning: b, Bins: 7}
		want := calibrate.Reliability(predictions(t, probs, 2, labels...), opts)
		rng.Shuffle(n, func(i, j int) {
			probs[2*i], probs[2*j] = probs[2*j], probs[2*i]
			probs[2*i+1], probs[2*j+1] = probs[2*j+1], probs[2*i+1]
			labels[i], labels[j] = labels[j], labels[i]
		})
		got := calibrate.Reliability(predictions(t, probs, 2, labels...), opts)
		if !slices.Equal(got, want) {
			t.Errorf("%v: bins depend on the order:\n%v\n%v", b, got, want)
		}
	}
}

func TestReliabilityCountsEveryPrediction(t *testing.T) {
	for seed := range uint64(50) {
		n := int(seed)*7 + 1
		p := random(n, 3, seed)
		for _, b := range []calibrate.Binning{calibrate.EqualMass, calibrate.EqualWidth} {
			bins := calibrate.Reliability(p, calibrate.ECEOptions{Binning: b})
			count, confidence, accuracy := 0, 0.0, 0.0
			for _, b := range bins {
				count += b.Count
				confidence += float64(b.Count) * b.Confidence / float64(n)
				accuracy += float64(b.Count) * b.Accuracy / float64(n)
			}
			if len(bins) != 20 || count != n || math.Abs(accuracy-calibrate.Accuracy(p)) > 1e-12 {
				t.Errorf("%v: %d bins with %d of %d predictions, accuracy %v", b, len(bins), count, n, accuracy)
			}
			// The triangle inequality: no binning hides the overall gap.
			if gap := math.Abs(confidence - accuracy); calibrate.ECE(p, calibrate.ECEOptions{Binning: b}) < gap-1e-12 {
				t.Errorf("%v: ECE is less than |mean confidence − accuracy| = %v", b, gap)
			}
		}
	}
}

func TestBinningString(t *testing.T) {
	for b, want := range map[calibrate.Binning]string{
		calibrate.EqualMass:     "equal-mass",
		calibrate.EqualWidth:    "equal-width",
		calibrate.SwagReference: "swag-reference",
		9:                       "Binning(9)",
	} {
		if b.String() != want {
			t.Errorf("%d: %q, want %q", int(b), b.String(), want)
		}
	}
}

// What is left of a prediction is enough for its error.
func TestTopLabelECE(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 9))
	p := calibrate.Predictions{Classes: 3}
	var g []calibrate.TopLabel
	for range 500 {
		row := []float64{r.Float64(), r.Float64(), r.Float64()}
		sum := row[0] + row[1] + row[2]
		for c := range row {
			row[c] /= sum
		}
		label := r.IntN(3)
		class := slices.Index(row, slices.Max(row))
		p.Probs, p.Labels = append(p.Probs, row...), append(p.Labels, label)
		g = append(g, calibrate.TopLabel{row[class], class == label})
	}
	for _, b := range []calibrate.Binning{calibrate.EqualMass, calibrate.EqualWidth, calibrate.SwagReference} {
		if got, want := calibrate.TopLabelECE(g, calibrate.ECEOptions{Binning: b}), calibrate.ECE(p, calibrate.ECEOptions{Binning: b}); got != want {
			t.Errorf("%v: %v, want %v", b, got, want)
		}
	}
}
