package baseline_test

import (
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/swagwrap/swagwrap/fixtures/infertest"
	"github.com/swagwrap/swagwrap/fixtures/testfile"
	"github.com/swagwrap/swagwrap/internal/baseline"
	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/task"
)

// golden is testdata/baselines.json; make_baselines.py says what each key is.
type golden struct {
	Laplace struct {
		Tau        float64
		Covariance [][]float64
		moments
		Draws float64
	}
	Dropout moments
	DeepSGD scores `json:"deep_sgd"`
	DeepSWA scores `json:"deep_swa"`
}

// moments holds the mean and the standard deviation of each image's probabilities over draws of weights or masks.
type moments struct{ Mean, SD [][]float64 }

func readGolden(t *testing.T) (g golden) {
	t.Helper()
	testfile.JSON(t, filepath.Join("testdata", "baselines.json"), &g)
	return g
}

// within compares the averages of members with the means of want, to five standard errors. One of 30 numbers exceeds
// that in one of 60,000 seeds.
func (want moments) within(t *testing.T, got *infer.Sums, slack float64) {
	t.Helper()
	probs := got.Mean()
	for i, row := range want.Mean {
		for c, mean := range row {
			tol := 5*want.SD[i][c]/math.Sqrt(float64(got.Members)) + slack
			if p := probs[i*len(row)+c]; math.Abs(p-mean) > tol {
				t.Errorf("image %d, class %d: probability %.5f, want %.5f ± %.5f", i, c, p, mean, tol)
			}
		}
	}
}

// openLayer opens the last layer of the first run's SWA, and returns its Laplace approximation.
func openLayer(t *testing.T, in *baseline.Inputs) (*baseline.LastLayer, *baseline.KFAC) {
	t.Helper()
	layer, err := baseline.OpenLastLayer(t.Context(), infertest.Run(t), in)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { layer.Close() })
	k, err := layer.Curvature(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return layer, k
}

// The covariance of the last layer is NumPy's dense matrix, up to the float32 rounding of features. The average over
// draws is that of the Gaussian, up to its standard error.
func TestLaplace(t *testing.T) {
	t.Parallel()
	want := readGolden(t).Laplace
	in, targets := tiny(t, "ckpt")
	layer, k := openLayer(t, in)
	got, err := k.Covariance(want.Tau)
	if err != nil {
		t.Fatal(err)
	}
	for i, row := range want.Covariance {
		for j, v := range row {
			// relative to the standard deviations of the two weights
			if tol := 1e-5 * math.Sqrt(want.Covariance[i][i]*want.Covariance[j][j]); math.Abs(got.At(i, j)-v) > tol {
				t.Errorf("covariance of weights %d and %d: %v, want %v", i, j, got.At(i, j), v)
			}
		}
	}
	sums, err := layer.Average(t.Context(), k, targets.Data[0], want.Tau, 20_000)
	if err != nil {
		t.Fatal(err)
	}
	want.within(t, sums, 5*0.3/math.Sqrt(want.Draws)) // NumPy used want.Draws draws
}

// Draws have the covariance of the inverse, here ((1, −1.2), (−1.2, 2))/0.56. The standard error of a second moment of n
// draws is √((σ_ii σ_jj + σ_ij²)/n). Solving with L instead of its transpose fails here.
func TestLaplaceDraws(t *testing.T) {
	t.Parallel()
	var u mat.Cholesky
	if !u.Factorize(mat.NewSymDense(2, []float64{2, 1.2, 1.2, 1})) {
		t.Fatal("not positive")
	}
	const n = 100_000
	x, err := baseline.Draws(&u, 1, n)
	if err != nil {
		t.Fatal(err)
	}
	want := [2][2]float64{{1 / 0.56, -1.2 / 0.56}, {-1.2 / 0.56, 2 / 0.56}}
	for i := range 2 {
		for j := range 2 {
			got := mat.Dot(x.ColView(i), x.ColView(j)) / n
			if tol := 5 * math.Sqrt((want[i][i]*want[j][j]+want[i][j]*want[i][j])/n); math.Abs(got-want[i][j]) > tol {
				t.Errorf("covariance of %d and %d: %v, want %v ± %v", i, j, got, want[i][j], tol)
			}
		}
	}
}

// Each image has its own draw of a member, so that one unlucky draw does not affect all images.
func TestLaplacePool(t *testing.T) {
	t.Parallel()
	binary, err := task.New("binary", task.OutputSpec{Count: 1})
	if err != nil {
		t.Fatal(err)
	}
	sums, err := baseline.Equal(t.Context(), 2, binary)
	if err != nil {
		t.Fatal(err)
	}
	if sums.Outcome[0] == sums.Outcome[2] {
		t.Errorf("probabilities %v of equal images under one member", sums.Outcome)
	}
}

// Without validation data the prior precision is fitted on the other half. The draws are the same for any number of
// workers. A strong prior gives SWA.
func TestLaplacePrior(t *testing.T) {
	t.Parallel()
	in := &baseline.Inputs{Runs: []baseline.Run{{Network: infertest.Network(t, infertest.Posterior(t))}}, BatchNorm: infertest.Training(t),
		Asked: []string{baseline.SWA, baseline.Laplace}, Members: 8, Seed: 1}
	rt, val := infertest.Runtime(t), dataset.Subset(infertest.Digits(t, "val.npz"), dataset.Order{Limit: 600})
	targets := baseline.Targets{Data: []dataset.Dataset{val}}
	crossed, _ := predicted(t, infer.Run{Engine: infer.NewEngine(rt, infer.EngineOptions{Threads: 1})}, in, targets)
	if again, _ := predicted(t, infer.Run{Engine: infer.NewEngine(rt, infer.EngineOptions{Threads: 3})}, in, targets); !slices.Equal(crossed[1].Data[0].Outcome, again[1].Data[0].Outcome) {
		t.Error("1 and 3 workers differ")
	}
	if !strings.HasPrefix(crossed[1].Name, "SWA-Laplace (τ = ") || !strings.Contains(crossed[1].Name, ", ") {
		t.Errorf("cross-fitted on two halves: %s", crossed[1].Name)
	}
	nll := func(s *infer.Sums) float64 { return metrics(t, s.Task, s.Mean(), val.Labels())["nll"] }
	if swa, laplace := nll(crossed[0].Data[0]), nll(crossed[1].Data[0]); !(laplace < swa) {
		t.Errorf("NLL %v, but SWA is overconfident and has %v", laplace, swa)
	}
	layer, k := openLayer(t, in)
	sums, err := layer.Average(t.Context(), k, val, 1e16, 2)
	if err != nil {
		t.Fatal(err)
	}
	want := crossed[0].Data[0].Mean()
	for i, p := range sums.Mean() {
		if math.Abs(p-want[i]) > 1e-3 {
			t.Fatalf("probability %d with a strong prior: %v, want SWA's %v", i, p, want[i])
		}
	}
}

// The precision is fitted on validation data, for all data sets. Without it, several data sets leave the method out.
func TestLaplaceValidation(t *testing.T) {
	t.Parallel()
	in, targets := tiny(t, "ckpt")
	in.Asked, in.Members = []string{baseline.Laplace}, 2
	targets.Data = append(targets.Data, targets.Data[0])
	if out, notes := predicted(t, infertest.Run(t), in, targets); len(out) != 0 || len(notes) != 1 || !strings.Contains(notes[0], "fitted on validation data (Val)") {
		t.Errorf("two data sets and no validation data: %d methods, notes %q", len(out), notes)
	}
	in.Asked, in.Preset = nil, []string{baseline.Laplace}
	if out, notes := predicted(t, infertest.Run(t), in, targets); len(out) != 0 || len(notes) != 0 {
		t.Errorf("not asked for: %d methods, notes %q", len(out), notes)
	}
	targets.Validation, targets.FitsAll = targets.Data[0], true
	p := one(t, infertest.Run(t), in, targets)
	if !strings.HasPrefix(p.Name, "SWA-Laplace (τ = ") || strings.Contains(p.Name, ", ") || p.Members != 500 {
		t.Errorf("%s with %d members", p.Name, p.Members)
	}
	if !same(p.Data[0], p.Data[1]) || !same(p.Data[0], p.Validation) {
		t.Error("the same data gives other predictions")
	}
	single := dataset.Subset(targets.Data[0], dataset.Order{Limit: 1})
	if _, notes := predicted(t, infertest.Run(t), &baseline.Inputs{Runs: in.Runs, BatchNorm: in.BatchNorm, Asked: []string{baseline.Laplace}}, baseline.Targets{Data: []dataset.Dataset{single}}); len(notes) != 1 || !strings.Contains(notes[0], "cannot be fitted on one example") {
		t.Errorf("notes %q", notes)
	}
}
