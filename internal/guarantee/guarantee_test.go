package guarantee

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/swagwrap/swagwrap/calibrate/regression"
	"github.com/swagwrap/swagwrap/fixtures/reliability"
	"github.com/swagwrap/swagwrap/internal/target"
	"github.com/swagwrap/swagwrap/internal/task"
)

// source draws labelled predictions of a task. The predictions are wrong in a way of their own: they are too sure, or their
// noise is off. No guarantee depends on that.
type source struct {
	name string
	task task.Task
	draw func(r *rand.Rand) (outcome []float64, label target.Target, group string)
	by   []string // what thresholds are chosen by
	sets []string
}

func newTask(t *testing.T, name string, s task.OutputSpec) task.Task {
	t.Helper()
	what, err := task.New(name, s)
	if err != nil {
		t.Fatal(err)
	}
	return what
}

// probabilities draws those of some classes, and a class that is right as often as flatter ones say.
func probabilities(r *rand.Rand, classes int, sure float64) (p []float64, class int) {
	z, fair := make([]float64, classes), make([]float64, classes)
	total, fairTotal := 0.0, 0.0
	for c := range z {
		v := 2 * r.NormFloat64()
		z[c], fair[c] = math.Exp(sure*v), math.Exp(v)
		total, fairTotal = total+z[c], fairTotal+fair[c]
	}
	u := r.Float64() * fairTotal
	for class < classes-1 && u > fair[class] {
		u -= fair[class]
		class++
	}
	for c := range z {
		z[c] /= total
	}
	return z, class
}

func sources(t *testing.T) []source {
	const labels, side = 6, 8
	numbers := newTask(t, "regression", task.OutputSpec{Count: 2, Regression: &task.RegressionSpec{Head: regression.ByVariance}}).(task.Targeted)
	return []source{
		{"ten classes, too sure", newTask(t, "classes", task.OutputSpec{Count: 10}), func(r *rand.Rand) ([]float64, target.Target, string) {
			p, class := probabilities(r, 10, 2)
			return p, target.Target{Classes: []int{class}}, fmt.Sprint("site ", r.IntN(3))
		}, []string{"", ByClass, "site"}, []string{"lac", "aps", "raps"}},
		{"two classes, rounded", newTask(t, "binary", task.OutputSpec{Count: 1}), func(r *rand.Rand) ([]float64, target.Target, string) {
			p, class := probabilities(r, 2, 0.5)
			p[1] = math.Round(50*p[1]) / 50 // many ties
			p[0] = 1 - p[1]
			return p, target.Target{Classes: []int{class}}, ""
		}, []string{"", ByClass}, []string{"lac"}},
		{"labels", newTask(t, "labels", task.OutputSpec{Count: labels}), func(r *rand.Rand) ([]float64, target.Target, string) {
			out, label := make([]float64, 3*labels), target.Target{Width: labels}
			for k := range labels {
				p, class := probabilities(r, 2, 1.5)
				out[k], out[labels+k] = p[1], p[0]
				label.Values = append(label.Values, float64(class))
			}
			return out, label, fmt.Sprint("site ", r.IntN(2))
		}, []string{"", ByClass, "site"}, []string{"lac"}},
		{"regression, wrong noise", numbers, func(r *rand.Rand) ([]float64, target.Target, string) {
			mean, std := r.NormFloat64(), math.Exp(r.NormFloat64())
			m := []regression.Moments{{Mean: mean, Aleatoric: std * std, Epistemic: 0.1}}
			return numbers.FromMoments(m), target.Target{Values: []float64{mean + 3*std*r.ExpFloat64()}, Width: 1}, fmt.Sprint("site ", r.IntN(2))
		}, []string{"", "site"}, []string{""}},
		{"pixels", newTask(t, "classes", task.OutputSpec{Count: 4, Axis: 1, Positions: side * side, Sides: [3]int{side, side}}), func(r *rand.Rand) ([]float64, target.Target, string) {
			var out []float64
			var classes []int
			sure := math.Exp(r.NormFloat64()) // pictures differ as a whole
			for range side * side {
				p, class := probabilities(r, 4, sure)
				out, classes = append(append(out, p...), 0), append(classes, class)
			}
			return out, target.Target{Classes: classes, Positions: side * side}, fmt.Sprint("site ", r.IntN(2))
		}, []string{"", "site"}, []string{"lac"}},
	}
}

// Over many splits the guarantee holds on average, for all examples, for each class and for each group. No share is below the
// guarantee by more than chance explains.
func TestRealised(t *testing.T) {
	splits := reliability.Figure(30, 1000)
	for _, s := range sources(t) {
		for _, by := range s.by {
			for _, method := range s.sets {
				t.Run(fmt.Sprintf("%s by %q %s", s.name, by, method), func(t *testing.T) {
					t.Parallel()
					realise(t, s, by, method, splits)
				})
			}
		}
	}
}

func realise(t *testing.T, s source, by, method string, splits int) {
	const level = 0.8
	fitted, tested := 150, 100
	if by != "" {
		fitted = 600
	}
	if task.Large(s.task) && by == "" {
		fitted, tested = 40, 20
	}
	r := rand.New(rand.NewPCG(57, uint64(len(s.name)+len(by)+len(method))))
	sums := map[string][]float64{} // realised shares of each split
	for seed := range splits {
		f := &Fitting{Task: s.task, Level: level, Method: method, By: by, Seed: uint64(seed)}
		c := chooseFrom(t, f, s, r, fitted)
		for name, share := range judged(t, s, c, r, tested) {
			sums[name] = append(sums[name], share)
		}
	}
	for name, shares := range sums {
		if by != ByClass && strings.HasPrefix(name, "class ") || by != "site" && strings.HasPrefix(name, "site ") {
			continue // no guarantee for these alone
		}
		mean, squares, n := 0.0, 0.0, float64(len(shares))
		for _, v := range shares {
			mean += v / n
			squares += v * v / n
		}
		// Many parts are tested: 4 standard errors. The level is a bound from below.
		if off := 4 * math.Sqrt(max(0, squares-mean*mean)/n); n > 20 && mean < level-off {
			t.Errorf("%s: %.4f, want at least %v ± %.4f", name, mean, level, off)
		}
		if name == "all" && by == "" {
			se := math.Sqrt(max(0, squares-mean*mean) / n)
			t.Logf("%s by %q %s: %.4f ± %.4f over %d splits, guaranteed %v", s.name, by, method, mean, se, splits, level)
			// Without ties and jumps it is at most 1/(n+1) above.
			if s.name != "two classes, rounded" && method != "aps" && method != "raps" && !task.Large(s.task) && mean > level+1/float64(fitted)+2*se+0.002 {
				t.Errorf("%.4f ± %.4f: more than guaranteed", mean, se)
			}
		}
	}
}

// Over many splits sets have at most the guaranteed size on average, and not much less: the last example is counted with all classes.
func TestSizes(t *testing.T) {
	for _, s := range sources(t) {
		if _, numbers := s.task.(task.Targeted); numbers {
			continue
		}
		for _, by := range []string{"", "site"} {
			if by != "" && !slices.Contains(s.by, by) {
				continue
			}
			t.Run(s.name+by, func(t *testing.T) {
				t.Parallel()
				const fitted, tested, size = 60, 30, 1.3
				splits, classes := reliability.Figure(40, 1000), float64(task.OnePosition(s.task).About().Classes)
				r := rand.New(rand.NewPCG(58, uint64(len(s.name)+len(by))))
				var sizes []float64
				for range splits {
					c := chooseFrom(t, &Fitting{Task: s.task, Size: size, By: by}, s, r, fitted)
					sizes = append(sizes, judged(t, s, c, r, tested)["size"])
				}
				mean, se := meanOf(sizes)
				t.Logf("%s %s: mean size %.4f ± %.4f over %d splits, guaranteed %v", s.name, by, mean, se, splits, size)
				if most := size + 4*se; mean > most {
					t.Errorf("mean size %.4f ± %.4f, want at most %v", mean, se, size)
				}
				if least := size - classes/20 - 4*se; s.name != "two classes, rounded" && by == "" && mean < least {
					t.Errorf("mean size %.4f ± %.4f, want not far below %v", mean, se, size)
				}
			})
		}
	}
}

// chooseFrom chooses a coverage from n examples of a source.
func chooseFrom(t *testing.T, f *Fitting, s source, r *rand.Rand, n int) *Coverage {
	t.Helper()
	for range n {
		outcome, label, group := s.draw(r)
		if err := f.Add(outcome, label, group); err != nil {
			t.Fatal(err)
		}
	}
	c, err := f.Choose(Data{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// judged applies a coverage to new examples, as rows do.
func judged(t *testing.T, s source, c *Coverage, r *rand.Rand, n int) map[string]float64 {
	t.Helper()
	g := &Guarantee{Coverage: c}
	if err := g.Sound(); err != nil {
		t.Fatal(err)
	}
	groups := make([]string, n)
	groupOf := func(i int, _ string) string { return groups[i] }
	d, err := NewDecider(g, s.task, groupOf)
	if err != nil {
		t.Fatal(err)
	}
	want := task.RowOptions{Target: true}
	d.Want(&want)
	real := NewRealised(g, Made{}, s.task, task.RowColumns(s.task, want), groupOf)
	for i := range n {
		outcome, label, group := s.draw(r)
		groups[i] = group
		var row []float64
		if task.Large(s.task) {
			d.Begin(i, "")
			task.EachRow(s.task, outcome, label, func(row []float64, one target.Target) { d.Position(row, one) })
			for _, c := range s.task.Columns(want) {
				row = append(row, make([]float64, c.Len())...)
			}
			row = d.End(row, true)
		} else {
			row = s.task.Values(nil, want, task.Average{Outcome: outcome}, label)
			row = d.Values(row, outcome, i, "")
		}
		real.Add(i, "", row, label.Class())
	}
	real.Finish(false)
	out := map[string]float64{"all": real.Coverage.Covered}
	if real.Size != nil {
		out["size"] = real.Size.Mean
	}
	for _, x := range real.Classes {
		if x.Examples > 0 {
			out["class "+x.Name] = x.Covered
		}
	}
	for _, x := range real.Groups {
		out[x.Name] = x.Covered
	}
	return out
}

// Too few examples give an infinite threshold: all classes are in the set, and intervals have no ends. A small class or group
// takes the threshold of all examples, and is named.
func TestFew(t *testing.T) {
	for _, s := range sources(t) {
		r := rand.New(rand.NewPCG(1, 1))
		c := chooseFrom(t, &Fitting{Task: s.task, Level: 0.99}, s, r, 50)
		if !c.Infinite() || c.Cells[0].Thresholds[0] != nil {
			t.Errorf("%s: %+v, want an infinite threshold", s.name, c.Cells[0])
		}
		if all := judged(t, s, c, r, 30)["all"]; all != 1 {
			t.Errorf("%s: coverage %v with an infinite threshold, want 1", s.name, all)
		}
		js, err := json.Marshal(&Guarantee{Coverage: c})
		back := new(Guarantee)
		if err != nil || json.Unmarshal(js, back) != nil || back.Sound() != nil || !back.Coverage.Infinite() {
			t.Errorf("%s: %s is not read back: %v", s.name, js, err)
		}
	}
	s := sources(t)[0]
	for _, by := range []string{ByClass, "site"} {
		f := &Fitting{Task: s.task, Level: 0.9, By: by}
		r := rand.New(rand.NewPCG(2, 1))
		for i := range 400 {
			outcome, label, _ := s.draw(r)
			group := "large"
			if i < 5 {
				group = "small"
				label.Classes[0] = 9
			} else if label.Classes[0] == 9 {
				label.Classes[0] = 8
			}
			if err := f.Add(outcome, label, group); err != nil {
				t.Fatal(err)
			}
		}
		c, err := f.Choose(Data{})
		if err != nil {
			t.Fatal(err)
		}
		last := c.Cells[len(c.Cells)-1]
		if k := len(last.Thresholds) - 1; len(last.Whole) != 1 || last.Whole[0] != k || last.Thresholds[k] == nil || last.Examples[k] != 5 {
			t.Errorf("by %s: %+v, want the last to take the threshold of all", by, last)
		}
	}
}

// A file from anywhere is refused if it is no guarantee.
func TestSound(t *testing.T) {
	q := 0.5
	good := func() *Coverage {
		return &Coverage{Level: 0.9, Method: "lac", Cells: []Cell{{Examples: []int{10}, Thresholds: []*float64{&q}, Cuts: []float32{0.5}}}}
	}
	if err := (&Guarantee{Coverage: good()}).Sound(); err != nil {
		t.Fatal(err)
	}
	huge := math.MaxFloat64
	for name, change := range map[string]func(*Coverage){
		"level":      func(c *Coverage) { c.Level = 1 },
		"no level":   func(c *Coverage) { c.Level = math.NaN() },
		"method":     func(c *Coverage) { c.Method = "thr" },
		"no cells":   func(c *Coverage) { c.Cells = nil },
		"a group":    func(c *Coverage) { c.Cells[0].Group = "x" },
		"no groups":  func(c *Coverage) { c.By = "folder" },
		"cuts":       func(c *Coverage) { c.Cells[0].Cuts = nil },
		"examples":   func(c *Coverage) { c.Cells[0].Examples = nil },
		"thresholds": func(c *Coverage) { c.Cells[0].Thresholds = nil },
		"huge":       func(c *Coverage) { c.Cells[0].Thresholds[0] = &huge },
		"twice": func(c *Coverage) {
			c.By = "folder"
			c.Cells = append(c.Cells, c.Cells[0], c.Cells[0])
			c.Cells[1].Group, c.Cells[2].Group = "a", "a"
		},
	} {
		c := good()
		change(c)
		if (&Guarantee{Coverage: c}).Sound() == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	for _, g := range []*Guarantee{nil, {}, {Answers: &Answers{Risk: 0, Cut: 0.5}}, {Answers: &Answers{Risk: 0.1, Cut: 7}}} {
		if g.Sound() == nil {
			t.Errorf("%+v: accepted", g)
		}
	}
	labels := newTask(t, "labels", task.OutputSpec{Count: 3})
	for method, what := range map[string]task.Task{"aps": labels, "std": labels, "raps": sources(t)[4].task, "lac": sources(t)[3].task} {
		if Possible(what, method, "") == nil {
			t.Errorf("%s: possible for %s", method, what.About().Size)
		}
	}
}

// The interval of a realised share is that of Clopper and Pearson, as SciPy's binomtest gives it.
func TestShare(t *testing.T) {
	s := newShare("")
	for i := range 100 {
		s.add(one(i >= 12))
	}
	s.finish()
	if math.Abs(s.Covered-0.88) > 1e-12 || math.Abs(s.Low-0.7997643163799613) > 1e-9 || math.Abs(s.High-0.9364310974389741) > 1e-9 {
		t.Errorf("%+v", s)
	}
}

// A class that is surely below the guarantee is named, also where nothing is guaranteed of it alone. One that is below by chance,
// as some of many are, is not: SciPy's binom.cdf(82, 100, 0.9) is 0.0100, which is sure of one class and not of 50.
func TestBelow(t *testing.T) {
	share := func(covered int) Share {
		s := newShare("")
		for i := range 100 {
			s.add(one(i < covered))
		}
		s.finish()
		return *s
	}
	few := []Share{share(90), share(82), *newShare("")}
	many := make([]Share, 50)
	for k := range many {
		many[k] = share(91)
	}
	many[7] = share(82)
	for _, c := range []struct {
		by   string
		list []Share
		want string
	}{
		{ByClass, few, "below the guarantee: class 1: 82.0 % ["},
		{"", few, "below 90 %, which is guaranteed of all examples together, and not of each class: class 1: 82.0 % ["},
		{"", many, ""},
		{ByClass, many, ""},
		{"", append(many, share(40)), "and not of each class: class 50: 40.0 % ["},
	} {
		got := strings.Join((&Coverage{Level: 0.9, By: c.by}).below("class", c.by == ByClass, c.list, nil), "")
		if c.want == "" != (got == "") || !strings.Contains(got, c.want) || strings.Contains(got, "; class") {
			t.Errorf("by %q, %d classes: %q, want %q", c.by, len(c.list), got, c.want)
		}
	}
}

// Without labels nothing is printed, unless the guarantee is void. Nothing is counted where nothing is guaranteed.
func TestVoid(t *testing.T) {
	s := sources(t)[0]
	q := 0.5
	g := &Guarantee{Coverage: &Coverage{Level: 0.9, Method: "lac", Cells: []Cell{{Examples: []int{10}, Thresholds: []*float64{&q}, Cuts: []float32{0.5}}}}}
	var want task.RowOptions
	d, err := NewDecider(g, s.task, nil)
	if err != nil {
		t.Fatal(err)
	}
	d.Want(&want)
	columns := task.RowColumns(s.task, want)
	for _, void := range []bool{false, true} {
		r := NewRealised(g, Made{}, s.task, columns, nil)
		outcome, _, _ := s.draw(rand.New(rand.NewPCG(1, 2)))
		row := d.Values(s.task.Values(nil, want, task.Average{Outcome: outcome}, target.Target{}), outcome, 0, "")
		r.Add(0, "", row, target.Unknown)
		if got := r.Finish(void); (got != nil) != void || void && !got.Void || got.Lines(nil) != nil {
			t.Errorf("void %v: %+v", void, got)
		}
	}
	none := NewRealised(nil, Made{}, s.task, columns, nil)
	none.Add(0, "", nil, 0)
	if none.Finish(true) != nil {
		t.Error("counts where nothing is guaranteed")
	}
}
