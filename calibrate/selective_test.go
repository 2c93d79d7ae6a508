package calibrate_test

import (
	"math/rand/v2"
	"testing"

	"github.com/swagwrap/swagwrap/calibrate"
)

// coins are predictions of two classes with the given confidences, right or not.
func coins(confidences []float64, right []bool) calibrate.Predictions {
	p := calibrate.Predictions{Classes: 2}
	for i, x := range confidences {
		label := 0
		if !right[i] {
			label = 1
		}
		p.Probs, p.Labels = append(p.Probs, x, 1-x), append(p.Labels, label)
	}
	return p
}

func TestRiskCoverage(t *testing.T) {
	// Two sure and right, a run of two of which one is wrong, and a wrong one.
	p := coins([]float64{0.6, 0.9, 0.7, 0.95, 0.7}, []bool{false, true, true, true, false})
	want := []calibrate.RiskPoint{
		{Coverage: 0.2, Risk: 0, Threshold: 0.95},
		{Coverage: 0.4, Risk: 0, Threshold: 0.9},
		{Coverage: 0.6, Risk: 0.5 / 3, Threshold: 0.7},
		{Coverage: 0.8, Risk: 1.0 / 4, Threshold: 0.7},
		{Coverage: 1, Risk: 2.0 / 5, Threshold: 0.6},
	}
	diff(t, "curve", calibrate.RiskCoverage(p), want)
	diff(t, "AURC", calibrate.AURC(p), (0.5/3+0.25+0.4)/5)
	diff(t, "risk at 0.41", calibrate.SelectiveRisk(p, 0.41), 0.5/3)
}

// Kills: ties broken by the order of the input.
func TestRiskCoverageIgnoresOrder(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 0))
	confidences, right := make([]float64, 60), make([]bool, 60)
	for i := range confidences {
		confidences[i], right[i] = 0.5+float64(rng.IntN(4))/8, rng.IntN(3) > 0
	}
	want := calibrate.RiskCoverage(coins(confidences, right))
	rng.Shuffle(len(right), func(i, j int) {
		confidences[i], confidences[j] = confidences[j], confidences[i]
		right[i], right[j] = right[j], right[i]
	})
	diff(t, "curve", calibrate.RiskCoverage(coins(confidences, right)), want)
}

func TestSelectiveRiskExtremes(t *testing.T) {
	for _, test := range []struct {
		name        string
		confidences []float64
		right       []bool
		aurc, risk  float64 // at 0.5
	}{
		{"all right", []float64{0.9, 0.8, 0.7}, []bool{true, true, true}, 0, 0},
		{"all wrong", []float64{0.9, 0.8, 0.7}, []bool{false, false, false}, 1, 1},
		{"all certain", []float64{1, 1, 1, 1}, []bool{true, false, true, true}, 0.25, 0.25},
		{"one right", []float64{0.6}, []bool{true}, 0, 0},
		{"one wrong", []float64{0.6}, []bool{false}, 1, 1},
	} {
		p := coins(test.confidences, test.right)
		diff(t, test.name+": AURC", calibrate.AURC(p), test.aurc)
		diff(t, test.name+": risk", calibrate.SelectiveRisk(p, 0.5), test.risk)
	}
	p := random(300, 4, 12)
	diff(t, "risk at 1", calibrate.SelectiveRisk(p, 1), 1-calibrate.Accuracy(p))
	if tiny := calibrate.SelectiveRisk(p, 1e-12); tiny != calibrate.RiskCoverage(p)[0].Risk {
		t.Errorf("risk at a tiny coverage is %v, want that of the surest image", tiny)
	}
}

// Errors and Briers are what the means are of.
func TestLossesOfEachImage(t *testing.T) {
	p := random(100, 4, 13)
	mean := func(x []float64) (m float64) {
		for _, v := range x {
			m += v / float64(len(x))
		}
		return m
	}
	diff(t, "Brier", mean(calibrate.Briers(nil, p)), calibrate.Brier(p))
	q := predictions(t, []float64{1, 0, 1, 0, 0.5, 0.5, 0.5, 0.5}, 2, 0, 1, 0, 1)
	diff(t, "Briers", calibrate.Briers([]float64{9, 9, 9, 9}, q), []float64{0, 2, 0.5, 0.5})
}

// Kills: a calibration error that looks at the most probable class only. The
// third class is predicted with 0.2 and never comes; the first makes up for it.
func TestClasswiseECESeesOtherClasses(t *testing.T) {
	p := calibrate.Predictions{Classes: 3}
	for i := range 100 {
		p.Probs = append(p.Probs, 0.6, 0.2, 0.2)
		p.Labels = append(p.Labels, []int{0, 0, 0, 1, 1}[i%5])
	}
	diff(t, "ECE", calibrate.ECE(p, calibrate.ECEOptions{}), 0)
	diff(t, "classwise ECE", calibrate.ClasswiseECE(p, calibrate.ECEOptions{}), (0+0.2+0.2)/3)
}
