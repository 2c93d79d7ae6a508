package ensemble

import (
	"bytes"
	"context"
	"encoding/csv"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/swagwrap/swagwrap/bnupdate"
	"github.com/swagwrap/swagwrap/calibrate"
	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/ort"
	"github.com/swagwrap/swagwrap/swag"
	"github.com/swagwrap/swagwrap/weights"
)

// Averages are of probabilities, and what one member says is kept apart from
// how much members disagree.
func TestSums(t *testing.T) {
	s := &Sums{}
	s.init(1, 2)
	for _, logits := range [][]float32{{0, 0}, {2, -2}} {
		if err := s.add(0, logits, false); err != nil {
			t.Fatal(err)
		}
		s.Members++
	}
	// Kills: averaging logits instead of probabilities, which gives 1/(1+e⁻²).
	sure := 1 / (1 + math.Exp(-4))
	if got, want := s.Mean()[0], (0.5+sure)/2; math.Abs(got-want) > 1e-15 {
		t.Errorf("mean probability %v, want %v", got, want)
	}
	entropy := -sure*math.Log(sure) - (1-sure)*math.Log1p(-sure)
	if got, want := s.ExpectedEntropy()[0], (math.Ln2+entropy)/2; math.Abs(got-want) > 1e-14 {
		t.Errorf("expected entropy %v, want %v", got, want)
	}
}

// What is not finite, and what claims to be probabilities and is not, is never
// averaged.
func TestSumsRefuse(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	for _, tc := range []struct {
		scores []float32
		probs  bool
		ok     bool
	}{
		{[]float32{1, nan}, false, false},
		{[]float32{1, inf}, false, false},
		{[]float32{-inf, 0}, false, false},
		{[]float32{0.5, 0.6}, true, false},
		{[]float32{1.5, -0.5}, true, false},
		{[]float32{0.5, nan}, true, false},
		{[]float32{0.25, 0.7500001}, true, true},
		{[]float32{-300, 300}, false, true},
	} {
		s := &Sums{}
		s.init(1, 2)
		if err := s.add(0, tc.scores, tc.probs); (err == nil) != tc.ok {
			t.Errorf("%v as probabilities %v: %v", tc.scores, tc.probs, err)
		}
		if !tc.ok && (s.Prob[0] != 0 || s.Entropy[0] != 0) {
			t.Errorf("%v was added all the same", tc.scores)
		}
	}
}

// A member written as a file gives, in a session of default options, the
// probabilities that scoring adds up. The two sessions differ in threads only.
func TestExportedMemberScoresAlike(t *testing.T) {
	n, e := network(t, fit(t, false)), &Engine{Runtime: openRuntime(t)}
	test := data(t, "val.npz")
	err := EachMember(t.Context(), n.Posterior, swag.SampleOptions{Seed: 1, Scale: 0.5}, 1, func(k int, parameters weights.Slice) error {
		fresh, err := e.Recompute(t.Context(), n, parameters, fileOrder(t))
		if err != nil {
			return err
		}
		path := filepath.Join(t.TempDir(), "member.onnx")
		f, err := os.Create(path)
		if err != nil {
			return err
		}
		defer f.Close()
		if err := n.Graph().WriteTo(f, 0, n.Posterior.Layout, parameters, weights.Slice(fresh.Statistics)); err != nil {
			return err
		}
		model, err := n.Model(parameters, weights.Slice(fresh.Statistics))
		if err != nil {
			return err
		}
		sums := &Sums{}
		if err := e.Predict(t.Context(), "member", model, test, sums); err != nil {
			return err
		}
		file, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		s, err := e.Runtime.NewSession(file, ort.Options{})
		if err != nil {
			return err
		}
		defer s.Close()
		x := make([]float32, test.Len()*28*28)
		if _, err := dataset.ReadBatch(test, x, dataset.Order{}.Indices(test.Len())); err != nil {
			return err
		}
		out, err := s.Run(t.Context(), []ort.Tensor{{Shape: []int64{int64(test.Len()), 1, 28, 28}, F32: x}})
		if err != nil {
			return err
		}
		logits := make([]float64, len(out[0].F32))
		for i, v := range out[0].F32 {
			logits[i] = float64(v)
		}
		for i, want := range calibrate.Softmax(nil, logits, 10, 1) {
			if math.Abs(sums.Prob[i]-want) > 1e-6 {
				t.Fatalf("probability %d: %v when scored, %v from the file", i, sums.Prob[i], want)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Predictions and statistics do not depend on the number of workers, and a
// cancelled run ends with the context's error.
func TestEngineWorkers(t *testing.T) {
	n, rt := network(t, fit(t, false)), openRuntime(t)
	test, bn := data(t, "val.npz"), fileOrder(t)
	bn.Order = dataset.Order{Shuffle: true, Seed: 3, Limit: 300}
	type outcome struct {
		Statistics []float32
		Sums       *Sums
	}
	run := func(ctx context.Context, workers int) (o outcome, err error) {
		e := &Engine{Runtime: rt, Workers: workers, BatchSize: 64}
		err = EachMember(ctx, n.Posterior, swag.SampleOptions{Seed: 1, Scale: 1, Covariance: swag.Diagonal, Workers: workers}, 1, func(_ int, parameters weights.Slice) error {
			fresh, err := e.Recompute(ctx, n, parameters, bn)
			if err != nil {
				return err
			}
			if fresh.Images != 300 || fresh.BatchSize != 64 {
				t.Errorf("%d images in batches of %d", fresh.Images, fresh.BatchSize)
			}
			model, err := n.Model(parameters, weights.Slice(fresh.Statistics))
			if err != nil {
				return err
			}
			o = outcome{fresh.Statistics, &Sums{}}
			return e.Predict(ctx, "member", model, test, o.Sums)
		})
		return o, err
	}
	one, err := run(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	four, err := run(t.Context(), 4)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(one, four); diff != "" {
		t.Errorf("1 and 4 workers differ: %s", diff)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := run(ctx, 2); err == nil || !strings.Contains(err.Error(), context.Canceled.Error()) {
		t.Errorf("cancelled: %v", err)
	}
}

// A layer that sees one element per channel has no variance: BatchNorm1d with
// a last batch of one image.
func TestRecomputeRefusesSingleImage(t *testing.T) {
	n, e := network(t, fit(t, false)), &Engine{Runtime: openRuntime(t), BatchSize: 333}
	bn := fileOrder(t) // 1,000 images: three batches of 333 and one image
	err := EachMember(t.Context(), n.Posterior, swag.SampleOptions{}, 1, func(_ int, parameters weights.Slice) error {
		_, err := e.Recompute(t.Context(), n, parameters, bn)
		return err
	})
	if err == nil || !strings.Contains(err.Error(), `tensor "fc1_bn.running_mean": batch 3 has 1 elements per channel`) {
		t.Errorf("error %v", err)
	}
}

func TestFile(t *testing.T) {
	dir := t.TempDir()
	p := fit(t, false)
	want := &Ensemble{
		Path:       filepath.Join(dir, "e.safetensors"),
		Posterior:  Reference{Path: p.Path, ID: p.ID},
		Sampling:   Sampling{Members: 2, Seed: 1<<63 + 1, Scale: 0.5, Covariance: swag.LowRankPlusDiagonal.String()},
		BatchNorm:  &BatchNorm{Sources: []dataset.Source{{Path: "train.npz", SHA256: "00"}}, Images: 10, BatchSize: 5, Rule: bnupdate.Reference.String(), Shuffle: true, Seed: 7},
		Preprocess: dataset.Preprocess{Mean: []float64{0.1}, Std: []float64{0.2}},
		Statistics: [][]float32{make([]float32, p.Layout.Len(weights.Statistic)), make([]float32, p.Layout.Len(weights.Statistic))},
	}
	want.Statistics[1][3] = 42
	f, err := os.Create(want.Path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := want.Write(f, "test"); err != nil {
		t.Fatal(err)
	}
	got, err := Open(want.Path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if q, err := got.OpenPosterior(""); err != nil {
		t.Error(err)
	} else {
		q.Close()
	}
	if _, err := got.OpenPosterior(fit(t, true).Path); err == nil || !strings.Contains(err.Error(), "was drawn from") {
		t.Errorf("another posterior: %v", err)
	}

	// Every flipped bit is caught.
	whole, err := os.ReadFile(want.Path)
	if err != nil {
		t.Fatal(err)
	}
	damaged := filepath.Join(dir, "damaged.safetensors")
	for i := range 200 {
		b := bytes.Clone(whole)
		at := i * len(b) / 200
		b[at] ^= 1 << (i % 8)
		if err := os.WriteFile(damaged, b, 0o666); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(damaged); err == nil {
			t.Errorf("bit %d of byte %d flipped: not noticed", i%8, at)
		}
	}
}

func TestPredictionsCSV(t *testing.T) {
	labels := filepath.Join(fixture, "val.npz")
	d, err := dataset.Open(labels, dataset.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s := &Sums{}
	s.init(d.Len(), 2)
	for i := range d.Len() {
		if err := s.add(i, []float32{0, float32(i % 3)}, false); err != nil {
			t.Fatal(err)
		}
	}
	s.Members = 1
	var buf bytes.Buffer
	if err := NewPredictions(d, s).Write(&buf, ".csv", true); err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(&buf).ReadAll()
	if err != nil || len(rows) != d.Len()+1 {
		t.Fatalf("%d rows, %v", len(rows), err)
	}
	// Ties go to the first class; one member has no disagreement.
	if got := strings.Join(rows[1][2:], " "); got != "0 0.5 0.693147181 0.693147181 0 0.5 0.5" {
		t.Errorf("row 1: %s", got)
	}
	if got := strings.Join(rows[2][2:4], " "); got != "1 0.731058579" {
		t.Errorf("row 2: %s", got)
	}
}
