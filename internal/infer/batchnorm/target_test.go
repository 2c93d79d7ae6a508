package batchnorm

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// made returns examples of ten classes: noise around the number of a class.
func made(rng *rand.Rand, classes []int) [][]float64 {
	features := make([][]float64, 6)
	for f := range features {
		for _, c := range classes {
			features[f] = append(features[f], 0.8*float64((c*(f+3))%10)/3+rng.NormFloat64())
		}
	}
	return features
}

// Shuffled data raise no alarm, and data that are sorted, in runs or drifting raise one.
func TestSorted(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 2))
	false_, missed := 0, map[string]int{}
	const trials = 100
	for trial := range trials {
		n := []int{64, 128, 512}[trial%3]
		classes := make([]int, n)
		for i := range classes {
			classes[i] = rng.IntN(10)
		}
		if sorted(made(rng, classes)) {
			false_++
		}
		if trial >= 20 {
			continue
		}
		ordered := slices.Sorted(slices.Values(classes))
		if !sorted(made(rng, ordered)) {
			missed["by class"]++
		}
		runs := make([]int, n)
		for i := range runs {
			runs[i] = classes[i/4*4]
		}
		if !sorted(made(rng, runs)) {
			missed["runs"]++
		}
		drift := made(rng, classes)
		for i := range n {
			drift[0][i] += 4 * float64(i) / float64(n)
		}
		if !sorted(drift) {
			missed["drift"]++
		}
	}
	if false_ > 2 { // two per cent
		t.Errorf("%d of %d shuffled sets raise an alarm", false_, trials)
	}
	t.Logf("false alarms: %d of %d; missed of 20: %v", false_, trials, missed)
	if missed["by class"] > 0 || missed["runs"] > 4 || missed["drift"] > 5 { // 64 examples are few
		t.Errorf("missed of 20: %v", missed)
	}
}

// predictions are n rows whose most probable class is 0 in a share, and another one in turn else.
func predictions(share float64, n, classes int) (rows [][]float64) {
	for i := range n {
		p := make([]float64, classes)
		p[0] = 0.1
		if c := 1 + i%(classes-1); float64(i) >= share*float64(n) {
			p[c] = 0.9
		} else {
			p[0] = 0.9
		}
		rows = append(rows, p)
	}
	return rows
}

// One class is found where nothing says that it is usual.
func TestOneClass(t *testing.T) {
	for _, tc := range []struct {
		share, usual float64
		classes      int
		want         bool
	}{{0.9, 0.1, 10, true}, {0.6, 0.1, 10, true}, {0.3, 0.1, 10, false}, {0.9, 0.5, 2, true}, {0.7, 0.5, 2, false}, {0.9, 0.85, 2, false}} {
		t2 := &Target{}
		usual := slices.Repeat([]float64{(1 - tc.usual) / float64(tc.classes-1)}, tc.classes)
		usual[0] = tc.usual
		rows := predictions(tc.share, 200, tc.classes)
		if t2.compare(rows, rows, rows, usual, false); (t2.OneClass > 0) != tc.want || t2.Changed != 0 || t2.Skewed != 0 {
			t.Errorf("%+v: %+v", tc, t2)
		}
	}
}

// Other shares of the classes are found if the usual ones are known, and by more than chance explains.
func TestSkewed(t *testing.T) {
	usual := slices.Repeat([]float64{0.1}, 10)
	for _, tc := range []struct {
		alone float64
		n     int
		known bool
		want  bool
	}{{0.24, 256, true, true}, {0.24, 256, false, false}, {0.15, 256, true, false}, {0.24, 64, true, true}, {0.2, 64, true, false}, {0.1, 512, true, false}} {
		t2, rows := &Target{}, predictions(0.1, tc.n, 10)
		if t2.compare(rows, rows, predictions(tc.alone, tc.n, 10), usual, tc.known); (t2.Skewed > 0) != tc.want || t2.OneClass != 0 || t2.Class != 0 {
			t.Errorf("%+v: %+v", tc, t2)
		}
	}
}
