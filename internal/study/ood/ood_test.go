package ood

import (
	"bytes"
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gonum.org/v1/gonum/floats"

	"github.com/swagwrap/swagwrap/calibrate"
	"github.com/swagwrap/swagwrap/calibrate/chance"
	"github.com/swagwrap/swagwrap/calibrate/detect"
	"github.com/swagwrap/swagwrap/fixtures/infertest"
	"github.com/swagwrap/swagwrap/fixtures/screen"
	"github.com/swagwrap/swagwrap/internal/baseline"
	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/infer/batchnorm"
	"github.com/swagwrap/swagwrap/internal/preprocess"
	"github.com/swagwrap/swagwrap/internal/report"
	"github.com/swagwrap/swagwrap/internal/study"
	"github.com/swagwrap/swagwrap/internal/target"
	"github.com/swagwrap/swagwrap/internal/task"
)

// Each method is scored by its own averages; SWA-Temp keeps the order of
// confidences within an image but not among images.
func TestDetection(t *testing.T) {
	models := infertest.Checkpoints(t)
	few := dataset.Order{Limit: 400}
	in := dataset.Subset(infertest.Digits(t, "val.npz"), few)
	d := &Detection{
		Inputs: baseline.Inputs{
			Runs: []baseline.Run{
				{Network: infertest.Network(t, infertest.Fit(t, models[:15]...)), Checkpoints: models[14:15]},
				{Network: infertest.Network(t, infertest.Fit(t, models[15:]...)), Checkpoints: models[29:30]},
			},
			BatchNorm: batchnorm.Training{Data: infertest.Digits(t, "train.npz")}, Members: 3, Seed: 1, Scale: 0.5,
		},
		In: in, Out: dataset.Subset(infertest.Data(t, infertest.Path(infertest.MNIST, "val.npz"), dataset.Options{Preprocess: preprocess.Settings{Mean: []float64{0.6}, Std: []float64{0.46}}}), few), Validation: in,
	}
	e := infertest.Run(t)
	r, err := d.Run(t.Context(), e)
	if err != nil {
		t.Fatal(err)
	}
	var keys []string
	for i, x := range r.Methods {
		keys = append(keys, x.Key)
		if i > 0 && (x.Scores[0].AUROC > r.Methods[i-1].Scores[0].AUROC || math.Abs(x.Difference.Mean-(x.Scores[0].AUROC-r.Methods[0].Scores[0].AUROC)) > 1e-12) {
			t.Errorf("%s: AUROC %v after %v, difference %v", x.Name, x.Scores[0].AUROC, r.Methods[i-1].Scores[0].AUROC, x.Difference)
		}
		if mutual := x.Scores[1]; x.Baseline != (i == 0) || (mutual == nil) != (x.Members == 1) {
			t.Errorf("%s: baseline %v, %d members, mutual information %v", x.Name, x.Baseline, x.Members, mutual)
		}
		for _, h := range []detect.Histogram{x.In, x.Out} {
			n := h.Below + h.Above
			for _, c := range h.Counts {
				n += c
			}
			if n != in.Len() {
				t.Errorf("%s: a histogram of %d images, want %d", x.Name, n, in.Len())
			}
		}
	}
	slices.Sort(keys)
	if got, want := strings.Join(keys, " "), "deep-sgd deep-swa multiswag sgd sgd-ensemble sgd-temp swa swa-laplace swa-temp swag swag-diag swag-temp"; got != want {
		t.Errorf("methods %s, want %s", got, want)
	}
	if next := r.next; len(next) != 2 {
		t.Errorf("%+v", next)
	} else if made, ok := next[0].(study.Sample); !ok || made.Training == "" && made.Folders == nil {
		t.Errorf("%+v", made)
	} else if to, ok := next[1].(study.Score); !ok || to.Ensemble != made.Output {
		t.Errorf("%+v", to)
	}
	// The same numbers from the sums alone.
	asked := d.Inputs
	asked.Asked = []string{baseline.SWAG}
	_, err = baseline.Predict(t.Context(), e, &asked, d.targets(), func(p *baseline.Predicted) error {
		want := Detect(p.Data[0].Task, p.Data[0].Mean(), p.Data[1].Mean(), [2][]float64{}).Methods[0]
		for _, x := range r.Methods {
			if x.Key == baseline.SWAG && (*x.Scores[0] != *want.Scores[0] || x.Distance != want.Distance || *x.Scores[2] != *want.Scores[2]) {
				t.Errorf("%+v, want %+v", x, want)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	checkLogits(t, e, d, r)
	if len(r.Notes) != 0 { // nobody asked for dropout
		t.Errorf("notes %q", r.Notes)
	}
	checkShown(t, r)
}

// The evidence of SWA follows from its logits, which a tap reads. Its features are compared with those of training images,
// whatever the number of methods, and only networks without a temperature have scores of logits.
func checkLogits(t *testing.T, e infer.Run, d *Detection, r *Result) {
	t.Helper()
	of := func(key, measure string) *detect.Detection {
		x := r.Methods[slices.IndexFunc(r.Methods, func(x Detected) bool { return x.Key == key })]
		return x.Scores[slices.IndexFunc(r.measures, func(u task.Uncertainty) bool { return u.Key == measure })]
	}
	for key, has := range map[string][2]bool{baseline.SWA: {true, true}, baseline.SWAG: {true, false}, baseline.MultiSWAG: {true, false}, baseline.SWATemp: {}, baseline.Laplace: {}} {
		if got := [2]bool{of(key, "energy") != nil && of(key, "max_logit") != nil, of(key, "mahalanobis") != nil && of(key, "nearest_neighbours") != nil}; got != has {
			t.Errorf("%s: scores of logits and of features %v, want %v", key, got, has)
		}
	}
	asked := d.Inputs
	asked.Asked = []string{baseline.SWA}
	_, err := baseline.Predict(t.Context(), e, &asked, d.targets(), func(p *baseline.Predicted) error {
		rows := dataset.Order{}.Indices(d.In.Len())
		var sides [2][]float64
		for k, data := range []dataset.Dataset{d.In, d.Out} {
			logits, err := p.Features(t.Context(), d.Runs[0].Network.Output(), data, rows)
			if err != nil {
				return err
			}
			for i := range rows {
				z, evidence := logits.RawRowView(i), p.Data[k].MeanEvidence()[2*i:]
				if total, largest := floats.LogSumExp(z), floats.Max(z); math.Abs(total-evidence[0]) > 1e-5 || math.Abs(largest-evidence[1]) > 1e-5 { // logits are float32
					t.Fatalf("example %d: evidence %v, want %v and %v", i, evidence[:2], total, largest)
				}
				sides[k] = append(sides[k], -floats.LogSumExp(z))
			}
		}
		if got, want := of(baseline.SWA, "energy").AUROC, detect.AUROC(sides[0], sides[1]); math.Abs(got-want) > 1e-4 {
			t.Errorf("AUROC by energy %v, want %v", got, want)
		}
		if _, err := p.Features(t.Context(), "nothing", d.In, rows); err == nil || !strings.Contains(err.Error(), "the input of its last linear layer is ") {
			t.Errorf("error %v", err)
		}
		known, err := p.Features(t.Context(), "", d.BatchNorm.Data, dataset.Order{}.Indices(d.BatchNorm.Data.Len()))
		if err != nil {
			return err
		}
		m, err := detect.FitMahalanobis(known, d.BatchNorm.Data.Labels().Classes)
		if err != nil {
			return err
		}
		for k, data := range []dataset.Dataset{d.In, d.Out} {
			x, err := p.Features(t.Context(), "", data, rows)
			if err != nil {
				return err
			}
			sides[k] = m.Distances(x)
		}
		if got, want := of(baseline.SWA, "mahalanobis").AUROC, detect.AUROC(sides[0], sides[1]); math.Abs(got-want) > 1e-3 {
			t.Errorf("AUROC by Mahalanobis distance %v, want %v", got, want)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Saved logits have energies, and saved probabilities have none.
func TestOfLogits(t *testing.T) {
	three, err := task.New("classes", task.OutputSpec{Count: 3})
	if err != nil {
		t.Fatal(err)
	}
	in, out := []float64{5, 1, 0, 6, 0, 0}, []float64{1, -3, -4, 2, 0, -1}
	p, q := calibrate.Softmax(nil, in, 3, 1), calibrate.Softmax(nil, out, 3, 1)
	r := Detect(three, p, q, [2][]float64{in, out})
	if last := r.measures[len(r.measures)-1]; last.Key != "gen" || r.Methods[0].Scores[len(r.measures)-3].AUROC != 1 {
		t.Errorf("measures %+v", r.measures)
	}
	if r := Detect(three, p, q, [2][]float64{in, nil}); len(r.measures) != len(three.Uncertainties()) || len(r.Methods[0].Scores) != len(r.measures) {
		t.Errorf("measures %+v of probabilities", r.measures)
	}
}

// TestSupported: the words go as far as the interval of the best method, and the commands make the best method that can be an
// ensemble.
func TestSupported(t *testing.T) {
	method := func(name string, auroc, low, high float64) Detected {
		return Detected{Name: name, Scores: []*detect.Detection{{AUROC: auroc, Low: low, High: high}}, Difference: chance.Interval{Mean: -0.1, Low: -0.2, High: -0.05}}
	}
	steps := []study.Step{study.Sample{}}
	for _, c := range []struct {
		methods []Detected
		next    []study.Step
		made    int
		want    string
	}{
		{[]Detected{method("SWA", 0.53, 0.497, 0.563), method("SWAG", 0.52, 0.48, 0.55)}, nil, 0,
			"No method clearly finds the OUT images by entropy: the interval of the best, SWA, includes guessing. AUROC 0.5300 [0.4970, 0.5630]."},
		{[]Detected{method("SWA", 0.48, 0.45, 0.49), method("SWAG", 0.4, 0.3, 0.5)}, nil, 0, "No method finds the OUT images by entropy. The best is SWA: AUROC 0.4800 [0.4500, 0.4900]."},
		{[]Detected{method("SWAG", 0.9, 0.88, 0.92), method("SWA", 0.8, 0.77, 0.82)}, steps, 0, "SWAG finds the OUT images best, by entropy: AUROC 0.9000 [0.8800, 0.9200]."},
		{[]Detected{method("Laplace", 0.9, 0.88, 0.92), method("SWA", 0.8, 0.77, 0.82)}, steps, 1, "Laplace finds the OUT images best, by entropy: AUROC 0.9000 [0.8800, 0.9200]. It cannot be saved: the commands make SWA (0.8000)."},
	} {
		r := &Result{Methods: c.methods, Unit: "image", measures: []task.Uncertainty{{Key: "entropy", Name: "entropy"}}, next: c.next, made: c.made}
		if got := (shown{r}).verdict(); !slices.Contains(got, c.want) || (c.made == 0) != !strings.Contains(strings.Join(got, " "), "cannot be saved") {
			t.Errorf("%q, want %q", got, c.want)
		}
		if finds := c.methods[0].finds(); finds != (c.next != nil) {
			t.Errorf("%+v: finds %v", c.methods[0].Scores[0], finds)
		}
	}
}

// Text, page and JSON show the same figures.
func checkShown(t *testing.T, r *Result) {
	t.Helper()
	r.Settings = append(r.Settings, study.Fact("in the domain", "some digits"), study.Fact("random numbers", "seed %d", 1))
	r.BatchNorm = study.BatchNorm{Records: []*batchnorm.Record{nil}}
	var text bytes.Buffer
	if err := study.WriteText(&text, report.Screen{Verbose: true}, nil, r.Show()); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"some digits, seed 1\n\n", "AUROC [95 %]", "minus the best [95 %]", "\nSWA-Temp (T = 1.", "\nby other measures   ", "mutual information: AUROC", "detection looks for OUT, 50 % of the images",
		r.Methods[0].Name + " finds the OUT images best, by entropy: AUROC 0."} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("no %q in\n%s", want, &text)
		}
	}
	screen.Fits(t, r.Show())
	page := r.Show().Page()
	if page.Lead == nil || page.Entropies[3].Minor || !page.Entropies[4].Minor {
		t.Errorf("figure %v, histograms %+v", page.Lead, page.Entropies)
	}
	if len(page.Entropies) != len(r.Methods) || len(page.Tables) != 7 || len(page.Facts) != 2 || !slices.Equal(page.Verdict, r.Show().Verdict) {
		t.Errorf("page %+v", page)
	}
	js, err := json.Marshal(r.Show().JSON)
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		In      int `json:"examples_in"`
		Methods []struct {
			Key, Method string
			Members     int
			Entropy     *detect.Detection
			Mutual      *detect.Detection                   `json:"mutual_information"`
			Difference  *struct{ Value, Low, High float64 } `json:"auroc_minus_best"`
			Out         struct{ Counts []int }
			Baseline    bool
		}
		BN      []any `json:"batch_norm"`
		Verdict []string
	}
	if err := json.Unmarshal(js, &got); err != nil {
		t.Fatal(err)
	}
	if got.In != r.Sizes[0] || len(got.Methods) != len(r.Methods) || len(got.BN) != 1 || !slices.Equal(got.Verdict, r.Show().Verdict) {
		t.Errorf("%s", js)
	}
	for i, x := range r.Methods {
		m := got.Methods[i]
		if m.Key != x.Key || m.Method != x.Name || *m.Entropy != *x.Scores[0] || (m.Mutual == nil) != (x.Scores[1] == nil) || m.Baseline != x.Baseline || !slices.Equal(m.Out.Counts, x.Out.Counts) {
			t.Errorf("%+v, want %+v", m, x)
		}
		if (m.Difference == nil) != x.Baseline || m.Difference != nil && m.Difference.Low != x.Difference.Low {
			t.Errorf("%s: difference %+v, want %+v", x.Name, m.Difference, x.Difference)
		}
	}
}

// Saved predictions are one row without a key, and what lies outside the bins is
// told.
func TestOf(t *testing.T) {
	two, err := task.New("", task.OutputSpec{Output: "logits", Count: 2})
	if err != nil {
		t.Fatal(err)
	}
	r := Detect(two, []float64{1, 0, 0.9, 0.1}, []float64{0.5, 0.5, 0.5, 0.5}, [2][]float64{})
	var text bytes.Buffer
	if err := study.WriteText(&text, report.Screen{Verbose: true}, nil, r.Show()); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"\npredictions   ", "\npredictions: outside the bins, and so of sym. KL: 1 below 1e-08 in\n", "A random OUT example is less certain than a random IN example in 100.0 % of pairs: AUROC 1.0000 ["} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("no %q in\n%s", want, &text)
		}
	}
	js, err := json.Marshal(r.Show().JSON)
	if err != nil || !strings.HasPrefix(string(js), `{"examples_in":2,"examples_out":2,"smoothing":1e-7,"methods":[{"method":"predictions","stale_bn":false,`) || strings.Contains(string(js), `"key"`) || strings.Contains(string(js), `"batch_norm"`) {
		t.Errorf("%s, %v", js, err)
	}
	above := Detected{Out: detect.Histogram{Edges: []float64{0, 4}, Above: 2000}}
	if got := above.outside(); got != "2,000 above 4.00 out" {
		t.Errorf("%q", got)
	}
}

// A regression goes by standard deviations, in bins that hold all of them; noise that is not
// known changes no order, and a single network has none.
func TestOfRegression(t *testing.T) {
	numbers, err := task.New("regression", task.OutputSpec{Output: "means", Count: 1, Regression: &task.RegressionSpec{}})
	if err != nil {
		t.Fatal(err)
	}
	// mean, mean square and variance: standard deviations 1 and 2, and 2 and 4
	r := Detect(numbers, []float64{3, 10, 0, 3, 13, 0}, []float64{0, 4, 0, 0, 16, 0}, [2][]float64{})
	x := r.Methods[0]
	if x.Scores[0].AUROC != 0.875 || x.InMean != 1.5 || x.OutMean != 3 || x.In.Below+x.In.Above+x.Out.Below+x.Out.Above != 0 || x.In.Edges[0] != 1 || x.In.Edges[29] != 4 {
		t.Errorf("%+v, AUROC %v", x, x.Scores[0].AUROC)
	}
	var text bytes.Buffer
	if err := study.WriteText(&text, report.Screen{Verbose: true}, nil, r.Show()); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"by standard deviation", "standard deviations in 29 bins", lackingNote} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("no %q in\n%s", want, &text)
		}
	}
	js, err := json.Marshal(r.Show().JSON)
	if err != nil || !strings.Contains(string(js), `"mean_std_in":1.5,"mean_std_out":3,`) {
		t.Errorf("%s, %v", js, err)
	}
	page := r.Show().Page()
	if page.Tables[0].Title != "By standard deviation" || page.Entropies[0].Label != "standard deviation, in the network's units" {
		t.Errorf("page %+v", page)
	}
	// A single network, without noise: nothing is distinguished.
	none := Detect(numbers, []float64{3, 9, 0, 0.1, 0.1 * 0.1, 0}, []float64{7, 49, 0, -2, 4, 0}, [2][]float64{}).Methods[0]
	if none.Scores[0].AUROC != 0.5 || none.In.Below != 2 || none.Out.Below != 2 {
		t.Errorf("%+v, AUROC %v", none, none.Scores[0].AUROC)
	}
}

// Without validation data there is no temperature, and nothing may be left; where
// none can be fitted, the data is named.
func TestDetectionValidation(t *testing.T) {
	t.Parallel()
	d := &Detection{
		Inputs: baseline.Inputs{
			Runs:      []baseline.Run{{Network: infertest.Network(t, infertest.Fit(t, infertest.Two(t, "ckpt")...))}},
			BatchNorm: batchnorm.Training{Data: smallImages(t)}, Members: 1, Seed: 1, Asked: []string{baseline.SWATemp, baseline.SWA},
		},
		In: smallImages(t), Out: smallImages(t),
	}
	r, err := d.Run(t.Context(), infer.Run{Engine: infer.NewEngine(infertest.Runtime(t), infer.EngineOptions{Threads: 1})})
	if err != nil || len(r.Methods) != 1 || r.Methods[0].Key != baseline.SWA || d.Images() < 20 {
		t.Errorf("%+v, %v", r, err)
	}
	d.Validation = unfit{d.In}
	if _, err := d.Run(t.Context(), infer.Run{Engine: infer.NewEngine(infertest.Runtime(t), infer.EngineOptions{Threads: 1})}); err == nil || !strings.Contains(err.Error(), "validation data: ") {
		t.Errorf("error %v", err)
	}
	d.Validation, d.Asked = nil, []string{baseline.SWATemp}
	if _, err := d.Run(t.Context(), infer.Run{Engine: infer.NewEngine(infertest.Runtime(t), infer.EngineOptions{Threads: 1})}); err == nil || err.Error() != "no method is left to compare" {
		t.Errorf("error %v", err)
	}
}

// unfit is data of a class that no network knows.
type unfit struct{ dataset.Dataset }

func (d unfit) Labels() target.Target {
	return target.Target{Classes: slices.Repeat([]int{7}, d.Len())}
}

func TestVerdict(t *testing.T) {
	two, err := task.New("", task.OutputSpec{Output: "logits", Count: 2})
	if err != nil {
		t.Fatal(err)
	}
	found := func(name string, low, high float64) Detected {
		mean := (low + high) / 2
		return Detected{Name: name, Scores: []*detect.Detection{{AUROC: 0.9 + mean, Low: 0.85 + mean, High: 0.95 + mean}}, Difference: chance.Interval{Mean: mean, Low: low, High: high}}
	}
	chosen := "The best is chosen on these images, so on new ones expect a smaller lead."
	for _, tc := range []struct {
		found []Detected
		want  []string
	}{
		{[]Detected{found("SWAG", 0, 0), found("SWA", -0.03, 0.01), found("SGD", -0.03, -0.01)}, []string{
			"SWAG finds the OUT images best, by entropy: AUROC 0.9000 [0.8500, 0.9500].",
			"These images do not distinguish it from SWA.",
			"The other method is worse, by its 95 % interval.", chosen,
		}},
		{[]Detected{found("SWA", 0, 0), found("SWAG", -0.02, -0.01), found("SGD", -0.03, -0.01)}, []string{
			"SWA finds the OUT images best, by entropy: AUROC 0.9000 [0.8500, 0.9500].",
			"The other 2 methods are worse, by a 95 % interval for each.", chosen,
		}},
		{[]Detected{found("SWA", 0, 0)}, []string{"A random OUT image is less certain than a random IN image in 90.0 % of pairs: AUROC 0.9000 [0.8500, 0.9500]."}},
	} {
		if diff := cmp.Diff(tc.want, shown{&Result{Methods: tc.found, Unit: "image", task: two, measures: two.Uncertainties()}}.verdict()); diff != "" {
			t.Error(diff)
		}
	}
}

// An AUROC below 0.5 is no way to find what is out of the domain, by any measure, of one method as of many.
func TestVerdictReversed(t *testing.T) {
	two, err := task.New("", task.OutputSpec{Output: "logits", Count: 2})
	if err != nil {
		t.Fatal(err)
	}
	swa := Detected{Name: "SWA", Scores: []*detect.Detection{{AUROC: 0.3, Low: 0.2, High: 0.4}, nil, {AUROC: 0.7, Low: 0.6, High: 0.8}}, Difference: chance.Interval{Mean: -0.15, Low: -0.2, High: -0.1}}
	swag := Detected{Name: "SWAG", Scores: []*detect.Detection{{AUROC: 0.45, Low: 0.35, High: 0.55}, {AUROC: 0.25, Low: 0.2, High: 0.3}, {AUROC: 0.5, Low: 0.4, High: 0.6}}}
	entropy, question := "Reversed: by entropy the images of OUT are the more certain ones with SWA (AUROC 0.3000 [0.2000, 0.4000]).", "Are IN and OUT the right way round? If so, this uncertainty does not find OUT."
	all := "SWA by largest probability has the highest AUROC of all: 0.7000 [0.6000, 0.8000]."
	for _, tc := range []struct {
		found []Detected
		want  []string
	}{
		{[]Detected{swa}, []string{"A random OUT image is less certain than a random IN image in 30.0 % of pairs: AUROC 0.3000 [0.2000, 0.4000].", all, entropy, question}},
		{[]Detected{swag, swa}, []string{
			"No method finds the OUT images by entropy. The best is SWAG: AUROC 0.4500 [0.3500, 0.5500].",
			"The other method is worse, by its 95 % interval.",
			all, entropy,
			"Reversed: by mutual information the images of OUT are the more certain ones with SWAG (AUROC 0.2500 [0.2000, 0.3000]).", question,
			"The best is chosen on these images, so on new ones expect a smaller lead.",
		}},
	} {
		if diff := cmp.Diff(tc.want, shown{&Result{Methods: tc.found, Unit: "image", task: two, measures: two.Uncertainties()}}.verdict()); diff != "" {
			t.Error(diff)
		}
	}
}

// smallImages are ten labelled images for small networks.
func smallImages(t *testing.T) dataset.Dataset {
	t.Helper()
	return infertest.Data(t, infertest.Path(infertest.Small, "images.npz"), dataset.Options{Shape: []int64{1, 4, 4}})
}
