package probe_test

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/swagwrap/swagwrap/fixtures/infertest"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/infer/probe"
	"github.com/swagwrap/swagwrap/swag"
)

// What the checks tell of outputs that the flags of fit do not fit, with targets. Outputs with other
// names are not warned of.
var wrongNumbers = map[string]string{
	"exp twice":                                  "would convert them a second time",
	"softplus as log-variance":                   "(Softplus), so it holds variances",
	"square as log-variance":                     "would convert them a second time",
	"elu + 1 as log-variance":                    "(Elu), so it holds variances",
	"softplus twice":                             "Targets head=softplus would convert them a second time",
	"exp before softplus":                        "(Exp), so it holds variances",
	"log-variance as variance":                   "variances are negative",
	"logsigmoid as variance":                     "at 0 or below",
	"std exp(s / 2) as variance":                 "comes out of a square root",
	"std sqrt as variance":                       "comes out of a square root",
	"std in targets' units as variance":          "The targets fit Targets head=std",
	"log-std in targets' units as log-variance":  "The targets fit Targets head=log-std",
	"log-variance in targets' units as softplus": "The targets fit Targets head=log-variance",
	"log-variance in targets' units as variance": "Targets head=log-variance",
	"mean in targets' units, variance not":       "times as large as expected",
	"variance before mean":                       "the variances stand before the means",
	"log-variance before mean":                   "score 1 fits the targets better",
	"standardised, no units":                     "Targets FILE",
	"standardised with variance, no units":       "Targets FILE",
	"units given, not standardised":              "without the units of the model card",
	"log mean":                                   "exp of the outputs fits",
	"exp of the mean":                            "fits the targets better",
	"min-max sigmoid, no units":                  "between 0 and 1, but the targets are from",
	"tanh, no units":                             "between -1 and 1, but the targets are from",
	"softmax":                                    "comes out of a softmax",
	"exp(log_softmax)":                           "probabilities of classes",
	"log(softmax)":                               "probabilities of classes",
	"three quantiles":                            "quantiles",
	"variance not named":                         "Does it hold variances?",
}

// regression is the tiny network with the scores taken from one output, and the flags that
// fixtures/outputforms gives to fit.
func regression(t *testing.T, output string, flags []any) (*infer.Network, error) {
	t.Helper()
	p := infertest.Fit(t, infertest.Open(t, "testdata/regression-1.onnx"), infertest.Open(t, "testdata/regression-2.onnx"))
	p.Card.Task, p.Card.Output, p.Card.Targets = "regression", output, &swag.Targets{}
	for i := 0; i < len(flags); i += 2 {
		switch flags[i] {
		case "--variance-head":
			if head := flags[i+1].(string); head != "none" {
				p.Card.Targets.VarianceHead = head
			}
		case "--target-mean":
			p.Card.Targets.Mean = append(p.Card.Targets.Mean, flags[i+1].(float64))
		case "--target-std":
			p.Card.Targets.Std = append(p.Card.Targets.Std, flags[i+1].(float64))
		default:
			t.Fatalf("%s: flag %v", output, flags[i])
		}
	}
	return infer.NewNetwork(p, infer.RecomputeTrained, "")
}

// printed is what the checks tell of a network: an error, or warnings.
func printed(t *testing.T, output string, flags []any, data *made) string {
	t.Helper()
	n, err := regression(t, output, flags)
	if err != nil {
		return "refused: " + err.Error()
	}
	run, s := looking(t, n, data)
	report := &probe.Report{}
	if err := run.CheckScores(context.Background(), report, s, 0); err != nil {
		told := append(report.Warnings, "refused: "+err.Error())
		if open := new(probe.Fault); errors.As(err, &open) {
			told = append(told, open.Hints()...)
		}
		return strings.Join(told, "; ")
	}
	return strings.Join(report.Warnings, "; ")
}

// Every form of output is right without a warning, or its flags are refused or warned of.
func TestRegressions(t *testing.T) {
	t.Parallel()
	var flags map[string][]any
	b, err := os.ReadFile("testdata/regression.json")
	if err == nil {
		err = json.Unmarshal(b, &flags)
	}
	if err != nil || len(flags) < 55 {
		t.Fatal(len(flags), err)
	}
	data, unlabelled := newMade(probe.Examples), newMade(probe.Examples)
	n, err := regression(t, "log-variance", flags["log-variance"])
	if err != nil {
		t.Fatal(err)
	}
	_, z := scoresOf(t, n, data)
	r := rand.New(rand.NewPCG(9, 9))
	data.labels.Width = 1
	for i := 0; i < len(z); i += 2 {
		data.labels.Values = append(data.labels.Values, 150+77*(float64(z[i])+math.Exp(float64(z[i+1])/2)*r.NormFloat64()))
	}
	wrong := 0
	for output, given := range flags {
		name, isWrong := strings.CutPrefix(output, "wrong: ")
		got := printed(t, output, given, data)
		if name == "three quantiles" || name == "variance not named" { // with targets their number is refused later
			got = printed(t, output, given, unlabelled)
		}
		switch want := wrongNumbers[name]; {
		case isWrong && want == "", isWrong && !strings.Contains(got, want):
			t.Errorf("%s: %q, want %q", output, got, want)
		case isWrong:
			wrong++
		case got != "" || printed(t, output, given, unlabelled) != "":
			t.Errorf("%s: a false alarm: %s", output, got)
		}
	}
	if wrong != len(wrongNumbers) {
		t.Errorf("%d of %d wrong endings", wrong, len(wrongNumbers))
	}
}
