package compare

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/swagwrap/swagwrap/calibrate"
	"github.com/swagwrap/swagwrap/internal/baseline"
	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/target"
	"github.com/swagwrap/swagwrap/internal/task"
)

// scored is data with the probabilities that a network gives.
type scored struct {
	dataset.Dataset
	probs  []float64
	labels []int
}

func (s *scored) Len() int              { return len(s.labels) }
func (s *scored) Labels() target.Target { return target.Target{Classes: s.labels} }

// Structured matrix scaling is a row by itself where cross-validation prefers it to other calibrations of the network.
func TestMatrixTried(t *testing.T) {
	t.Parallel()
	const classes = 6
	what, err := task.New("classes", task.OutputSpec{Count: classes})
	if err != nil {
		t.Fatal(err)
	}
	for name, confuses := range map[string]bool{"classes that are confused": true, "a temperature is enough": false} {
		rng := rand.New(rand.NewPCG(72, 2))
		draw := func(n int) *scored {
			s := &scored{}
			for range n {
				z, y := make([]float64, classes), rng.IntN(classes)
				for c := range z {
					z[c] = 1.5 * rng.NormFloat64()
				}
				z[y] += 3
				for c := classes - 1; confuses && c > 0; c-- { // a class has most of its neighbour's logit
					z[c] += 0.9 * z[c-1]
				}
				s.labels, s.probs = append(s.labels, y), append(s.probs, calibrate.Softmax(nil, z, classes, 1)...)
			}
			return s
		}
		test, val := draw(300), draw(600)
		b := &builder{Comparison: &Comparison{Test: test, Validation: val}, run: infer.Run{}, shared: map[*infer.Model]*shared{}}
		b.task = what
		var keys []string
		for _, row := range []struct {
			key string
			by  task.Method
		}{{baseline.SGD, ""}, {baseline.SGDTemp, task.OneNumber}, {baseline.SGDVector, task.ByVector}, {"sgd-sms", task.ByMatrix}} {
			p := &baseline.Predicted{Key: row.key, Name: row.key, By: row.by, Members: 1}
			says := func(s *scored) *infer.Sums {
				sums := &infer.Sums{}
				sums.Init("", s.Len(), what)
				for i := range s.labels {
					sums.Add(i, s.probs[i*classes:][:classes], 0, 1)
				}
				sums.Members, sums.Weight = 1, 1
				return sums
			}
			p.Data, p.Validation = []*infer.Sums{says(test)}, says(val)
			m := &Method{Key: row.key, Name: row.key}
			if _, err := b.fitAll(m, p); err == nil {
				if b.methods, keys = append(b.methods, m), append(keys, row.key); len(m.Unseen) != val.Len() {
					t.Errorf("%s: %d losses of validation examples", row.key, len(m.Unseen))
				}
			} else if out := (*leftOut)(nil); !errors.As(err, &out) || out.why != "" {
				t.Error(row.key, err)
			}
		}
		if got := slices.Contains(keys, "sgd-sms"); got != confuses || len(keys) < 3 {
			t.Errorf("%s: rows %q", name, keys)
		}
	}
}
