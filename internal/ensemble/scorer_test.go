package ensemble

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/swagwrap/swagwrap/calibrate"
	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/ort"
	"github.com/swagwrap/swagwrap/onnxio"
	ckpt "github.com/swagwrap/swagwrap/onnxio/checkpoints"
	"github.com/swagwrap/swagwrap/swag"
	"github.com/swagwrap/swagwrap/weights"
)

// small is an ensemble of two small checkpoints of cmd/swagwrap/testdata, whose
// networks are called name-1.onnx and name-2.onnx. Their statistics are those of
// the last.
func small(t *testing.T, name string, members int) (*Ensemble, []*Network) {
	t.Helper()
	var models []*onnxio.Model
	for i := 1; i <= 2; i++ {
		models = append(models, open(t, fmt.Sprintf("%s%s-%d.onnx", models4x4, name, i)))
	}
	set, err := ckpt.New(models)
	if err != nil {
		t.Fatal(err)
	}
	return ensembleOf(network(t, fitSet(t, set)), members)
}

func ensembleOf(n *Network, members int) (*Ensemble, []*Network) {
	statistics := make([]float32, n.Posterior.Layout.Len(weights.Statistic))
	n.Posterior.Statistics.ReadAt(statistics, 0)
	return &Ensemble{
		Path:       "e.safetensors",
		Components: []Component{{Posterior: Reference{ID: n.Posterior.ID}, Members: members, Weight: 1, Statistics: slices.Repeat([][]float32{statistics}, members)}},
		Sampling:   Sampling{Seed: 1, Scale: 0.5, Covariance: swag.LowRankPlusDiagonal.String()},
	}, []*Network{n}
}

func openFile(t *testing.T, path string) dataset.Dataset {
	t.Helper()
	d, err := dataset.Open([]string{path}, dataset.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// collect runs a Scorer from the given example on, and returns all rows.
func collect(t *testing.T, e *Engine, job Scoring, first int) []Row {
	t.Helper()
	s, err := NewScorer(t.Context(), e, job)
	if err != nil {
		t.Fatal(err)
	}
	var out []Row
	err = s.Run(t.Context(), first, func(c *Chunk) error {
		for r := range c.Rows() {
			out = append(out, named(s.Schema(1).Columns, r))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// flawed is data that counts how often examples are asked for, and of which some
// cannot be read.
type flawed struct {
	dataset.Bytes
	reads  *atomic.Int64
	broken map[int]bool
}

func (c flawed) Pixels(dst []byte, i int) error {
	c.reads.Add(1)
	if c.broken[i] {
		dst[0] = 99
		return fmt.Errorf("image %d: is broken", i)
	}
	return c.Bytes.Pixels(dst, i)
}

var everything = Columns{Top: 3, Probabilities: true, Members: true}

// Neither the number of threads nor the memory at hand, which decides about
// chunks and groups of sessions, nor where a run was resumed can be seen in any
// bit of the result; and each image is decoded once.
func TestScorerSameBits(t *testing.T) {
	rt := openRuntime(t)
	e, networks := ensembleOf(network(t, fit(t, false)), 5)
	images := data(t, "val.npz").(dataset.Bytes)
	job := Scoring{Ensemble: e, Networks: networks, Columns: everything}
	var want []Row
	for _, tc := range []struct {
		workers int
		memory  int64
		first   int
	}{
		{1, 1 << 30, 0},
		{3, 1 << 30, 0},
		{8, 1 << 30, 0},
		{2, 1, 0},       // a batch a chunk, a session at a time
		{3, 2 << 20, 0}, // some of each
		{2, 6 << 20, 0},
		{2, 1, 128},
		{3, 1 << 30, 1920}, // the last batch alone
	} {
		t.Run(fmt.Sprintf("%d workers, %d bytes, from %d", tc.workers, tc.memory, tc.first), func(t *testing.T) {
			reads := new(atomic.Int64)
			job.Data = flawed{Bytes: images, reads: reads}
			engine := &Engine{Runtime: rt, Workers: tc.workers, Memory: tc.memory}
			got := collect(t, engine, job, tc.first)
			if want == nil {
				want = got
			}
			if diff := cmp.Diff(want[tc.first:], got, sameRow); diff != "" {
				t.Error(diff)
			}
			if n := int64(images.Len() - tc.first); reads.Load() != n {
				t.Errorf("%d images decoded, want %d", reads.Load(), n)
			}
		})
	}

	// The same from bare sessions: the mean of the members' softmax, one image at
	// a time. Sums have the same order, but batches of another size may round
	// differently.
	m, err := newDrawn(&Engine{}, job)
	if err != nil {
		t.Fatal(err)
	}
	n := 20
	mean := make([]float64, n*10)
	err = m.each(t.Context(), 0, 5, func(m model) error {
		s, err := rt.NewFilledSession(t.Context(), m.filled, ort.Options{})
		if err != nil {
			return err
		}
		defer s.Close()
		for i := range n {
			x := make([]float32, 28*28)
			if err := images.Read(x, i); err != nil {
				return err
			}
			out, err := s.Run(t.Context(), []ort.Tensor{{Shape: []int64{1, 1, 28, 28}, F32: x}})
			if err != nil {
				return err
			}
			total, p := 0.0, make([]float64, 10)
			for c, z := range out[0].F32 {
				p[c] = math.Exp(float64(z))
				total += p[c]
			}
			for c := range p {
				mean[i*10+c] += p[c] / total / 5
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		for c, p := range want[i].Probabilities {
			if math.Abs(p-mean[i*10+c]) > 1e-6 { // float32 in the networks
				t.Errorf("image %d, class %d: %v, want %v", i, c, p, mean[i*10+c])
			}
		}
		// What is kept of members adds up to the average.
		for c := range 10 {
			total := 0.0
			for k := range 5 {
				total += want[i].Members[k*10+c] / 5
			}
			if math.Abs(total-want[i].Probabilities[c]) > 1e-7 { // they are float32
				t.Errorf("image %d, class %d: members' mean %v, want %v", i, c, total, want[i].Probabilities[c])
			}
		}
	}
}

// Images that cannot be read cost their rows, and no other row a bit.
func TestScorerSkips(t *testing.T) {
	engine := &Engine{Runtime: openRuntime(t), BatchSize: 3, Workers: 4}
	e, networks := small(t, "ckpt", 3)
	images := openFile(t, models4x4+"images.npz").(dataset.Bytes)
	job := Scoring{Ensemble: e, Networks: networks, Data: images, Columns: everything, SkipErrors: true}
	want := collect(t, engine, job, 0)
	broken := map[int]bool{0: true, 4: true, 9: true} // 9 is a batch of its own
	job.Data = flawed{images, new(atomic.Int64), broken}
	got := collect(t, engine, job, 0)
	for i := range want {
		if broken[i] {
			if got[i].Error != fmt.Sprintf("image %d: is broken", i) || got[i].Prediction != -1 || got[i].Probabilities != nil {
				t.Errorf("row %d: %+v", i, got[i])
			}
			continue
		}
		if diff := cmp.Diff(want[i], got[i], sameRow); diff != "" {
			t.Errorf("row %d: %s", i, diff)
		}
	}

	// Else the first one ends the run.
	job.SkipErrors = false
	for range 20 {
		s, err := NewScorer(t.Context(), engine, job)
		if err != nil {
			t.Fatal(err)
		}
		err = s.Run(t.Context(), 0, func(*Chunk) error { t.Error("a chunk was handed on"); return nil })
		if err == nil || err.Error() != "image 0: is broken" {
			t.Fatalf("error %v, want that of image 0", err)
		}
	}
}

// What is not finite is never averaged: its row says which member and class.
func TestScorerNotFinite(t *testing.T) {
	engine := &Engine{Runtime: openRuntime(t)}
	e, networks := small(t, "brightest", 3)
	black := openFile(t, models4x4+"black.npz") // image 3 is
	job := Scoring{Ensemble: e, Networks: networks, Data: black, SkipErrors: true}
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
	s, err := NewScorer(t.Context(), engine, job)
	if err != nil {
		t.Fatal(err)
	}
	err = s.Run(t.Context(), 0, func(*Chunk) error { return nil })
	wantError(t, err, ": black.npz[3]: the network's output is not finite: class 0 has -Inf")
}

// A single score is about class 1 of two: the same as two logits (0, z) would
// be; a sigmoid in the graph makes no difference but for float32's.
func TestScorerBinary(t *testing.T) {
	engine := &Engine{Runtime: openRuntime(t)}
	var rows [2][]Row
	for k, name := range []string{"binary", "sigmoid"} {
		e, networks := small(t, name, 4)
		job := Scoring{Ensemble: e, Networks: networks, Data: openFile(t, models4x4+"unlabelled.npy"), Columns: everything}
		s, err := NewScorer(t.Context(), engine, job)
		if err != nil {
			t.Fatal(err)
		}
		want := []string{": output \"logits\": the logit of class 1 of 2", ": output \"logits\": the probability of class 1 of 2"}[k]
		if got := s.Tasks(); len(got) != 1 || !strings.HasSuffix(got[0], want) || s.Classes() != 2 {
			t.Errorf("%s: %q, %d classes", name, got, s.Classes())
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
	engine := &Engine{Runtime: openRuntime(t)}
	e, networks := small(t, "labels", 3)
	job := Scoring{Ensemble: e, Networks: networks, Data: openFile(t, models4x4+"images.npz"), Columns: everything}
	_, err := NewScorer(t.Context(), engine, job)
	wantError(t, err, `tensor "each": 3 scores that each come out of a sigmoid`)
	job.Output = "none"
	_, err = NewScorer(t.Context(), engine, job)
	wantError(t, err, `no output "none", want one of "each", "logits", "probs"`)
	job.Output = "logits"
	logits := collect(t, engine, job, 0)
	job.Output = "probs"
	for i, r := range collect(t, engine, job, 0) {
		for c, p := range r.Probabilities {
			if math.Abs(p-logits[i].Probabilities[c]) > 1e-6 { // its softmax is in float32
				t.Errorf("row %d: %v and %v", i, r.Probabilities, logits[i].Probabilities)
			}
		}
	}
}

// A network that takes batches of 4 alone gives for 10 images what it gives
// when the last two are followed by any others.
func TestScorerFixedBatch(t *testing.T) {
	engine := &Engine{Runtime: openRuntime(t)}
	e, networks := small(t, "fixed-batch", 3)
	job := Scoring{Ensemble: e, Networks: networks, Data: openFile(t, models4x4+"images.npz"), Columns: everything}
	got := collect(t, engine, job, 0)
	free, freeNetworks := small(t, "ckpt", 3) // the same weights
	job.Ensemble, job.Networks = free, freeNetworks
	for i, want := range collect(t, engine, job, 0) {
		for c, p := range got[i].Probabilities {
			if math.Abs(p-want.Probabilities[c]) > 1e-6 {
				t.Errorf("row %d: %v, want %v", i, got[i].Probabilities, want.Probabilities)
			}
		}
	}
}

// Labels and class names that cannot be the network's.
func TestScorerNames(t *testing.T) {
	engine := &Engine{Runtime: openRuntime(t)}
	e, networks := small(t, "ckpt", 1)
	job := Scoring{Ensemble: e, Networks: networks}
	for _, tc := range []struct {
		file    string
		names   []string
		labels  bool
		warning string
		err     string
	}{
		{file: "images.npz", labels: true},
		{file: "images.npz", names: []string{"a", "b", "c"}, labels: true},
		{file: "images.npz", names: []string{"a", "b", "c", "d"}, warning: "4 class names and the network 3 classes"},
		{file: "class-seven.npz", err: "class-seven.npz[0]: label 7, want 0 to 2"},
	} {
		d, err := dataset.Open([]string{models4x4 + tc.file}, dataset.Options{ClassNames: tc.names})
		if err != nil {
			t.Fatal(err)
		}
		job.Data = d
		s, err := NewScorer(t.Context(), engine, job)
		if tc.err != "" {
			wantError(t, err, tc.err)
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if (s.labels != nil) != tc.labels || len(s.Warnings) != 0 != (tc.warning != "") || tc.warning != "" && !strings.Contains(s.Warnings[0].Error(), tc.warning) {
			t.Errorf("%s with names %q: labels %v, warnings %v", tc.file, tc.names, s.labels, s.Warnings)
		}
	}
}

// slow is data that takes its time, and says when it was first asked.
type slow struct {
	dataset.Bytes
	asked chan struct{}
	wait  time.Duration
}

func (s slow) Pixels(dst []byte, i int) error {
	select {
	case s.asked <- struct{}{}:
	default:
	}
	time.Sleep(s.wait)
	return s.Bytes.Pixels(dst, i)
}

// A run ends soon after its context, wherever it is, and hands nothing on that
// is not complete.
func TestScorerCancelled(t *testing.T) {
	engine := &Engine{Runtime: openRuntime(t), Memory: 1, Workers: 2}
	e, networks := ensembleOf(network(t, fit(t, false)), 50)
	images := slow{data(t, "val.npz").(dataset.Bytes), make(chan struct{}, 1), 10 * time.Microsecond}
	s, err := NewScorer(t.Context(), engine, Scoring{Ensemble: e, Networks: networks, Data: images})
	if err != nil {
		t.Fatal(err)
	}
	for _, after := range []time.Duration{0, 10 * time.Millisecond, 50 * time.Millisecond, 200 * time.Millisecond} {
		ctx, cancel := context.WithCancel(t.Context())
		stopped := make(chan time.Time, 1)
		go func() {
			<-images.asked
			time.Sleep(after)
			stopped <- time.Now()
			cancel()
		}()
		next := 0
		err := s.Run(ctx, 0, func(c *Chunk) error {
			if c.First != next || c.sums.Members != 50 {
				t.Errorf("chunk from %d with %d members, want from %d", c.First, c.sums.Members, next)
			}
			next += c.Len
			return nil
		})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("after %v: %v", after, err)
		}
		// A second is a hundred times what a run of this network takes, for machines
		// under load; the promise is ten.
		if took := time.Since(<-stopped); took > time.Second {
			t.Errorf("after %v: went on for %v", after, took)
		}
	}
	// What the sink says ends it, too.
	no := errors.New("no")
	if err := s.Run(t.Context(), 0, func(*Chunk) error { return no }); !errors.Is(err, no) {
		t.Errorf("error %v, want the sink's", err)
	}
}

// The sums of Predict are those of one model, over all its chunks.
func TestPredict(t *testing.T) {
	engine := &Engine{Runtime: openRuntime(t), BatchSize: 3, Memory: 1}
	images := openFile(t, models4x4+"images.npz")
	sums := &Sums{}
	var mean [30]float64
	for i, w := range []float64{1, 3} {
		filled, err := open(t, fmt.Sprintf("%sckpt-%d.onnx", models4x4, i+1)).Runtime()
		if err != nil {
			t.Fatal(err)
		}
		alone := &Sums{}
		for _, s := range []*Sums{sums, alone} {
			if err := engine.Predict(t.Context(), "model", filled, images, w, s); err != nil {
				t.Fatal(err)
			}
		}
		for k, p := range alone.Mean() {
			mean[k] += w / 4 * p
		}
	}
	if sums.Members != 2 || sums.Weight != 4 || sums.Classes != 3 {
		t.Errorf("%d members of weight %v, %d classes", sums.Members, sums.Weight, sums.Classes)
	}
	for k, p := range sums.Mean() {
		if math.Abs(p-mean[k]) > 1e-15 {
			t.Errorf("probability %d: %v, want %v", k, p, mean[k])
		}
	}
	total := 0.0
	for _, p := range sums.Mean()[:3] {
		total += p
	}
	if math.Abs(total-1) > 1e-15 || calibrate.Entropy(sums.Mean()[:3]) == 0 {
		t.Errorf("probabilities %v", sums.Mean()[:3])
	}
	path := filepath.Join(models4x4, "four-classes-1.onnx")
	filled, err := open(t, path).Runtime()
	if err != nil {
		t.Fatal(err)
	}
	err = engine.Predict(t.Context(), path, filled, images, 1, sums)
	wantError(t, err, path+`: tensor "logits": 4 classes, want 3 as in model`)
}
