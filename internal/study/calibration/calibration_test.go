package calibration

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/swagwrap/swagwrap/calibrate"
	"github.com/swagwrap/swagwrap/internal/moments"
	"github.com/swagwrap/swagwrap/internal/predictions"
	"github.com/swagwrap/swagwrap/internal/task"
)

// golden is testdata/repair.json, which testdata/repair.py writes.
type golden struct {
	Factor    float64
	Factors   []float64
	ByMembers []float64 `json:"by_members"`
	ByMoments []float64 `json:"by_moments"`
	Test      map[string]float64
	Labels    struct {
		Temperature, NLL float64
		Temperatures     []float64
		Platt            [][2]float64
		NLLTemperature   float64 `json:"nll_temperature"`
	}
}

func readGolden(t *testing.T) (g golden) {
	t.Helper()
	b, err := os.ReadFile("testdata/repair.json")
	if err == nil {
		err = json.Unmarshal(b, &g)
	}
	if err != nil || len(g.Test) != 10 || len(g.Labels.Platt) != 3 {
		t.Fatal(err, g)
	}
	return g
}

// Tolerances of testdata/repair.py.
const (
	exact = 1e-9
	found = 1e-7 // by a minimiser of SciPy's
)

func near(t *testing.T, what string, got, want []float64, tolerance float64) {
	t.Helper()
	if !slices.EqualFunc(got, want, func(a, b float64) bool { return math.Abs(a-b) <= tolerance*(1+math.Abs(b)) }) {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

func read(t *testing.T, name, of string) *Predictions {
	t.Helper()
	p, err := Read(filepath.Join("testdata", name), of, predictions.ReadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func fitted(t *testing.T, s Study) *Result {
	t.Helper()
	if err := cmp.Or(s.CheckMethod(), s.Check()); err != nil {
		t.Fatal(err)
	}
	k, err := s.Run("test 1.0")
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// value is the number of a line of the table.
func (k *Result) value(t *testing.T, name, key string) float64 {
	t.Helper()
	i := slices.IndexFunc(k.rows, func(r row) bool { return r.name == name })
	if i < 0 {
		t.Fatalf("no row %q", name)
	}
	v, ok := k.rows[i].values[key]
	if !ok {
		t.Fatalf("no %s of %q", key, name)
	}
	return v
}

// All formats give the same factors, which are those of NumPy.
func TestRegression(t *testing.T) {
	t.Parallel()
	g, test := readGolden(t), read(t, "test.npz", "regression")
	for _, name := range []string{"fit.npz", "fit.csv", "fit.jsonl", "flat.parquet", "lists.parquet"} {
		p := read(t, name, "regression")
		if p.Members != 3 || p.Len() != 45 || p.Known.Width != 2 || (p.LeftOut == 1) != (name == "fit.jsonl") {
			t.Fatalf("%s: %d rows of %d targets, %d members, %d left out", name, p.Len(), p.Known.Width, p.Members, p.LeftOut)
		}
		one := fitted(t, Study{Method: task.ByVariance, Folds: 3, Seed: 1, Fit: p, Test: test})
		near(t, name+": factor", one.Fitted.Factors, []float64{g.Factor}, exact)
		each := fitted(t, Study{Method: task.ByVariances, Folds: 3, Seed: 1, Fit: p, Test: test})
		near(t, name+": factors", each.Fitted.Factors, g.Factors, exact)
		for _, k := range []*Result{one, each} {
			near(t, name+": test as saved", []float64{k.value(t, "test, as saved", "nll"), k.value(t, "test, as saved", "nll_mixture")}, []float64{g.Test["nll"], g.Test["mixture"]}, exact)
			near(t, name+": test calibrated", []float64{k.value(t, "test, calibrated", "nll"), k.value(t, "test, calibrated", "nll_mixture")},
				[]float64{g.Test["nll_"+string(k.study.Method)], g.Test["mixture_"+string(k.study.Method)]}, exact)
		}
	}
}

// What the calibrated predictions look like is what score shows of the calibrated ensemble: all deviations have the factor.
func TestValidationOfNumbers(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString("target,mean,std,aleatoric_std,epistemic_std\n")
	for i := range 200 {
		a, e := 0.5+float64(i)/400, 0.1+float64(i*37%200)/400
		fmt.Fprintf(&b, "%v,0,%v,%v,%v\n", 5*math.Sin(float64(i)), math.Hypot(a, e), a, e)
	}
	path := filepath.Join(t.TempDir(), "rows.csv")
	if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	p, err := Read(path, "regression", predictions.ReadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	k := fitted(t, Study{Method: task.ByVariance, Folds: 3, Seed: 1, Fit: p})
	plain := *k
	plain.Fitted = nil
	factor := math.Sqrt(k.Fitted.Factors[0])
	if math.Abs(factor-1) < 0.1 {
		t.Fatalf("factor %v", factor)
	}
	edges := func(k *Result, name string) []float64 {
		numbers := k.Validation(0).Numbers
		return numbers[slices.IndexFunc(numbers, func(n moments.Numbers) bool { return n.Name == name })].Edges
	}
	for _, name := range []string{"std", "epistemic_std"} {
		want := slices.Clone(edges(&plain, name))
		for n := range want {
			want[n] *= factor
		}
		near(t, name, edges(k, name), want, exact)
	}
}

// Noise is what SciPy finds likeliest: of the members where they are kept, else of moments.
func TestNoise(t *testing.T) {
	t.Parallel()
	g, p := readGolden(t), read(t, "open.npz", "regression")
	if got := p.Methods(); !slices.Equal(got, []task.Method{task.ByNoise}) {
		t.Fatalf("methods %q", got)
	}
	k := fitted(t, Study{Method: task.ByNoise, Folds: 3, Seed: 1, Fit: p, Test: read(t, "open.npz", "regression")})
	near(t, "by members", k.Fitted.NoiseStd, g.ByMembers, found)
	if rmse := k.value(t, "test, as saved", "rmse"); rmse != k.value(t, "test, calibrated", "rmse") || !math.IsNaN(k.value(t, "test, as saved", "nll")) {
		t.Errorf("as saved: RMSE %v", rmse)
	}
	if !strings.Contains(k.Describe(), "NLL (of the mixture) of targets that the fit has not seen is ") {
		t.Error(k.Describe())
	}
	p.Members, p.Means = 0, nil
	k = fitted(t, Study{Method: task.ByNoise, Folds: 3, Seed: 1, Fit: p})
	near(t, "by moments", k.Fitted.NoiseStd, g.ByMoments, found)
	// Any other noise is less likely by the same moments.
	for _, factor := range []float64{0.98, 1.02} {
		if e, err := task.Evaluate(p.Task, p.Task.Apply(nil, k.Fitted.With(factor), p.Outcomes), p.Known, task.EvaluateOptions{}); err != nil || e.Value("nll") <= k.after {
			t.Errorf("noise of %v times the variance: NLL %v, fitted %v, %v", factor, e.Value("nll"), k.after, err)
		}
	}
}

// The map, its intervals and their calibration error are those of NumPy and
// uncertainty-toolbox.
func TestIsotonic(t *testing.T) {
	t.Parallel()
	g, fit, test := readGolden(t), read(t, "fit.npz", "regression"), read(t, "test.npz", "regression")
	fit.Members, test.Members = 0, 0 // of the Gaussians
	k := fitted(t, Study{Method: task.ByIsotonic, Folds: 3, Seed: 1, Fit: fit, Test: test})
	near(t, "test", []float64{k.value(t, "test, as saved", "mace"), k.value(t, "test, calibrated", "mace"), k.value(t, "test, calibrated", "coverage"), k.value(t, "test, calibrated", "width")},
		[]float64{g.Test["mace"], g.Test["mace_isotonic"], g.Test["coverage_isotonic"], g.Test["width_isotonic"]}, exact)
	if k.Transferred() == "" || len(k.Fitted.Maps) != 2 || k.Fitted.Maps[0].Levels[len(k.Fitted.Maps[0].Levels)-1] != 1 {
		t.Errorf("%q, maps %v", k.Transferred(), k.Fitted.Maps)
	}
	// With members that are kept it is their mixture's distribution function.
	mixed := fitted(t, Study{Method: task.ByIsotonic, Folds: 3, Seed: 1, Fit: read(t, "fit.npz", "regression")})
	if slices.Equal(mixed.Fitted.Maps[0].Knots, k.Fitted.Maps[0].Knots) {
		t.Error("the map of mixtures is that of Gaussians")
	}
}

func TestLabels(t *testing.T) {
	t.Parallel()
	g := readGolden(t).Labels
	for _, name := range []string{"labels.npz", "labels.csv", "logits.npz"} {
		p := read(t, name, "labels")
		k := fitted(t, Study{Method: "temperature", Folds: 4, Seed: 1, Fit: p, Test: p})
		near(t, name+": T", []float64{k.Fitted.Temperature}, []float64{g.Temperature}, found)
		// Losses are means over known labels, as in all tables.
		near(t, name+": NLL", []float64{k.before, k.after}, []float64{g.NLL, g.NLLTemperature}, exact)
		each := fitted(t, Study{Method: "temperatures", Folds: 4, Seed: 1, Fit: p})
		near(t, name+": T each", inverse(each.Fitted.Scale), g.Temperatures, found)
		platt := fitted(t, Study{Method: "platt", Folds: 4, Seed: 1, Fit: p})
		for label, want := range g.Platt {
			near(t, name+": a, b", []float64{platt.Fitted.Scale[label], platt.Fitted.Bias[label]}, want[:], 1e-6) // BFGS's differences
		}
	}
}

// A row that is cross-fitted is scored by what was fitted to the other folds.
func TestCrossFits(t *testing.T) {
	t.Parallel()
	p := read(t, "fit.npz", "regression")
	k := fitted(t, Study{Method: task.ByVariance, Folds: 3, Seed: 5, Fit: p})
	folds, want := calibrate.Folds(p.Len(), 3, 5), 0.0
	for f, rows := range folds {
		others := slices.Concat(folds[(f+1)%3], folds[(f+2)%3])
		square := 0.0
		for _, i := range others {
			for target := range 2 {
				m := p.Moments(p.Outcomes, i, target)
				e := p.Known.Values[2*i+target] - m.Mean
				square += e * e / m.Variance() / float64(2*len(others))
			}
		}
		for _, i := range rows {
			for target := range 2 {
				m := p.Moments(p.Outcomes, i, target)
				e, v := p.Known.Values[2*i+target]-m.Mean, square*m.Variance()
				want += (math.Log(2*math.Pi*v) + e*e/v) / 2 / float64(2*p.Len())
			}
		}
	}
	near(t, "cross-fitted NLL", []float64{k.crossed}, []float64{want}, exact)
	if k.crossed < k.after || k.value(t, "fitted on, cross-fitted", "nll") != k.crossed {
		t.Errorf("cross-fitted %v, fitted %v", k.crossed, k.after)
	}
}

// JSON and applied files hold what was fitted.
func TestOutputs(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		file, of string
		method   task.Method
		want     []string // of JSON
		header   string
	}{
		{"fit.npz", "regression", task.ByVariance, []string{`"task":"regression"`, `"size":"2 targets"`, `"factors":[`, `"nll_cross_fitted":`, `"nll_mixture":`}, "row,target_0,target_1,mean_0,mean_1,std_0,std_1"},
		{"fit.npz", "regression", task.ByIsotonic, []string{`"maps":[{"knots":[`, `"mace_before":`}, "row,target_0,target_1,mean_0,mean_1,low_0,low_1,high_0,high_1"},
		{"open.npz", "regression", task.ByNoise, []string{`"noise_std":[`, `"fitted_by":"members"`, `"nll_mixture_before":null`}, "row,target_0,target_1,mean_0,mean_1,std_0,std_1"},
		{"labels.npz", "labels", "temperature", []string{`"size":"3 labels"`, `"temperature":3.69`, `"ece_macro":`}, "row,label_0,label_1,label_2,probability_0,probability_1,probability_2"},
		{"labels.npz", "labels", "platt", []string{`"scale":[0.197`, `"bias":[-0.162`}, "row,label_0"},
	} {
		p := read(t, tt.file, tt.of)
		k := fitted(t, Study{Method: tt.method, Folds: 2, Seed: 1, Fit: p})
		js, err := json.Marshal(k.Show().JSON)
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range append(tt.want, `"kind":"swagwrap.calibration","format_version":1,"producer":"test 1.0"`, `"folds":2`) {
			if !strings.Contains(string(js), want) {
				t.Errorf("%s, %s: no %s in %.600s", tt.file, tt.method, want, js)
			}
		}
		var b bytes.Buffer
		if err := k.WriteApplied(&b, false); err != nil {
			t.Fatal(err)
		}
		if lines := strings.Split(b.String(), "\n"); !strings.HasPrefix(lines[0], tt.header) || len(lines) != p.Len()+2 {
			t.Errorf("%s, %s: %d lines, %q", tt.file, tt.method, len(lines), lines[0])
		}
		if tt.method == task.ByIsotonic {
			continue
		}
		// What was applied is predictions again: of a regression without parts.
		b.Reset()
		if err := k.WriteApplied(&b, true); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(t.TempDir(), "applied.npz")
		if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		again, err := Read(path, tt.of, predictions.ReadOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if method := again.Methods()[0]; tt.method == method {
			near(t, "what is left", fitted(t, Study{Method: method, Folds: 2, Seed: 1, Fit: again}).number(), []float64{1}, 1e-6)
		}
	}
}

func TestRefuses(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for _, tt := range []struct{ of, text, want string }{
		{"regression", "target,mean,std\n1,2,NaN\n", "row 0: standard deviation of target 0 is NaN, want a number above 0"},
		{"regression", "target,mean,std\n1,2,0\n", "row 0: standard deviation of target 0 is 0, want a number above 0"},
		{"regression", "target,mean,std\n1,2,-1\n", "row 0: standard deviation of target 0 is -1, want a number above 0"},
		{"regression", "target,mean,std\n,2,1\n", "no labels"},
		{"regression", "target,mean,var\n1,2,4\n1,2,-1\n", "row 1: var is -1, want 0 or more"},
		{"regression", "target,mean,var,std\n1,2,4,2\n1,2,4,1\n", "row 1: var and std do not say the same"},
		{"regression", "target,mean,std\n1,Inf,1\n", "mean of target 0 is +Inf"},
		{"regression", "mean,std\n1,2\n", "no labels"},
		{"regression", "target,std\n1,2\n", "no means"},
		{"regression", "target,mean_0,mean_1\n1,2,3\n", "1 numbers of target, and means of 2 targets"},
		{"regression", "target_0,target_2,mean_0,mean_1\n1,2,3,4\n", "2 columns target_…, want 3: one for each index"},
		{"regression", "target,mean,std\n1,many,1\n", `line 2, column "mean": "many", want a number`},
		{"regression", "target,mean,std,member_0_mean,member_1_mean,member_0_std,member_1_std\n1,2,1,2,,1,1\n", "member_mean: a number that is missing"},
		{"regression", "target,mean,std\n,,\n", "no row has predictions"},
		{"labels", "label_0,probability_0\n1,1.5\n", "row 0: label 0: probability 1.5, want 0 to 1"},
		{"labels", "label_0,probability_0\n2,0.5\n", "row 0: label 0 is 2, want 0, 1, or -1"},
		{"labels", "label_0,probability_0,probability_1\n1,0.5,0.5\n", "1 labels are known, and probabilities are of 2"},
		{"labels", "probability_0\n0.5\n", "no labels"},
		{"labels", "label_0\n1\n", "no probabilities or logits of labels"},
		{"labels", "", "x.csv: empty"},
	} {
		if _, err := Read(file("x.csv", tt.text), tt.of, predictions.ReadOptions{}); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%q: %v, want %s", tt.text, err, tt.want)
		}
	}
	fit, open, weighted := read(t, "fit.npz", "regression"), read(t, "open.npz", "regression"), read(t, "fit.npz", "regression")
	for i := range weighted.Means {
		weighted.Means[i] += float64(i % 3)
	}
	labels := read(t, "labels.npz", "labels")
	for _, tt := range []struct {
		r    Study
		want string
	}{
		{Study{Method: task.ByNoise, Fit: fit}, "with standard deviations; want variance or variances or isotonic"},
		{Study{Method: task.ByVariance, Fit: open}, "without standard deviations; want noise"},
		{Study{Method: "vector", Fit: labels}, "want temperature or temperatures or platt"},
		{Study{Method: task.ByVariance, Fit: fit, Test: open}, "standard deviations in one of the files only"},
		{Study{Method: task.ByVariance, Fit: weighted}, "they have weights, which Ensemble knows"},
		{Study{Method: task.ByVariance, Fit: fit, Weights: []float64{1}}, "3 members, want 1 as in the ensemble"},
	} {
		if err := cmp.Or(tt.r.CheckMethod(), tt.r.Check()); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %s", tt.r.Method, err, tt.want)
		}
	}
	few, err := Read(file("few.csv", "target,mean,std\n1,2,1\n2,2,1\n"), "regression", predictions.ReadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := (Study{Method: task.ByVariance, Folds: 5, Fit: few}).run(); err == nil || err.Error() != "2 rows for 5 folds, want at least 5" {
		t.Errorf("%v", err)
	}
	if p, err := Read(file("bare.csv", "mean,std\n1,2\n3,4\n"), "regression", predictions.ReadOptions{Labels: file("truth.csv", "target\n5\n6\n")}); err != nil || !slices.Equal(p.Known.Values, []float64{5, 6}) {
		t.Errorf("%v, %v", p, err)
	}
	if _, err := Read(file("bare.csv", "mean,std\n1,2\n3,4\n"), "regression", predictions.ReadOptions{Labels: file("truth.csv", "target\n5\n")}); err == nil || !strings.Contains(err.Error(), "truth.csv: target of 1 examples, want 2") {
		t.Errorf("%v", err)
	}
}

// number returns the single fitted number.
func (k *Result) number() []float64 {
	v, _ := k.Fitted.Number()
	return []float64{v}
}

func inverse(values []float64) (out []float64) {
	for _, v := range values {
		out = append(out, 1/v)
	}
	return out
}
