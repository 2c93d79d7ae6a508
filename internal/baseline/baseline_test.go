package baseline_test

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/swagwrap/swagwrap/fixtures/infertest"
	"github.com/swagwrap/swagwrap/fixtures/reliability"
	"github.com/swagwrap/swagwrap/fixtures/testfile"
	"github.com/swagwrap/swagwrap/internal/baseline"
	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/ensemble"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/infer/batchnorm"
	"github.com/swagwrap/swagwrap/swag"
	"github.com/swagwrap/swagwrap/weights"
)

// scores holds the metrics of one method in golden.json. Repeated methods have them under mean and std.
type scores struct {
	Accuracy, NLL, Brier, ECE float64
	Temperature               float64
	Mean, Std                 *scores
}

// Every method has the scores of PyTorch. Methods without random numbers differ by float32 rounding only: the NLL by
// 1e-4, and at most one of 5,000 predictions. The others must lie within three standard deviations of PyTorch's ten
// repeats.
func TestGoldenMethods(t *testing.T) {
	t.Parallel()
	var golden struct{ Metrics map[string]scores }
	testfile.JSON(t, infertest.Path(infertest.MNIST, "golden.json"), &golden)
	in := &baseline.Inputs{
		Runs:      []baseline.Run{{Network: infertest.Network(t, infertest.Posterior(t)), Checkpoints: infertest.Checkpoints(t)}},
		BatchNorm: infertest.Training(t), Members: 30, Seed: 1, Scale: swag.LowRankPlusDiagonal.DefaultScale(),
	}
	test, val := infertest.Digits(t, "test.npz"), infertest.Digits(t, "val.npz")
	// only scalings need validation data
	asked := []string{baseline.SGD, baseline.StaleSWA, baseline.SWAG, baseline.SWAGDiag, baseline.SGDEnsemble}
	in.Asked = asked[:reliability.Figure(3, len(asked))]
	all, notes := predicted(t, infertest.Run(t), in, baseline.Targets{Data: []dataset.Dataset{test}})
	wanted := len(in.Asked) + 2
	in.Asked = []string{baseline.SWA, baseline.SWATemp}
	scaled, more := predicted(t, infertest.Run(t), in, baseline.Targets{Data: []dataset.Dataset{test}, Validation: val})
	if all = append(all, scaled...); len(all) != wanted || notes != nil || more != nil {
		t.Fatalf("%d methods, want %d; notes %q, %q", len(all), wanted, notes, more)
	}
	for _, p := range all {
		want, ok := golden.Metrics[strings.ReplaceAll(p.Key, "-", "_")]
		if !ok {
			want = golden.Metrics[map[string]string{baseline.StaleSWA: "swa_stale"}[p.Key]]
		}
		tol := scores{Accuracy: 1.0 / 5000, NLL: 1e-4, Brier: 1e-4, ECE: 2e-4}
		if want.Mean != nil {
			tol = scores{Accuracy: 3 * want.Std.Accuracy, NLL: 3 * want.Std.NLL, Brier: 3 * want.Std.Brier, ECE: 3 * want.Std.ECE}
			want = *want.Mean
		}
		x, outcomes := p.Data[0].Task, p.Data[0].Mean()
		if (p.By != "") != (p.Key == baseline.SWATemp) {
			t.Errorf("%s is calibrated by %q", p.Name, p.By)
		}
		if p.By != "" {
			fitted, err := x.Calibrators()[0].Fit(p.Validation.Mean(), val.Labels())
			if err != nil {
				t.Fatal(err)
			}
			if infertest.Far(fitted.Temperature, want.Temperature, 1e-4, 0) {
				t.Errorf("temperature %v, want %v", fitted.Temperature, want.Temperature)
			}
			outcomes = x.Apply(nil, fitted, outcomes)
		}
		m := metrics(t, x, outcomes, test.Labels())
		for _, s := range []struct {
			name           string
			got, want, tol float64
		}{
			{"accuracy", m["accuracy"], want.Accuracy, tol.Accuracy},
			{"NLL", m["nll"], want.NLL, tol.NLL},
			{"Brier", m["brier"], want.Brier, tol.Brier},
			{"ECE", m["ece"], want.ECE, tol.ECE},
		} {
			t.Logf("%-22s %-9s %.5f, PyTorch %.5f, tolerance %.5f", p.Name, s.name, s.got, s.want, s.tol)
			if !(math.Abs(s.got-s.want) <= s.tol) {
				t.Errorf("%s: %s %v, want %v ± %v", p.Name, s.name, s.got, s.want, s.tol)
			}
		}
	}
}

// Deep ensembles of two halves of a run have the scores of PyTorch, up to float32 rounding. MultiSWAG at scale 0 is the
// ensemble of the SWAs.
func TestDeepEnsembles(t *testing.T) {
	t.Parallel()
	want := readGolden(t)
	models, nets := infertest.Checkpoints(t), infertest.Halves(t)
	in := &baseline.Inputs{
		Runs: []baseline.Run{{Network: nets[0], Checkpoints: models[:15]}, {Network: nets[1], Checkpoints: models[15:]}}, BatchNorm: infertest.Training(t),
		Asked: []string{baseline.DeepSGD, baseline.DeepSWA, baseline.MultiSWAG}, Members: 3, Seed: 1,
	}
	test := infertest.Digits(t, "test.npz")
	methods, _ := predicted(t, infertest.Run(t), in, baseline.Targets{Data: []dataset.Dataset{test}})
	if len(methods) != 3 {
		t.Fatalf("%d methods", len(methods))
	}
	for i, want := range []scores{want.DeepSGD, want.DeepSWA, want.DeepSWA} {
		p := methods[i]
		m := metrics(t, p.Data[0].Task, p.Data[0].Mean(), test.Labels())
		if math.Abs(m["nll"]-want.NLL) > 1e-4 || math.Abs(m["brier"]-want.Brier) > 1e-4 || math.Abs(m["accuracy"]-want.Accuracy) > 1.5/5000 {
			t.Errorf("%s: %v, want %+v", p.Name, m, want)
		}
	}
}

// All methods of a single run come in their order. They send as many images through networks as Images returns.
func TestPredict(t *testing.T) {
	t.Parallel()
	in, targets := tiny(t, "training")
	in.Asked, in.Members, in.Tuned = baseline.Keys(), 3, &swag.SampleOptions{Scale: 0.25, Covariance: swag.Diagonal}
	targets.Noise = true
	in.External = []baseline.External{{Name: "SGLD", Models: in.Runs[0].Checkpoints}}
	var seen atomic.Int64
	e := infertest.Run(t)
	e.Progress = func(images int) { seen.Add(int64(images)) }
	methods, notes := predicted(t, e, in, targets)
	if images := in.Images(targets); images < 100 || seen.Load() != images {
		t.Errorf("%d images announced, but %d went through networks", images, seen.Load())
	}
	var keys []string
	outcomes := map[string][]float64{}
	for _, p := range methods {
		keys = append(keys, p.Key)
		outcomes[p.Key] = p.Data[0].Outcome
		if len(p.Data) != 1 || len(p.Data[0].Outcome) != 30 || p.Members != p.Data[0].Members || p.StaleBN != (p.Key == baseline.StaleSWA) {
			t.Errorf("%s: %+v", p.Name, p)
		}
	}
	if all := slices.DeleteFunc(baseline.Keys(), baseline.Adapts); !slices.Equal(keys, all[:len(all)-3]) || notes != nil { // several runs have three more
		t.Errorf("methods %q, notes %q", keys, notes)
	}
	if !slices.Equal(outcomes[baseline.SGDEnsemble], outcomes[baseline.Iterates]) {
		t.Error("the same checkpoints give different predictions")
	}
	// Isotropic noise and SWAG share z1 but nothing else.
	if slices.Equal(outcomes[baseline.Isotropic], outcomes[baseline.SWAG]) || slices.Equal(outcomes[baseline.SWAG], outcomes[baseline.SWAGDiag]) {
		t.Error("the covariance makes no difference")
	}
	if swag.Isotropic.DefaultScale() != swag.LowRankPlusDiagonal.DefaultScale() {
		t.Error("isotropic noise has not SWAG's trace at the same scale")
	}
}

// Only methods that fit something to the validation data send it through networks. The validation data changes no outcome,
// unless a method fits its outcomes.
func TestValidationPasses(t *testing.T) {
	t.Parallel()
	in, targets := tiny(t, "training")
	other, _ := tiny(t, "ckpt")
	targets.Noise = true
	in.Runs, in.Members, in.Tuned = append(in.Runs, other.Runs...), 3, &swag.SampleOptions{Scale: 0.25}
	in.External = []baseline.External{{Name: "SGLD", Models: in.Runs[0].Checkpoints}}
	run := func(targets baseline.Targets, asked ...string) (out []*baseline.Predicted, seen int64) {
		var count atomic.Int64
		e := infertest.Run(t)
		e.Progress = func(images int) { count.Add(int64(images)) }
		in.Asked = asked
		out, _ = predicted(t, e, in, targets)
		return out, count.Load()
	}
	validated := targets
	validated.Validation = dataset.Subset(targets.Data[0], dataset.Order{Limit: 7})
	passes := map[string]int64{ // networks that predict the validation data
		baseline.SGDTemp: 1, "sgd-vector": 1, baseline.SWATemp: 1, "swa-vector": 1, baseline.Laplace: 1,
		"sgd-svs": 1, "sgd-sms": 1, "sgd-quadratic": 1, "sgd-venn-abers": 1, "swa-svs": 1, "swa-sms": 1, "swa-quadratic": 1, "swa-venn-abers": 1,
		baseline.SWAGTemp: 3, "swag-member-temp": 3, baseline.SWAGTuned: 3,
	}
	for _, key := range slices.DeleteFunc(baseline.Keys(), baseline.Adapts) { // those need a target
		plain, without := run(targets, key)
		fitted, with := run(validated, key)
		if with-without != 7*passes[key] {
			t.Errorf("%s: %d more images with validation data, want 7 times %d", key, with-without, passes[key])
		}
		own := key == baseline.Laplace || key == "swag-member-temp" // that fit to features and to members
		if p := fitted[0]; (p.Validation != nil) != (passes[key] > 0 && !own) || !own && !slices.Equal(p.Data[0].Outcome, plain[0].Data[0].Outcome) {
			t.Errorf("%s: predictions of the validation data %v, want %v; or others of the test data", key, p.Validation != nil, passes[key] > 0 && !own)
		}
		validated.FitsAll = true
		if all, _ := run(validated, key); all[0].Validation == nil || len(all[0].Validation.Entropy) != 7 {
			t.Errorf("%s: no predictions of the validation data for a fit by the caller", key)
		}
		validated.FitsAll = false
	}
	// Methods that start from one result share its passes.
	_, without := run(targets, baseline.Keys()...)
	announced := in.Images(targets)
	_, with := run(validated, baseline.Keys()...)
	if more := in.Images(validated) - announced; more != with-without {
		t.Errorf("all methods: %d more images announced, and %d went through networks", more, with-without)
	}
	if want := int64(7 * (1 + 1 + 1 + 3 + 3)); with-without != want {
		t.Errorf("all methods: %d more images, want %d", with-without, want)
	}
}

// External checkpoints run with their own batch-norm statistics and with recomputed ones. The statistics in
// training-1.onnx and training-2.onnx are random, so the predictions differ.
func TestRecomputedIterates(t *testing.T) {
	t.Parallel()
	in, targets := tiny(t, "training")
	in.Asked, in.External = []string{baseline.Iterates}, []baseline.External{{Name: "SGLD", Models: in.Runs[0].Checkpoints, Recompute: true}}
	e := infertest.Run(t)
	got, _ := predicted(t, e, in, targets)
	if len(got) != 2 || got[0].Name != "SGLD" || got[1].Name != "SGLD, BN recomputed" || got[1].Members != 2 {
		t.Fatalf("%+v", got)
	}
	n, want := in.Runs[0].Network, [2]*infer.Sums{{}, {}}
	for _, m := range in.Runs[0].Checkpoints {
		parameters, stored, err := n.Vectors(m)
		if err != nil {
			t.Fatal(err)
		}
		fresh, err := batchnorm.Recompute(t.Context(), e, n, parameters, in.BatchNorm)
		if err != nil {
			t.Fatal(err)
		}
		for i, statistics := range []weights.Vector{stored, weights.Slice(fresh.Statistics)} {
			model, err := n.Model("iterate", parameters, statistics)
			if err != nil {
				t.Fatal(err)
			}
			if err := e.Predict(t.Context(), model, targets.Data[0], want[i]); err != nil {
				t.Fatal(err)
			}
		}
	}
	for i, p := range got {
		if !slices.Equal(p.Data[0].Outcome, want[i].Outcome) {
			t.Errorf("%s: %v, want %v", p.Name, p.Data[0].Outcome, want[i].Outcome)
		}
	}
	if slices.Equal(want[0].Outcome, want[1].Outcome) {
		t.Error("recomputed statistics make no difference")
	}
}

// A cancelled run ends with that error, unless it needs nothing more. An error of the receiver ends a run.
func TestPredictCancelled(t *testing.T) {
	t.Parallel()
	in, targets := tiny(t, "training")
	other, _ := tiny(t, "ckpt")
	targets.Noise = true
	in.Runs, in.Members, in.Tuned = append(in.Runs, other.Runs...), 3, &swag.SampleOptions{Scale: 0.25}
	in.External = []baseline.External{{Name: "SGLD", Models: in.Runs[0].Checkpoints, Recompute: true}}
	rt, no := infertest.Runtime(t), errors.New("no")
	for _, key := range slices.DeleteFunc(baseline.Keys(), baseline.Adapts) {
		in.Asked = []string{key}
		_, err := baseline.Predict(t.Context(), infer.Run{Engine: infer.NewEngine(rt, infer.EngineOptions{})}, in, targets, func(*baseline.Predicted) error { return no })
		if !errors.Is(err, no) {
			t.Errorf("%s: error %v, want the receiver's", key, err)
		}
		for after := range 5 {
			ctx, cancel := context.WithCancel(t.Context())
			var seen atomic.Int64
			e := infer.Run{Engine: infer.NewEngine(rt, infer.EngineOptions{Threads: 1}), Progress: func(images int) {
				if seen.Add(int64(images)) >= int64(10*after) {
					cancel()
				}
			}}
			if after == 0 {
				cancel()
			}
			_, err := baseline.Predict(ctx, e, in, targets, func(*baseline.Predicted) error { return nil })
			if !errors.Is(err, context.Canceled) && (after == 0 || err != nil) {
				t.Errorf("%s, cancelled after %d images: error %v", key, 10*after, err)
			}
			cancel()
		}
	}
}

func TestParse(t *testing.T) {
	got, err := baseline.Parse("swa, swag")
	if err != nil || !slices.Equal(got, []string{baseline.SWA, baseline.SWAG}) {
		t.Errorf("%q, %v", got, err)
	}
	if all, err := baseline.Parse("all"); err != nil || !slices.Equal(all, baseline.Keys()) {
		t.Errorf("%q, %v", all, err)
	}
	_, err = baseline.Parse("swa,swog")
	infertest.WantError(t, err, `method "swog": want one of sgd`)
}

// Methods report what they lack. Some run only if asked for.
func TestMissing(t *testing.T) {
	t.Parallel()
	in, _ := tiny(t, "ckpt")
	in.Runs[0].Checkpoints, in.BatchNorm.Data = nil, nil
	for key, want := range map[string]string{
		baseline.SGD: "the checkpoints", baseline.SGDTemp: "the checkpoints", "sgd-vector": "the checkpoints", baseline.SGDEnsemble: "the checkpoints", baseline.Iterates: "external checkpoints (Iterates)",
		baseline.Laplace: "training data (BNData)", baseline.DeepSGD: "several posteriors", baseline.DeepSWA: "several posteriors",
		baseline.MultiSWAG: "several posteriors", baseline.SWA: "", baseline.SWAG: "", baseline.SWATemp: "",
	} {
		if got := in.Missing(key); got != want || in.Wants(key) != (want == "") {
			t.Errorf("%s lacks %q, want %q", key, got, want)
		}
	}
	if in.Wants(baseline.Isotropic) {
		t.Error("isotropic noise runs without being asked for")
	}
	in.Runs, in.Members = append(in.Runs, in.Runs[0]), 1
	if got := in.Missing(baseline.DeepSGD); got != "the checkpoints of "+in.Runs[0].Network.Posterior.Path {
		t.Errorf("deep ensembles lack %q", got)
	}
	if got := in.Missing(baseline.MultiSWAG); got != "at least one member of each posterior (Members)" {
		t.Errorf("MultiSWAG without members lacks %q", got)
	}
	in.Asked, in.Members = []string{baseline.MultiSWAG}, 2
	if !in.Wants(baseline.MultiSWAG) || in.Wants(baseline.SWA) {
		t.Error("other methods than those asked for")
	}
	if detectors := baseline.Detectors(); slices.Contains(detectors, baseline.StaleSWA) || slices.Contains(detectors, baseline.Isotropic) || !slices.Contains(detectors, baseline.SWATemp) {
		t.Errorf("detectors %q", detectors)
	}
}

func TestInOrder(t *testing.T) {
	keys := []string{baseline.SWAG, baseline.SWA, baseline.SGD}
	itself := func(key string) string { return key }
	if err := baseline.InOrder(keys, nil, itself); err != nil || !slices.Equal(keys, []string{baseline.SGD, baseline.SWA, baseline.SWAG}) {
		t.Errorf("%q, %v", keys, err)
	}
	infertest.WantError(t, baseline.InOrder(nil, []string{"SWA is left out: why"}, itself), "no method is left to compare; SWA is left out: why")
}

// A run with one checkpoint has the methods of a single network, each with that network's own outcomes. It needs no file
// of the checkpoint. Every other method is left out.
func TestSingle(t *testing.T) {
	t.Parallel()
	in, targets := tiny(t, "ckpt")
	models := in.Runs[0].Checkpoints
	in.Runs[0] = baseline.Run{Network: infertest.Network(t, infertest.Fit(t, models[1]))}
	in.Tuned = &swag.SampleOptions{Scale: 0.5}
	var ran []string
	for _, key := range baseline.Keys() {
		if in.Missing(key) == "" {
			ran = append(ran, key)
		}
	}
	if want := []string{"sgd", "sgd-temp", "sgd-vector", "sgd-svs", "sgd-sms", "sgd-quadratic", "sgd-venn-abers", "swa-dropout", "swa-laplace"}; !slices.Equal(ran, want) {
		t.Errorf("methods %q, want %q", ran, want)
	}
	in.Asked = []string{baseline.SGD}
	engine := infertest.Run(t)
	outcomes := func(in *baseline.Inputs) []float64 { return one(t, engine, in, targets).Data[0].Mean() }
	several := *in
	several.Runs = []baseline.Run{{Network: infertest.Network(t, infertest.Fit(t, models...)), Checkpoints: models}}
	if got, want := outcomes(in), outcomes(&several); len(want) == 0 || !slices.Equal(got, want) {
		t.Errorf("the posterior's network predicts %v, its file %v", got, want)
	}
	s, runs := in.Deploy(baseline.SGDTemp)
	if s == nil || s.Method() != ensemble.Last || len(runs) != 1 {
		t.Errorf("deployed by %+v", s)
	}
	// Several such runs are a deep ensemble.
	in.Runs = append(in.Runs, baseline.Run{Network: infertest.Network(t, infertest.Fit(t, models[0]))})
	if in.Missing(baseline.DeepSGD) != "" || in.Missing(baseline.DeepSWA) == "" || in.Missing(baseline.MultiSWAG) == "" {
		t.Errorf("deep-sgd lacks %q, deep-swa %q, multiswag %q", in.Missing(baseline.DeepSGD), in.Missing(baseline.DeepSWA), in.Missing(baseline.MultiSWAG))
	}
	if s, runs := in.Deploy(baseline.DeepSGD); s == nil || s.Method() != ensemble.Last || len(runs) != 2 {
		t.Errorf("deployed by %+v", s)
	}
}
