package calibrate_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/swagwrap/swagwrap/calibrate"
)

// Kills: H < 1e-8 lost, by clipping, by a constant inside the logarithm, or by
// cancellation.
func TestEntropyNearOneHot(t *testing.T) {
	for _, eps := range []float64{0x1p-10, 0x1p-27, 0x1p-40, 0x1p-52} {
		// −(1−ε)·log(1−ε) = ε − ε²/2 − …, by log1p to all digits.
		want := -eps*math.Log(eps) - (1-eps)*math.Log1p(-eps)
		got := calibrate.Entropy([]float64{0, 1 - eps, eps})
		if math.Abs(got-want) > 1e-14*want {
			t.Errorf("ε = %g: entropy %g, want %g", eps, got, want)
		}
	}
	for _, eps := range []float64{1e-30, 1e-300, math.SmallestNonzeroFloat64} {
		got, want := calibrate.Entropy([]float64{1, eps}), -eps*math.Log(eps)
		if !(got > 0) || math.Abs(got-want) > 1e-14*want {
			t.Errorf("ε = %g: entropy %g, want %g", eps, got, want)
		}
	}
}

func TestEntropy(t *testing.T) {
	for _, test := range []struct {
		probs []float64
		want  float64
	}{
		{[]float64{1, 0, 0}, 0},
		{[]float64{0.5, 0.5}, math.Ln2},
		{[]float64{0.25, 0.25, 0.25, 0.25}, 2 * math.Ln2},
	} {
		if got := calibrate.Entropy(test.probs); math.Abs(got-test.want) > 1e-15 || math.Signbit(got) {
			t.Errorf("Entropy(%v) = %v, want %v", test.probs, got, test.want)
		}
	}
}

// Entropy computes logarithms from a table and a series, because math.Log takes three times as long.
func TestEntropyLogarithms(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 100_000 {
		x := math.Exp2(-1074 * rng.Float64())
		if got, want := calibrate.Entropy([]float64{x}), -x*math.Log(x); math.Abs(got-want) > 2e-15*want {
			t.Fatalf("%g: %g, want %g", x, got, want)
		}
	}
	for k := range 1 << 12 { // all entries of the table
		x := (1 + float64(k)/(1<<12)) / 8
		if got, want := calibrate.Entropy([]float64{x}), -x*math.Log(x); math.Abs(got-want) > 2e-15*want {
			t.Fatalf("%g: %g, want %g", x, got, want)
		}
	}
}

func TestMutualInformation(t *testing.T) {
	// Two members that are certain of different classes, and two that agree.
	mean := []float64{0.5, 0.5, 0.25, 0.75}
	h := calibrate.Entropy(mean[2:])
	expected := []float64{0, h}
	got := calibrate.MutualInformation(expected, mean, 2, expected)
	diff(t, "mutual information", got, []float64{math.Ln2, 0})

	// Rounding is clamped; entropies of something else are not.
	got = calibrate.MutualInformation(nil, mean, 2, []float64{math.Ln2 + 1e-14, h + 1e-3})
	if got[0] != 0 || math.Abs(got[1]+1e-3) > 1e-12 {
		t.Errorf("mutual information %v, want 0 and -0.001", got)
	}
}

func TestMutualInformationIsNotNegative(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(3, 0))
	for members := 1; members < 31; members++ {
		const classes = 50
		m, _ := ensemble(rng, members, 40, classes)
		if members%2 == 0 { // members that agree to the last bit
			for i := range m {
				m[i] = m[0]
			}
		}
		mean, expected := average(m, classes, 1)
		for i, mi := range calibrate.MutualInformation(nil, mean, classes, expected) {
			if mi < 0 || mi > math.Log(float64(members))+1e-9 {
				t.Fatalf("%d members, row %d: mutual information %v", members, i, mi)
			}
		}
	}
}

func TestLeastConfidence(t *testing.T) {
	diff(t, "least confidence", calibrate.LeastConfidence(nil, []float64{0.5, 0.25, 0.25, 0, 0, 1}, 3), []float64{0.5, 0})
}
