package bnupdate

import (
	"math"
	"math/rand/v2"
	"testing"
)

// Over shuffled data the halves disagree no more often than they say: in 1,500
// passes P ≤ 0.002 is expected 3 times, and more than 12 times with a probability
// of 2e-5; P ≤ 0.1 150 times, ±5 standard deviations of 12.
//
// Kills: the order at hand not counted among those possible; the halves not
// centred; channels or layers taken for independent (layer i repeats layer 0).
func TestHalvesFalseAlarms(t *testing.T) {
	t.Parallel()
	p := plan(t, 3, 6)
	alarms, tenths := 0, 0
	for seed := range uint64(1500) {
		h := recompute(t, p, noise(3, 16, seed), Reference).Halves
		if h.Disagree() {
			alarms++
		}
		if h.PValue <= 0.1 {
			tenths++
		}
	}
	if alarms > 12 || tenths < 90 || tenths > 210 {
		t.Errorf("of 1500 passes over shuffled data %d disagree, and %d have P ≤ 0.1", alarms, tenths)
	}
}

// Halves that differ are found, and the layer: of 6 channels, one of layer 1 is
// shifted by a standard deviation in the second half of the images.
func TestHalvesShifted(t *testing.T) {
	p, in := plan(t, 3, 6), noise(3, 60, 1)
	in.edit = func(k int, b *Batch) error {
		if k >= 30 {
			b.Mean[1][4] += 2 // the elements of layer 1 are 2·(2 + Exp(1)), of standard deviation 2
		}
		return nil
	}
	h := recompute(t, p, in, Reference).Halves
	if !h.Disagree() || h.Layer != "bn1.mean" {
		t.Errorf("%+v", h)
	}
	// A sixth of 1², and by chance in each channel the variance 2/240 of a
	// difference of means of 240 images: ±0.05 is more than three standard
	// deviations.
	if want := math.Sqrt(1./6 + 2./240); math.Abs(h.Difference-want) > 0.05 {
		t.Errorf("difference %v, want %v", h.Difference, want)
	}
}

// Data sorted by class disagrees, with a short last batch too; shuffled by image
// it does not. 10 classes, whose means differ by a standard deviation.
func TestHalvesSorted(t *testing.T) {
	const n, b, channels = 4100, 32, 6
	r := rand.New(rand.NewPCG(1, 2))
	class := make([]int, n)
	means := make([]float64, 10*channels)
	for i := range means {
		means[i] = r.NormFloat64()
	}
	for i := range class {
		class[i] = i * 10 / n
	}
	for _, sorted := range []bool{true, false} {
		if !sorted {
			r.Shuffle(n, func(i, j int) { class[i], class[j] = class[j], class[i] })
		}
		in := &inputs{layers: 1}
		for at := 0; at < n; at += b {
			var x []float64
			for i := at; i < min(at+b, n); i++ {
				for c := range channels {
					x = append(x, means[class[i]*channels+c]+r.NormFloat64())
				}
			}
			in.Data, in.Shapes = append(in.Data, x), append(in.Shapes, []int64{int64(len(x) / channels), channels})
		}
		if h := recompute(t, plan(t, 1, channels), in, Reference).Halves; h.Disagree() != sorted {
			t.Errorf("sorted %v: %+v", sorted, h)
		}
	}
}

// Too few batches, and batches that are all alike, tell nothing.
func TestHalvesUnknown(t *testing.T) {
	p := plan(t, 1, 6)
	if h := recompute(t, p, noise(1, minGroups-1, 1), Reference).Halves; h != (Halves{PValue: 1}) {
		t.Errorf("few batches: %+v", h)
	}
	if h := recompute(t, p, noise(1, minGroups, 1), Reference).Halves; h.Layer == "" {
		t.Errorf("enough batches: %+v", h)
	}
	in := noise(1, 20, 1)
	for k := range in.Data {
		in.Data[k] = in.Data[0]
	}
	if h := recompute(t, p, in, Reference).Halves; h != (Halves{PValue: 1}) {
		t.Errorf("equal batches: %+v", h)
	}
}
