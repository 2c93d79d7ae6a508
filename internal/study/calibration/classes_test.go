package calibration

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/swagwrap/swagwrap/calibrate"
	"github.com/swagwrap/swagwrap/internal/numpy"
	"github.com/swagwrap/swagwrap/internal/predictions"
	"github.com/swagwrap/swagwrap/internal/report"
	"github.com/swagwrap/swagwrap/internal/task"
)

const classes = 3

// drawn are n rows whose labels are drawn from the softmax of normal logits; what was
// saved are these logits times temperature, as probabilities or as logits. target is
// the probabilities that the labels are drawn from.
func drawn(t *testing.T, seed uint64, n int, temperature float64, probabilities bool) (p *Predictions, target []float64) {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 0))
	var values []float64
	var labels, rows []int
	for i := range n {
		z := make([]float64, classes)
		for class := range z {
			z[class] = 1.5 * r.NormFloat64()
		}
		fair := softmax(z, 1)
		label, u := 0, r.Float64()
		for u -= fair[0]; u > 0 && label < classes-1; u -= fair[label] {
			label++
		}
		target = append(target, fair...)
		labels, rows = append(labels, label), append(rows, 2*i) // every other row was left out
		if probabilities {
			values = append(values, softmax(z, 1/temperature)...)
			continue
		}
		for _, v := range z {
			values = append(values, v*temperature+5) // a shift changes nothing
		}
	}
	p = newPredictions(t, values, classes, probabilities, labels)
	p.Path, p.SHA256, p.Rows, p.LeftOut = fmt.Sprintf("drawn-%d.npz", seed), fmt.Sprint(seed), rows, n
	return p, target
}

// newPredictions makes predictions of classes.
func newPredictions(t *testing.T, values []float64, classes int, probabilities bool, labels []int) *Predictions {
	t.Helper()
	saved, err := restoreClasses(values, classes, probabilities, labels)
	if err != nil {
		t.Fatal(err)
	}
	for i := range labels {
		saved.Rows = append(saved.Rows, i)
	}
	return &Predictions{Path: "val.csv", Saved: saved}
}

// logs returns the logarithms of the saved probabilities.
func logs(p *Predictions) []float64 { return calibrate.LogProbs(nil, p.Outcomes) }

// ruleOut gives the true class of a row the probability 0.
func ruleOut(p *Predictions, row int) {
	at, label := p.Outcomes[row*classes:][:classes], p.Known.Classes[row]
	rest := 1 - at[label]
	at[label] = 0
	for c := range at {
		at[c] /= rest
	}
	if p.Logs != nil {
		calibrate.LogProbs(p.Logs[row*classes:][:classes], at)
	}
}

// applied returns the calibrated probabilities.
func (k *Result) applied(p *Predictions) []float64 { return k.study.apply(k.Fitted, p.Saved).outcomes }

// softmax is that of z over a temperature, by its definition.
func softmax(z []float64, temperature float64) []float64 {
	p, sum := make([]float64, len(z)), 0.0
	for i, v := range z {
		p[i] = math.Exp(v / temperature)
		sum += p[i]
	}
	for i := range p {
		p[i] /= sum
	}
	return p
}

func run(t *testing.T, s Study) *Result {
	t.Helper()
	if err := s.CheckMethod(); err != nil {
		t.Fatal(err)
	}
	k, err := s.Run("test 1.0")
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// The probabilities that the labels were drawn from are found again by both scalers,
// within what so few labels leave open.
func TestRecovers(t *testing.T) {
	t.Parallel()
	const n = 1500
	for _, c := range []struct {
		method        task.Method
		temperature   float64
		probabilities bool
		chi2          float64 // its 99 % quantile, of as many degrees of freedom as are fitted: 1, or 2·3 − 1
	}{
		{task.ByTemperature, 2, false, 6.63},
		{task.ByTemperature, 2, true, 6.63},
		{task.ByTemperature, 0.5, false, 6.63},
		{task.ByVector, 2, false, 15.09},
		{task.ByVector, 0.5, true, 15.09},
	} {
		l, target := drawn(t, 1, n, c.temperature, c.probabilities)
		k := run(t, Study{Method: c.method, Folds: 3, Seed: 1, Fit: l})
		name := fmt.Sprintf("%s, %v, probabilities %v", c.method, c.temperature, c.probabilities)

		fitted := k.applied(l)
		var divergence, before, after float64
		for i, label := range l.Known.Classes {
			saved, found, fair := softmax(logs(l)[i*classes:][:classes], 1), fitted[i*classes:][:classes], target[i*classes:][:classes]
			before, after = before-math.Log(saved[label])/n, after-math.Log(found[label])/n
			for class, p := range fair {
				divergence += p * math.Log(p/found[class])
			}
		}
		// By Wilks' theorem twice the sum of the divergences is about chi-squared.
		if 2*divergence > c.chi2 {
			t.Errorf("%s: twice the divergence from the truth is %.3g, want less than %v", name, 2*divergence, c.chi2)
		}
		if math.Abs(k.before-before) > 1e-9 || math.Abs(k.after-after) > 1e-9 {
			t.Errorf("%s: NLL %v and %v, want %v and %v", name, k.before, k.after, before, after)
		}
		if math.Abs(k.crossed-k.rows[1].values["nll"]) > 1e-9 || k.crossed < k.after {
			t.Errorf("%s: cross-fitted NLL %v, in the table %v", name, k.crossed, k.rows[1].values["nll"])
		}
		if m := k.rows[0].values["nll"]; math.Abs(m-before) > 1e-9 {
			t.Errorf("%s: NLL %v in the table, want %v", name, m, before)
		}
		// Labels that the fit has not seen are not predicted better.
		if m := k.rows[1].values["nll"]; m < k.after || m > k.after+0.01 {
			t.Errorf("%s: cross-fitted NLL %v, fitted %v", name, m, k.after)
		}
		if d := k.rows[1].difference; d == nil || d.High >= 0 {
			t.Errorf("%s: the scaling is worth nothing: %v", name, d)
		}
		if vector := c.method == task.ByVector; (k.Fitted.Temperature == 0) != vector || (len(k.Fitted.Scale) == classes) != vector || (len(k.Fitted.Bias) == classes) != vector {
			t.Errorf("%s: T = %v, scales %v, biases %v", name, k.Fitted.Temperature, k.Fitted.Scale, k.Fitted.Bias)
		}
	}
}

// The temperatures found in many draws lie around the true one as far as their
// standard error says, no farther and no nearer: their squared distances in standard
// errors are chi-squared.
func TestStandardError(t *testing.T) {
	t.Parallel()
	const (
		n, draws      = 500, 30
		temperature   = 2.0
		least, most   = 13.79, 53.67 // 99 % of chi-squared with 30 degrees of freedom
		mostOfTheMean = 2.58         // the same of a normal
	)
	var sum, squares float64
	for seed := range uint64(draws) {
		l, target := drawn(t, 100+seed, n, temperature, false)
		fitted, err := (&Study{Method: task.ByTemperature}).fit(l.Saved)
		if err != nil {
			t.Fatal(err)
		}
		// The Fisher information of 1/T is the variance of the logits.
		var information float64
		for i := range n {
			var mean, square float64
			for class, p := range target[i*classes:][:classes] {
				z := logs(l)[i*classes+class]
				mean, square = mean+p*z, square+p*z*z
			}
			information += square - mean*mean
		}
		off := (1/fitted.Temperature - 1/temperature) * math.Sqrt(information)
		sum, squares = sum+off, squares+off*off
	}
	if squares < least || squares > most {
		t.Errorf("squared distances in standard errors add up to %.2f, want %v to %v", squares, least, most)
	}
	if mean := sum / math.Sqrt(draws); math.Abs(mean) > mostOfTheMean {
		t.Errorf("the mean is off by %.2f of its standard errors", mean)
	}
}

// Rows that are all alike: the best that can be done is to predict the shares of the
// labels, and the NLL is their entropy.
func TestClosedForm(t *testing.T) {
	t.Parallel()
	const n, a = 400, 4.0 // of which 3 in 4 are of class 0
	var values []float64
	var labels []int
	for i := range n {
		values, labels = append(values, a, 0), append(labels, i%4/3)
	}
	entropy := -0.75*math.Log(0.75) - 0.25*math.Log(0.25)
	before := math.Log1p(math.Exp(-a)) + a/4
	for _, method := range []task.Method{task.ByTemperature, task.ByVector} {
		k := run(t, Study{Method: method, Folds: 2, Seed: 3, Fit: newPredictions(t, values, 2, false, labels)})
		tolerance := 1e-9
		if method == task.ByVector {
			tolerance = 1e-4 * a * a // the ridge is counted in the minimum
		}
		if math.Abs(k.before-before) > 1e-12 || math.Abs(k.after-entropy) > tolerance {
			t.Errorf("%s: NLL %v and %v, want %v and %v", method, k.before, k.after, before, entropy)
		}
		if want := a / math.Log(3); method == task.ByTemperature && math.Abs(k.Fitted.Temperature-want) > 1e-6 {
			t.Errorf("T = %v, want %v", k.Fitted.Temperature, want)
		}
	}
}

func TestTable(t *testing.T) {
	t.Parallel()
	fit, _ := drawn(t, 1, 500, 2, false)
	test, target := drawn(t, 2, 400, 2, false)
	k := run(t, Study{Method: task.ByTemperature, Folds: 5, Seed: 1, Fit: fit, Test: test})
	for _, width := range []int{80, 120} {
		var b strings.Builder
		if err := k.Show().Tables()[0].WriteText(&b, report.Screen{Width: width, Terminal: true, Verbose: true}); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(b.String()) {
			if n := utf8.RuneCountInString(line) - 1; n > width {
				t.Errorf("%d of %d columns: %q", n, width, line)
			}
		}
	}
	var b strings.Builder
	if err := k.Show().Tables()[0].WriteText(&b, report.Screen{Verbose: true}); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(b.String(), "\n")
	for i, name := range []string{"rows ", "fitted on, as saved ", "fitted on, cross-fitted ", "test, as saved ", "test, calibrated "} {
		if i >= len(lines) || !strings.HasPrefix(lines[i], name) {
			t.Fatalf("line %d: want %q in\n%s", i, name, b.String())
		}
	}
	// All scores of the test as saved, and what no temperature changes.
	probs := make([]float64, 0, len(test.Outcomes))
	right, nll := 0, 0.0
	for i, label := range test.Known.Classes {
		fair, saved := target[i*classes:][:classes], test.Outcomes[i*classes:][:classes]
		if fair[label] == slices.Max(fair) {
			right++
		}
		nll -= math.Log(saved[label]) / 400
		probs = append(probs, saved...)
	}
	saved := calibrate.Predictions{Classes: classes, Probs: probs, Labels: test.Known.Classes}
	accuracy := fmt.Sprintf("%.1f %%", float64(right)/4)
	ece := calibrate.ECE(saved, calibrate.ECEOptions{})
	want := fmt.Sprintf("test, as saved %s %.4f %.4f %.4f %.4f %.4f %.5f ", accuracy, nll, ece, mean(calibrate.Briers(nil, saved)),
		calibrate.ClasswiseECE(saved, calibrate.ECEOptions{}), calibrate.ECE(saved, calibrate.GuoBins()), calibrate.AURC(saved))
	for line, want := range map[int]string{3: want, 4: "test, calibrated " + accuracy + " "} {
		if got := strings.Join(strings.Fields(lines[line]), " "); !strings.HasPrefix(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
	for line, want := range []string{"NLL − NLL as saved [95 %]", "", "−0.", "", "−0."} {
		if strings.Contains(lines[line], "[") != (want != "") || !strings.Contains(lines[line], want) {
			t.Errorf("line %d: %q, want %q", line, lines[line], want)
		}
	}
	if len(k.warnings) > 0 {
		t.Errorf("warnings %q", k.warnings)
	}
}

func mean(values []float64) (mean float64) {
	for _, v := range values {
		mean += v / float64(len(values))
	}
	return mean
}

// What must not be taken at face value is noted, and stands below the table.
func TestWarnings(t *testing.T) {
	t.Parallel()
	fit, _ := drawn(t, 1, 500, 2, false)
	fair, _ := drawn(t, 2, 400, 1, false)
	few, _ := drawn(t, 3, 10, 2, false)
	ruledOut, _ := drawn(t, 4, 400, 2, false)
	ruleOut(ruledOut, 0)
	for _, c := range []struct {
		name    string
		scaling Study
		want    string
	}{
		{"test is of another network", Study{Method: task.ByTemperature, Fit: fit, Test: fair}, "test, calibrated: calibration makes the NLL worse"},
		{"few", Study{Method: task.ByVector, Fit: few}, "fitted on, as saved: "},
		{"few for so many numbers", Study{Method: task.ByVector, Fit: few}, "6 numbers are fitted on 10 rows, fewer than 50 for each class"},
		{"ruled out", Study{Method: task.ByTemperature, Fit: fit, Test: ruledOut}, "test, as saved: "},
	} {
		c.scaling.Folds, c.scaling.Seed = 2, 1
		k := run(t, c.scaling)
		var b strings.Builder
		if err := k.Show().Tables()[0].WriteText(&b, report.Screen{Verbose: true}); err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(k.warnings, func(w string) bool { return strings.Contains(w, c.want) })
		if i < 0 {
			t.Errorf("%s: no %q in %q", c.name, c.want, k.warnings)
			continue
		}
		if text := strings.Join(strings.Fields(b.String()), " "); !strings.Contains(text, "* "+strings.Join(strings.Fields(k.warnings[i]), " ")) {
			t.Errorf("%s: no %q below\n%s", c.name, k.warnings[i], b.String())
		}
	}
}

func (s Study) run() (*Result, error) {
	if err := s.CheckMethod(); err != nil {
		return nil, err
	}
	return s.Run("test 1.0")
}

func TestErrors(t *testing.T) {
	t.Parallel()
	impossible, _ := drawn(t, 1, 50, 2, false)
	ruleOut(impossible, 1)
	few, _ := drawn(t, 2, 4, 2, false)
	for name, s := range map[string]Study{
		"a true class is ruled out": {Method: task.ByTemperature, Folds: 2, Fit: impossible},
		"fewer rows than folds":     {Method: task.ByTemperature, Folds: 5, Fit: few},
	} {
		if k, err := s.run(); err == nil {
			t.Errorf("%s: %s", name, k.Describe())
		}
	}
}

func TestDescribe(t *testing.T) {
	t.Parallel()
	study := func(rows, folds int) *Study {
		p := newPredictions(t, make([]float64, 2*rows), 2, false, make([]int, rows))
		return &Study{Method: task.ByTemperature, Fit: p, Folds: folds}
	}
	for want, k := range map[string]*Result{
		"T = 1.2500: NLL of labels that the fit has not seen falls from 0.5000 to 0.3000 nats (1 row in 5 folds); of those it was fitted to it is 0.2500": {
			Fitted: &task.Calibration{Method: task.ByTemperature, Temperature: 1.25}, study: study(1, 5), before: 0.5, crossed: 0.3, after: 0.25},
		"scales from 0.5000 to 2.0000, biases from -1.0000 to 0.1250: NLL of labels that the fit has not seen rises from 0.5000 to 0.7500 nats (1,200 rows in 2 folds); of those it was fitted to it is 0.2500. It does not pay: use the predictions without it": {
			Fitted: &task.Calibration{Method: task.ByVector, Scale: []float64{2, 0.5, 1}, Bias: []float64{0, 0.125, -1}}, study: study(1200, 2), before: 0.5, crossed: 0.75, after: 0.25},
		"scales from 0.5000 to 2.0000, biases from -1.0000 to 0.1250: NLL of labels that the fit has not seen rises from 0.5000 to 0.7500 nats (1,200 rows in 2 folds); of those it was fitted to it is 0.2500. On these rows alone it does not pay, but the comparison chose it on the test data": {
			Chosen: true, Fitted: &task.Calibration{Method: task.ByVector, Scale: []float64{2, 0.5, 1}, Bias: []float64{0, 0.125, -1}}, study: study(1200, 2), before: 0.5, crossed: 0.75, after: 0.25},
	} {
		if got := k.Describe(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// JSON says what was fitted, and of what. What is not finite is null.
func TestJSON(t *testing.T) {
	t.Parallel()
	fit, _ := drawn(t, 1, 500, 2, true)
	test, _ := drawn(t, 2, 400, 2, false)
	ruleOut(test, 0)
	k := run(t, Study{Method: task.ByTemperature, Folds: 2, Seed: 7, Fit: fit, Test: test})
	js, err := json.Marshal(k.Show().JSON)
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Kind, Producer, Method string
		FormatVersion          int `json:"format_version"`
		Rows                   int
		Size                   string
		Temperature            float64
		Scale                  []float64
		Folds                  int
		Seed                   uint64
		Predictions            struct {
			Path, SHA256 string
			Rows         int
			LeftOut      int `json:"left_out"`
		}
		Scores []struct {
			Name          string
			Accuracy, NLL *float64
			Difference    []float64 `json:"nll_difference_interval"`
		}
		Warnings []string
	}
	if err := json.Unmarshal(js, &got); err != nil {
		t.Fatal(err)
	}
	if got.Kind != "swagwrap.calibration" || got.FormatVersion != 1 || got.Producer != "test 1.0" || got.Method != "temperature" || got.Size != "3 classes" ||
		got.Temperature != k.Fitted.Temperature || got.Scale != nil || got.Rows != 500 || got.Folds != 2 || got.Seed != 7 || len(got.Warnings) == 0 {
		t.Errorf("%s", js)
	}
	if p := got.Predictions; p.Path != "drawn-1.npz" || p.SHA256 != "1" || p.Rows != 500 || p.LeftOut != 500 {
		t.Errorf("predictions %+v", p)
	}
	if len(got.Scores) != 4 {
		t.Fatalf("%d scores", len(got.Scores))
	}
	for i, s := range got.Scores {
		if s.Accuracy == nil || (s.NLL != nil) != (i < 2) || (s.Difference != nil) != (i == 1) {
			t.Errorf("scores %d: %+v", i, s)
		}
	}
}

// What WriteApplied writes is read again, with the numbers of the rows beside it.
func TestWriteApplied(t *testing.T) {
	t.Parallel()
	l, _ := drawn(t, 1, 200, 2, false)
	for _, method := range []task.Method{task.ByTemperature, task.ByVector} {
		k := run(t, Study{Method: method, Folds: 2, Seed: 1, Fit: l})
		want := k.applied(l)
		for _, c := range []struct {
			ext       string
			tolerance float64
		}{
			{".npz", 0},
			{".csv", 5e-10}, // nine digits
		} {
			var b bytes.Buffer
			if err := k.WriteApplied(&b, c.ext == ".npz"); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(t.TempDir(), "applied"+c.ext)
			if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
				t.Fatal(err)
			}
			got, err := predictions.Read(path, predictions.ReadOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if !got.Probabilities || got.Classes != classes || !slices.Equal(got.Labels, l.Known.Classes) || got.LeftOut != 0 {
				t.Errorf("%s%s: probabilities %v of %d classes, %d labels", method, c.ext, got.Probabilities, got.Classes, len(got.Labels))
			}
			if !slices.EqualFunc(got.Values, want, func(a, b float64) bool { return math.Abs(a-b) <= c.tolerance }) {
				t.Errorf("%s%s: other probabilities than those applied", method, c.ext)
			}
			if rows := rowNumbers(t, path); !slices.Equal(rows, l.Rows) {
				t.Errorf("%s%s: rows %v, want %v", method, c.ext, rows, l.Rows)
			}
		}
	}
}

// rowNumbers reads the array or column "row".
func rowNumbers(t *testing.T, path string) (rows []int) {
	t.Helper()
	if filepath.Ext(path) == ".npz" {
		f, err := numpy.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if rows, err = f.ReadLabels("row", 200, path); err != nil { // any array of integers
			t.Fatal(err)
		}
		return rows
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	records, err := csv.NewReader(bytes.NewReader(data)).ReadAll()
	if err != nil || records[0][0] != "row" {
		t.Fatalf("%v: %q", err, records[0])
	}
	for _, record := range records[1:] {
		row, err := strconv.Atoi(record[0])
		if err != nil {
			t.Fatal(err)
		}
		rows = append(rows, row)
	}
	return rows
}

// full is a writer that takes so many bytes.
type full int

func (f *full) Write(p []byte) (int, error) {
	if *f -= full(len(p)); *f < 0 {
		return 0, errFull
	}
	return len(p), nil
}

var errFull = errors.New("full")

// A file that is cut short anywhere is an error.
func TestWriteAppliedFails(t *testing.T) {
	t.Parallel()
	l, _ := drawn(t, 1, 300, 2, false)
	k := run(t, Study{Method: task.ByTemperature, Folds: 2, Seed: 1, Fit: l})
	for _, npz := range []bool{false, true} {
		var whole bytes.Buffer
		if err := k.WriteApplied(&whole, npz); err != nil {
			t.Fatal(err)
		}
		for n := 0; n < whole.Len(); n += 100 {
			room := full(n)
			if err := k.WriteApplied(&room, npz); !errors.Is(err, errFull) {
				t.Fatalf("npz %v: %d of %d bytes: %v", npz, n, whole.Len(), err)
			}
		}
	}
}
