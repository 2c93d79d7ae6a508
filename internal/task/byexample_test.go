package task_test

import (
	"slices"
	"testing"

	"github.com/swagwrap/swagwrap/internal/task"
)

// One example at a time gets the calibration that all examples together get, with folds and without.
func TestByExample(t *testing.T) {
	of, err := task.New("classes", task.OutputSpec{Output: "y", Count: 3})
	if err != nil {
		t.Fatal(err)
	}
	outcomes := []float64{.5, .3, .2, .1, .8, .1, .2, .2, .6, .7, .2, .1}
	at := func(temperature float64) *task.Calibration {
		return &task.Calibration{Method: task.ByTemperature, Temperature: temperature}
	}
	for name, f := range map[string]*task.Fitted{
		"one":   {Each: []*task.Calibration{at(2)}},
		"folds": {Each: []*task.Calibration{at(2), at(.5)}, Folds: [][]int{{3, 0}, {1, 2}}},
	} {
		var got []float64
		for i, by := 0, f.ByExample(); i < 4; i++ {
			got = append(got, of.Apply(nil, by(i), outcomes[3*i:][:3])...)
		}
		if want := f.Apply(of, outcomes); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
}
