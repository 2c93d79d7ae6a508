package guarantee

import (
	"compress/gzip"
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/swagwrap/swagwrap/calibrate/regression"
	"github.com/swagwrap/swagwrap/fixtures/reliability"
	"github.com/swagwrap/swagwrap/internal/target"
	"github.com/swagwrap/swagwrap/internal/task"
)

// stored are predictions of real data, with their labels. testdata/real.py makes them.
type stored struct {
	Name, Task       string
	Width, Positions int
	Outcomes         [][]float64
	Labels           []json.RawMessage
	Groups           []string

	labels []target.Target
}

func readReal(t *testing.T) (all []*stored) {
	t.Helper()
	file, err := os.Open("testdata/real.json.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	packed, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.NewDecoder(packed).Decode(&all); err != nil {
		t.Fatal(err)
	}
	return all
}

// source returns the task of the stored predictions, and what a source of them is tested for.
func (s *stored) source(t *testing.T) source {
	t.Helper()
	out := source{name: s.Name + " " + s.Task, by: []string{"", ByClass, "site"}, sets: []string{"lac"}}
	for i, raw := range s.Labels {
		var numbers []float64
		if json.Unmarshal(raw, &numbers) != nil {
			numbers = make([]float64, 1)
			if err := json.Unmarshal(raw, &numbers[0]); err != nil {
				t.Fatalf("%s: label %d: %v", out.name, i, err)
			}
		}
		var label target.Target
		switch s.Task {
		case "labels", "regression":
			label.Values, label.Width = numbers, len(numbers)
		default:
			for _, v := range numbers {
				label.Classes = append(label.Classes, int(v))
			}
			if s.Positions > 1 {
				label.Positions = s.Positions
			}
		}
		s.labels = append(s.labels, label)
	}
	switch s.Task {
	case "classes":
		out.task, out.sets = newTask(t, "classes", task.OutputSpec{Count: s.Width}), []string{"lac", "aps", "raps"}
	case "binary":
		out.task = newTask(t, "binary", task.OutputSpec{Count: 1})
	case "labels":
		out.task = newTask(t, "labels", task.OutputSpec{Count: s.Width})
		for i, p := range s.Outcomes { // then the probabilities that labels are absent, and the rest of an outcome
			row := make([]float64, 3*s.Width)
			for k, v := range p {
				row[k], row[s.Width+k] = v, 1-v
			}
			s.Outcomes[i] = row
		}
	case "regression":
		what := newTask(t, "regression", task.OutputSpec{Count: 2, Regression: &task.RegressionSpec{Head: regression.ByVariance}})
		for i, v := range s.Outcomes {
			s.Outcomes[i] = what.(task.Targeted).FromMoments([]regression.Moments{{Mean: v[0], Aleatoric: v[1], Epistemic: v[2]}})
		}
		out.task, out.sets, out.by = what, []string{""}, []string{"", "site"}
	case "pixels":
		side := int(math.Sqrt(float64(s.Positions)))
		out.task, out.by = newTask(t, "classes", task.OutputSpec{Count: s.Width, Axis: 1, Positions: s.Positions, Sides: [3]int{side, side}}), []string{"", "site"}
		for i, p := range s.Outcomes {
			var row []float64
			for at := 0; at < len(p); at += s.Width {
				row = append(append(row, p[at:at+s.Width]...), 0) // the mean entropy of the members follows
			}
			s.Outcomes[i] = row
		}
	default:
		t.Fatalf("task %q", s.Task)
	}
	return out
}

// On real data the guarantee holds on average over random splits: for all examples, each class and each group. The mean is at most
// two standard errors below it. With one score for each example, it is at most 1/(n+1) above, plus ties and two standard errors.
func TestReal(t *testing.T) {
	splits, errors := reliability.Figure(30, 1000), float64(reliability.Figure(4, 2))
	for _, data := range readReal(t) {
		s := data.source(t)
		for _, by := range s.by {
			for _, method := range s.sets {
				if method == "raps" && by != "" { // left out: it takes most of the time
					continue
				}
				t.Run(strings.TrimSpace(s.name+" by "+by+" "+method), func(t *testing.T) {
					t.Parallel()
					own := splits
					if task.Large(s.task) {
						own = reliability.Figure(30, 200)
					}
					data.check(t, s, by, method, own, errors)
				})
			}
		}
	}
}

func (data *stored) check(t *testing.T, s source, by, method string, splits int, errors float64) {
	const level = 0.9
	n := len(data.Outcomes)
	tested := n * 2 / 5
	r := rand.New(rand.NewPCG(57, uint64(len(s.name)+10*len(by)+100*len(method))))
	sums := map[string][]float64{}
	above := map[string]float64{} // the mean of 1/(n+1)
	for seed := range splits {
		order, at := r.Perm(n), 0
		s.draw = func(*rand.Rand) ([]float64, target.Target, string) {
			i := order[at]
			at++
			return data.Outcomes[i], data.labels[i], data.Groups[i]
		}
		f := &Fitting{Task: s.task, Level: level, Method: method, By: by, Seed: uint64(seed)}
		c := chooseFrom(t, f, s, r, n-tested)
		for name, share := range judged(t, s, c, r, tested) {
			sums[name] = append(sums[name], share)
			if name == "all" && by == "" {
				above[name] += 1 / float64(c.Cells[0].Examples[0]+1) / float64(splits)
			}
		}
	}
	for name, shares := range sums {
		ofClass, ofSite := strings.HasPrefix(name, "class "), strings.HasPrefix(name, "site ")
		if name == "all" && by != "" || ofClass && by != ByClass || ofSite && by != "site" {
			continue // no guarantee for these alone
		}
		mean, se := meanOf(shares)
		t.Logf("%s: %.4f ± %.4f over %d splits, guaranteed %v", name, mean, se, len(shares), level)
		if mean < level-errors*se {
			t.Errorf("%s: %.4f ± %.4f, want at least %v", name, mean, se, level)
		}
		single := data.Task != "labels" && data.Task != "pixels" && method != "aps" && method != "raps"
		if !single || name != "all" {
			continue
		}
		if most := level + above[name] + data.ties(s) + errors*se; mean > most {
			t.Errorf("%s: %.4f ± %.4f, want at most %.4f", name, mean, se, most)
		}
	}
}

// meanOf returns the mean and its standard error.
func meanOf(list []float64) (mean, se float64) {
	n := float64(len(list))
	for _, v := range list {
		mean += v / n
	}
	for _, v := range list {
		se += (v - mean) * (v - mean)
	}
	return mean, math.Sqrt(se / (n - 1) / n)
}

// ties returns the largest share of examples with one score.
func (data *stored) ties(s source) float64 {
	var scores []float64
	for i, outcome := range data.Outcomes {
		if numbers, ok := s.task.(task.Targeted); ok {
			mean, std := deviation(numbers, outcome, 0, ByStd)
			scores = append(scores, math.Abs(data.labels[i].Values[0]-mean)/std)
			continue
		}
		scores = append(scores, outcome[data.labels[i].Class()])
	}
	slices.Sort(scores)
	most, run := 1, 1
	for i := 1; i < len(scores); i++ {
		if run++; scores[i] != scores[i-1] {
			run = 1
		}
		most = max(most, run)
	}
	return float64(most-1) / float64(len(scores))
}
