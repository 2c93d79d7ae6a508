package compare_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gonum.org/v1/gonum/floats"

	"github.com/swagwrap/swagwrap/calibrate/chance"
	"github.com/swagwrap/swagwrap/fixtures/infertest"
	"github.com/swagwrap/swagwrap/fixtures/testfile"
	"github.com/swagwrap/swagwrap/internal/baseline"
	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/infer/batchnorm"
	"github.com/swagwrap/swagwrap/internal/report"
	"github.com/swagwrap/swagwrap/internal/study"
	"github.com/swagwrap/swagwrap/internal/study/compare"
	"github.com/swagwrap/swagwrap/internal/study/compare/show"
	"github.com/swagwrap/swagwrap/internal/target"
	"github.com/swagwrap/swagwrap/swag"
)

func TestMain(m *testing.M) { infertest.Main(m) }

// small compares methods of a small network that keeps its Dropout.
func small(t *testing.T) *compare.Comparison {
	t.Helper()
	models := infertest.Two(t, "training")
	return &compare.Comparison{
		Inputs: baseline.Inputs{
			Runs:      []baseline.Run{{Network: infertest.Network(t, infertest.Fit(t, models...)), Checkpoints: models}},
			External:  []baseline.External{{Name: "SGLD", Models: models}},
			BatchNorm: batchnorm.Training{Data: smallImages(t)}, Members: 3, Seed: 1, Scale: 0.5, Tuned: &swag.SampleOptions{Scale: 0.25, Rank: 2},
		},
		Test: smallImages(t),
	}
}

// Every method has its place, scalings of its own, and probabilities that are
// handed on; temperatures keep the accuracy.
func TestComparison(t *testing.T) {
	t.Parallel()
	saved := make(map[string][]float64)
	c := small(t)
	c.Asked, c.Scalings, c.AllMetrics = baseline.Keys(), true, true
	c.Save = func(key string, probs []float64, classes int) error {
		saved[key] = probs
		return nil
	}
	var first strings.Builder // what is shown when the first five methods have their scores
	var scored []*compare.Method
	c.Scored = func(m *compare.Method) {
		if scored = append(scored, m); len(scored) == 5 {
			show.First(scored).WriteText(&first, report.Screen{})
		}
	}
	if images := c.Images(); images < 100 {
		t.Errorf("%d images announced", images)
	}
	r, err := c.Run(t.Context(), infertest.Run(t))
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(scored, r.Methods) {
		t.Errorf("%d methods were scored, want %d", len(scored), len(r.Methods))
	}
	rows := strings.Split(first.String(), "\n")
	if len(rows) != 7 || strings.Join(strings.Fields(rows[0]), " ") != "so far accuracy NLL" {
		t.Errorf("the first rows: %q", rows)
	}
	var keys []string
	for i, m := range r.Methods {
		if i < 5 && !(strings.HasPrefix(rows[1+i], m.Name+" ") && strings.HasSuffix(rows[1+i], " "+report.Fixed(m.Value("nll"), 4))) {
			t.Errorf("row %d is %q, want that of %s", i, rows[1+i], m.Name)
		}
		keys = append(keys, m.Key)
		if m.Scaled != nil && m.Scaled[0] != nil && m.Scaled[0].Value("accuracy") != m.Value("accuracy") {
			t.Errorf("%s: accuracy %v, at its own temperature %v", m.Name, m.Value("accuracy"), m.Scaled[0].Value("accuracy"))
		}
		if (m.Key == baseline.SWA || m.Key == baseline.SWAG) && (m.Scaled[0] == nil || m.Scaled[1] == nil) {
			t.Errorf("%s: no scalings of its own: %v", m.Name, m.Warnings)
		}
		if base := m.Key == baseline.SWA; base != (m.Differences == nil) || base != (m == r.Verdict().Base) {
			t.Errorf("%s: differences %v", m.Name, m.Differences)
		}
		// What draws have a part in says so; those of the baseline, of one order here, have none.
		drawn := slices.Contains([]string{baseline.SWAG, baseline.SWAGDiag, baseline.SWAGTemp, baseline.SWAGTuned, "swag-member-temp", "isotropic", "swa-dropout", "swa-laplace"}, m.Key)
		if m.Differences != nil && drawn != (m.Draws.DoF > 0) {
			t.Errorf("%s: draws %+v", m.Name, m.Draws)
		}
		for key, d := range m.Differences {
			value := func(m *compare.Method) float64 {
				if key == compare.ErrorLoss {
					return 1 - m.Value("accuracy")
				}
				return m.Value(key)
			}
			if want := value(m) - value(r.Verdict().Base); math.Abs(d.Mean-want) > 1e-12 || !(d.Low <= d.Mean && d.Mean <= d.High) {
				t.Errorf("%s: difference of the %s %+v, want %v", m.Name, key, d, want)
			}
		}
		if len(saved[m.Key]) != 30 {
			t.Errorf("%s: %d probabilities saved", m.Name, len(saved[m.Key]))
		}
	}
	all := slices.DeleteFunc(baseline.Keys(), func(key string) bool { // without a target, and with more than two classes
		return baseline.Adapts(key) || strings.HasSuffix(key, "-quadratic") || strings.HasSuffix(key, "-venn-abers")
	})
	if diff := cmp.Diff(all[:len(all)-3], keys); diff != "" {
		t.Errorf("methods: %s", diff)
	}
	if !slices.Equal(saved["sgd-ensemble"], saved["iterates"]) {
		t.Errorf("the same checkpoints: %v, %v", saved["sgd-ensemble"], saved["iterates"])
	}
	// Isotropic noise and SWAG share z1 but nothing else.
	if slices.Equal(saved["isotropic"], saved[baseline.SWAG]) || slices.Equal(saved[baseline.SWAG], saved[baseline.SWAGDiag]) {
		t.Error("the covariance makes no difference")
	}
	if swag.Isotropic.DefaultScale() != swag.LowRankPlusDiagonal.DefaultScale() {
		t.Error("isotropic noise has not SWAG's trace at the same scale")
	}
	checkShown(t, r)
	// Five images do not determine a temperature, so SWA itself is the baseline. No other method is worse for a temperature of its
	// own, and sets are of one level for all.
	for _, m := range r.Methods {
		if fits := m.Scaling != nil || m.Key == "swag-member-temp"; fits == m.Sound() {
			t.Errorf("%s: undetermined: %q", m.Name, m.Undetermined)
		}
		if m.Sound() && !(m.AtBestT <= m.Value("nll")+1e-12) { // sums in another order
			t.Errorf("%s: NLL %v, at best T %v", m.Name, m.Value("nll"), m.AtBestT)
		}
		if level := m.Value("set_level"); level != r.Methods[0].Value("set_level") || level <= m.Value("accuracy") && level < 0.999 {
			t.Errorf("%s: sets of level %v, accuracy %v", m.Name, level, m.Value("accuracy"))
		}
	}
}

// Text, page and JSON show the same figures.
func checkShown(t *testing.T, r *compare.Result) {
	t.Helper()
	r.BatchNorm = study.BatchNorm{Networks: r.Networks(), Records: []*batchnorm.Record{nil}}
	var text bytes.Buffer
	shown := show.Result(r)
	if err := study.WriteText(&text, report.Screen{Verbose: true}, nil, shown); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"10 test images, 3 members, scale 0.5, rank 2, seed 1; T fitted on halves of the test images\n\n", "minus SWA [95 %]", "\nSWA, stale BN ",
		"\n! these batch-norm statistics do not belong to the averaged weights: with the last checkpoint's, SWA's NLL is ", "\n* all: ", "members  ECE if calibrated", "\nrisk at 90 %: errors among", "NLL, vector", "mean over 10 random splits; without it where that is better\n", " ECE in 20 bins of equal mass.\n",
		"ECE, 15 equal width", "\nτ: precision of the prior N(0, I/τ)",
		"\nscalings are fitted on one half of the test images and judged on the other\n", strings.Join(shown.Verdict, "\n") + "\n"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("no %q in\n%s", want, &text)
		}
	}
	accuracy := func(line string) bool { return strings.HasPrefix(line, "Accuracy against ") }
	if i := slices.IndexFunc(shown.Brief, func(line string) bool { return !slices.Contains(shown.Verdict, line) || accuracy(line) }); i >= 0 || len(shown.Brief) == 0 {
		t.Errorf("in brief %q, of %q", shown.Brief, shown.Verdict)
	}
	page := shown.Page()
	// Few errors leave differences in errors alone.
	if n := len(r.Methods); len(page.Tables) != 5 || len(page.Methods) != n-1 || len(page.Differences) != 0 || page.Lead == nil || !slices.Equal(page.Verdict, shown.Verdict) {
		t.Errorf("a page of %d tables, with figures of %d methods", len(page.Tables), len(page.Methods))
	}
	// Figures name a few of the methods, with the calibration error of the table.
	var named []string
	for _, m := range page.Methods {
		if !m.Minor {
			named = append(named, m.Name)
		}
		if !strings.HasPrefix(m.Label, "ECE 0.") {
			t.Errorf("%s: %q beside its name", m.Name, m.Label)
		}
	}
	if got := strings.Join(named, "; "); !regexp.MustCompile(`^your network; your network-Temp \(T = .*\); SWA; SWA-Temp \(T = .*\); SWAG-Temp \(T = .*\); SWAG, tuned: .*$`).MatchString(got) {
		t.Errorf("figures name %s", got)
	}
	if d := page.Differences; page.Lead == nil || len(d) != 0 {
		t.Errorf("%d differences: %+v", len(d), d)
	}
	js, err := json.Marshal(shown.JSON)
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Methods []struct {
			Key           string
			Accuracy, NLL float64
			Top5          *float64
			AtBestT       *float64 `json:"nll_at_best_t"`
			Scaled        *struct {
				NLL          float64
				Temperatures []float64
			} `json:"temperature_scaled"`
			Difference *struct {
				Value, Low, High, P float64
				Standard            float64 `json:"standard_error"`
			} `json:"error_difference"`
			Baseline bool
			Warnings []string
		}
		Posteriors, Verdict []string
	}
	if err := json.Unmarshal(js, &got); err != nil {
		t.Fatal(err)
	}
	if len(got.Methods) != len(r.Methods) || len(got.Posteriors) != 1 || !slices.Equal(got.Verdict, shown.Verdict) {
		t.Errorf("%s", js)
	}
	for i, m := range r.Methods {
		g := got.Methods[i]
		if g.Key != m.Key || g.Accuracy != m.Value("accuracy") || g.NLL != m.Value("nll") || g.Top5 != nil || g.Baseline != (m.Differences == nil) || !slices.Equal(g.Warnings, study.Texts(m.Warnings)) {
			t.Errorf("%+v, want %+v", g, m)
		}
		if (g.Scaled == nil) != (m.Scaled == nil || m.Scaled[0] == nil) || g.Scaled != nil && (g.Scaled.NLL != m.Scaled[0].Value("nll") || len(g.Scaled.Temperatures) != 2) {
			t.Errorf("%s: at its own temperature %+v", m.Name, g.Scaled)
		}
		if (g.Difference == nil) != g.Baseline || g.Difference != nil && (g.Difference.High != m.Differences[compare.ErrorLoss].High || g.Difference.P != m.Differences[compare.ErrorLoss].P || g.Difference.Standard != m.Differences[compare.ErrorLoss].Standard) {
			t.Errorf("%s: difference %+v", m.Name, g.Difference)
		}
	}
	order := regexp.MustCompile(`"methods":\[\{"method":.*?"key":.*?"members":.*?"accuracy":.*?"nll":.*?"ece":.*?"brier":.*?"top5":.*?"ece_classwise":.*?"nll_at_best_t":.*?"temperature_scaled":.*?"vector_scaled":.*?"nll_difference":.*?"stale_bn":.*?"baseline":.*?"warnings":.*?"verdict":`)
	if !order.Match(js) {
		t.Errorf("the fields have another order: %s", js)
	}
}

// printed returns what a comparison prints.
func printed(t *testing.T, r *compare.Result) string {
	t.Helper()
	r.BatchNorm = study.BatchNorm{Networks: r.Networks(), Records: []*batchnorm.Record{nil}}
	var text strings.Builder
	if err := study.WriteText(&text, report.Screen{Verbose: true}, nil, show.Result(r)); err != nil {
		t.Fatal(err)
	}
	return text.String()
}

// With validation data all is fitted on it; what cannot be fitted is left out with a
// note, or part of the method's text.
func TestValidation(t *testing.T) {
	t.Parallel()
	c := small(t)
	c.Asked, c.Scalings, c.AllMetrics, c.Validation = []string{baseline.SWA, baseline.SWATemp, baseline.SWAG}, true, true, c.Test
	e := infer.Run{Engine: infer.NewEngine(infertest.Runtime(t), infer.EngineOptions{Threads: 1})}
	r, err := c.Run(t.Context(), e)
	if err != nil {
		t.Fatal(err)
	}
	if s := r.Methods[1].Scaling; s == nil || s.CrossFitted() || len(s.Values()) != 1 || !strings.HasPrefix(r.Methods[1].Name, "SWA-Temp (T = ") {
		t.Errorf("%s: %+v", r.Methods[1].Name, s)
	}
	if text := printed(t, r); !strings.Contains(text, "scalings are fitted on the validation images") {
		t.Error(text)
	}
	checkRefit(t, r, r.Methods[1])
	if h := show.Result(r).Heading; !strings.HasSuffix(h, "T fitted on 10 validation images") {
		t.Errorf("%q", h)
	}
	js, err := json.Marshal(show.Result(r).JSON)
	if err != nil || !strings.Contains(string(js), `"validation_examples":10,`) || !strings.Contains(string(js), `"temperatures":[`) {
		t.Errorf("%s, %v", js, err)
	}

	c.Validation = unfit{c.Test}
	if r, err = c.Run(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	if len(r.Methods) != 2 || len(r.Notes) != 1 || !strings.HasPrefix(r.Notes[0], "SWA-Temp is left out: validation data: ") {
		t.Errorf("%d methods, notes %q", len(r.Methods), r.Notes)
	}
	warned := strings.Join(study.Texts(r.Methods[0].Warnings), "; ")
	if !strings.Contains(warned, "no temperature scaling: validation data: ") || !strings.Contains(warned, "no vector scaling: validation data: ") {
		t.Errorf("warnings %q", warned)
	}
	if text := printed(t, r); !strings.Contains(text, "minus SWA [95 %]") { // as the next best
		t.Error(text)
	} else if _, table, _ := strings.Cut(text, "scalings"); strings.Contains(table, "—") { // a column of nothing is left out
		t.Error(text)
	}

	c.Validation, c.Save = nil, func(string, []float64, int) error { return errors.New("disk full") }
	if _, err := c.Run(t.Context(), e); err == nil || err.Error() != "disk full" {
		t.Errorf("error %v", err)
	}
	c.Test = unfit{c.Test}
	if _, err := c.Run(t.Context(), e); err == nil || !strings.HasPrefix(err.Error(), "SWA: ") {
		t.Errorf("error %v", err)
	}
	c.Asked = []string{baseline.MultiSWAG}
	if _, err := c.Run(t.Context(), e); err == nil || err.Error() != "no method is left to compare" {
		t.Errorf("error %v", err)
	}
}

// checkRefit checks that the fit of a temperature adds to the variance of the NLL, and not to that of the accuracy.
func checkRefit(t *testing.T, r *compare.Result, m *compare.Method) {
	t.Helper()
	for k, loss := range m.Losses {
		if fits := m.Fits[k]; (fits > 0) != (loss.Key != compare.ErrorLoss) {
			t.Errorf("%s: the fit adds %v to the variance of the %s", m.Name, fits, loss.Name)
		}
	}
}

// unfit is data of a class that no network knows.
type unfit struct{ dataset.Dataset }

func (d unfit) Labels() target.Target {
	return target.Target{Classes: slices.Repeat([]int{7}, d.Len())}
}

// Several runs are named in the heading and in the facts; temperatures without
// validation data are cross-fitted on two halves.
func TestRuns(t *testing.T) {
	t.Parallel()
	models := infertest.Checkpoints(t)[24:]
	c := &compare.Comparison{
		Inputs: baseline.Inputs{
			Runs:  []baseline.Run{{Network: infertest.Network(t, infertest.Fit(t, models[:3]...)), Checkpoints: models[:3]}, {Network: infertest.Network(t, infertest.Fit(t, models[3:]...)), Checkpoints: models[3:]}},
			Asked: []string{baseline.SWATemp, "deep-swa"}, BatchNorm: batchnorm.Training{Data: infertest.Digits(t, "train.npz"), Order: dataset.Order{Limit: 256}}, Members: 2, Seed: 1,
		},
		Test: dataset.Subset(infertest.Digits(t, "test.npz"), dataset.Order{Limit: 500}),
	}
	r, err := c.Run(t.Context(), infertest.Run(t))
	if err != nil {
		t.Fatal(err)
	}
	m := r.Methods[0]
	if m.Key != baseline.SWATemp || m.Differences != nil || !m.Scaling.CrossFitted() || len(m.Scaling.Values()) != 2 || !strings.Contains(m.Name, ", ") {
		t.Errorf("%s: differences %v, scaling %+v", m.Name, m.Differences, m.Scaling)
	}
	checkRefit(t, r, m)
	single := "single rows of " + c.Runs[0].Network.Posterior.Path
	if h := show.Result(r).Heading; !strings.HasSuffix(h, "; 2 posteriors, "+single) {
		t.Errorf("%q", h)
	}
	facts := show.Result(r).Page().Facts
	if f := facts[len(facts)-1]; f.Name != "posteriors" || f.Value != "2; "+single {
		t.Errorf("%+v", f)
	}
}

// The temperature is PyTorch's, and so is what it does to SWA: float32 arithmetic
// from each other, NLL within 1e-4, and at most one of 5,000 images may change sides.
func TestGolden(t *testing.T) {
	t.Parallel()
	var golden struct {
		Metrics map[string]struct{ Accuracy, NLL, Brier, ECE, Temperature float64 }
	}
	testfile.JSON(t, infertest.Path(infertest.MNIST, "golden.json"), &golden)
	c := &compare.Comparison{
		Inputs: baseline.Inputs{
			Runs: []baseline.Run{{Network: infertest.Network(t, infertest.Posterior(t))}}, BatchNorm: infertest.Training(t),
			Asked: []string{baseline.SWA, baseline.SWATemp},
		},
		Validation: infertest.Digits(t, "val.npz"), Test: infertest.Digits(t, "test.npz"),
	}
	r, err := c.Run(t.Context(), infertest.Run(t))
	if err != nil {
		t.Fatal(err)
	}
	for i, key := range []string{"swa", "swa_temp"} {
		m, want := r.Methods[i], golden.Metrics[key]
		for _, tc := range []struct {
			key       string
			want, tol float64
		}{
			{"accuracy", want.Accuracy, 1. / 5000},
			{"nll", want.NLL, 1e-4},
			{"ece", want.ECE, 2e-4},
			{"brier", want.Brier, 1e-4},
		} {
			if got := m.Value(tc.key); !(math.Abs(got-tc.want) <= tc.tol) {
				t.Errorf("%s: %s %v, want %v ± %v", m.Name, tc.key, got, tc.want, tc.tol)
			}
		}
		if key == "swa_temp" && !(math.Abs(m.Scaling.Values()[0]-want.Temperature) <= 1e-4*want.Temperature) {
			t.Errorf("temperature %v, want %v", m.Scaling.Values(), want.Temperature)
		}
	}
}

// smallImages are ten labelled images for small networks.
func smallImages(t *testing.T) dataset.Dataset {
	t.Helper()
	return infertest.Data(t, infertest.Path(infertest.Small, "images.npz"), dataset.Options{Shape: []int64{1, 4, 4}})
}

// For a single member, the place of the temperature makes no difference, also to the interval. The search for one of the
// two temperatures ends with a relative error of 1e-4.
func TestMemberTemp(t *testing.T) {
	t.Parallel()
	some := func(name string) dataset.Dataset {
		return dataset.Subset(infertest.Digits(t, name), dataset.Order{Limit: 300})
	}
	for _, validation := range []dataset.Dataset{some("val.npz"), nil} {
		c := &compare.Comparison{Inputs: baseline.Inputs{
			Runs:    []baseline.Run{{Network: infertest.Network(t, infertest.Posterior(t))}},
			Members: 1, Scale: 0.5, Asked: []string{baseline.SWA, baseline.SWAGTemp, "swag-member-temp"},
			BatchNorm: batchnorm.Training{Data: infertest.Digits(t, "train.npz"), Order: dataset.Order{Limit: 256}},
		}, Validation: validation, Test: some("test.npz")}
		r, err := c.Run(t.Context(), infertest.Run(t))
		if err != nil {
			t.Fatal(err)
		}
		after, before := r.Main(r.Methods[1]), r.Main(r.Methods[2])
		images := chance.NewDifference(floats.SubTo(make([]float64, 300), r.Methods[1].Losses[0].Values, r.Methods[0].Losses[0].Values), 0).Standard
		if math.Abs(after.Mean-before.Mean) > 1e-6 || math.Abs(after.Standard-before.Standard) > 1e-4*after.Standard || !(after.Standard > images) {
			t.Errorf("a temperature after the average gives %+v, and before it %+v; images alone %v", after, before, images)
		}
	}
}
