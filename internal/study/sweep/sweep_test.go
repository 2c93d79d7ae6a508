package sweep

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/floats"

	"github.com/swagwrap/swagwrap/calibrate"
	"github.com/swagwrap/swagwrap/fixtures/infertest"
	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/infer/batchnorm"
	"github.com/swagwrap/swagwrap/internal/report"
	"github.com/swagwrap/swagwrap/internal/study"
	"github.com/swagwrap/swagwrap/internal/task"
	"github.com/swagwrap/swagwrap/swag"
	"github.com/swagwrap/swagwrap/weights"
)

func TestMain(m *testing.M) { infertest.Main(m) }

// quickSweep is a sweep over a few images of the fixture.
func quickSweep(t *testing.T) *Sweep {
	t.Helper()
	return &Sweep{Network: infertest.Network(t, infertest.Posterior(t)), BatchNorm: batchnorm.Training{Data: infertest.Digits(t, "train.npz"), Order: dataset.Order{Limit: 256}},
		Test: dataset.Subset(infertest.Digits(t, "test.npz"), dataset.Order{Limit: 300}), Validation: dataset.Subset(infertest.Digits(t, "val.npz"), dataset.Order{Limit: 200}),
		Members: 4, Seed: 3, Scales: []float64{0, 0.25}, Ranks: []int{0, 5}, AllTest: true}
}

// plainAverage is the plain way to average members: each is drawn, has its statistics
// recomputed or not, and predicts.
func plainAverage(t *testing.T, e infer.Run, s *Sweep, opts swag.SampleOptions, members int, stale bool) *infer.Sums {
	t.Helper()
	sums := &infer.Sums{}
	err := infer.EachMember(t.Context(), nil, s.Network.Posterior, opts, 0, members, func(k int, parameters weights.Vector) error {
		statistics := s.Network.Posterior.Statistics
		if !stale {
			fresh, err := batchnorm.Recompute(t.Context(), e, s.Network, parameters, s.BatchNorm)
			if err != nil {
				return err
			}
			statistics = fresh.Statistics
		}
		model, err := s.Network.Model(fmt.Sprint(k), parameters, statistics)
		if err != nil {
			return err
		}
		return e.Predict(t.Context(), model, s.Test, sums)
	})
	if err != nil {
		t.Fatal(err)
	}
	return sums
}

// tempered returns probabilities of ten classes at another temperature.
func tempered(p []float64, temperature float64) []float64 {
	out := make([]float64, len(p))
	for i := range p {
		norm := 0.0
		for _, v := range p[i/10*10:][:10] {
			norm += math.Pow(v, 1/temperature)
		}
		out[i] = math.Pow(p[i], 1/temperature) / norm
	}
	return out
}

// Every point of a sweep has the scores of a plain average of the same members at the temperature of the point. The
// default is what compare calls SWAG-Temp, the scale 0 is SWA-Temp.
func TestSweep(t *testing.T) {
	t.Parallel()
	s, e := quickSweep(t), infertest.Run(t)
	seen := int64(0)
	counting := infer.Run{Engine: infer.NewEngine(e.Runtime(), infer.EngineOptions{Threads: 1}), Progress: func(images int) { seen += int64(images) }}
	r, err := s.Run(t.Context(), counting)
	if err != nil {
		t.Fatal(err)
	}
	if want := s.Images(s.Members); seen != want {
		t.Errorf("%d images went through networks, %d were announced", seen, want)
	}
	want := map[string]struct {
		opts    swag.SampleOptions
		members int
		stale   bool
	}{
		"SWA":                                {swag.SampleOptions{}, 1, false},
		"SWAG, scale 0.5, rank 20":           {swag.SampleOptions{Seed: 3, Scale: 0.5}, 4, false},
		"SWAG, scale 0.25, rank 20":          {swag.SampleOptions{Seed: 3, Scale: 0.25}, 4, false},
		"SWAG, scale 0.5, rank 5":            {swag.SampleOptions{Seed: 3, Scale: 0.5, Rank: 5}, 4, false},
		"SWAG-Diag, scale 0.5":               {swag.SampleOptions{Seed: 3, Scale: 0.5, Covariance: swag.Diagonal}, 4, false},
		"SWAG-Diag, scale 0.25":              {swag.SampleOptions{Seed: 3, Scale: 0.25, Covariance: swag.Diagonal}, 4, false},
		"SWA, stale BN":                      {swag.SampleOptions{}, 1, true},
		"SWAG, scale 0.5, rank 20, stale BN": {swag.SampleOptions{Seed: 3, Scale: 0.5}, 4, true},
	}
	if len(r.Points) != len(want) || r.Points[0].String() != "SWA" || !r.Default().Default || r.Default().Setting != s.Default() {
		t.Fatalf("points %v, the default is %v", r.Points, r.Default())
	}
	for _, p := range r.Points {
		w, ok := want[p.String()]
		if !ok {
			t.Errorf("%v was not asked for", p)
			continue
		}
		sums := plainAverage(t, e, s, w.opts, w.members, w.stale)
		predictions, err := calibrate.NewPredictions(tempered(sums.Mean(), p.Temperature), 10, s.Test.Labels().Classes)
		if err != nil {
			t.Fatal(err)
		}
		m := calibrate.Evaluate(predictions, calibrate.EvaluateOptions{})
		// The rounding of the scaled probabilities differs.
		if want := []float64{m.Accuracy, m.NLL, m.ECE, m.Brier}; !floats.EqualApprox(mainValues(p.Evaluation), want, 1e-9) || p.Members != w.members {
			t.Errorf("%v: %v of %d members, want %v", p, mainValues(p.Evaluation), p.Members, want)
		}
		d := r.Default()
		if got, want := p.Difference.Mean, p.Value("nll")-d.Value("nll"); math.Abs(got-want) > 1e-12 || !p.Default && !(p.Difference.Low < got && got < p.Difference.High) {
			t.Errorf("%v: difference of the NLL %v, want %v", p, p.Difference, want)
		}
	}
	checkCurve(t, s, r, e)
	checkShown(t, r)
	checkHidden(t, r)
}

// checkHidden: without --all-test no text, no JSON and no figure has the test scores of
// settings that were not chosen; those of the default and of the choice, and those on validation
// data, are there.
func checkHidden(t *testing.T, r *Result) {
	t.Helper()
	r.AllTest = false
	defer func() { r.AllTest = true }()
	var text bytes.Buffer
	if err := study.WriteText(&text, report.Screen{Verbose: true}, nil, r.Show()); err != nil {
		t.Fatal(err)
	}
	js, err := json.Marshal(shown{r}.all())
	if err != nil {
		t.Fatal(err)
	}
	drawn := fmt.Sprintf("%v", r.Show().Page().Sweeps)
	hidden := 0
	for i := range r.Points {
		p := &r.Points[i]
		for where, shown := range map[string]bool{
			"text":    strings.Contains(text.String(), report.Interval(p.Difference.Low, p.Difference.High, 4)),
			"JSON":    strings.Contains(string(js), fmt.Sprintf(`"nll":%v,`, p.Value("nll"))),
			"figures": strings.Contains(drawn, fmt.Sprint(p.Value("nll"))),
		} {
			if ok := p.Default || p.Setting == r.Choice.Setting || p.Setting == (Setting{}); shown && !ok || where == "JSON" && shown != ok || where == "text" && shown != ok && !p.Default {
				t.Errorf("%v: test scores in the %s: %v, want %v", p, where, shown, ok)
			}
		}
		if !strings.Contains(text.String(), "\n"+strings.TrimPrefix((shown{r}).name(p.Setting), "SWAG, ")+" ") || !strings.Contains(text.String(), fmt.Sprintf(" %.4f ", p.Validation.Value("nll"))) ||
			!strings.Contains(string(js), fmt.Sprintf(`"validation_nll":%v,`, p.Validation.Value("nll"))) {
			t.Errorf("%v: no validation scores", p)
		}
		if !r.visible(p) {
			hidden++
		}
	}
	if hidden < 4 || !strings.Contains(text.String(), fmt.Sprintf("\ntest scores of %d settings that were not chosen are hidden: to look at them is to choose on test data (AllTest shows them)\n", hidden)) {
		t.Errorf("%d hidden in\n%s", hidden, &text)
	}
	// The differences on validation data are those of the losses there.
	for _, p := range r.Points {
		if math.Abs(p.ValidationDifference.Mean-(p.Validation.Value("nll")-r.Default().Validation.Value("nll"))) > 1e-12 {
			t.Errorf("%v: difference %v", p, p.ValidationDifference)
		}
	}
}

// Text, page and JSON show the same figures.
func checkShown(t *testing.T, r *Result) {
	t.Helper()
	r.Statistics = study.BatchNorm{Networks: []*infer.Network{r.Network}, Records: []*batchnorm.Record{nil}}
	var text bytes.Buffer
	if err := study.WriteText(&text, report.Screen{Verbose: true}, nil, r.Show()); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"300 test images, 4 members, seed 3; settings chosen on 200 validation images\n\n", "\nSWA-Temp, stale BN ", "\nscale 0.5, rank 20, stale BN ",
		"\nmembers  accuracy     NLL  any choice", strings.Join(shown{r}.verdict(), "\n") + "\n"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("no %q in\n%s", want, &text)
		}
	}
	page := r.Show().Page()
	var titles []string
	for _, c := range page.Sweeps {
		titles = append(titles, c.Title)
	}
	if want := []string{"NLL by the number of members", "NLL by scale", "NLL by rank"}; !slices.Equal(titles, want) || len(page.Tables) != 3 {
		t.Errorf("figures %q, want %q; %d tables", titles, want, len(page.Tables))
	}
	if ranks := page.Sweeps[2].Series[0]; !slices.Equal(ranks.X, []float64{0, 5, 20}) || ranks.Y[2] != r.Default().Value("nll") {
		t.Errorf("ranks %+v", ranks)
	}
	js, err := json.Marshal(shown{r}.all())
	if err != nil {
		t.Fatal(err)
	}
	type interval struct{ Mean, Low, High float64 }
	var got struct {
		Settings []struct {
			Setting, Covariance string
			BN                  bool `json:"bn_recomputed"`
			Default             bool
			NLL, ECE            float64
			Temperature         float64
			Difference          interval `json:"nll_difference_95"`
		}
		Curve   []struct{ Members int } `json:"members_curve"`
		Choice  struct{ Setting, On string }
		Verdict []string
	}
	if err := json.Unmarshal(js, &got); err != nil {
		t.Fatal(err)
	}
	if len(got.Settings) != len(r.Points) || len(got.Curve) != 4 || got.Choice.Setting != r.Choice.Setting.String() || !slices.Equal(got.Verdict, (shown{r}).verdict()) {
		t.Errorf("%s", js)
	}
	for i, p := range r.Points {
		q := got.Settings[i]
		if q.Setting != p.String() || q.BN == p.Stale || q.Default != p.Default || q.NLL != p.Value("nll") || q.ECE != p.Value("ece") || q.Difference != interval(p.Difference) || q.Temperature != p.Temperature || (q.Covariance == "swa") != p.SWA() {
			t.Errorf("%+v, want %+v", q, p)
		}
	}
	keys := regexp.MustCompile(`"settings":\[\{("setting":"SWA").*?("accuracy"):.*?("nll"):.*?("ece"):.*?("brier"):.*?("default"):`)
	if !keys.Match(js) {
		t.Errorf("the fields have another order: %s", js)
	}
}

// checkCurve: the curve begins with the first member and ends with the average of
// all, in whatever order they come.
func checkCurve(t *testing.T, s *Sweep, r *Result, e infer.Run) {
	t.Helper()
	last := r.Curve[len(r.Curve)-1]
	all, err := calibrate.NewPredictions(plainAverage(t, e, s, swag.SampleOptions{Seed: 3, Scale: 0.5}, 4, false).Mean(), 10, s.Test.Labels().Classes)
	if err != nil {
		t.Fatal(err)
	}
	if want := calibrate.NegLogLikelihood(all); len(r.Curve) != 4 || last.Members != 4 || last.Value("nll") != want {
		t.Errorf("the curve ends in %+v, want the NLL %v", last, want)
	}
	for _, v := range []float64{last.AnyOrder.Mean, last.AnyOrder.Low, last.AnyOrder.High} {
		if math.Abs(v-last.Value("nll")) > 1e-12 {
			t.Errorf("all members in another order have the NLL %v, want %v", v, last.Value("nll"))
		}
	}
	first := plainAverage(t, e, s, swag.SampleOptions{Seed: 3, Scale: 0.5}, 1, false)
	predictions, err := calibrate.NewPredictions(first.Mean(), 10, s.Test.Labels().Classes)
	if err != nil {
		t.Fatal(err)
	}
	if want := calibrate.NegLogLikelihood(predictions); r.Curve[0].Value("nll") != want {
		t.Errorf("the first member has the NLL %v, want %v", r.Curve[0].Value("nll"), want)
	}
	// −log is convex: fewer members are worse in the mean over choices.
	for m := 1; m < 4; m++ {
		if r.Curve[m].AnyOrder.Mean > r.Curve[m-1].AnyOrder.Mean {
			t.Errorf("%d members are worse than %d: %v", m+1, m, r.Curve)
		}
	}
}

func TestSweepSettings(t *testing.T) {
	t.Parallel()
	s := &Sweep{Network: infertest.Network(t, infertest.Posterior(t)), Scales: []float64{0, 0.5, 1}, Ranks: []int{0, 5, 20}}
	var got []string
	for _, set := range s.Settings() {
		got = append(got, set.String())
	}
	want := []string{"SWA", "SWAG, scale 0.5, rank 20", "SWAG, scale 1, rank 20", "SWAG-Diag, scale 0.5", "SWAG-Diag, scale 1",
		"SWAG, scale 0.5, rank 5", "SWA, stale BN", "SWAG, scale 0.5, rank 20, stale BN"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// The number of members stops where it is enough, and all settings have it.
func TestSweepAuto(t *testing.T) {
	t.Parallel()
	s := quickSweep(t)
	s.Members, s.Antithetic, s.Validation, s.Scales, s.Ranks = 0, true, nil, []float64{0.25}, nil
	resized := int64(0)
	s.Resize = func(images int64) { resized = images }
	r, err := s.Run(t.Context(), infertest.Run(t))
	if err != nil {
		t.Fatal(err)
	}
	n := r.Error
	if n.Members < 6 || n.Members >= 30 || n.Members%2 != 0 {
		t.Errorf("stopped at %+v", n)
	}
	for _, p := range r.Points {
		if p.Members != n.Members && !p.SWA() {
			t.Errorf("%v has %d members, want %d", p, p.Members, n.Members)
		}
	}
	if resized != s.Images(n.Members) {
		t.Errorf("%d images announced, want %d", resized, s.Images(n.Members))
	}
	r.Statistics.Records = []*batchnorm.Record{nil}
	js, err := json.Marshal(shown{r}.all())
	if err != nil || !strings.Contains(string(js), `"chosen_on":"halves","halves":[{`) {
		t.Errorf("%s, %v", js, err)
	}
}

// The posterior of all checkpoints, fitted again, gives the points of the sweep itself. That of the first twelve is the one
// that fit makes of these.
func TestCollect(t *testing.T) {
	t.Parallel()
	s := quickSweep(t)
	s.Members, s.Scales, s.AllTest = 2, nil, false
	last := infertest.Checkpoints(t)
	s.Network = infertest.Network(t, infertest.Fit(t, last[10:]...))
	s.Epochs = []int{12, 20}
	s.Earlier = func(ctx context.Context, checkpoints int) (*infer.Network, error) {
		f, err := os.Create(filepath.Join(t.TempDir(), "early"))
		if err != nil {
			return nil, err
		}
		defer f.Close()
		if err := s.Network.Refit(ctx, f, last[10:][:checkpoints]); err != nil {
			return nil, err
		}
		p, err := swag.Open(f.Name())
		if err != nil {
			return nil, err
		}
		return infer.NewNetwork(p, infer.RecomputeTrained, "")
	}
	seen := int64(0)
	e := infer.Run{Engine: infer.NewEngine(infertest.Runtime(t), infer.EngineOptions{Threads: 1}), Progress: func(images int) { seen += int64(images) }}
	r, err := s.Run(t.Context(), e)
	if err != nil {
		t.Fatal(err)
	}
	if seen != s.Images(2) {
		t.Errorf("%d images went through networks, %d were announced", seen, s.Images(2))
	}
	for i, name := range []string{"SWA-Temp", "all columns", "SWAG-Diag", "rank 5"} {
		if got, ok := r.Collected[1].nllOf(name); !ok || got != r.Points[i].Validation.Value("nll") {
			t.Errorf("%s of all checkpoints: NLL %v, want %v", name, got, r.Points[i].Validation.Value("nll"))
		}
	}
	s.Network, s.Epochs = infertest.Network(t, infertest.Fit(t, last[10:22]...)), nil
	early, err := s.Run(t.Context(), e)
	if err != nil {
		t.Fatal(err)
	}
	if got, _ := r.Collected[0].nllOf("all columns"); got != early.Default().Validation.Value("nll") || r.Collected[0].Columns != 12 || early.Default().Rank != 12 {
		t.Errorf("of the first twelve: %v of rank %d, want %v", got, r.Collected[0].Columns, early.Default())
	}
}

// gone is data that cannot be read.
type gone struct{ dataset.Dataset }

func (gone) Read(dataset.Values, int) error { return errors.New("test.npz: gone") }

// What fails says with which setting it was; a posterior of the diagonal alone has a
// default of its own.
func TestSweepFails(t *testing.T) {
	t.Parallel()
	s, e := quickSweep(t), infer.Run{Engine: infer.NewEngine(infertest.Runtime(t), infer.EngineOptions{Threads: 1})}
	if err := s.Check(); err != nil {
		t.Error(err)
	}
	test := s.Test
	s.Test = gone{test}
	if _, err := s.Run(t.Context(), e); err == nil || !strings.Contains(err.Error(), "test.npz: gone") {
		t.Errorf("error %v", err)
	}
	s.Test, s.Validation = test, gone{s.Validation}
	if _, err := s.Run(t.Context(), e); err == nil || !strings.Contains(err.Error(), "gone") {
		t.Errorf("error %v", err)
	}
	s.BatchNorm.Data = gone{s.BatchNorm.Data}
	if _, err := s.Run(t.Context(), e); err == nil || !strings.Contains(err.Error(), "SWA, member 0: ") {
		t.Errorf("error %v", err)
	}
	s.Ranks = []int{30}
	if err := s.Check(); err == nil || !strings.Contains(err.Error(), "30") {
		t.Errorf("rank 30: %v", err)
	}
	s = &Sweep{Network: &infer.Network{Posterior: &swag.Posterior{}}}
	if d := s.Default(); d.String() != "SWAG-Diag, scale 1" {
		t.Errorf("the default is %v", d)
	}
}

// With few images, intervals are too narrow, and the scores warn of it.
func TestSweepFewImages(t *testing.T) {
	t.Parallel()
	s := quickSweep(t)
	s.Test, s.Validation, s.Members, s.Scales, s.Ranks = dataset.Subset(s.Test, dataset.Order{Limit: 20}), nil, 2, nil, nil
	r, err := s.Run(t.Context(), infertest.Run(t))
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(study.Texts(r.Warnings), "; "); !strings.Contains(got, "20 test images: with fewer than 30, intervals are too narrow") {
		t.Errorf("warnings %q", got)
	}
	var text bytes.Buffer
	if err := (shown{r}).settings()[0].Table().WriteText(&text, report.Screen{Verbose: true}); err != nil || !strings.Contains(text.String(), "* 20 test images: ") {
		t.Errorf("%s, %v", &text, err)
	}
}

// mainValues returns the values of the main metrics.
func mainValues(e *task.Evaluation) (values []float64) {
	for _, s := range e.Main() {
		values = append(values, s.Value)
	}
	return values
}
