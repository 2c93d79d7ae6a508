package task_test

import (
	"math"
	"slices"
	"testing"

	"gonum.org/v1/gonum/stat"

	"github.com/swagwrap/swagwrap/internal/target"
	"github.com/swagwrap/swagwrap/internal/task"
)

// statsmodels 0.15: sm.OLS(x, ones).fit(cov_type="cluster", cov_kwds={"groups": g}).
func TestClustered(t *testing.T) {
	losses := []float64{.3, .1, .7, .2, 1.4, .05, .6, .8}
	units := task.Clustered(losses, task.Numbered([]string{"a", "a", "b", "c", "b", "c", "c", ""}))
	mean, variance := stat.MeanVariance(units, nil)
	if len(units) != 4 || math.Abs(mean-0.51875) > 1e-12 {
		t.Fatalf("%v", units)
	}
	if got, want := math.Sqrt(variance/4), 0.20982150772541558; math.Abs(got-want) > 1e-12 {
		t.Errorf("standard error %.15g, want %.15g", got, want)
	}
	if got := task.Numbered([]string{"", "", "x", "x"}); !slices.Equal(got, []int{0, 1, 2, 2}) {
		t.Errorf("%v: examples without a name are units of their own", got)
	}
}

// Each group has the figures of its examples alone.
func TestGroups(t *testing.T) {
	x := must(t, "classes", task.OutputSpec{Output: "logits", Count: 2})
	outcomes := []float64{.9, .1, .2, .8, .6, .4, .3, .7, .5, .5, .8, .2}
	labels := []int{0, 1, 1, 1, 0, 0}
	sites := []string{"a", "b", "a", "b", "b", "a"}
	g := task.NewGroups(x, task.Grouping{Report: func(i int, _ string) string { return sites[i] }}, task.EvaluateOptions{})
	for i, label := range labels {
		for _, e := range g.At(i, "") {
			if err := e.Add(outcomes[2*i:][:2], target.Target{Classes: []int{label}}); err != nil {
				t.Fatal(err)
			}
		}
	}
	all, groups := g.Found()
	if all.Examples != 6 || len(groups) != 2 || groups[0].Name != "b" && groups[0].Name != "a" || groups[0].Value(groups[0].Losses[0]) < groups[1].Value(groups[1].Losses[0]) {
		t.Fatalf("%+v %+v", all, groups)
	}
	for _, group := range groups {
		var picked []float64
		var own target.Target
		for i, s := range sites {
			if s == group.Name {
				picked, own.Classes = append(picked, outcomes[2*i:][:2]...), append(own.Classes, labels[i])
			}
		}
		want, err := task.Evaluate(x, picked, own, task.EvaluateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range want.Main() {
			if got := group.Evaluation.Value(s.Key); got != s.Value && !(math.IsNaN(got) && math.IsNaN(s.Value)) {
				t.Errorf("%s of %s: %v, want %v", s.Key, group.Name, got, s.Value)
			}
		}
		if i, ok := group.Interval(group.Score("accuracy")); !ok || i.Low > i.Mean || i.High < i.Mean || i.High > 1 {
			t.Errorf("accuracy of %s: %v", group.Name, i)
		}
	}
}
