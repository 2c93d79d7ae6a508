package ensemble_test

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/swagwrap/swagwrap/bnupdate"
	"github.com/swagwrap/swagwrap/fixtures/infertest"
	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/ensemble"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/infer/batchnorm"
	"github.com/swagwrap/swagwrap/internal/preprocess"
	"github.com/swagwrap/swagwrap/internal/task"
	"github.com/swagwrap/swagwrap/swag"
	"github.com/swagwrap/swagwrap/weights"
)

// Averages are of probabilities, and what one member says is kept separate from
// how much members disagree. Expected values are those of the formulas, which
// rounding may miss by a few of float64's 2e-16.
func TestSums(t *testing.T) {
	sure := 1 / (1 + math.Exp(-4)) // the softmax of (2, −2)
	entropy := func(p float64) float64 { return -p*math.Log(p) - (1-p)*math.Log1p(-p) }
	for _, w := range [][2]float64{{1, 1}, {0.3, 1.7}, {30, 10}} {
		s := &infer.Sums{}
		two := classes(t, 2)
		s.Init("first", 1, two)
		for j, logits := range [][]float32{{0, 0}, {2, -2}} {
			p := make([]float64, 2)
			entropy, err := two.Outcome(p, logits)
			if err != nil {
				t.Fatal(err)
			}
			s.Add(0, p, entropy, w[j])
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
		r := describe(s, 0, &ensemble.Ensemble{}, 1)
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
		r = describe(s, 0, &ensemble.Ensemble{Calibration: task.WithNumber("classes", 2)}, -1)
		root := math.Sqrt(mean) / (math.Sqrt(mean) + math.Sqrt(1-mean))
		if math.Abs(r.Confidence-root) > 1e-15 || math.Abs(r.PredictiveEntropy-entropy(root)) > 1e-14 {
			t.Errorf("weights %v: confidence %v and entropy %v at temperature 2, want %v and %v", w, r.Confidence, r.PredictiveEntropy, root, entropy(root))
		}
		if want := entropy(mean) - expected; math.Abs(r.MutualInformation-want) > 1e-14 || !math.IsNaN(r.Loss) {
			t.Errorf("weights %v: mutual information %v at temperature 2, want %v; loss %v without a label", w, r.MutualInformation, want, r.Loss)
		}
	}
}

func TestFile(t *testing.T) {
	dir := t.TempDir()
	p, q := infertest.Posterior(t), infertest.WithTheta0(t)
	statistics := func(n int) (rows [][]float32) {
		for k := range n {
			rows = append(rows, make([]float32, p.Layout.Len(weights.Statistic)))
			rows[k][3] = float32(k) + 0.5
		}
		return rows
	}
	bn := &batchnorm.Record{Sources: []dataset.Source{{Path: "train.npz", SHA256: "00"}}, Examples: 10, Unit: "image", BatchSize: 5, Rule: bnupdate.Reference.String(), Shuffle: true, Seed: 7}
	want := &ensemble.Ensemble{
		Path: filepath.Join(dir, "e.safetensors"),
		Components: []ensemble.Component{
			{Posterior: ensemble.Reference{Path: p.Path, ID: p.ID}, Members: 2, Weight: 1. / 3, BatchNorm: bn, Statistics: statistics(2)},
			{Posterior: ensemble.Reference{Path: "gone.safetensors", ID: q.ID}, Members: 4, Weight: 1 - 1./3, BatchNorm: bn, Statistics: statistics(4)},
		},
		Sampling:    ensemble.Draw{Seed: 1<<63 + 1, Scale: 0.5, Covariance: swag.LowRankPlusDiagonal.String(), Antithetic: true},
		Card:        swag.Card{Task: "classes", ClassNames: []string{"a", "b"}, Preprocess: []byte(`{"mean":[0.1],"std":[0.2]}`)},
		Calibration: task.WithNumber("classes", 1.25),
	}
	write(t, want)
	got, err := ensemble.Open(want.Path)
	if err != nil {
		t.Fatal(err)
	}
	if want.ID = got.ID; len(got.ID) != 64 {
		t.Errorf("ID %q, want the 64 hex digits of a SHA-256", got.ID)
	}
	if !reflect.DeepEqual(want, got) {
		t.Error(cmp.Diff(want, got))
	}
	if s, err := got.Preprocess(); err != nil || !reflect.DeepEqual(s, preprocess.Settings{Mean: []float64{0.1}, Std: []float64{0.2}}) {
		t.Errorf("preprocess %+v, %v", s, err)
	}
	_, err = (&ensemble.Ensemble{Path: "e", Card: swag.Card{Preprocess: []byte(`{"meen":[0]}`)}}).Preprocess()
	infertest.WantError(t, err, "e: model card: preprocess: ")
	if got.Members() != 6 {
		t.Errorf("%d members, want 6", got.Members())
	}
	var found [][2]int
	for k := range got.Members() {
		component, place := got.Find(k)
		found = append(found, [2]int{component, place})
	}
	if !slices.Equal(found, [][2]int{{0, 0}, {0, 1}, {1, 0}, {1, 1}, {1, 2}, {1, 3}}) {
		t.Errorf("components and places %v", found)
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
		if _, err := ensemble.Open(damaged); err == nil {
			t.Errorf("bit %d of byte %d flipped: not noticed", i%8, at)
		}
	}
}

// write writes an ensemble to its path.
func write(t *testing.T, e *ensemble.Ensemble) {
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
	half := func(w float64) ensemble.Component {
		return ensemble.Component{Posterior: ensemble.Reference{Path: "p.safetensors"}, Members: 1, Weight: w, Statistics: [][]float32{{}}}
	}
	of := func(c ...ensemble.Component) *ensemble.Ensemble { return &ensemble.Ensemble{Components: c} }
	pairs := of(half(0.5), half(0.5))
	pairs.Sampling.Antithetic = true
	missing := of(half(1))
	missing.Sampling.Covariance = ensemble.Iterates
	for _, tc := range []struct {
		e    *ensemble.Ensemble
		want string
	}{
		{of(), "weights of 0 posteriors add up to 0, want 1"},
		{of(half(0.5), half(0.4)), "weights of 2 posteriors add up to 0.9, want 1"},
		{of(half(1.5), half(-0.5)), "weight -0.5 of p.safetensors, want a positive number"},
		{of(half(1), half(0)), "weight 0 of p.safetensors"},
		{missing, "0 checkpoints of p.safetensors, want 1"},
		{pairs, "1 antithetic members of p.safetensors, want pairs"},
		{of(ensemble.Component{Posterior: ensemble.Reference{Path: "p.safetensors"}, Weight: 1, Statistics: [][]float32{{}}}), "0 members of p.safetensors"},
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
		_, err = ensemble.Open(tc.e.Path)
		infertest.WantError(t, err, "e.safetensors: metadata \"components\": "+tc.want)
	}
}
