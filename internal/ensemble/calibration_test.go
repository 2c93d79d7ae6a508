package ensemble_test

import (
	"math"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/swagwrap/swagwrap/calibrate"
	"github.com/swagwrap/swagwrap/fixtures/infertest"
	"github.com/swagwrap/swagwrap/internal/ensemble"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/task"
	"github.com/swagwrap/swagwrap/swag"
	"github.com/swagwrap/swagwrap/weights"
)

// calibrated returns an ensemble of two members that nothing else is in.
func calibrated(t *testing.T) *ensemble.Ensemble {
	p := infertest.Posterior(t)
	row := make([]float32, p.Layout.Len(weights.Statistic))
	return &ensemble.Ensemble{
		Path:       filepath.Join(t.TempDir(), "e.safetensors"),
		Components: []ensemble.Component{{Posterior: ensemble.Reference{Path: p.Path, ID: p.ID}, Members: 2, Weight: 1, Statistics: [][]float32{row, row}}},
		Sampling:   ensemble.Draw{Scale: 0.5, Covariance: swag.LowRankPlusDiagonal.String()},
	}
}

// A file with vector scaling has a version that earlier readers refuse; one
// without has not.
func TestFileWithVectorScaling(t *testing.T) {
	for _, v := range []*task.Calibration{nil, {Method: task.ByVector, Scale: []float64{0.5, 1.25}, Bias: []float64{-0.125, 1e-300}}} {
		want := calibrated(t)
		want.Calibration = v
		write(t, want)
		got, err := ensemble.Open(want.Path)
		if err != nil {
			t.Fatal(err)
		}
		want.ID = got.ID
		if !reflect.DeepEqual(want, got) {
			t.Error(cmp.Diff(want, got))
		}
	}
}

func TestFileRefusesBadCalibration(t *testing.T) {
	for want, c := range map[string]*task.Calibration{
		`metadata "calibration": calibration "temperature": number -1`:                 {Method: task.ByTemperature, Temperature: -1},
		`metadata "calibration": calibration "vector": scales 1, want as many as bias`: {Method: task.ByVector, Scale: []float64{1}, Bias: []float64{0, 1}},
		`metadata "calibration": calibration "variances": number 0`:                    {Method: task.ByVariances, Factors: []float64{1, 0}},
		`metadata "calibration": calibration "spline": numbers missing`:                {Method: "spline", Temperature: 2},
		`metadata "calibration": calibration "isotonic": a map`:                        {Method: task.ByIsotonic},
	} {
		e := calibrated(t)
		e.Calibration = c
		write(t, e)
		if _, err := ensemble.Open(e.Path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
	e := &ensemble.Ensemble{Path: "e.safetensors", Calibration: &task.Calibration{Method: task.ByVector, Scale: []float64{1, 1}, Bias: []float64{0, 0}}}
	if err := e.CheckCalibration(classes(t, 3)); err == nil || !strings.Contains(err.Error(), `calibration "vector": for 2, and the networks have 3 classes`) {
		t.Errorf("error %v", err)
	}
	if err := e.CheckCalibration(classes(t, 2)); err != nil {
		t.Error(err)
	}
	e.Calibration = &task.Calibration{Method: task.ByPlatt, Scale: []float64{1, 1}, Bias: []float64{0, 0}}
	if err := e.CheckCalibration(classes(t, 2)); err == nil || !strings.Contains(err.Error(), `calibration "platt": is not for the task classes`) {
		t.Errorf("error %v", err)
	}
}

// A row of an average gets what calibrate.Apply gives of its probabilities; what
// the members say stays.
func TestRowWithVectorScaling(t *testing.T) {
	sums := &infer.Sums{Task: classes(t, 3), Weight: 2, Outcome: []float64{1.2, 0.6, 0.2}, Entropy: []float64{1}}
	e := &ensemble.Ensemble{Calibration: &task.Calibration{Method: task.ByVector, Scale: []float64{0.5, 2, 1}, Bias: []float64{0, 1, 0.25}}}
	plain, row := describe(sums, 0, &ensemble.Ensemble{}, 0), describe(sums, 0, e, 0)
	want := calibrate.VectorScaling{Scale: e.Calibration.Scale, Bias: e.Calibration.Bias}.Apply(nil, []float64{math.Log(0.6), math.Log(0.3), math.Log(0.1)})
	for c, p := range row.Probabilities {
		if math.Abs(p-want[c]) > 1e-15 {
			t.Errorf("class %d: probability %v, want %v", c, p, want[c])
		}
	}
	if row.MutualInformation != plain.MutualInformation || row.ExpectedEntropy != plain.ExpectedEntropy {
		t.Errorf("mutual information %v and expected entropy %v, want %v and %v as without",
			row.MutualInformation, row.ExpectedEntropy, plain.MutualInformation, plain.ExpectedEntropy)
	}
	if math.Abs(row.Loss+math.Log(want[0])) > 1e-15 || row.Loss == plain.Loss {
		t.Errorf("loss %v, want %v", row.Loss, -math.Log(want[0]))
	}
}
