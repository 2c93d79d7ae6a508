package ensemble

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"gonum.org/v1/gonum/stat"

	"github.com/swagwrap/swagwrap/calibrate"
	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/preprocess"
)

// The difference of two AUROCs is that of calibrate's, and its standard error that
// of the definition, a sum over all pairs of images, and about that of a bootstrap
// over both sides.
func TestAUROCDifference(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	draw := func(n int, shift float64) (a, b []float64) {
		for range n {
			x := shift + rng.NormFloat64()
			a = append(a, math.Round(4*(x+0.5*rng.NormFloat64()))) // with ties
			b = append(b, math.Round(4*(x+rng.NormFloat64())))
		}
		return a, b
	}
	aIn, bIn := draw(150, 0)
	aOut, bOut := draw(90, 1)
	got := aurocDifference(aIn, aOut, bIn, bOut)
	if want := calibrate.AUROC(aIn, aOut) - calibrate.AUROC(bIn, bOut); math.Abs(got.Mean-want) > 1e-12 {
		t.Errorf("difference %v, want %v", got.Mean, want)
	}

	// By pairs.
	better := func(out, in float64) float64 {
		switch {
		case out > in:
			return 1
		case out == in:
			return 0.5
		}
		return 0
	}
	byOut, byIn := make([]float64, len(aOut)), make([]float64, len(aIn))
	for i := range aOut {
		for j := range aIn {
			d := better(aOut[i], aIn[j]) - better(bOut[i], bIn[j])
			byOut[i] += d / float64(len(aIn))
			byIn[j] += d / float64(len(aOut))
		}
	}
	se := math.Sqrt(stat.Variance(byOut, nil)/float64(len(byOut)) + stat.Variance(byIn, nil)/float64(len(byIn)))
	if half := (got.High - got.Low) / 2; math.Abs(half/se-1.959964) > 1e-6 {
		t.Errorf("half the interval is %v standard errors, want 1.96", half/se)
	}

	// By bootstrap: 2,000 resamples know a standard deviation to 1.6 %, and the two
	// differ by terms of order 1/n.
	var draws []float64
	pick := func(from []float64, rows []int) (out []float64) {
		for _, r := range rows {
			out = append(out, from[r])
		}
		return out
	}
	rows := func(n int) (out []int) {
		for range n {
			out = append(out, rng.IntN(n))
		}
		return out
	}
	for range 2000 {
		in, out := rows(len(aIn)), rows(len(aOut))
		draws = append(draws, calibrate.AUROC(pick(aIn, in), pick(aOut, out))-calibrate.AUROC(pick(bIn, in), pick(bOut, out)))
	}
	if sd := stat.StdDev(draws, nil); math.Abs(sd/se-1) > 0.08 {
		t.Errorf("standard error %v, by bootstrap %v", se, sd)
	}
	if one := aurocDifference(aIn, aOut[:1], bIn, bOut[:1]); !math.IsNaN(one.Low) {
		t.Errorf("interval of one image: %v", one)
	}
}

// Each method is scored by its own averages; SWA-Temp keeps the order of
// confidences within an image but not among images.
func TestDetection(t *testing.T) {
	nets := halves(t)
	models := checkpoints(t)
	in := data(t, "val.npz")
	out, err := dataset.Open([]string{fixture + "/val.npz"}, dataset.Options{Preprocess: preprocess.Settings{Mean: []float64{0.6}, Std: []float64{0.46}}})
	if err != nil {
		t.Fatal(err)
	}
	d := &Detection{
		Lineup: Lineup{Runs: []Run{{nets[0], models[14:15]}, {nets[1], models[29:30]}}, BatchNorm: fileOrder(t), Members: 3, Seed: 1, Scale: 0.5},
		In:     in, Out: out, Validation: in,
	}
	e := &Engine{Runtime: openRuntime(t)}
	found, err := d.Run(t.Context(), e)
	if err != nil {
		t.Fatal(err)
	}
	var keys []string
	for _, x := range found {
		keys = append(keys, x.Key)
		if x.Baseline != (x.Key == SWA) || (x.MutualInformation == nil) != (x.Members == 1) {
			t.Errorf("%s: baseline %v, %d members, mutual information %v", x.Name, x.Baseline, x.Members, x.MutualInformation)
		}
		for _, h := range []calibrate.Histogram{x.In, x.Out} {
			n := h.Below + h.Above
			for _, c := range h.Counts {
				n += c
			}
			if n != in.Len() {
				t.Errorf("%s: a histogram of %d images, want %d", x.Name, n, in.Len())
			}
		}
	}
	if got, want := strings.Join(keys, " "), "sgd sgd-ensemble swa swa-temp swa-laplace swag-diag swag deep-sgd deep-swa multiswag"; got != want {
		t.Errorf("methods %s, want %s", got, want)
	}
	// The same numbers from the sums alone.
	l := d.Lineup
	l.Methods = []string{SWAG}
	for _, p := range predictions(t, &l, e, d.targets()) {
		want := DetectionOf("", p.Data[0].Mean(), p.Data[1].Mean(), 10)
		for _, x := range found {
			if x.Key == SWAG && (x.Entropy != want.Entropy || x.Distance != want.Distance || x.Confidence != want.Confidence) {
				t.Errorf("%+v, want %+v", x, want)
			}
		}
	}
	if len(d.Notes) != 0 { // nobody asked for dropout
		t.Errorf("notes %q", d.Notes)
	}
}
