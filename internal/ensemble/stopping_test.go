package ensemble_test

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"

	"github.com/swagwrap/swagwrap/fixtures/infertest"
	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/ensemble"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/memory"
	"github.com/swagwrap/swagwrap/internal/task"
)

// ruleOf is a rule that corrects every stage in the same way.
func ruleOf(e *ensemble.Ensemble, tolerance float64) *ensemble.Stopping {
	checks := e.StoppingChecks()
	return &ensemble.Stopping{Tolerance: tolerance, Errors: 3, Checks: checks, Order: e.All(), Stages: slices.Repeat([]task.Stage{{Temperature: 1.2, Offset: 0.001, Slope: 1.5}}, len(checks))}
}

// TestSettled computes from each member's probabilities where an example stops and what its row says, by the formulas
// of docs/formulas.md. The rows are the same for every number of threads, size of memory and batch, and from a later
// chunk. Rules of older versions have no weights and no expectations.
func TestSettled(t *testing.T) {
	t.Parallel()
	t.Run("older", func(t *testing.T) { settled(t, func(*ensemble.Stopping) {}) })
	t.Run("weighted", func(t *testing.T) {
		settled(t, func(s *ensemble.Stopping) {
			for k, check := range s.Checks {
				w := make([]float64, check)
				for j := range w {
					w[j] = float64((j*j+k)%5 + 1)
				}
				floats.Scale(1/floats.Sum(w), w)
				s.Weights = append(s.Weights, w)
				s.Expected = append(s.Expected, ensemble.Expectation{Level: -0.1 * float64(k), Spread: 0.9, Doubt: 0.2})
			}
		})
	})
}

func settled(t *testing.T, with func(*ensemble.Stopping)) {
	const members, tolerance = 12, 0.03 // with the statistics of the last checkpoint, members differ much
	e, networks := ensembleOf(infertest.Network(t, infertest.Posterior(t)), members)
	e.Stopping = ruleOf(e, tolerance)
	with(e.Stopping)
	data := dataset.Subset(infertest.Digits(t, "val.npz"), dataset.Order{Limit: 300})
	job := ensemble.Scoring{Ensemble: e, Networks: networks, Data: data, Want: everything}
	plain := engine(t)
	all := collect(t, plain, job, 0)

	order := []int{7, 2, 11, 0, 4, 9, 1, 3, 5, 6, 8, 10}
	e.Stopping.Order = order
	job.Settled, job.Want.Members = true, 0
	want := collect(t, plain, job, 0)
	stopped := map[int]int{}
	for i, r := range want {
		ran, p := members, all[i].Probabilities
		for at, check := range e.Stopping.Checks {
			mean, nats, doubt := make([]float64, 10), 0.0, 0.0
			sd := make([]float64, 10)
			for c := range mean {
				var values []float64
				for _, k := range order[:check] {
					values = append(values, all[i].Members[k*10+c])
				}
				var v float64
				mean[c], v = stat.MeanVariance(values, nil)
				if e.Stopping.Weights != nil {
					mean[c] = floats.Dot(values, e.Stopping.Weights[at])
				}
				v *= (1 - float64(check)/members) / float64(check)
				nats, sd[c] = nats+v/mean[c]/2, math.Sqrt(v)
				doubt -= mean[c] * math.Log(mean[c])
			}
			if e.Stopping.Expected != nil {
				nats = math.Exp(-0.1*float64(at) + 0.9*math.Log(nats+1e-9) + 0.2*math.Log(doubt+1e-9))
			}
			order := []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}
			slices.SortStableFunc(order, func(a, b int) int { return int(math.Copysign(1, mean[b]-mean[a])) })
			a, b := order[0], order[1]
			if nats > tolerance*1.0001 || mean[a]-mean[b] < 3*(sd[a]+sd[b])*0.9999 {
				continue
			}
			ran, p = check, make([]float64, 10)
			for c := range p {
				p[c] = math.Pow(mean[c], 1/1.2)
			}
			floats.Scale(1/floats.Sum(p), p)
			break
		}
		stopped[ran]++
		if r.Ran != float64(ran) {
			t.Errorf("row %d: %v members, want %d", i, r.Ran, ran)
			continue
		}
		for c := range p {
			if math.Abs(p[c]-r.Probabilities[c]) > 2e-7 { // the members are float32
				t.Errorf("row %d, class %d: %v, want %v", i, c, r.Probabilities[c], p[c])
			}
		}
	}
	if stopped[5] < 20 || stopped[members] < 20 || len(stopped) < 4 {
		t.Fatalf("the examples stop after %v: this tests little", stopped)
	}

	for _, other := range []infer.EngineOptions{{Threads: 3, Memory: memory.New(1)}, {Threads: 1, BatchSize: 7}, {Threads: 2, BatchSize: 1}} {
		for i, r := range collect(t, infer.NewEngine(plain.Runtime(), other), job, 0) {
			if !same(r, want[i]) {
				t.Fatalf("row %d: %+v, want %+v", i, r, want[i])
			}
		}
	}
	few := infer.NewEngine(plain.Runtime(), infer.EngineOptions{Threads: 2, Memory: memory.New(1)})
	for i, r := range collect(t, few, job, 256) {
		if !same(r, want[256+i]) {
			t.Fatalf("from row 256, row %d: %+v, want %+v", 256+i, r, want[256+i])
		}
	}
}

// TestSettledNever: where no example settles, rows have the bits of a run of all members.
func TestSettledNever(t *testing.T) {
	t.Parallel()
	e, networks := ensembleOf(infertest.Network(t, infertest.Posterior(t)), 8)
	e.Stopping = ruleOf(e, 1e-300)
	e.Stopping.Errors = 1e9
	data := dataset.Subset(infertest.Digits(t, "val.npz"), dataset.Order{Limit: 50})
	job := ensemble.Scoring{Ensemble: e, Networks: networks, Data: data, Want: task.RowOptions{Top: 3, Outcomes: true}}
	want := collect(t, engine(t), job, 0)
	job.Settled = true
	for i, r := range collect(t, engine(t), job, 0) {
		if r.Ran != 8 && r.Error == "" {
			t.Errorf("row %d: %v members", i, r.Ran)
		}
		if r.Error == "" {
			r.values = r.values[:len(r.values)-1]
		}
		if !same(r, want[i]) {
			t.Errorf("row %d: %+v, want %+v", i, r, want[i])
		}
	}
}

func TestStoppingChecks(t *testing.T) {
	for _, c := range []struct {
		members, unit int
		want          []int
	}{
		{4, 1, nil}, {5, 1, []int{4}}, {10, 1, []int{4, 5, 6, 7, 9}}, {30, 1, []int{4, 5, 6, 7, 9, 10, 12, 15, 18, 21, 26}}, {20, 2, []int{4, 6, 8, 10, 12, 16, 18}}, {6, 2, []int{4}}, {7, 2, []int{4, 6}},
	} {
		if got := ensemble.StoppingChecks(c.members, c.unit); !slices.Equal(got, c.want) {
			t.Errorf("%d members: checks %v, want %v", c.members, got, c.want)
		}
	}
}

// weighted adds what rules of older versions do not have.
func weighted(s *ensemble.Stopping) {
	for _, check := range s.Checks {
		s.Weights = append(s.Weights, slices.Repeat([]float64{1 / float64(check)}, check))
	}
	s.Expected = make([]ensemble.Expectation, len(s.Checks))
}

// TestStoppingFile: a rule comes back from a file, and a forged one is refused.
func TestStoppingFile(t *testing.T) {
	e, networks := small(t, "ckpt", 8)
	e.Components[0].Posterior.Path, e.Card = "p", networks[0].Posterior.Card
	e.Stopping = ruleOf(e, 1e-3)
	path := filepath.Join(t.TempDir(), "e.safetensors")
	write := func() error {
		f, err := os.Create(path)
		if err == nil {
			err = errors.Join(e.Write(f, "test"), f.Close())
		}
		if err != nil {
			t.Fatal(err)
		}
		got, err := ensemble.Open(path)
		if err == nil && (got.Stopping == nil || got.Stopping.Tolerance != 1e-3 || !slices.Equal(got.Stopping.Stages, e.Stopping.Stages)) {
			t.Errorf("read %+v", got.Stopping)
		}
		return err
	}
	if err := write(); err != nil {
		t.Fatal(err)
	}
	weighted(e.Stopping)
	if err := write(); err != nil {
		t.Fatal(err)
	}
	for _, forge := range []func(*ensemble.Stopping){
		func(s *ensemble.Stopping) { s.Tolerance = -1 },
		func(s *ensemble.Stopping) { s.Checks = []int{1, 2, 3} },
		func(s *ensemble.Stopping) { s.Stages = s.Stages[1:] },
		func(s *ensemble.Stopping) { s.Stages[0].Temperature = 0 },
		func(s *ensemble.Stopping) { s.Order[1] = 0 },
		func(s *ensemble.Stopping) { s.Weights = [][]float64{{1}} },
		func(s *ensemble.Stopping) { weighted(s); s.Weights[0][0] = -1 },
		func(s *ensemble.Stopping) { weighted(s); s.Weights[1][0] = 2 },
		func(s *ensemble.Stopping) { weighted(s); s.Weights[1] = s.Weights[1][1:] },
		func(s *ensemble.Stopping) { s.Expected = make([]ensemble.Expectation, 1) },
		func(s *ensemble.Stopping) { weighted(s); s.Expected[0].Doubt = 1e300 },
		func(s *ensemble.Stopping) { s.Order = s.Order[1:] },
	} {
		e.Stopping = ruleOf(e, 1e-3)
		forge(e.Stopping)
		if err := write(); err == nil || !strings.Contains(err.Error(), `metadata "stopping"`) {
			t.Errorf("forged rule: %v", err)
		}
	}
}

func TestNoStopping(t *testing.T) {
	e, networks := small(t, "ckpt", 8)
	job := ensemble.Scoring{Ensemble: e, Networks: networks, Data: tinyData(t, "images.npz"), Settled: true}
	if _, err := ensemble.NewScorer(t.Context(), engine(t), job); err == nil || !strings.HasSuffix(err.Error(), "has no stopping rule") {
		t.Errorf("error %v", err)
	}
}
