package predictions

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/swagwrap/swagwrap/internal/task"
)

// A number of a file is used, or its column is named.
func TestUnused(t *testing.T) {
	for text, want := range map[string]string{
		"p_0,p_1,label\n1,0,0\n":                                   "",
		"path,p_0,p_1,label,weights,fold\na,1,0,0,2,3\n":           "weights fold",
		"logit_0,logit_1,p_0,p_1,y\n1,1,.5,.5,0\n":                 "",
		"p_0,p_1,label,confidence,predictive_entropy\n1,0,0,1,0\n": "",
		"p_0,p_1,label,confidence,mine\n1,0,0,1,0\n":               "mine",
		"path,label,p_0,p_1,error\na,0,1,0,\n":                     "",
	} {
		p, err := Read(saved(t, "x.csv", []byte(text)), ReadOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(p.Unused, " "); got != want {
			t.Errorf("%q: unused %q, want %q", text, got, want)
		}
	}
	if got := SpreadLike([]string{"scale", "pred_uct", "f_var", "lower", "q05", "weights", "fold", "scaled", "variety", "std_0"}); len(got) != 6 {
		t.Errorf("spreads %q", got)
	}
}

// Standard deviations, variances and their logarithms say the same, under the names of any library.
func TestSpreads(t *testing.T) {
	for _, c := range []struct {
		name string
		of   float64
		key  string
	}{
		{"std", 3, "std"}, {"sigma", 3, "std"}, {"stddev", 3, "std"}, {"pred_std", 3, "std"}, {"y_std", 3, "std"},
		{"var", 9, "std"}, {"variance", 9, "std"}, {"pred_var", 9, "std"}, {"sigma2", 9, "std"},
		{"log_var", math.Log(9), "std"}, {"logvar", math.Log(9), "std"}, {"log_std", math.Log(3), "std"},
		{"aleatoric_var", 9, "aleatoric_std"}, {"epistemic_variance", 9, "epistemic_std"}, {"epistemic_std", 3, "epistemic_std"},
	} {
		text := strings.Replace("target,mean,NAME\n1,2,VALUE\n", "NAME", c.name, 1)
		path := saved(t, "x.csv", []byte(strings.Replace(text, "VALUE", fmt.Sprint(c.of), 1)))
		if got := TaskOf(path); got != "regression" {
			t.Errorf("%s: task %s", c.name, got)
		}
		rows, err := ReadRows(path, Regression())
		if err == nil {
			err = rows.Spread()
		}
		if err != nil || len(rows.Values[c.key]) != 1 || math.Abs(rows.Values[c.key][0]-3) > 1e-9 || rows.Unused != nil {
			t.Errorf("%s: %v, unused %q, %v", c.name, rows.Values, rows.Unused, err)
		}
	}
}

// Names tell the task.
func TestTaskOf(t *testing.T) {
	for text, want := range map[string]string{
		"p_0,p_1,label\n1,0,0\n":                              "classes",
		"mean,p_0,p_1,label\n2,1,0,0\n":                       "classes",
		"p0,p1,std\n1,0,0\n":                                  "classes",
		"prediction,label,mine\n1,0,0\n":                      "classes",
		"target,mean\n1,0\n":                                  "regression",
		"target_0,target_1,mean_0,mean_1\n1,0,1,2\n":          "regression",
		"y,mu,sigma\n1,0,2\n":                                 "regression",
		"y,y_pred,y_std\n1,0,2\n":                             "regression",
		"y,y_pred\n1,0\n":                                     "classes",
		"label_0,probability_0,mutual_information_0\n1,0,0\n": "labels",
	} {
		if got := TaskOf(saved(t, "x.csv", []byte(text))); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}

// The labels tell the axis of the classes, or probabilities do, or the user is asked.
func TestClassAxis(t *testing.T) {
	write := func(name string, shape []int, values []float64, labels []int) string {
		var b bytes.Buffer
		a := NewArchive(&b)
		n := 1
		for _, d := range labels {
			n *= d
		}
		check(t, a.Floats("scores", values, shape...))
		check(t, a.Ints("labels", make([]int, n), labels...))
		check(t, a.Close())
		return saved(t, name, b.Bytes())
	}
	same := slices.Repeat([]float64{0.5, 2, -1, 3}, 2)
	sums := []float64{0.9, 0.2, 0.1, 0.8, 0.4, 0.3, 0.6, 0.7} // over the axis behind the batch
	for _, c := range []struct {
		name string
		path string
		opts ReadOptions
		axis int // 0 for a question
	}{
		{"tokens last", write("a.npz", []int{2, 2, 3}, make([]float64, 12), []int{2, 2}), ReadOptions{}, -1},
		{"tokens second", write("b.npz", []int{2, 3, 2}, make([]float64, 12), []int{2, 2}), ReadOptions{}, 1},
		{"square logits", write("c.npz", []int{2, 2, 2}, same, []int{2, 2}), ReadOptions{}, 0},
		{"square logits, said", write("d.npz", []int{2, 2, 2}, same, []int{2, 2}), ReadOptions{Axis: 1}, 1},
		{"square probabilities", write("e.npz", []int{2, 2, 2}, sums, []int{2, 2}), ReadOptions{}, 1},
		{"pixels", write("f.npz", []int{2, 3, 1, 2}, make([]float64, 12), []int{2, 1, 2}), ReadOptions{}, 1},
		{"pixels, channels last", write("g.npz", []int{2, 1, 2, 3}, make([]float64, 12), []int{2, 1, 2}), ReadOptions{}, -1},
	} {
		p, err := OpenPositions(c.path, "classes", c.opts)
		if _, asked := err.(*AxisError); asked {
			if c.axis != 0 {
				t.Errorf("%s: %v", c.name, err)
			}
			continue
		}
		if err != nil || p == nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if got := task.SpecOf(p.Task).Axis; got != c.axis {
			t.Errorf("%s: axis %d, want %d", c.name, got, c.axis)
		}
		p.Close()
	}
}
