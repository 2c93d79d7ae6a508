package ensemble

import (
	"bytes"
	"context"
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
	"github.com/swagwrap/swagwrap/internal/preprocess"
	"github.com/swagwrap/swagwrap/swag"
	"github.com/swagwrap/swagwrap/weights"
)

// Averages are of probabilities, and what one member says is kept apart from
// how much members disagree. Expected values are those of the formulas, which
// rounding may miss by a few of float64's 2e-16.
func TestSums(t *testing.T) {
	sure := 1 / (1 + math.Exp(-4)) // the softmax of (2, −2)
	entropy := func(p float64) float64 { return -p*math.Log(p) - (1-p)*math.Log1p(-p) }
	for _, w := range [][2]float64{{1, 1}, {0.3, 1.7}, {30, 10}} {
		s := &Sums{}
		s.init("first", 1, 2)
		for j, logits := range [][]float32{{0, 0}, {2, -2}} {
			p := make([]float64, 2)
			if err := (Task{}).probabilities(p, logits); err != nil {
				t.Fatal(err)
			}
			s.add(0, p, calibrate.Entropy(p), w[j])
			s.Weight += w[j]
		}
		// Kills: averaging logits instead of probabilities, which with equal weights
		// gives 1/(1+e⁻²).
		mean := (w[0]*0.5 + w[1]*sure) / (w[0] + w[1])
		if got := s.Mean()[0]; math.Abs(got-mean) > 1e-15 {
			t.Errorf("weights %v: mean probability %v, want %v", w, got, mean)
		}
		expected := (w[0]*math.Ln2 + w[1]*entropy(sure)) / (w[0] + w[1])
		if got := s.ExpectedEntropy()[0]; math.Abs(got-expected) > 1e-14 {
			t.Errorf("weights %v: expected entropy %v, want %v", w, got, expected)
		}
		var r Row
		r.describe(s, 0, calibration{}, 1)
		if want := entropy(mean) - expected; math.Abs(r.MutualInformation-want) > 1e-14 || want < 0.05 {
			t.Errorf("weights %v: mutual information %v, want %v", w, r.MutualInformation, want)
		}
		if want := -math.Log(1 - mean); math.Abs(r.Loss-want) > 1e-14 {
			t.Errorf("weights %v: loss %v, want %v", w, r.Loss, want)
		}
		if want := 2 * mean * mean; math.Abs(r.Square-want) > 1e-14 {
			t.Errorf("weights %v: Brier's square %v, want %v", w, r.Square, want)
		}
		// A temperature changes the average alone: its logarithms are divided.
		r.describe(s, 0, (&Ensemble{Temperature: 2}).calibration(), -1)
		root := math.Sqrt(mean) / (math.Sqrt(mean) + math.Sqrt(1-mean))
		if math.Abs(r.Confidence-root) > 1e-15 || math.Abs(r.PredictiveEntropy-entropy(root)) > 1e-14 {
			t.Errorf("weights %v: confidence %v and entropy %v at temperature 2, want %v and %v", w, r.Confidence, r.PredictiveEntropy, root, entropy(root))
		}
		if want := entropy(mean) - expected; math.Abs(r.MutualInformation-want) > 1e-14 || !math.IsNaN(r.Loss) {
			t.Errorf("weights %v: mutual information %v at temperature 2, want %v; loss %v without a label", w, r.MutualInformation, want, r.Loss)
		}
	}
}

// A member written as a file gives, in a session of default options, the
// probabilities that scoring adds up. The two sessions differ in threads only.
func TestExportedMemberScoresAlike(t *testing.T) {
	n, e := network(t, fit(t, false)), &Engine{Runtime: openRuntime(t)}
	test := data(t, "val.npz")
	err := EachMember(t.Context(), n.Posterior, swag.SampleOptions{Seed: 1, Scale: 0.5}, 0, 1, func(k int, parameters weights.Vector) error {
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
		if err := e.Predict(t.Context(), "member", model, test, 1, sums); err != nil {
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
			if math.Abs(sums.Prob[i]-want) > 1e-5 { // float32: ONNX Runtime fuses the file, which keeps biases of 0, less
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
		err = EachMember(ctx, n.Posterior, swag.SampleOptions{Seed: 1, Scale: 1, Covariance: swag.Diagonal, Workers: workers}, 0, 1, func(_ int, parameters weights.Vector) error {
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
			return e.Predict(ctx, "member", model, test, 1, o.Sums)
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
	if diff := cmp.Diff(one, four, cmp.AllowUnexported(Sums{})); diff != "" {
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
	err := EachMember(t.Context(), n.Posterior, swag.SampleOptions{}, 0, 1, func(_ int, parameters weights.Vector) error {
		_, err := e.Recompute(t.Context(), n, parameters, bn)
		return err
	})
	if err == nil || !strings.Contains(err.Error(), `tensor "fc1_bn.running_mean": batch 3 has 1 elements per channel`) {
		t.Errorf("error %v", err)
	}
}

func TestFile(t *testing.T) {
	dir := t.TempDir()
	p, q := fit(t, false), fit(t, true)
	statistics := func(n int) (rows [][]float32) {
		for k := range n {
			rows = append(rows, make([]float32, p.Layout.Len(weights.Statistic)))
			rows[k][3] = float32(k) + 0.5
		}
		return rows
	}
	bn := &BatchNorm{Sources: []dataset.Source{{Path: "train.npz", SHA256: "00"}}, Images: 10, BatchSize: 5, Rule: bnupdate.Reference.String(), Shuffle: true, Seed: 7}
	want := &Ensemble{
		Path: filepath.Join(dir, "e.safetensors"),
		Components: []Component{
			{Posterior: Reference{Path: p.Path, ID: p.ID}, Members: 2, Weight: 1. / 3, BatchNorm: bn, Statistics: statistics(2)},
			{Posterior: Reference{Path: "gone.safetensors", ID: q.ID}, Members: 4, Weight: 1 - 1./3, BatchNorm: bn, Statistics: statistics(4)},
		},
		Sampling:    Sampling{Seed: 1<<63 + 1, Scale: 0.5, Covariance: swag.LowRankPlusDiagonal.String(), Antithetic: true},
		Preprocess:  preprocess.Settings{Mean: []float64{0.1}, Std: []float64{0.2}},
		Temperature: 1.25,
	}
	write(t, want)
	got, err := Open(want.Path)
	if err != nil {
		t.Fatal(err)
	}
	if want.ID = got.ID; len(got.ID) != 8 {
		t.Errorf("ID %q, want eight hex digits", got.ID)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if got.Members() != 6 {
		t.Errorf("%d members, want 6", got.Members())
	}
	var found [][2]int
	for k := range got.Members() {
		component, place := got.Find(k)
		found = append(found, [2]int{component, place})
	}
	if diff := cmp.Diff([][2]int{{0, 0}, {0, 1}, {1, 0}, {1, 1}, {1, 2}, {1, 3}}, found); diff != "" {
		t.Error(diff)
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

// write writes an ensemble to its path.
func write(t *testing.T, e *Ensemble) {
	t.Helper()
	f, err := os.Create(e.Path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := e.Write(f, "test"); err != nil {
		t.Fatal(err)
	}
}

// Files whose sums are right and whose content is not.
func TestFileRefused(t *testing.T) {
	half := func(w float64) Component {
		return Component{Posterior: Reference{Path: "p.safetensors"}, Members: 1, Weight: w, Statistics: [][]float32{{}}}
	}
	of := func(c ...Component) *Ensemble { return &Ensemble{Components: c} }
	pairs := of(half(1))
	pairs.Sampling.Antithetic = true
	for _, tc := range []struct {
		e    *Ensemble
		want string
	}{
		{of(), "weights of 0 posteriors add up to 0, want 1"},
		{of(half(0.5), half(0.4)), "weights of 2 posteriors add up to 0.9, want 1"},
		{of(half(1.5), half(-0.5)), "weight -0.5 of p.safetensors, want a positive number"},
		{of(half(1), half(0)), "weight 0 of p.safetensors"},
		{pairs, "1 antithetic members of p.safetensors, want pairs"},
		{of(Component{Posterior: Reference{Path: "p.safetensors"}, Weight: 1, Statistics: [][]float32{{}}}), "0 members of p.safetensors"},
	} {
		tc.e.Path = filepath.Join(t.TempDir(), "e.safetensors")
		f, err := os.Create(tc.e.Path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if err := tc.e.Write(f, "test"); err != nil {
			t.Fatal(err)
		}
		_, err = Open(tc.e.Path)
		wantError(t, err, "e.safetensors: metadata \"components\": "+tc.want)
	}
}
