package baseline_test

import (
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/swagwrap/swagwrap/fixtures/infertest"
	"github.com/swagwrap/swagwrap/internal/baseline"
	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/ensemble"
	"github.com/swagwrap/swagwrap/internal/infer/batchnorm"
	"github.com/swagwrap/swagwrap/internal/task"
	"github.com/swagwrap/swagwrap/swag"
)

// SWAG and SWAG-Temp share the same average, bit for bit. The temperature is the one that a search over the NLL of
// softmax(log p̄ / T) finds.
func TestSWAGTemp(t *testing.T) {
	t.Parallel()
	val := dataset.Subset(infertest.Digits(t, "val.npz"), dataset.Order{Limit: 300})
	in := &baseline.Inputs{Runs: []baseline.Run{{Network: infertest.Network(t, infertest.Posterior(t))}}, Seed: 1, Scale: 0.5, Members: 3,
		BatchNorm: batchnorm.Training{Data: infertest.Digits(t, "train.npz"), Order: dataset.Order{Limit: 256}},
		Asked:     []string{baseline.SWAG, baseline.SWAGTemp}}
	targets := baseline.Targets{Data: []dataset.Dataset{val}, Validation: val}
	methods, _ := predicted(t, infertest.Run(t), in, targets)
	if len(methods) != 2 || !same(methods[0].Data[0], methods[1].Data[0]) || !same(methods[0].Validation, methods[1].Validation) {
		t.Fatalf("%+v", methods)
	}
	p := methods[1]
	if methods[0].By != "" || p.By != task.OneNumber || p.Name != "SWAG-Temp" || p.Networks() != 3 {
		t.Errorf("%+v", p)
	}
	labels, outcomes := targets.Validation.Labels(), p.Validation.Mean()
	nll := func(beta float64) (sum float64) {
		for i, label := range labels.Classes {
			row, norm := outcomes[i*10:][:10], 0.0
			for _, v := range row {
				norm += math.Pow(v, beta)
			}
			sum -= beta*math.Log(row[label]) - math.Log(norm)
		}
		return sum
	}
	low, high := math.Log(1e-3), math.Log(1e3) // the NLL is convex in β = 1/T, and has one minimum in log β
	for range 200 {
		a, b := low+(high-low)/3, high-(high-low)/3
		if nll(math.Exp(a)) < nll(math.Exp(b)) {
			high = b
		} else {
			low = a
		}
	}
	fitted, err := p.Validation.Task.Calibrators()[0].Fit(outcomes, labels)
	if err != nil {
		t.Fatal(err)
	}
	if want := math.Exp(-low); fitted.Undetermined != "" || math.Abs(fitted.Temperature-want) > 1e-6*want {
		t.Errorf("T = %v, %q; a search finds %v", fitted.Temperature, fitted.Undetermined, want)
	}
}

// Each method has the settings with which sample makes it, and the number of its networks.
func TestDeploy(t *testing.T) {
	t.Parallel()
	in, targets := tiny(t, "training")
	in.Members, in.Seed, in.Tuned = 3, 7, &swag.SampleOptions{Scale: 0.25, Covariance: swag.Diagonal}
	in.Runs = append(in.Runs, in.Runs[0])
	sgd, sgds, all := ensemble.FromLast(), ensemble.FromLast(), ensemble.FromCheckpoints()
	swa, swagged := ensemble.FromSampling(swag.SampleOptions{Seed: 7}, 3), ensemble.FromSampling(swag.SampleOptions{Seed: 7, Scale: 0.5}, 3)
	diagonal := func(scale float64) *ensemble.Settings {
		return ensemble.FromSampling(swag.SampleOptions{Seed: 7, Scale: scale, Covariance: swag.Diagonal}, 3)
	}
	want := map[string]*ensemble.Settings{
		baseline.SGD: sgd, baseline.SGDTemp: sgd, "sgd-vector": sgd, baseline.SGDEnsemble: all, baseline.SWA: swa, baseline.SWATemp: swa, "swa-vector": swa,
		"sgd-svs": sgd, "sgd-sms": sgd, "sgd-quadratic": sgd, "sgd-venn-abers": sgd, "swa-venn-abers": swa, "swa-svs": swa, "swa-sms": swa, "swa-quadratic": swa,
		baseline.SWAG: swagged, baseline.SWAGTemp: swagged, baseline.SWAGDiag: diagonal(1), baseline.SWAGTuned: diagonal(0.25),
		baseline.DeepSGD: sgds, baseline.DeepSWA: swa, baseline.MultiSWAG: swagged,
	}
	for _, key := range baseline.Keys() {
		got, runs := in.Deploy(key)
		if several := strings.HasPrefix(key, "deep") || key == baseline.MultiSWAG; !reflect.DeepEqual(got, want[key]) || got != nil && (len(runs) == 2) != several {
			t.Errorf("%s: %+v of %d runs, want %+v", key, got, len(runs), want[key])
		}
	}
	in.Runs, in.Asked = in.Runs[:1], []string{baseline.Laplace}
	if p := one(t, infertest.Run(t), in, targets); p.Networks() != 1 {
		t.Errorf("Laplace costs %d networks", p.Networks())
	}
	in.Tuned = &swag.SampleOptions{}
	in.Asked = []string{baseline.SWA, baseline.SWAGTuned}
	methods, _ := predicted(t, infertest.Run(t), in, targets)
	if !slices.Equal(methods[0].Data[0].Outcome, methods[1].Data[0].Outcome) || methods[1].Name != "SWAG, tuned: SWA" || methods[1].Networks() != 1 {
		t.Errorf("scale 0 does not give SWA: %+v", methods[1])
	}
	s, _ := in.Deploy(baseline.SWAGTuned)
	if !reflect.DeepEqual(s, swa) {
		t.Errorf("%+v, want %+v", s, swa)
	}
	if err := s.Check(); err != nil {
		t.Error(err)
	}
}
