package calibrate_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/stat"

	"github.com/swagwrap/swagwrap/calibrate"
)

// randomPositions makes positions of examples. The positions of an example share an error, as neighbouring pixels do.
func randomPositions(examples, each, classes int, seed uint64) (p []float64, labels []int) {
	r := rand.New(rand.NewPCG(seed, 1))
	for range examples {
		shared := 0.7 * r.NormFloat64()
		for range each {
			label, total := r.IntN(classes), 0.0
			row := make([]float64, classes)
			for c := range row {
				row[c] = math.Exp(1.5 * r.NormFloat64())
				if c == label {
					row[c] *= math.Exp(2 + shared)
				}
				total += row[c]
			}
			for _, v := range row {
				p = append(p, v/total)
			}
			labels = append(labels, label)
		}
	}
	return p, labels
}

func sums(p []float64, labels []int, classes int) *calibrate.ClassSums {
	s := calibrate.NewClassSums(classes)
	for i, label := range labels {
		s.Add(p[i*classes:][:classes], label, i%3 == 0)
	}
	return s
}

// The figures from sums equal those of package calibrate, which sorts all positions. Only the ECE depends on the width of
// the cells: by less with more positions.
func TestFigures(t *testing.T) {
	t.Parallel()
	const classes = 5
	p, labels := randomPositions(40, 500, classes, 1)
	s := sums(p, labels, classes)
	all := calibrate.Predictions{Classes: classes, Probs: p, Labels: labels}
	tp, fp, fn := make([]float64, classes), make([]float64, classes), make([]float64, classes)
	var border, inside calibrate.Predictions
	border.Classes, inside.Classes = classes, classes
	for i, label := range labels {
		row := all.Row(i)
		top := 0
		for c, v := range row {
			if v > row[top] {
				top = c
			}
		}
		if top == label {
			tp[label]++
		} else {
			fp[top]++
			fn[label]++
		}
		to := &inside
		if i%3 == 0 {
			to = &border
		}
		to.Probs, to.Labels = append(to.Probs, row...), append(to.Labels, label)
	}
	iou, dice := 0.0, 0.0
	for c := range classes {
		iou += tp[c] / (tp[c] + fp[c] + fn[c]) / classes
		dice += 2 * tp[c] / (2*tp[c] + fp[c] + fn[c]) / classes
	}
	wide := calibrate.ECEOptions{Binning: calibrate.EqualWidth}
	for name, x := range map[string][3]float64{
		"NLL":             {s.MeanNLL(), calibrate.NegLogLikelihood(all), 1e-12},
		"Brier":           {s.MeanBrier(), calibrate.Brier(all), 1e-12},
		"accuracy":        {s.Accuracy(), calibrate.Accuracy(all), 1e-12},
		"mean IoU":        {s.MeanIoU(), iou, 1e-12},
		"mean Dice":       {s.MeanDice(), dice, 1e-12},
		"classwise ECE":   {s.ClasswiseECE(), calibrate.ClasswiseECE(all, wide), 1e-12},
		"ECE":             {s.ECE(20), calibrate.ECE(all, calibrate.ECEOptions{}), 1e-5},
		"smooth ECE":      {s.SmoothECE(), smooth(all), 1e-5},
		"ECE at borders":  {s.BorderECE(20), calibrate.ECE(border, calibrate.ECEOptions{}), 2e-4},
		"ECE inside":      {s.InsideECE(20), calibrate.ECE(inside, calibrate.ECEOptions{}), 1e-5},
		"share of labels": {s.Shares()[2], float64(tp[2]+fn[2]) / float64(len(labels)), 1e-12},
	} {
		if !(math.Abs(x[0]-x[1]) <= x[2]) {
			t.Errorf("%s: %v, want %v", name, x[0], x[1])
		}
	}
}

// A class that does not occur has no IoU, and does not count in the mean.
func TestAbsentClass(t *testing.T) {
	t.Parallel()
	s := calibrate.NewClassSums(3)
	s.Add([]float64{0.6, 0.4, 0}, 0, false)
	s.Add([]float64{0.6, 0.4, 0}, 1, false)
	if !math.IsNaN(s.IoU()[2]) || s.IoU()[0] != 0.5 || s.IoU()[1] != 0 || s.MeanIoU() != 0.25 {
		t.Errorf("IoU %v %v %v, mean %v", s.IoU()[0], s.IoU()[1], s.IoU()[2], s.MeanIoU())
	}
}

// Sums of parts add up, and survive being stored. Damaged ones are refused.
func TestStore(t *testing.T) {
	t.Parallel()
	const classes = 4
	p, labels := randomPositions(10, 30, classes, 2)
	whole, parts := sums(p, labels, classes), calibrate.NewClassSums(classes)
	for i := 0; i < len(labels); i += 30 {
		one := sums(p[i*classes:][:30*classes], labels[i:][:30], classes)
		b := one.Append(nil)
		again, err := calibrate.ParseClassSums(b)
		if err != nil {
			t.Fatal(err)
		}
		parts.Merge(again)
		if i > 0 { // the bytes of one are enough
			continue
		}
		for n := range b {
			if _, err := calibrate.ParseClassSums(b[:n]); err == nil {
				t.Fatalf("%d of %d bytes are no error", n, len(b))
			}
		}
		for n := range b { // must not panic or take much memory
			damaged := append([]byte(nil), b...)
			damaged[n] ^= 0xff
			calibrate.ParseClassSums(damaged)
		}
	}
	if d := math.Abs(parts.ECE(20) - whole.ECE(20)); d > 1e-12 || parts.Right() != whole.Right() || math.Abs(parts.NLL-whole.NLL) > 1e-9 || parts.BorderECE(7) != whole.BorderECE(7) {
		t.Errorf("parts have an ECE of %v, the whole %v", parts.ECE(20), whole.ECE(20))
	}
}

// Intervals from linearised losses cover the target as often as they say, although positions of an example depend on
// each other and examples differ in size. Intervals of single positions would not.
func TestCoverage(t *testing.T) {
	t.Parallel()
	const examples, trials = 60, 400
	r := rand.New(rand.NewPCG(3, 3))
	covered, naive := 0, 0
	for range trials {
		sum, n := make([]float64, examples), make([]float64, examples)
		var single []float64
		for i := range sum {
			n[i] = float64(20 + r.IntN(60))
			shared := r.NormFloat64()
			for range int(n[i]) {
				v := 1 + shared + r.NormFloat64()
				sum[i] += v
				single = append(single, v)
			}
		}
		inside := func(values []float64) bool {
			mean, std := stat.MeanStdDev(values, nil)
			return math.Abs(mean-1) <= 1.96*std/math.Sqrt(float64(len(values)))
		}
		losses := calibrate.Linearised(sum, n)
		ratio := 0.0
		for i := range sum {
			ratio += sum[i] / float64(len(single))
		}
		if mean := stat.Mean(losses, nil); math.Abs(mean-ratio) > 1e-12 {
			t.Fatalf("mean %v, want the ratio %v", mean, ratio)
		}
		if inside(losses) {
			covered++
		}
		if inside(single) {
			naive++
		}
	}
	if covered < trials*90/100 || covered > trials*99/100 || naive > trials/2 {
		t.Errorf("of %d intervals %d hold the truth, and %d if positions counted as independent", trials, covered, naive)
	}
}

// A temperature from a stream of rows is that of all rows in memory.
func TestTemperatureStream(t *testing.T) {
	t.Parallel()
	const classes = 4
	p, labels := randomPositions(20, 40, classes, 4)
	logits := calibrate.LogProbs(nil, p)
	want, err := calibrate.FitTemperature(logits, classes, labels)
	if err != nil {
		t.Fatal(err)
	}
	got, err := calibrate.FitTemperatureStream(classes, func(use func([]float64, int)) error {
		for i, label := range labels {
			use(logits[i*classes:][:classes], label)
		}
		return nil
	})
	if err != nil || got != want {
		t.Errorf("%+v, %v, want %+v", got, err, want)
	}
	if _, err := calibrate.FitTemperatureStream(2, func(use func([]float64, int)) error { use([]float64{0, math.NaN()}, 0); return nil }); err == nil {
		t.Error("NaN is accepted")
	}
	if _, err := calibrate.FitTemperatureStream(2, func(func([]float64, int)) error { return nil }); err == nil {
		t.Error("no rows are accepted")
	}
}
