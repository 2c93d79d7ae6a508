package calibrate_test

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/swagwrap/swagwrap/calibrate"
)

// problem is a set to fit a temperature on.
type problem struct {
	logits  []float64
	classes int
	labels  []int
}

func (p problem) fit(t *testing.T) calibrate.Temperature {
	t.Helper()
	got, err := calibrate.FitTemperature(p.logits, p.classes, p.labels)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// nll returns the mean NLL at temperature T, by way of LogSoftmax.
func (p problem) nll(T float64) float64 {
	z := calibrate.LogSoftmax(nil, p.logits, p.classes, T)
	var sum float64
	for i, label := range p.labels {
		sum -= z[i*p.classes+label]
	}
	return sum / float64(len(p.labels))
}

// slope returns dNLL/dβ at temperature T, by way of Softmax.
func (p problem) slope(T float64) float64 {
	probs := calibrate.Softmax(nil, p.logits, p.classes, T)
	var sum float64
	for i, label := range p.labels {
		for c, x := range probs[i*p.classes : (i+1)*p.classes] {
			if x > 0 {
				sum += x * (p.logits[i*p.classes+c] - p.logits[i*p.classes+label])
			}
		}
	}
	return sum / float64(len(p.labels))
}

// search returns the temperature where the slope changes sign, or the bound
// towards which it does, by halving an interval.
func (p problem) search() float64 {
	lo, hi := calibrate.MinTemperature, calibrate.MaxTemperature
	for hi > lo*(1+1e-9) {
		if mid := math.Sqrt(lo * hi); p.slope(mid) > 0 {
			lo = mid // the minimum is at a smaller β
		} else {
			hi = mid
		}
	}
	return math.Sqrt(lo * hi)
}

// randomProblem draws logits and labels that suit some temperature between about
// 0.1 and 10. Each fourth problem is separable: every label is the top class.
func randomProblem(seed uint64) (p problem, separable bool) {
	rng := rand.New(rand.NewPCG(seed, 0))
	p.classes = 2 + rng.IntN(9)
	n := 20 + rng.IntN(80)
	spread := math.Exp(1.5 * rng.NormFloat64())
	p.logits = make([]float64, n*p.classes)
	for i := range p.logits {
		p.logits[i] = spread * rng.NormFloat64()
	}
	target := calibrate.Softmax(nil, p.logits, p.classes, math.Exp(rng.NormFloat64()))
	p.labels = make([]int, n)
	separable = true
	for i := range p.labels {
		row := target[i*p.classes : (i+1)*p.classes]
		best := slices.Index(row, slices.Max(row))
		p.labels[i] = best
		if seed%4 != 0 {
			p.labels[i] = draw(rng, row)
		}
		separable = separable && p.labels[i] == best
	}
	return p, separable
}

func TestFitTemperatureFindsMinimum(t *testing.T) {
	t.Parallel()
	var separables, inside int
	for seed := range uint64(200) {
		p, separable := randomProblem(seed)
		got := p.fit(t)
		wantT := p.search()
		// The NLL is convex, so a minimum among neighbours is the minimum.
		for _, T := range []float64{wantT, got.T * 0.999, got.T * 1.001, 1} {
			T = min(max(T, calibrate.MinTemperature), calibrate.MaxTemperature)
			if p.nll(T) < got.NLLAfter-1e-12 {
				t.Errorf("problem %d: NLL %v at T = %v, but %v at %v", seed, got.NLLAfter, got.T, p.nll(T), T)
			}
		}
		if nll := p.nll(got.T); math.Abs(nll-got.NLLAfter) > 1e-12 {
			t.Errorf("problem %d: NLLAfter %v, is %v", seed, got.NLLAfter, nll)
		}
		if nll := p.nll(1); math.Abs(nll-got.NLLBefore) > 1e-12*(1+nll) {
			t.Errorf("problem %d: NLLBefore %v, is %v", seed, got.NLLBefore, nll)
		}
		if got.Evaluations > 20 {
			t.Errorf("problem %d: %d evaluations", seed, got.Evaluations)
		}
		if separable {
			separables++
			if !got.AtBound || got.T != calibrate.MinTemperature {
				t.Errorf("problem %d is separable, yet %+v", seed, got)
			}
		} else if !got.AtBound {
			inside++
			if math.Abs(got.T-wantT) > 1e-6*wantT {
				t.Errorf("problem %d: T = %v, by search %v", seed, got.T, wantT)
			}
		}
	}
	if separables < 40 || inside < 100 {
		t.Errorf("%d separable problems, %d with an inner minimum: too few to tell", separables, inside)
	}
}

// Kills: gradients accumulated in the temperature fit, which stops where the sum
// of past slopes vanishes and not the slope.
func TestFitTemperatureIsStationary(t *testing.T) {
	for seed := range uint64(200) {
		p, _ := randomProblem(seed)
		got := p.fit(t)
		if slope := p.slope(got.T); !got.AtBound && math.Abs(slope) > 1e-9 {
			t.Errorf("problem %d: dNLL/dβ = %g at T = %v", seed, slope, got.T)
		}
	}
}

// Kills: T ≤ 0, which an unguarded step in T or β runs into.
func TestFitTemperatureIsPositive(t *testing.T) {
	for name, p := range map[string]problem{
		"always wrong": {[]float64{9, 0, 0, 9}, 2, []int{1, 0}},
		"always right": {[]float64{9, 0, 0, 9}, 2, []int{0, 1}},
		"far too sure": {[]float64{800, 0, 0, 800, 700, 0}, 2, []int{0, 1, 1}},
		"hardly sure":  {[]float64{0.05, 0, 0, 0.04, 0.01, 0}, 2, []int{0, 1, 1}},
	} {
		got := p.fit(t)
		if !(got.T >= calibrate.MinTemperature && got.T <= calibrate.MaxTemperature) {
			t.Errorf("%s: T = %v", name, got.T)
		}
		atBound := got.T == calibrate.MinTemperature || got.T == calibrate.MaxTemperature
		if got.AtBound != atBound {
			t.Errorf("%s: %+v", name, got)
		}
		if wantNLL := p.nll(got.T); math.Abs(got.NLLAfter-wantNLL) > 1e-12*(1+wantNLL) {
			t.Errorf("%s: NLLAfter %v, is %v", name, got.NLLAfter, wantNLL)
		}
	}
}

func TestFitTemperatureNeverHurts(t *testing.T) {
	for seed := range uint64(200) {
		p, _ := randomProblem(seed)
		got := p.fit(t)
		if got.NLLAfter > got.NLLBefore {
			t.Errorf("problem %d: NLL raised from %v to %v", seed, got.NLLBefore, got.NLLAfter)
		}
		// Nor where the best temperature is so near 1 that rounding decides.
		if got.AtBound {
			continue
		}
		again := problem{slices.Clone(p.logits), p.classes, p.labels}
		for i := range again.logits {
			again.logits[i] *= (1 + 3e-9) / got.T
		}
		got = again.fit(t)
		if math.Abs(got.T-1) > 1e-8 || got.NLLAfter > got.NLLBefore {
			t.Errorf("problem %d: second fit gives %+v", seed, got)
		}
	}
}

func TestTemperatureKeepsTopClass(t *testing.T) {
	for seed := range uint64(50) {
		p, _ := randomProblem(seed)
		for _, T := range []float64{p.fit(t).T, 0.3, 3} {
			before := calibrate.Softmax(nil, p.logits, p.classes, 1)
			after := calibrate.Softmax(nil, p.logits, p.classes, T)
			for i := 0; i < len(before); i += p.classes {
				a, b := before[i:i+p.classes], after[i:i+p.classes]
				best := slices.Index(a, slices.Max(a))
				if b[best] != slices.Max(b) {
					t.Errorf("problem %d, row %d: T = %v changes the top class", seed, i/p.classes, T)
				}
			}
		}
	}
}

// One image in the wrong by next to nothing: the slope vanishes only where the
// other's has fallen to 1e-80.
func TestFitTemperatureOnExponentialTail(t *testing.T) {
	p := problem{[]float64{16, 0, 0, 1e-80}, 2, []int{0, 0}}
	got := p.fit(t)
	if want := p.search(); math.Abs(got.T-want) > 1e-6*want || got.AtBound || got.Evaluations > 30 {
		t.Errorf("%+v, want T = %v in at most 30 evaluations", got, want)
	}
}

func TestFitTemperatureWithoutEffect(t *testing.T) {
	p := problem{[]float64{2, 2, 2, -1, -1, -1}, 3, []int{0, 2}}
	got := p.fit(t)
	if got.T != 1 || got.AtBound || got.NLLAfter != got.NLLBefore {
		t.Errorf("equal logits: %+v, want T = 1", got)
	}
}

// Averaged predictions have no logits, but their log-probabilities serve. A
// constant added to a row, which is all that log p and z differ by, has no
// effect.
func TestFitTemperatureOnLogProbs(t *testing.T) {
	p, _ := randomProblem(1)
	fromLogits := p.fit(t)
	p.logits = calibrate.LogProbs(nil, calibrate.Softmax(nil, p.logits, p.classes, 1))
	fromProbs := p.fit(t)
	if math.Abs(fromLogits.T-fromProbs.T) > 1e-9*fromLogits.T {
		t.Errorf("T = %v from logits, %v from log-probabilities", fromLogits.T, fromProbs.T)
	}
}

// A class that is ruled out may as well not be there.
func TestFitTemperatureWithRuledOutClass(t *testing.T) {
	p, _ := randomProblem(5)
	want := p.fit(t)
	var wider []float64
	for i := 0; i < len(p.logits); i += p.classes {
		wider = append(append(wider, p.logits[i:i+p.classes]...), math.Inf(-1))
	}
	got := problem{wider, p.classes + 1, p.labels}.fit(t)
	if got != want {
		t.Errorf("%+v with a class at -Inf, %+v without", got, want)
	}
}

func TestFitTemperatureErrors(t *testing.T) {
	inf := math.Inf(1)
	for _, test := range []struct {
		name   string
		logits []float64
		labels []int
		want   string
	}{
		{"no rows", nil, nil, "no rows"},
		{"NaN", []float64{1, 2, math.NaN(), 0}, []int{0, 0}, "row 1: class 0: logit NaN"},
		{"+Inf", []float64{1, 2, 0, inf}, []int{0, 0}, "row 1: class 1: logit +Inf"},
		{"label", []float64{1, 2, 0, 1}, []int{0, 2}, "row 1: label 2, want 0 to 1"},
		{"true class ruled out", []float64{1, 2, -inf, 0}, []int{0, 0}, "row 1: true class 0 has probability 0"},
		{"all ruled out", []float64{-inf, -inf}, []int{0}, "row 0: true class 0"},
		{"true class out of reach", []float64{-1e308, 1e308}, []int{0}, "row 0: true class 0"},
	} {
		_, err := calibrate.FitTemperature(test.logits, 2, test.labels)
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: error %v, want one with %q", test.name, err, test.want)
			continue
		}
		_, vector := calibrate.FitVectorScaling(test.logits, 2, test.labels)
		if vector == nil || vector.Error() != err.Error() {
			t.Errorf("%s: error %v, want %v of FitTemperature", test.name, vector, err)
		}
	}
}

func TestSoftmaxAliasAndExtremes(t *testing.T) {
	z := []float64{1e308, -1e308, 3, 3, 0, math.Inf(-1)}
	want := calibrate.Softmax(nil, z, 2, 0.5)
	diff(t, "softmax", want, []float64{1, 0, 0.5, 0.5, 1, 0})
	got := slices.Clone(z)
	calibrate.Softmax(got, got, 2, 0.5)
	diff(t, "softmax in place", got, want)
	got = slices.Clone(z)
	calibrate.LogSoftmax(got, got, 2, 0.5)
	diff(t, "log softmax in place", got, calibrate.LogSoftmax(nil, z, 2, 0.5))
	diff(t, "log probs in place", calibrate.LogProbs(got[:2], []float64{1, 0}), []float64{0, math.Inf(-1)})

	// The loss of a nearly certain prediction survives: 1 − p is not 0.
	if lp := calibrate.LogSoftmax(nil, []float64{50, 0}, 2, 1)[0]; lp != -math.Exp(-50) {
		t.Errorf("log p = %g, want %g", lp, -math.Exp(-50))
	}
	for _, row := range [][]float64{{math.NaN(), 0}, {math.Inf(1), 0}, {math.Inf(-1), math.Inf(-1)}} {
		if p := calibrate.Softmax(nil, row, 2, 1); !slices.ContainsFunc(p, math.IsNaN) {
			t.Errorf("softmax of %v is %v", row, p)
		}
		if p := calibrate.LogSoftmax(nil, row, 2, 1); !slices.ContainsFunc(p, math.IsNaN) {
			t.Errorf("log softmax of %v is %v", row, p)
		}
	}
}

func FuzzFitTemperature(f *testing.F) {
	f.Add([]byte{0, 255, 128, 128}, uint8(2), []byte{0, 1})
	f.Add(binary.LittleEndian.AppendUint64(make([]byte, 8), math.Float64bits(1e308)), uint8(2), []byte{1})
	f.Add(binary.LittleEndian.AppendUint64(make([]byte, 8), math.Float64bits(math.Inf(-1))), uint8(2), []byte{0})
	f.Fuzz(func(t *testing.T, data []byte, classes uint8, labels []byte) {
		p := problem{fuzzFloats(data), int(classes), fuzzLabels(labels)}
		if p.classes < 1 || len(p.logits) != len(p.labels)*p.classes {
			return
		}
		got, err := calibrate.FitTemperature(p.logits, p.classes, p.labels)
		if err != nil {
			return
		}
		if !(calibrate.MinTemperature <= got.T && got.T <= calibrate.MaxTemperature) || !(got.NLLAfter <= got.NLLBefore) || got.Evaluations > 60 {
			t.Errorf("%+v", got)
		}
	})
}

// fuzzFloats reads float64 values from data, or, if they do not fill whole
// words, one value in [0, 1] from each byte.
func fuzzFloats(data []byte) []float64 {
	var x []float64
	if len(data)%8 != 0 {
		for _, b := range data {
			x = append(x, float64(b)/255)
		}
		return x
	}
	for ; len(data) > 0; data = data[8:] {
		x = append(x, math.Float64frombits(binary.LittleEndian.Uint64(data)))
	}
	return x
}

func fuzzLabels(data []byte) []int {
	var labels []int
	for _, b := range data {
		labels = append(labels, int(int8(b)))
	}
	return labels
}

// The standard error is the standard deviation of T over samples.
func TestTemperatureError(t *testing.T) {
	t.Parallel()
	const repeats, n, classes, target = 400, 500, 4, 1.7
	r := rand.New(rand.NewPCG(3, 5))
	sum, squares, printed := 0.0, 0.0, 0.0
	for range repeats {
		p := problem{classes: classes}
		for range n {
			row := make([]float64, classes)
			for c := range row {
				row[c] = 3 * r.NormFloat64()
			}
			probs, u, label := calibrate.Softmax(nil, row, classes, target), r.Float64(), 0
			for u -= probs[0]; u > 0 && label < classes-1; u -= probs[label] {
				label++
			}
			p.logits, p.labels = append(p.logits, row...), append(p.labels, label)
		}
		f := p.fit(t)
		sum, squares, printed = sum+f.T, squares+f.T*f.T, printed+f.Error/repeats
	}
	spread := math.Sqrt(squares/repeats - sum/repeats*sum/repeats)
	// A standard deviation of 400 values is known to 3.5 %.
	if math.Abs(printed/spread-1) > 0.12 {
		t.Errorf("T = %.3f ± %.4f, and its error is said to be %.4f", sum/repeats, spread, printed)
	}
}
