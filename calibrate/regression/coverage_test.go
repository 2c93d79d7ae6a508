package regression_test

import (
	"encoding/json"
	"math"
	"os"
	"testing"

	"github.com/swagwrap/swagwrap/calibrate/regression"
)

// Coverages and their error are uncertainty-toolbox's.
func TestMACE(t *testing.T) {
	data, err := os.ReadFile("testdata/mace.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		PITs, Levels, Coverages []float64
		MACE                    float64
	}
	if err := json.Unmarshal(data, &cases); err != nil || len(cases) < 5 {
		t.Fatal(len(cases), err)
	}
	for _, want := range cases {
		diff(t, "MACE", regression.MACE(want.PITs), want.MACE)
		for i, c := range regression.Coverages(want.PITs, want.Levels) {
			diff(t, "coverage", c, want.Coverages[i])
		}
	}
}

// Of PIT values that lie evenly the share in an interval is its level; all in the middle
// are in every interval but that of level 0, all at the ends in none but the last.
func TestCoverages(t *testing.T) {
	var even []float64
	for i := range 1000 {
		even = append(even, (float64(i)+0.5)/1000)
	}
	for level, got := range map[float64]float64{0.2: 0.2, 0.5: 0.5, 0.95: 0.95} {
		if c := regression.Coverages(even, []float64{level})[0]; math.Abs(c-got) > 1e-9 {
			t.Errorf("level %v: %v", level, c)
		}
	}
	if m := regression.MACE(even); m > 0.01 {
		t.Errorf("even: MACE %v", m)
	}
	if m := regression.MACE([]float64{0.5, 0.5}); math.Abs(m-0.5) > 0.01 {
		t.Errorf("in the middle: MACE %v, want about 1/2", m)
	}
	if m := regression.MACE([]float64{0, 1}); math.Abs(m-0.5) > 0.02 {
		t.Errorf("at the ends: MACE %v, want about 1/2", m)
	}
}
