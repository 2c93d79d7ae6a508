package compare_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/swagwrap/swagwrap/internal/baseline"
	"github.com/swagwrap/swagwrap/internal/ensemble"
	"github.com/swagwrap/swagwrap/internal/infer/probe"
	"github.com/swagwrap/swagwrap/internal/study"
	"github.com/swagwrap/swagwrap/internal/study/compare"
	"github.com/swagwrap/swagwrap/internal/study/compare/show"
	"github.com/swagwrap/swagwrap/internal/task"
)

// With an objection there is no choice and no command, and text, page and JSON say the same. Without one there is a choice.
func TestObjections(t *testing.T) {
	t.Parallel()
	scaled := func(m *compare.Method, temperature float64, contradicted bool, undetermined string) {
		c := &task.Calibration{Method: task.ByTemperature, Temperature: temperature, Undetermined: undetermined, Contradicted: contradicted}
		m.Deploy.Temperature = temperature
		m.Scaling, m.Undetermined = &task.Fitted{By: task.Calibrator{Symbol: "T"}, Each: []*task.Calibration{c}}, undetermined
	}
	for name, c := range map[string]struct {
		spoil func(r *compare.Result)
		kinds []compare.Obstacle
		says  string
	}{
		"fine":        {func(*compare.Result) {}, nil, "Deploy SWA-Temp: NLL 0.1200"},
		"shared data": {func(r *compare.Result) { r.BatchNorm.Twice = []string{"The same images."} }, []compare.Obstacle{compare.SharedData}, "data has two roles"},
		"a soft remark": {func(r *compare.Result) {
			r.BatchNorm.Probe = []*probe.Report{{Data: "x", Warnings: []string{"sorted"}}}
		}, nil, "Deploy SWA-Temp"},
		"wrong inputs": {func(r *compare.Result) {
			r.BatchNorm.Probe = []*probe.Report{{Data: "x", Warnings: []string{"not normalised"}, Found: []*probe.Fault{{Severity: probe.Wrong, Cause: "not normalised"}}}}
		}, []compare.Obstacle{compare.WrongInputs}, "inputs are not like those of training."},
		"wrong classes": {func(r *compare.Result) { scaled(r.Methods[1], 1e6, true, "T rises to its bound") }, []compare.Obstacle{compare.WrongClasses}, "do not fit the labels"},
		"at its bound":  {func(r *compare.Result) { scaled(r.Methods[1], 0.001, false, "T falls to its bound") }, []compare.Obstacle{compare.NotDetermined}, "the fit for SWA-Temp is not determined: T falls to its bound"},
		"vector scaling alone": {func(r *compare.Result) {
			vector := &compare.Method{Key: baseline.SGDVector, Name: "SGD-Vector", Members: 1, Networks: 1, Deploy: &ensemble.Settings{}, Evaluation: evaluated(0.95, 0.1, 250)}
			vector.Undetermined, vector.Scaling = "too few labels", &task.Fitted{Each: []*task.Calibration{{Method: task.ByVector}}}
			r.Methods = append(r.Methods, vector)
		}, nil, "Deploy SWA-Temp"},
		"nothing learnt": {func(r *compare.Result) { r.Constant.Evaluation = evaluated(0.1, 0.12, 3000) }, []compare.Obstacle{compare.NothingLearnt}, "no method is clearly better than the class shares of the validation data."},
		"too sure": {func(r *compare.Result) {
			r.Methods[0].Evaluation = evaluated(0.5, 30, 2500)
			scaled(r.Methods[1], 177, false, "")
		}, []compare.Obstacle{compare.TooSure}, "only look useful with T = 177.00"},
		"two at once": {func(r *compare.Result) {
			r.BatchNorm.Twice = []string{"The same images."}
			r.Constant.Evaluation = evaluated(0.1, 0.12, 3000)
		}, []compare.Obstacle{compare.SharedData, compare.NothingLearnt}, "data has two roles"},
	} {
		method := func(key, name string, nll float64) *compare.Method {
			return &compare.Method{Key: key, Name: name, Members: 1, Networks: 1, Deploy: &ensemble.Settings{}, Evaluation: evaluated(0.95, nll, 250)}
		}
		cmp := *small(t)
		cmp.Test, cmp.Validation, cmp.Spell = images{n: 5000}, images{n: 1000}, func(study.Step) string { return "command" }
		r := &compare.Result{Comparison: &cmp, Methods: []*compare.Method{method(baseline.SWA, "SWA", 0.2), method(baseline.SWATemp, "SWA-Temp (T = 1.20)", 0.12)},
			Constant: &compare.Method{Name: "class shares", Evaluation: evaluated(0.1, 2.3, 4500)}, ConstantOf: "validation"}
		digits, err := task.New("", task.OutputSpec{Output: "logits", Count: 10})
		if err != nil {
			t.Fatal(err)
		}
		r.Task = digits
		scaled(r.Methods[1], 1.2, false, "")
		c.spoil(r)
		v := r.Verdict()
		var kinds []compare.Obstacle
		for _, o := range v.Against {
			kinds = append(kinds, o.Kind)
		}
		if !slices.Equal(kinds, c.kinds) || (v.Choice == nil) != (kinds != nil) || (len(r.Next()) == 0) != (kinds != nil) {
			t.Errorf("%s: objections %q, choice %v, next %v", name, kinds, v.Choice, r.Next())
		}
		lines := show.Verdict(r)
		if !strings.Contains(lines[0], c.says) || kinds != nil && !strings.HasPrefix(lines[0], "Nothing is recommended: ") {
			t.Errorf("%s: %q", name, lines)
		}
		if all := strings.Join(lines, "\n"); strings.Contains(all, "Deploy ") != (kinds == nil) {
			t.Errorf("%s: %q", name, lines)
		}
	}
}
