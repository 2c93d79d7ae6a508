package baseline_test

import (
	"slices"
	"testing"

	"github.com/swagwrap/swagwrap/fixtures/infertest"
	"github.com/swagwrap/swagwrap/internal/baseline"
	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/infer/batchnorm"
	"github.com/swagwrap/swagwrap/internal/target"
	"github.com/swagwrap/swagwrap/internal/task"
)

func TestMain(m *testing.M) { infertest.Main(m) }

// tiny returns the inputs of a run of two small checkpoints, and its data.
func tiny(t *testing.T, kind string) (*baseline.Inputs, baseline.Targets) {
	t.Helper()
	models := infertest.Two(t, kind)
	d := infertest.Data(t, infertest.Path(infertest.Small, "images.npz"), dataset.Options{Shape: []int64{1, 4, 4}})
	in := &baseline.Inputs{Runs: []baseline.Run{{Network: infertest.Network(t, infertest.Fit(t, models...)), Checkpoints: models}},
		BatchNorm: batchnorm.Training{Data: d}, Seed: 1, Scale: 0.5}
	return in, baseline.Targets{Data: []dataset.Dataset{d}}
}

// predicted runs methods. It returns their results, and notes about the methods that were left out.
func predicted(t *testing.T, e infer.Run, in *baseline.Inputs, targets baseline.Targets) (out []*baseline.Predicted, notes []string) {
	t.Helper()
	notes, err := baseline.Predict(t.Context(), e, in, targets, func(p *baseline.Predicted) error { out = append(out, p); return nil })
	if err != nil {
		t.Fatal(err)
	}
	return out, notes
}

// one runs a single method.
func one(t *testing.T, e infer.Run, in *baseline.Inputs, targets baseline.Targets) *baseline.Predicted {
	t.Helper()
	out, notes := predicted(t, e, in, targets)
	if len(out) != 1 {
		t.Fatalf("%d methods, notes %q", len(out), notes)
	}
	return out[0]
}

// same reports whether sums are equal, bit for bit.
func same(a, b *infer.Sums) bool {
	return slices.Equal(a.Outcome, b.Outcome) && slices.Equal(a.Entropy, b.Entropy) && a.Members == b.Members && a.Weight == b.Weight && a.Task == b.Task
}

// metrics returns the main metrics of outcomes by their keys.
func metrics(t *testing.T, x task.Task, outcomes []float64, labels target.Target) map[string]float64 {
	t.Helper()
	e, err := task.Evaluate(x, outcomes, labels, task.EvaluateOptions{MainOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]float64{}
	for _, key := range []string{"accuracy", "nll", "brier", "ece"} {
		out[key] = e.Value(key)
	}
	return out
}
