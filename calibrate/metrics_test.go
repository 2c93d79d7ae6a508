package calibrate_test

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"gonum.org/v1/gonum/floats"

	"github.com/swagwrap/swagwrap/calibrate"
	"github.com/swagwrap/swagwrap/fixtures/testfile"
)

func TestNewPredictions(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	tests := []struct {
		name    string
		probs   []float64
		classes int
		labels  []int
		want    string // part of the error; empty: valid
	}{
		{"valid", []float64{1, 0, 0.25, 0.75}, 2, []int{1, 0}, ""},
		{"sum within tolerance", []float64{0.5, 0.5 + 9e-7}, 2, []int{0}, ""},
		{"sum too large", []float64{1, 0, 0.5, 0.5 + 2e-6}, 2, []int{0, 0}, "row 1: probabilities sum to"},
		{"sum too small", []float64{0.5, 0.5 - 2e-6}, 2, []int{0}, "row 0: probabilities sum to"},
		{"NaN", []float64{1, 0, nan, 1}, 2, []int{0, 0}, "row 1: class 0: probability NaN"},
		{"infinite", []float64{inf, 0}, 2, []int{0}, "row 0: class 0: probability +Inf"},
		{"negative", []float64{1.25, -0.25}, 2, []int{0}, "row 0: class 0: probability 1.25"},
		{"slightly negative", []float64{1, -1e-9}, 2, []int{0}, "row 0: class 1: probability -1e-09"},
		{"label too large", []float64{1, 0, 1, 0}, 2, []int{1, 2}, "row 1: label 2, want 0 to 1"},
		{"label negative", []float64{1, 0}, 2, []int{-1}, "row 0: label -1, want 0 to 1"},
		{"no rows", nil, 2, nil, "no labels"},
		{"one class", []float64{1}, 1, []int{0}, "1 classes"},
		{"no classes", nil, 0, []int{0}, "0 classes"},
		{"ragged", []float64{1, 0, 1}, 2, []int{0}, "3 probabilities for 1 labels and 2 classes"},
		{"row missing", []float64{1, 0}, 2, []int{0, 0}, "2 probabilities for 2 labels"},
		{"product overflows", nil, math.MaxInt/2 + 1, []int{0, 0, 0, 0}, "0 probabilities"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			p, err := calibrate.NewPredictions(test.probs, test.classes, test.labels)
			switch {
			case test.want == "" && err != nil:
				t.Fatal(err)
			case test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)):
				t.Fatalf("error %v, want one with %q", err, test.want)
			case err == nil && p.Len() != len(test.labels):
				t.Errorf("Len() = %d, want %d", p.Len(), len(test.labels))
			}
		})
	}
}

func TestRowCannotGrowIntoNext(t *testing.T) {
	p := predictions(t, []float64{1, 0, 0.25, 0.75}, 2, 0, 1)
	_ = append(p.Row(0), 9)
	if p.Row(1)[0] != 0.25 {
		t.Error("append to one row changed the next")
	}
}

// Kills: NLL printed as the sum over the images.
func TestNLLIsMean(t *testing.T) {
	one := predictions(t, []float64{0.5, 0.5}, 2, 0)
	many := predictions(t, []float64{0.5, 0.5, 0.5, 0.5, 0.5, 0.5}, 2, 0, 1, 0)
	for _, p := range []calibrate.Predictions{one, many} {
		if got := calibrate.NegLogLikelihood(p); math.Abs(got-math.Ln2) > 1e-15 {
			t.Errorf("NLL of %d coin tosses = %v, want ln 2", p.Len(), got)
		}
	}
}

// Kills: log(0) clipped to a large number in silence.
func TestNLLOfImpossibleLabel(t *testing.T) {
	p := predictions(t, []float64{0.5, 0.5, 1, 0, 0, 1}, 2, 0, 1, 0)
	m := calibrate.Evaluate(p, calibrate.EvaluateOptions{})
	if !math.IsInf(m.NLL, 1) {
		t.Errorf("NLL = %v, want +Inf", m.NLL)
	}
	wantWarning(t, m, "2 of 3 true classes have probability 0, the first in row 1")
}

func TestNLLOfCertaintyIsPlusZero(t *testing.T) {
	p := predictions(t, []float64{1, 0}, 2, 0)
	if nll := calibrate.NegLogLikelihoods(nil, p)[0]; nll != 0 || math.Signbit(nll) {
		t.Errorf("NLL = %v, want 0", nll)
	}
}

func TestTiedClasses(t *testing.T) {
	p := predictions(t, []float64{0.25, 0.25, 0.25, 0.25, 0.25, 0.25, 0.25, 0.25}, 4, 0, 2)
	for k, want := range map[int]float64{1: 0.5, 2: 0.5, 3: 1, 4: 1, 5: 1} {
		if got := calibrate.TopK(p, k); got != want {
			t.Errorf("TopK(%d) = %v, want %v", k, got, want)
		}
	}
}

func TestEvaluateWarnings(t *testing.T) {
	enough := random(200, 3, 1)
	if m := calibrate.Evaluate(enough, calibrate.EvaluateOptions{}); len(m.Warnings) != 0 {
		t.Errorf("200 predictions in 20 bins: %v", m.Warnings)
	}
	few := calibrate.Evaluate(random(199, 3, 1), calibrate.EvaluateOptions{})
	wantWarning(t, few, "199 predictions, want at least 200 (10 per bin)")

	tied := random(200, 3, 1)
	for i := range 100 {
		copy(tied.Row(i), []float64{1, 0, 0})
	}
	wantWarning(t, calibrate.Evaluate(tied, calibrate.EvaluateOptions{}), "of 20 bins are empty")

	opts := calibrate.EvaluateOptions{ECE: calibrate.ECEOptions{Binning: calibrate.SwagReference}}
	wantWarning(t, calibrate.Evaluate(enough, opts), "leaves out 21 of 200 predictions, on the edges of swag-reference bins")
}

// The loss is convex, so averaging probabilities cannot do worse than the
// members do on average.
func TestAverageBeatsMeanMember(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 0))
	for range 100 {
		members, labels := ensemble(rng, 5, 30, 4)
		mean, _ := average(members, 4, 1)
		var meanNLL float64
		for _, m := range members {
			meanNLL += calibrate.NegLogLikelihood(predictions(t, m, 4, labels...)) / 5
		}
		if nll := calibrate.NegLogLikelihood(predictions(t, mean, 4, labels...)); nll > meanNLL {
			t.Fatalf("NLL of the average %v, mean of the members %v", nll, meanNLL)
		}
	}
}

func TestShapeMistakesPanic(t *testing.T) {
	good := random(4, 3, 1)
	ragged := calibrate.Predictions{Classes: 3, Probs: make([]float64, 7), Labels: make([]int, 2)}
	x := make([]float64, 6)
	tests := map[string]func(){
		"zero predictions":         func() { calibrate.Accuracy(calibrate.Predictions{}) },
		"ragged predictions":       func() { calibrate.Brier(ragged) },
		"ragged reliability":       func() { calibrate.Reliability(ragged, calibrate.ECEOptions{}) },
		"short dst":                func() { calibrate.NegLogLikelihoods(x[:3], good) },
		"top 0":                    func() { calibrate.TopK(good, 0) },
		"negative bins":            func() { calibrate.ECE(good, calibrate.ECEOptions{Bins: -1}) },
		"unknown binning":          func() { calibrate.ECE(good, calibrate.ECEOptions{Binning: 3}) },
		"softmax: ragged":          func() { calibrate.Softmax(nil, x, 4, 1) },
		"softmax: no classes":      func() { calibrate.Softmax(nil, x, 0, 1) },
		"softmax: dst":             func() { calibrate.LogSoftmax(x[:3], x, 3, 1) },
		"softmax: T = 0":           func() { calibrate.Softmax(nil, x, 3, 0) },
		"softmax: T < 0":           func() { calibrate.Softmax(nil, x, 3, -1) },
		"softmax: T NaN":           func() { calibrate.LogSoftmax(nil, x, 3, math.NaN()) },
		"softmax: T infinite":      func() { calibrate.LogSoftmax(nil, x, 3, math.Inf(1)) },
		"temperature: labels":      func() { calibrate.FitTemperature(x, 3, make([]int, 3)) },
		"temperature: no classes":  func() { calibrate.FitTemperature(nil, 0, nil) },
		"cross-fits: one fold":     func() { problem{x, 3, make([]int, 2)}.crossFits(1, 0, 0) },
		"cross-fits: splits":       func() { problem{x, 3, make([]int, 2)}.crossFits(0, -1, 0) },
		"entropy: ragged":          func() { calibrate.PredictiveEntropy(nil, x, 4) },
		"mutual information: rows": func() { calibrate.MutualInformation(nil, x, 3, x[:1]) },
		"Brier: dst":               func() { calibrate.Briers(x[:3], good) },
		"ragged AURC":              func() { calibrate.AURC(ragged) },
		"coverage 0":               func() { calibrate.SelectiveRisk(good, 0) },
		"coverage above 1":         func() { calibrate.SelectiveRisk(good, 1.1) },
		"coverage NaN":             func() { calibrate.SelectiveRisk(good, math.NaN()) },
		"sets: level 0":            func() { calibrate.FitAPS(good, 0, 1) },
		"sets: level 1":            func() { calibrate.FitAPS(good, 1, 1) },
		"sets: dst":                func() { calibrate.Conformal{}.Sizes(make([]int, 3), good) },
		"vector: labels":           func() { calibrate.FitVectorScaling(x, 3, make([]int, 3)) },
		"vector: ragged":           func() { calibrate.VectorScaling{Scale: x[:4], Bias: x[:4]}.Apply(nil, x) },
		"vector: zero":             func() { calibrate.VectorScaling{}.Apply(nil, x) },
		"least confidence: ragged": func() { calibrate.LeastConfidence(nil, x, 4) },
	}
	testfile.Panics(t, "calibrate: ", tests)
}

func FuzzNewPredictions(f *testing.F) {
	f.Add([]byte{0, 255, 128, 128, 1}, 2, []byte{0, 1})
	f.Add([]byte{51, 204, 127, 128}, 2, []byte{0, 1})
	f.Add([]byte{}, 0, []byte{})
	f.Fuzz(func(t *testing.T, data []byte, classes int, labels []byte) {
		probs := fuzzFloats(data)
		p, err := calibrate.NewPredictions(probs, classes, fuzzLabels(labels))
		if err != nil {
			// Few inputs sum to 1 by chance, so help.
			for i := 0; 0 < classes && classes <= len(probs)-i; i += classes {
				row := probs[i : i+classes]
				floats.Scale(1/floats.Sum(row), row)
			}
			p, err = calibrate.NewPredictions(probs, classes, fuzzLabels(labels))
		}
		if err != nil {
			return
		}
		for b := calibrate.EqualMass; b <= calibrate.SwagReference; b++ {
			m := calibrate.Evaluate(p, calibrate.EvaluateOptions{ECE: calibrate.ECEOptions{Binning: b}})
			if !(0 <= m.Accuracy && m.Accuracy <= 1 && 0 <= m.NLL && 0 <= m.Brier && m.Brier <= 2+1e-5 && 0 <= m.ECE && m.ECE <= 1+1e-9) {
				t.Errorf("%v of %+v", m, p)
			}
			if !(0 <= m.ClasswiseECE && m.ClasswiseECE <= 1+1e-9 && 0 <= m.AURC && m.AURC <= 1 && 0 <= m.SelectiveRisk && m.SelectiveRisk <= 1 && m.Entropy >= -1e-6) {
				t.Errorf("%+v of %+v", m, p)
			}
		}
	})
}

// predictions is NewPredictions for values known to be good.
func predictions(t *testing.T, probs []float64, classes int, labels ...int) calibrate.Predictions {
	t.Helper()
	p, err := calibrate.NewPredictions(probs, classes, labels)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// random returns predictions of n images, wrong about as often as they claim.
func random(n, classes int, seed uint64) calibrate.Predictions {
	rng := rand.New(rand.NewPCG(seed, 0))
	members, labels := ensemble(rng, 1, n, classes)
	return calibrate.Predictions{Classes: classes, Probs: members[0], Labels: labels}
}

// ensemble returns the probabilities of members that disagree, and labels drawn
// from the first.
func ensemble(rng *rand.Rand, members, n, classes int) (probs [][]float64, labels []int) {
	for range members {
		z := make([]float64, n*classes)
		for i := range z {
			z[i] = 2 * rng.NormFloat64()
		}
		probs = append(probs, calibrate.Softmax(z, z, classes, 1))
	}
	for i := range n {
		labels = append(labels, draw(rng, probs[0][i*classes:(i+1)*classes]))
	}
	return probs, labels
}

// draw returns a class with probability p[class].
func draw(rng *rand.Rand, p []float64) int {
	u := rng.Float64()
	for c, x := range p {
		if u -= x; u < 0 {
			return c
		}
	}
	return len(p) - 1
}

func wantWarning(t *testing.T, m calibrate.Metrics, want string) {
	t.Helper()
	for _, w := range m.Warnings {
		if strings.Contains(w.Error(), want) {
			return
		}
	}
	t.Errorf("warnings %v, want one with %q", m.Warnings, want)
}
