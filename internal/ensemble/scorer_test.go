package ensemble_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/swagwrap/swagwrap/fixtures/infertest"
	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/ensemble"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/memory"
	"github.com/swagwrap/swagwrap/internal/names"
	"github.com/swagwrap/swagwrap/internal/records"
	"github.com/swagwrap/swagwrap/internal/task"
	"github.com/swagwrap/swagwrap/swag"
	"github.com/swagwrap/swagwrap/weights"
)

// small is an ensemble of two small checkpoints, whose networks are called
// name-1.onnx and name-2.onnx. Their statistics are those of the last.
func small(t *testing.T, name string, members int) (*ensemble.Ensemble, []*infer.Network) {
	t.Helper()
	return ensembleOf(infertest.Network(t, infertest.Fit(t, infertest.Two(t, name)...)), members)
}

func ensembleOf(n *infer.Network, members int) (*ensemble.Ensemble, []*infer.Network) {
	statistics := make([]float32, n.Posterior.Layout.Len(weights.Statistic))
	n.Posterior.Statistics.ReadAt(statistics, 0)
	return &ensemble.Ensemble{
		Path:       "e.safetensors",
		Components: []ensemble.Component{{Posterior: ensemble.Reference{ID: n.Posterior.ID}, Members: members, Weight: 1, Statistics: slices.Repeat([][]float32{statistics}, members)}},
		Sampling:   ensemble.Draw{Seed: 1, Scale: 0.5, Covariance: swag.LowRankPlusDiagonal.String()},
	}, []*infer.Network{n}
}

// tinyData opens what the small networks take.
func tinyData(t *testing.T, name string) dataset.Dataset {
	t.Helper()
	return infertest.Data(t, infertest.Path(infertest.Small, name), dataset.Options{})
}

// collect runs a Scorer from the given example on, and returns all rows.
func collect(t *testing.T, e *infer.Engine, job ensemble.Scoring, first int) []Row {
	t.Helper()
	return collectIn(t, t.Context(), e, job, first)
}

// collectIn is collect in a context that counts passes.
func collectIn(t *testing.T, ctx context.Context, e *infer.Engine, job ensemble.Scoring, first int) []Row {
	t.Helper()
	s, err := ensemble.NewScorer(ctx, e, job)
	if err != nil {
		t.Fatal(err)
	}
	var out []Row
	err = s.Run(ctx, first, nil, func(c *infer.Chunk) error {
		for r := range s.Rows(c) {
			out = append(out, named(s.Schema(1).Columns, r))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// flawed is data of which some examples cannot be read.
type flawed struct {
	dataset.Bytes
	broken map[int]bool
}

func (c flawed) Pixels(dst []byte, i int) error {
	if c.broken[i] {
		dst[0] = 99
		return fmt.Errorf("image %d: is\nbroken", i)
	}
	return c.Bytes.Pixels(dst, i)
}

func (c flawed) Read(dst dataset.Values, i int) error {
	if c.broken[i] {
		return fmt.Errorf("image %d: is broken", i)
	}
	return c.Bytes.Read(dst, i)
}

var everything = task.RowOptions{Top: 3, Outcomes: true, Members: 1}

// Neither the number of threads nor the memory at hand can be seen in any bit of a
// row, nor that a run was stopped and went on from its work file. What is kept of
// members adds up to the average.
func TestScorerSameBits(t *testing.T) {
	t.Parallel()
	e, networks := ensembleOf(infertest.Network(t, infertest.Posterior(t)), 5)
	job := ensemble.Scoring{Ensemble: e, Networks: networks, Data: dataset.Subset(infertest.Digits(t, "val.npz"), dataset.Order{Limit: 600}), Want: everything}
	plain := engine(t)
	want := collect(t, plain, job, 0)
	few := infer.NewEngine(plain.Runtime(), infer.EngineOptions{Threads: 3, Memory: memory.New(1)}) // a batch a chunk, a session at a time
	firsts := []int{512, 128, 0}
	if testing.Short() {
		firsts = firsts[:1]
	}
	for _, first := range firsts {
		for i, r := range collect(t, few, job, first) {
			if !same(r, want[first+i]) {
				t.Fatalf("from %d, row %d: %+v, want %+v", first, i, r, want[first+i])
			}
		}
	}
	for i, r := range want {
		for c, p := range r.Probabilities {
			total := 0.0
			for k := range 5 {
				total += r.Members[k*10+c] / 5
			}
			if math.Abs(total-p) > 1e-7 { // they are float32
				t.Errorf("image %d, class %d: members' mean %v, want %v", i, c, total, p)
			}
		}
	}

	path := filepath.Join(t.TempDir(), "out.csv.partial")
	stop := errors.New("stop")
	// run goes on for so many chunks, and returns what ended it.
	run := func(e *infer.Engine, existing records.Existing, chunks int) (*records.File, error) {
		s, err := ensemble.NewScorer(t.Context(), e, job)
		if err != nil {
			t.Fatal(err)
		}
		parameters, err := s.Parameters("test")
		if err != nil {
			t.Fatal(err)
		}
		head, err := s.Schema(3).Head(s.Task().About().Name, records.Part{}, parameters)
		if err != nil {
			t.Fatal(err)
		}
		r, err := records.Open(path, records.Unfinished, head, existing)
		if err != nil {
			t.Fatal(err)
		}
		return r, s.Run(t.Context(), r.Rows(), nil, func(c *infer.Chunk) error {
			if chunks--; chunks < 0 {
				return stop
			}
			return r.Append(c.First, s.Rows(c))
		})
	}
	r, err := run(few, records.Refuse, 3)
	if r.Rows() != 3*128 || !errors.Is(err, stop) {
		t.Fatalf("stopped after %d rows: %v", r.Rows(), err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if r, err = run(plain, records.Resume, math.MaxInt); err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	columns, next := networks[0].Known().Columns(task.RowOptions{Top: 3, Outcomes: true, Members: 5}), 0
	err = r.Each(func(row *records.Row) error {
		if got := named(columns, row); !same(got, want[next]) {
			t.Fatalf("row %d, resumed: %+v, want %+v", next, got, want[next])
		}
		next++
		return nil
	})
	if err != nil || next != len(want) {
		t.Errorf("%d rows, want %d; %v", next, len(want), err)
	}
}

// Images that cannot be read cost their rows, and no other row a bit.
func TestScorerSkips(t *testing.T) {
	t.Parallel()
	engine := infer.NewEngine(infertest.Runtime(t), infer.EngineOptions{BatchSize: 3, Threads: 4})
	e, networks := small(t, "ckpt", 3)
	images := tinyData(t, "images.npz").(dataset.Bytes)
	job := ensemble.Scoring{Ensemble: e, Networks: networks, Data: images, Want: everything, SkipErrors: true}
	want := collect(t, engine, job, 0)
	broken := map[int]bool{0: true, 4: true, 9: true} // 9 is a batch of its own
	job.Data = flawed{images, broken}
	got := collect(t, engine, job, 0)
	for i := range want {
		if broken[i] {
			if got[i].Error != fmt.Sprintf("image %d: is broken", i) || got[i].Prediction != -1 || got[i].Probabilities != nil {
				t.Errorf("row %d: %+v", i, got[i])
			}
			continue
		}
		if !same(got[i], want[i]) {
			t.Errorf("row %d: %+v, want %+v", i, got[i], want[i])
		}
	}
}

// What is not finite is never averaged: its row says which member and class.
func TestScorerNotFinite(t *testing.T) {
	t.Parallel()
	engine := engine(t)
	e, networks := small(t, "brightest", 3)
	black := tinyData(t, "black.npz") // image 3 is
	job := ensemble.Scoring{Ensemble: e, Networks: networks, Data: black, SkipErrors: true}
	for i, r := range collect(t, engine, job, 0) {
		if i != 3 {
			if r.Error != "" || r.Confidence == 0 {
				t.Errorf("row %d: %+v", i, r)
			}
			continue
		}
		want := "e.safetensors: member 0 of " + networks[0].Posterior.Path + ": the network's output is not finite: class 0 has -Inf"
		if r.Error != want || r.Confidence != 0 {
			t.Errorf("row 3: %+v, want %s", r, want)
		}
	}
	job.SkipErrors = false
	s, err := ensemble.NewScorer(t.Context(), engine, job)
	if err != nil {
		t.Fatal(err)
	}
	err = s.Run(t.Context(), 0, nil, func(*infer.Chunk) error { return nil })
	infertest.WantError(t, err, ": black.npz[3]: the network's output is not finite: class 0 has -Inf")
}

// A single score is about class 1 of two: the same as two logits (0, z) would
// be; a sigmoid in the graph makes no difference but for float32's.
func TestScorerBinary(t *testing.T) {
	t.Parallel()
	engine := engine(t)
	var rows [2][]Row
	for k, name := range []string{"binary", "sigmoid"} {
		e, networks := small(t, name, 4)
		job := ensemble.Scoring{Ensemble: e, Networks: networks, Data: tinyData(t, "unlabelled.npy"), Want: everything}
		s, err := ensemble.NewScorer(t.Context(), engine, job)
		if err != nil {
			t.Fatal(err)
		}
		want := []string{": output \"logits\": the logit of class 1 of 2", ": output \"logits\": the probability of class 1 of 2"}[k]
		if got := s.Tasks(); len(got) != 1 || !strings.HasSuffix(got[0], want) || s.Task().About().Classes != 2 {
			t.Errorf("%s: %q, %s", name, got, s.Task().About().Size)
		}
		rows[k] = collect(t, engine, job, 0)
	}
	for i := range rows[0] {
		a, b := rows[0][i], rows[1][i]
		if len(a.Probabilities) != 2 || len(a.Top) != 2 {
			t.Fatalf("row %d: %+v", i, a)
		}
		for c := range a.Probabilities {
			if math.Abs(a.Probabilities[c]-b.Probabilities[c]) > 1e-6 {
				t.Errorf("row %d: %v and %v", i, a.Probabilities, b.Probabilities)
			}
		}
	}
}

// Of several outputs the one that is named counts; by default the first.
func TestScorerOutputs(t *testing.T) {
	t.Parallel()
	e, networks := small(t, "labels", 3)
	job := ensemble.Scoring{Ensemble: e, Networks: networks, Data: tinyData(t, "images.npz"), Want: everything}
	_, err := ensemble.NewScorer(t.Context(), engine(t), job)
	infertest.WantError(t, err, `tensor "each": 3 scores that each come out of a sigmoid`)
	_, err = infer.NewNetwork(networks[0].Posterior, infer.RecomputeTrained, "none")
	infertest.WantError(t, err, `output "none": want one of each, logits or probs`)
	rows := func(output string) []Row {
		n, err := infer.NewNetwork(networks[0].Posterior, infer.RecomputeTrained, output)
		if err != nil {
			t.Fatal(err)
		}
		job.Networks = []*infer.Network{n}
		return collect(t, engine(t), job, 0)
	}
	logits := rows("logits")
	for i, r := range rows("probs") {
		for c, p := range r.Probabilities {
			if math.Abs(p-logits[i].Probabilities[c]) > 1e-6 { // its softmax is in float32
				t.Errorf("row %d: %v and %v", i, r.Probabilities, logits[i].Probabilities)
			}
		}
	}
}

// Labels and class names that cannot be the network's.
func TestScorerNames(t *testing.T) {
	t.Parallel()
	engine := engine(t)
	e, networks := small(t, "ckpt", 1)
	job := ensemble.Scoring{Ensemble: e, Networks: networks}
	for _, tc := range []struct {
		file    string
		names   []string // the data's
		card    []string // or the model card's
		labels  bool
		warning string
		err     string
	}{
		{file: "images.npz", labels: true},
		{file: "images.npz", names: []string{"a", "b", "c"}, labels: true},
		{file: "images.npz", names: []string{"a", "b", "c", "d"}, warning: "4 class names and the network 3 classes"},
		{file: "images.npz", names: []string{"a", "b", "c", "d"}, card: []string{"x", "y", "z"}, labels: true},
		{file: "class-seven.npz", err: "class-seven.npz[0]: label 7, want 0 to 2"},
	} {
		d, err := dataset.Open([]string{infertest.Path(infertest.Small, tc.file)}, dataset.Options{Known: names.Known{Classes: tc.names}})
		if err != nil {
			t.Fatal(err)
		}
		job.Data, e.Card.ClassNames = d, tc.card
		s, err := ensemble.NewScorer(t.Context(), engine, job)
		if tc.err != "" {
			infertest.WantError(t, err, tc.err)
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if s.Schema(1).Labels != tc.labels || len(s.Warnings) != 0 != (tc.warning != "") || tc.warning != "" && !strings.Contains(s.Warnings[0].Error(), tc.warning) {
			t.Errorf("%s with names %q: labels %v, warnings %v", tc.file, tc.names, s.Schema(1).Labels, s.Warnings)
		}
		want := tc.names
		if tc.card != nil {
			want = tc.card
		}
		if got := s.Schema(1).ClassNames; tc.warning == "" && !slices.Equal(got, want) {
			t.Errorf("%s with names %q and %q: %q", tc.file, tc.names, tc.card, got)
		}
	}
}
