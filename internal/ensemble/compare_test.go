package ensemble

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gonum.org/v1/gonum/mat"

	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/onnxio"
	ckpt "github.com/swagwrap/swagwrap/onnxio/checkpoints"
	"github.com/swagwrap/swagwrap/swag"
	"github.com/swagwrap/swagwrap/weights"
)

// tinyModels is where small networks of 1×4×4 images and 3 classes are.
const tinyModels = "../../cmd/swagwrap/testdata"

// baselines is testdata/baselines.json; make_baselines.py says what each key is.
type baselines struct {
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

// moments are those of each image's probabilities, under one draw of the weights
// or the masks.
type moments struct{ Mean, SD [][]float64 }

func readBaselines(t *testing.T) (b baselines) {
	t.Helper()
	js, err := os.ReadFile(filepath.Join("testdata", "baselines.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(js, &b); err != nil {
		t.Fatal(err)
	}
	return b
}

// tiny is a lineup of one run of two small checkpoints, and its data.
func tiny(t *testing.T, kind string) (*Lineup, Targets) {
	t.Helper()
	models := []*onnxio.Model{open(t, filepath.Join(tinyModels, kind+"-1.onnx")), open(t, filepath.Join(tinyModels, kind+"-2.onnx"))}
	set, err := ckpt.New(models)
	if err != nil {
		t.Fatal(err)
	}
	d, err := dataset.Open([]string{filepath.Join(tinyModels, "images.npz")}, dataset.Options{Shape: []int64{1, 4, 4}})
	if err != nil {
		t.Fatal(err)
	}
	l := &Lineup{Runs: []Run{{network(t, fitSet(t, set)), models}}, BatchNorm: BatchNormData{Data: d}, Seed: 1, Scale: 0.5}
	return l, Targets{Data: []dataset.Dataset{d}}
}

// predicted runs a lineup and returns what its methods predict.
func predicted(t *testing.T, l *Lineup, e *Engine, targets Targets) []*Predicted {
	t.Helper()
	var out []*Predicted
	if err := l.Each(t.Context(), e, targets, func(p *Predicted) error { out = append(out, p); return nil }); err != nil {
		t.Fatal(err)
	}
	return out
}

// within fails unless the averages of members are those of the distribution that
// want describes, to five standard errors: of 30 numbers one is farther off once
// in 60,000 seeds.
func (want moments) within(t *testing.T, got *Sums, slack float64) {
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

// The covariance of the last layer is the dense one, written out by NumPy, to
// what float32 features are off; and the average over draws is that of the
// Gaussian, to its standard error.
func TestLaplace(t *testing.T) {
	want := readBaselines(t).Laplace
	l, targets := tiny(t, "ckpt")
	w := &work{Lineup: l, ctx: t.Context(), engine: &Engine{Runtime: openRuntime(t)}, targets: targets}
	err := w.withSWA(0, func(swa swaWeights) error {
		layer, err := w.openLastLayer(swa)
		if err != nil {
			return err
		}
		defer layer.Close()
		k, err := w.curvature(layer)
		if err != nil {
			return err
		}
		u, v, err := k.at(want.Tau)
		if err != nil {
			return err
		}
		var scores mat.SymDense
		if err := u.InverseTo(&scores); err != nil {
			return err
		}
		var got mat.Dense
		got.Kronecker(&scores, v)
		for i, row := range want.Covariance {
			for j, v := range row {
				// Relative to the standard deviations of the two weights.
				if tol := 1e-5 * math.Sqrt(want.Covariance[i][i]*want.Covariance[j][j]); math.Abs(got.At(i, j)-v) > tol {
					t.Errorf("covariance of weights %d and %d: %v, want %v", i, j, got.At(i, j), v)
				}
			}
		}
		set, err := w.features(layer, targets.Data[0])
		if err != nil {
			return err
		}
		sums := &Sums{}
		if err := k.average(t.Context(), set, dataset.Order{}.Indices(10), want.Tau, 1, 20_000, sums); err != nil {
			return err
		}
		want.within(t, sums, 5*0.3/math.Sqrt(want.Draws)) // NumPy's draws are as many, and no more
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Draws have the covariance of the inverse, here ((1, −1.2), (−1.2, 2))/0.56; the
// standard error of a second moment of n draws is √((σ_ii σ_jj + σ_ij²)/n).
// Kills: solving with L in place of its transpose.
func TestLaplaceDraws(t *testing.T) {
	var u mat.Cholesky
	if !u.Factorize(mat.NewSymDense(2, []float64{2, 1.2, 1.2, 1})) {
		t.Fatal("not positive")
	}
	const n = 100_000
	x, err := draws(&u, 1, n)
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

// A member's draw is not the same for all images, or its luck would be theirs.
func TestLaplacePool(t *testing.T) {
	one := mat.NewSymDense(1, []float64{1})
	k := &kfac{mean: mat.NewDense(1, 1, nil), images: 1, a: one, g: one}
	set := &featureSet{features: []float32{1, 1}, mean: []float32{0, 0}}
	sums := &Sums{}
	if err := k.average(t.Context(), set, []int{0, 1}, 1, 1, 1, sums); err != nil {
		t.Fatal(err)
	}
	if sums.Prob[0] == sums.Prob[2] {
		t.Errorf("probabilities %v of equal images under one member", sums.Prob)
	}
}

// The prior precision is fitted on labels that are not those it is judged by, and
// the draws are the same for any number of workers. A strong prior gives SWA.
func TestLaplacePrior(t *testing.T) {
	l := &Lineup{Runs: []Run{{network(t, fit(t, false)), nil}}, BatchNorm: fileOrder(t), Methods: []string{SWA, Laplace}, Members: 8, Seed: 1}
	rt := openRuntime(t)
	targets := Targets{Data: []dataset.Dataset{data(t, "val.npz")}}
	crossed := predicted(t, l, &Engine{Runtime: rt, Workers: 1}, targets)
	if diff := cmp.Diff(crossed[1].Data[0].Prob, predicted(t, l, &Engine{Runtime: rt, Workers: 3}, targets)[1].Data[0].Prob); diff != "" {
		t.Error("1 and 3 workers differ")
	}
	if !strings.HasPrefix(crossed[1].Name, "SWA-Laplace (τ = ") || !strings.Contains(crossed[1].Name, ", ") {
		t.Errorf("cross-fitted on two halves: %s", crossed[1].Name)
	}
	nll := func(s *Sums) float64 {
		probs, sum := s.Mean(), 0.0
		for i, y := range targets.Data[0].Labels() {
			sum -= math.Log(probs[i*s.Classes+y])
		}
		return sum / float64(len(s.Entropy))
	}
	if swa, laplace := nll(crossed[0].Data[0]), nll(crossed[1].Data[0]); !(laplace < swa) {
		t.Errorf("NLL %v, and of SWA, which is too sure of itself, %v", laplace, swa)
	}
	w := &work{Lineup: l, ctx: t.Context(), engine: &Engine{Runtime: rt}, targets: targets}
	err := w.withSWA(0, func(swa swaWeights) error {
		layer, err := w.openLastLayer(swa)
		if err != nil {
			return err
		}
		defer layer.Close()
		k, err := w.curvature(layer)
		if err != nil {
			return err
		}
		set, err := w.features(layer, targets.Data[0])
		if err != nil {
			return err
		}
		sums := &Sums{}
		if err := k.average(t.Context(), set, dataset.Order{}.Indices(targets.Data[0].Len()), 1e16, 1, 2, sums); err != nil {
			return err
		}
		for i, p := range sums.Mean() {
			if want := crossed[0].Data[0].Mean()[i]; math.Abs(p-want) > 1e-3 {
				t.Fatalf("probability %d with a prior that holds the weights fast: %v, want SWA's %v", i, p, want)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Dropout's average is that over all its masks, which PyTorch's layer would draw
// from; it is on, and the same in every run and for any number of workers.
func TestDropout(t *testing.T) {
	l, targets := tiny(t, "training")
	l.Methods, l.Members = []string{Dropout}, 1500
	rt := openRuntime(t)
	one := predicted(t, l, &Engine{Runtime: rt, Workers: 1, BatchSize: 4}, targets)[0]
	readBaselines(t).Dropout.within(t, one.Data[0], 1e-5) // float32
	if one.Members != 1500 {
		t.Errorf("%d passes", one.Members)
	}
	l.Members = 7
	seven := predicted(t, l, &Engine{Runtime: rt, Workers: 1, BatchSize: 4}, targets)[0]
	if diff := cmp.Diff(seven.Data, predicted(t, l, &Engine{Runtime: rt, Workers: 3, BatchSize: 4}, targets)[0].Data, cmp.AllowUnexported(Sums{})); diff != "" {
		t.Errorf("1 and 3 workers differ: %s", diff)
	}
	l.Seed = 2
	if other := predicted(t, l, &Engine{Runtime: rt, Workers: 1, BatchSize: 4}, targets)[0]; slices.Equal(other.Data[0].Prob, seven.Data[0].Prob) {
		t.Error("another seed drops the same")
	}
	// The checkpoints are not needed.
	l.Seed, l.Runs[0].Iterates = 1, nil
	if again := predicted(t, l, &Engine{Runtime: rt, Workers: 1, BatchSize: 4}, targets)[0]; !slices.Equal(again.Data[0].Prob, seven.Data[0].Prob) {
		t.Error("without checkpoints other units are dropped")
	}
	// A network without Dropout has no such row, and those who asked for it are told.
	l, targets = tiny(t, "ckpt")
	l.Methods, l.Members = []string{Dropout}, 1
	if got := predicted(t, l, &Engine{Runtime: rt}, targets); len(got) != 0 || len(l.Notes) != 1 || !strings.Contains(l.Notes[0], "keeps no Dropout") {
		t.Errorf("%d methods, notes %q", len(got), l.Notes)
	}
}

// Dropout stays on in a network that ONNX Runtime would take it out of, because
// other operators stand around it.
func TestDropoutInNetwork(t *testing.T) {
	paths, err := filepath.Glob("../../fixtures/results/checkpoints/mnist-250-seed-1/epoch-*.onnx")
	if err != nil || len(paths) < 2 {
		t.Fatalf("%d checkpoints, %v", len(paths), err)
	}
	var models []*onnxio.Model
	for _, path := range paths[:2] {
		models = append(models, open(t, path))
	}
	set, err := ckpt.New(models)
	if err != nil {
		t.Fatal(err)
	}
	val := data(t, "val.npz")
	l := &Lineup{Runs: []Run{{network(t, fitSet(t, set)), models}}, BatchNorm: BatchNormData{Data: val}, Methods: []string{Dropout}, Members: 2, Seed: 1}
	if got := predicted(t, l, &Engine{Runtime: openRuntime(t)}, Targets{Data: []dataset.Dataset{val}}); len(got) != 1 {
		t.Errorf("%d methods, notes %q: want one that drops", len(got), l.Notes)
	}
}

// Deep ensembles of two halves of a run against PyTorch's, float32 against
// float64; MultiSWAG at scale 0 is the ensemble of the SWAs.
func TestDeepEnsembles(t *testing.T) {
	want := readBaselines(t)
	models := checkpoints(t)
	nets := halves(t)
	c := &Comparison{
		Lineup: Lineup{
			Runs: []Run{{nets[0], models[:15]}, {nets[1], models[15:]}}, BatchNorm: fileOrder(t),
			Methods: []string{SWATemp, DeepSGD, DeepSWA, MultiSWAG}, Members: 3, Seed: 1,
		},
		Test: data(t, "test.npz"),
	}
	methods, err := c.Run(t.Context(), &Engine{Runtime: openRuntime(t)})
	if err != nil {
		t.Fatal(err)
	}
	if len(methods) != 4 {
		t.Fatalf("%d methods", len(methods))
	}
	for i, tc := range []scores{1: want.DeepSGD, 2: want.DeepSWA, 3: want.DeepSWA} {
		if i == 0 {
			continue
		}
		m := methods[i].Metrics
		if math.Abs(m.NLL-tc.NLL) > 1e-4 || math.Abs(m.Brier-tc.Brier) > 1e-4 || math.Abs(m.Accuracy-tc.Accuracy) > 1.5/5000 {
			t.Errorf("%s: NLL %v, Brier %v, accuracy %v, want %+v", methods[i].Name, m.NLL, m.Brier, m.Accuracy, tc)
		}
	}
	if methods[0].Key != SWATemp || !methods[0].Baseline || !methods[0].Scaling.CrossFitted || len(methods[0].Scaling.Temperatures) != 2 {
		t.Errorf("baseline %+v", methods[0].Scaling)
	}
}

// Every method has its place, scalings of its own, and probabilities that are
// handed on; temperatures keep the accuracy.
func TestComparison(t *testing.T) {
	l, targets := tiny(t, "training")
	l.Methods, l.Members = Methods, 3
	l.Sequences = []Sequence{{"SGLD", l.Runs[0].Iterates, false}}
	saved := make(map[string][]float64)
	c := &Comparison{Lineup: *l, Test: targets.Data[0], Scalings: true, Save: func(m *Method, probs []float64, classes int) error {
		saved[m.Key] = probs
		return nil
	}}
	images := c.Images()
	if images < 100 {
		t.Errorf("%d images announced", images)
	}
	methods, err := c.Run(t.Context(), &Engine{Runtime: openRuntime(t)})
	if err != nil {
		t.Fatal(err)
	}
	var keys []string
	for _, m := range methods {
		keys = append(keys, m.Key)
		if m.ByTemperature != nil && m.ByTemperature.Metrics.Accuracy != m.Metrics.Accuracy {
			t.Errorf("%s: accuracy %v, at its own temperature %v", m.Name, m.Metrics.Accuracy, m.ByTemperature.Metrics.Accuracy)
		}
		if (m.Key == SWA || m.Key == SWAG) && (m.ByTemperature == nil || m.ByVector == nil) {
			t.Errorf("%s: no scalings of its own: %v", m.Name, m.Metrics.Warnings)
		}
		if m.Baseline != (m.Key == SWATemp) || m.Baseline != (m.NLLDifference.Low == 0 && m.NLLDifference.High == 0 && m.NLLDifference.Mean == 0) {
			t.Errorf("%s: baseline %v, difference %v", m.Name, m.Baseline, m.NLLDifference)
		}
		if len(saved[m.Key]) != 30 {
			t.Errorf("%s: %d probabilities saved", m.Name, len(saved[m.Key]))
		}
	}
	if diff := cmp.Diff(Methods[:len(Methods)-3], keys); diff != "" {
		t.Errorf("methods: %s", diff)
	}
	if diff := cmp.Diff(saved[SGDs], saved[Iterates]); diff != "" {
		t.Errorf("the same checkpoints: %s", diff)
	}
	// Isotropic noise and SWAG share z1 but nothing else.
	if slices.Equal(saved[Isotropic], saved[SWAG]) || slices.Equal(saved[SWAG], saved[SWAGDiag]) {
		t.Error("the covariance makes no difference")
	}
	if swag.Isotropic.DefaultScale() != swag.LowRankPlusDiagonal.DefaultScale() {
		t.Error("isotropic noise has not SWAG's trace at the same scale")
	}
}

// Checkpoints from elsewhere, with their own statistics and with recomputed ones:
// those of training-1.onnx and training-2.onnx are random, so the two differ.
func TestRecomputedIterates(t *testing.T) {
	l, targets := tiny(t, "training")
	l.Methods, l.Sequences = []string{Iterates}, []Sequence{{"SGLD", l.Runs[0].Iterates, true}}
	e := &Engine{Runtime: openRuntime(t)}
	got := predicted(t, l, e, targets)
	if len(got) != 2 || got[0].Name != "SGLD" || got[1].Name != "SGLD, BN recomputed" || got[1].Members != 2 {
		t.Fatalf("%+v", got)
	}
	n, want := l.Runs[0].Network, [2]*Sums{{}, {}}
	for _, m := range l.Runs[0].Iterates {
		parameters, stored, err := n.Checkpoint(m)
		if err != nil {
			t.Fatal(err)
		}
		fresh, err := e.Recompute(t.Context(), n, parameters, l.BatchNorm)
		if err != nil {
			t.Fatal(err)
		}
		for i, statistics := range []weights.Vector{stored, weights.Slice(fresh.Statistics)} {
			model, err := n.Model(parameters, statistics)
			if err != nil {
				t.Fatal(err)
			}
			if err := e.Predict(t.Context(), "iterate", model, targets.Data[0], 1, want[i]); err != nil {
				t.Fatal(err)
			}
		}
	}
	for i, p := range got {
		if !slices.Equal(p.Data[0].Prob, want[i].Prob) {
			t.Errorf("%s: %v, want %v", p.Name, p.Data[0].Prob, want[i].Prob)
		}
	}
	if slices.Equal(want[0].Prob, want[1].Prob) {
		t.Error("recomputed statistics make no difference")
	}
}

func TestParseMethods(t *testing.T) {
	got, err := ParseMethods("swa, swag")
	if err != nil || !slices.Equal(got, []string{SWA, SWAG}) {
		t.Errorf("%q, %v", got, err)
	}
	if all, err := ParseMethods("all"); err != nil || !slices.Equal(all, Methods) {
		t.Errorf("%q, %v", all, err)
	}
	if _, err := ParseMethods("swa,swog"); err == nil || !strings.Contains(err.Error(), `no method "swog"`) {
		t.Errorf("error %v", err)
	}
}
