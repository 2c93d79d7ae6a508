package compare_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/stat"

	"github.com/swagwrap/swagwrap/calibrate"
	"github.com/swagwrap/swagwrap/internal/baseline"
	"github.com/swagwrap/swagwrap/internal/ensemble"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/study/compare"
	"github.com/swagwrap/swagwrap/internal/study/compare/show"
	"github.com/swagwrap/swagwrap/internal/task"
	"github.com/swagwrap/swagwrap/swag"
)

// Validation and test data choose together. A plain row loses against a temperature for which the validation data asks strongly. The
// method to deploy has no note that a temperature is safer.
func TestChosenTogether(t *testing.T) {
	t.Parallel()
	digits, err := task.New("", task.OutputSpec{Output: "logits", Count: 10})
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(72, 1))
	common := make([]float64, 2000)
	for i := range common {
		common[i] = rng.ExpFloat64()
	}
	method := func(key string, onTest, onValidation float64) *compare.Method {
		m := &compare.Method{Key: key, Name: key, Networks: 1, Members: 1, Deploy: &ensemble.Settings{}}
		values, errors := make([]float64, 1000), make([]float64, 1000)
		for i := range values {
			values[i], errors[i] = common[i]+onTest+0.3*rng.NormFloat64(), float64(i%5/4)
		}
		m.Evaluation = &task.Evaluation{
			Scores: []task.Score{{Metric: task.Metric{Key: "nll"}, Value: stat.Mean(values, nil)}},
			Losses: []task.Loss{{Key: "nll", Name: "NLL", Values: values}, {Key: compare.ErrorLoss, Name: "error", Values: errors}},
		}
		for i := range 1000 {
			m.Unseen = append(m.Unseen, common[1000+i]+onValidation+0.3*rng.NormFloat64())
		}
		return m
	}
	verdict := func(validated bool, methods ...*compare.Method) (string, []string) {
		r := &compare.Result{Comparison: &compare.Comparison{Test: images{n: 1000}}, Methods: methods, Task: digits, Tests: 2}
		if validated {
			r.Validation = images{n: 1000}
		}
		for _, m := range methods[1:] {
			m.Differences = map[string]compare.Difference{"nll": r.DifferenceTo(m, methods[0], "nll")}
		}
		return r.Verdict().Choice.Key, show.Verdict(r)
	}
	temp, vector := method(baseline.SWATemp, 0, 0), method("swa-vector", -0.03, 0.12)
	if got, text := verdict(true, temp, vector); got != baseline.SWATemp || !slices.Contains(text, "Swa-vector has the lowest NLL on the test images alone. Together with 1,000 validation images swa-temp has.") {
		t.Errorf("%s: %q", got, text)
	}
	if got, text := verdict(false, temp, vector); got != "swa-vector" || strings.Contains(strings.Join(text, " "), "alone") {
		t.Errorf("the test data alone: %s: %q", got, text)
	}
	plain := method(baseline.SWA, 0, 0.02) // 2·1,000·0.02 = 40
	if got, text := verdict(true, temp, plain); got != baseline.SWATemp {
		t.Errorf("%s: %q", got, text)
	}
	better := method("swa-vector", -0.1, -0.1)
	for _, m := range []*compare.Method{better, vector} {
		m.Warnings = calibrate.VectorScaling{Scale: make([]float64, 10)}.Warnings(300)
	}
	r := &compare.Result{Comparison: &compare.Comparison{Test: images{n: 1000}, Validation: images{n: 1000}}, Methods: []*compare.Method{temp, better}, Task: digits, Tests: 2}
	r.Runs = []baseline.Run{{Network: &infer.Network{Posterior: &swag.Posterior{}}}}
	better.Differences = map[string]compare.Difference{"nll": r.DifferenceTo(better, temp, "nll")}
	if text := printed(t, r); strings.Contains(text, "a temperature is safer") || !strings.Contains(text, "Deploy swa-vector") {
		t.Error(text)
	}
	vector.Differences = map[string]compare.Difference{"nll": r.DifferenceTo(vector, temp, "nll")}
	if r.Methods = []*compare.Method{temp, vector}; !strings.Contains(printed(t, r), "a temperature is safer") {
		t.Error("the other row has lost its note")
	}
}
