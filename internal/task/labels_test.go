package task_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/stat"

	"github.com/swagwrap/swagwrap/calibrate"
	"github.com/swagwrap/swagwrap/calibrate/multilabel"
	"github.com/swagwrap/swagwrap/internal/target"
	"github.com/swagwrap/swagwrap/internal/task"
)

// drawn are averaged outcomes of n examples over two members with random logits of three
// labels, the log-odds of the averages, what is known of the examples, and the sums of the
// members' entropies.
func drawn(t *testing.T, x task.Task, n int) (outcomes, odds []float64, of target.Target, entropies []float64) {
	t.Helper()
	r := rand.New(rand.NewPCG(1, 2))
	of.Width = 3
	one := make([]float64, x.About().Width)
	for range n {
		sum, h := make([]float64, x.About().Width), 0.0
		for range 2 {
			scores := make([]float32, 3)
			for k := range scores {
				scores[k] = float32(2 * r.NormFloat64())
			}
			entropy, err := x.Outcome(one, scores)
			if err != nil {
				t.Fatal(err)
			}
			for i, v := range one {
				sum[i] += v / 2
			}
			h += entropy / 2
		}
		outcomes, entropies = append(outcomes, sum...), append(entropies, h)
		for k := range 3 {
			z := math.Log(sum[k] / sum[3+k])
			odds = append(odds, z)
			y := 0.0
			if r.Float64() < 1/(1+math.Exp(-z/2)) { // the network is too sure
				y = 1
			}
			of.Values = append(of.Values, y)
		}
	}
	return outcomes, odds, of, entropies
}

func targets(of target.Target) (out []int) {
	for _, v := range of.Values {
		out = append(out, int(v))
	}
	return out
}

func TestLabelsOf(t *testing.T) {
	x := must(t, "labels", task.OutputSpec{Output: "y", Count: 3})
	if x.About().Width != 9 || x.About().Classes != 3 || x.About().Size != "3 labels" || task.TraitsOf("labels").Labels != target.Labels || x.About().Meaning != `output "y": 3 labels, a logit for each` {
		t.Errorf("%d, %d, %s, %s", x.About().Width, x.About().Classes, x.About().Size, x.About().Meaning)
	}
	if again, err := task.OfWidth("labels", 9, [3]int{}); err != nil || again.About().Size != x.About().Size {
		t.Errorf("%v, %v", again, err)
	}
	for _, tt := range []struct {
		of   target.Target
		want string
	}{
		{target.Target{Values: []float64{0, 1, -1}, Width: 3}, ""},
		{target.Target{Values: []float64{0, 1}, Width: 2}, "2 labels, want 3"},
		{target.Target{Classes: []int{2}}, "0 labels, want 3"},
		{target.Target{Values: []float64{0, 1, 2}, Width: 3}, "label 2 is 2"},
	} {
		if err := x.CheckLabel(tt.of); (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%v: %v, want %s", tt.of, err, tt.want)
		}
	}
	if _, err := task.New("labels", task.OutputSpec{Output: "y", Count: 3, Activation: "softmax"}); err == nil || !strings.Contains(err.Error(), "exclude each other") {
		t.Errorf("a softmax is of independent labels: %v", err)
	}
	dst := make([]float64, 9)
	nan := float32(math.NaN())
	for _, bad := range []struct {
		activation string
		scores     []float32
		want       string
	}{{"", []float32{0, nan, 0}, "label 1: the network's output is not finite"}, {"sigmoid", []float32{0, 1, 1.5}, "label 2: the network's scores are taken for probabilities, but one is 1.5"}} {
		if _, err := must(t, "labels", task.OutputSpec{Count: 3, Activation: bad.activation}).Outcome(dst, bad.scores); err == nil || !strings.Contains(err.Error(), bad.want) {
			t.Errorf("%v: %v, want %s", bad.scores, err, bad.want)
		}
	}
}

// Logits and their sigmoids give the same outcome; a logit keeps its loss where the sigmoid
// has no more digits.
func TestLabelsOutcome(t *testing.T) {
	logits, probs := must(t, "labels", task.OutputSpec{Count: 3}), must(t, "labels", task.OutputSpec{Count: 3, Activation: "sigmoid"})
	a, b := make([]float64, 9), make([]float64, 9)
	z := []float32{-1.5, 0, 2}
	var p []float32
	for _, v := range z {
		p = append(p, float32(1/(1+math.Exp(-float64(v)))))
	}
	h, err := logits.Outcome(a, z)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := probs.Outcome(b, p); err != nil {
		t.Fatal(err)
	}
	want := 0.0
	for k := range 3 {
		want -= a[k]*math.Log(a[k]) + (1-a[k])*math.Log1p(-a[k])
		if math.Abs(a[k]-1/(1+math.Exp(-float64(z[k])))) > 1e-15 || math.Abs(a[k]+a[3+k]-1) > 1e-15 || math.Abs(b[k]-a[k]) > 1e-7 || math.Abs(b[3+k]-a[3+k]) > 1e-7 {
			t.Errorf("label %d: %v, of probabilities %v", k, a, b)
		}
	}
	if math.Abs(h-want) > 1e-14 {
		t.Errorf("entropy %v, want %v", h, want)
	}
	if _, err := logits.Outcome(a, []float32{60, -60, 0}); err != nil {
		t.Fatal(err)
	}
	e, err := task.Evaluate(logits, a, target.Target{Values: []float64{0, 1, 1}, Width: 3}, task.EvaluateOptions{})
	if err != nil || math.Abs(e.Value("nll")-(120+math.Ln2)/3) > 1e-12 {
		t.Errorf("NLL %v of saturated sigmoids that are wrong, want %v; %v", e.Scores, (120+math.Ln2)/3, err)
	}
}

// A row has what formulas say of the average of members, and as many values as columns.
func TestLabelsValues(t *testing.T) {
	x := must(t, "labels", task.OutputSpec{Count: 3})
	outcomes, _, of, entropies := drawn(t, x, 1)
	members := make([]float32, 18)
	members[1], members[11] = 0.25, 0.75 // label 1 of the first member, label 2 of the second
	want := task.RowOptions{Members: 2, Target: true}
	row := x.Values([]float64{-7}, want, task.Average{Outcome: slices.Clone(outcomes), Entropy: entropies[0], Members: members}, of)[1:]
	got, at := map[string][]float64{}, 0
	for _, c := range x.Columns(want) {
		got[c.Name], at = row[at:at+c.Len()], at+c.Len()
	}
	if at != len(row) {
		t.Errorf("%d values, and columns have %d", len(row), at)
	}
	h := func(p float64) float64 { return -p*math.Log(p) - (1-p)*math.Log(1-p) }
	entropy, mutual := 0.0, 0.0
	for k := range 3 {
		p, m := outcomes[k], h(outcomes[k])-outcomes[6+k]
		entropy, mutual = entropy+h(p), mutual+m
		for name, want := range map[string]float64{"labels": of.Values[k], "probabilities": p, "entropies": h(p), "mutual_informations": m} {
			if math.Abs(got[name][k]-want) > 1e-14 {
				t.Errorf("%s of label %d: %v, want %v", name, k, got[name][k], want)
			}
		}
	}
	for name, want := range map[string]float64{"predictive_entropy": entropy, "expected_entropy": entropies[0], "mutual_information": mutual} {
		if math.Abs(got[name][0]-want) > 1e-14 {
			t.Errorf("%s: %v, want %v", name, got[name], want)
		}
	}
	if !slices.Equal(got["member_probabilities"], []float64{0, 0.25, 0, 0, 0, 0.75}) {
		t.Errorf("members %v", got["member_probabilities"])
	}
	us := x.Uncertainties()
	if u := us[0].Of(outcomes, entropies)[0]; math.Abs(u-entropy) > 1e-14 {
		t.Errorf("uncertainty %v, want %v", u, entropy)
	}
	if u := us[1].Of(outcomes, entropies)[0]; math.Abs(u-mutual) > 1e-14 || !us[1].Members {
		t.Errorf("disagreement %v, want %v", u, mutual)
	}
	unlabelled := x.Values(nil, task.RowOptions{}, task.Average{Outcome: slices.Clone(outcomes), Entropy: entropies[0]}, target.Target{})
	if !slices.Equal(unlabelled[:3], []float64{-1, -1, -1}) || !x.Columns(task.RowOptions{})[0].Hidden || task.NewEvaluator(x, task.EvaluateOptions{MainOnly: true}).AddRow(unlabelled, -1, nil) {
		t.Errorf("of an example without labels %v is known", unlabelled[:3])
	}
}

// Scores are those of calibrate/multilabel, and losses of examples have their mean. Labels
// that are not known count in none.
func TestLabelsEvaluate(t *testing.T) {
	x := must(t, "labels", task.OutputSpec{Count: 3})
	outcomes, _, of, entropies := drawn(t, x, 400)
	shown, width := x.Shown(outcomes)
	want, err := multilabel.NewPredictions(shown, nil, 3, targets(of))
	if err != nil || width != 3 {
		t.Fatal(width, err)
	}
	m := multilabel.Evaluate(want, calibrate.ECEOptions{})
	e, err := task.Evaluate(x, outcomes, of, task.EvaluateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i, v := range []float64{m.NLL, m.Brier, m.MacroECE, m.MicroECE, m.MeanAveragePrecision, m.AUROC} {
		if s := e.Scores[i]; math.Abs(s.Value-v) > 1e-12 {
			t.Errorf("%s: %v, want %v", s.Key, s.Value, v)
		}
	}
	nll, likelihoods := 0.0, x.Likelihoods(outcomes, of)
	for _, p := range likelihoods {
		nll -= math.Log(p) / 1200
	}
	if len(likelihoods) != 1200 || math.Abs(nll-e.Value("nll")) > 1e-12 {
		t.Errorf("%d likelihoods with the mean %v, want %v", len(likelihoods), nll, e.Value("nll"))
	}
	for _, l := range e.Losses {
		if mean := stat.Mean(l.Values, nil); math.Abs(mean-e.Value(l.Key)) > 1e-12 {
			t.Errorf("losses %s have the mean %v, want %v", l.Key, mean, e.Value(l.Key))
		}
	}
	s := task.NewEvaluator(x, task.EvaluateOptions{MainOnly: true})
	for i := range 400 {
		s.AddRow(x.Values(nil, task.RowOptions{Target: true}, task.Average{Outcome: slices.Clone(outcomes[9*i:][:9]), Entropy: entropies[i]}, of.At(i)), -1, nil)
	}
	for _, score := range s.Evaluation().Scores {
		if want := e.Value(score.Key); math.Abs(score.Value-want) > 1e-12 {
			t.Errorf("of rows: %+v, want %v", score, want)
		}
	}
	// Where some are not known, and more of some examples than of others, losses still have the scores' mean.
	some := target.Target{Values: slices.Clone(of.Values), Width: 3}
	known := 1200
	for i := range some.Values {
		if i < 2 || i%3 == 2 && i > 3 && i < 900 {
			some.Values[i] = -1
			known--
		}
	}
	part, err := task.Evaluate(x, outcomes, some, task.EvaluateOptions{})
	if want := math.Pow(outcomes[2]-of.Values[2], 2) * 400 / float64(known); err != nil || math.Abs(part.Loss("brier")[0]-want) > 1e-15 || len(part.Warnings) == len(e.Warnings) {
		t.Errorf("loss %v beside the only label known, want %v; warnings %v; %v", part.Loss("brier")[0], want, part.Warnings, err)
	}
	for _, l := range part.Losses {
		if mean := stat.Mean(l.Values, nil); math.Abs(mean-part.Value(l.Key)) > 1e-12 {
			t.Errorf("losses %s of what is known have the mean %v, want %v", l.Key, mean, part.Value(l.Key))
		}
	}
	if _, err := task.Evaluate(x, outcomes, target.Target{Classes: make([]int, 400)}, task.EvaluateOptions{}); err == nil {
		t.Error("classes are taken for labels")
	}
	if d := x.Divergence(outcomes, outcomes); math.Abs(d) > 1e-15 {
		t.Errorf("outcomes are %v from themselves", d)
	}
}

// Calibrators are those of calibrate/multilabel, on the log-odds of averages. Halves are
// repaired by what fits the other.
func TestLabelsCalibrators(t *testing.T) {
	x := must(t, "labels", task.OutputSpec{Count: 3})
	outcomes, odds, of, _ := drawn(t, x, 400)
	for i, by := range []multilabel.Scaler{multilabel.ByTemperature, multilabel.ByTemperatures, multilabel.ByPlatt} {
		c := x.Calibrators()[i]
		if c.Method != task.Method(by) {
			t.Fatalf("calibrator %d is %s, want %s", i, c.Method, by)
		}
		want, err := by.Fit(odds, 3, targets(of))
		if err != nil {
			t.Fatal(err)
		}
		got, err := c.Fit(outcomes, of)
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 && (math.Abs(got.Temperature*want.A[0]-1) > 1e-6 || got.Temperature < 1.2) {
			t.Errorf("T = %v, want %v, which is above 1", got.Temperature, 1/want.A[0])
		}
		p, _ := x.Shown(x.Apply(nil, got, outcomes))
		for k, v := range want.Apply(odds) {
			if math.Abs(p[k]-v) > 1e-6 {
				t.Fatalf("%s: number %d is %v, want %v", by, k, p[k], v)
			}
		}
		fit, err := task.CrossFit(x, c, outcomes, of, 2, 7)
		if err != nil || !fit.CrossFitted() {
			t.Fatal(fit, err)
		}
		crossed, folds := fit.Apply(x, outcomes), calibrate.Folds(400, 2, 7)
		on := target.Target{Width: 3}
		var half []float64
		for _, row := range folds[1] {
			half, on = append(half, outcomes[9*row:][:9]...), on.Append(of.At(row))
		}
		other, err := c.Fit(half, on)
		if err != nil {
			t.Fatal(err)
		}
		row := folds[0][5]
		if want := x.Apply(nil, other, outcomes[9*row:][:9]); !slices.Equal(crossed[9*row:][:9], want) {
			t.Errorf("%s: row %d is %v, want %v by what fits the other half", by, row, crossed[9*row:][:9], want)
		}
		several, err := task.CrossFits(x, c, outcomes, of, 7)
		if err != nil || !near(several.NLLBefore, task.NLL(x, outcomes, of)) || !(several.NLLAfter < several.NLLBefore) || !(several.Spread > 0) {
			t.Errorf("%s: %+v, %v", by, several, err)
		}
		in := slices.Clone(outcomes)
		if x.Apply(in, got, in); !slices.Equal(in, x.Apply(nil, got, outcomes)) {
			t.Errorf("%s: applied in place it gives something else", by)
		}
	}
	if _, ok := task.Find(x, task.ByVector); ok {
		t.Error("vector scaling of independent labels")
	}
}
