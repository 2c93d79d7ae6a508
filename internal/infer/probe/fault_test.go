package probe

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/swagwrap/swagwrap/calibrate/regression"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/moments"
	"github.com/swagwrap/swagwrap/internal/preprocess"
	"github.com/swagwrap/swagwrap/internal/target"
	"github.com/swagwrap/swagwrap/internal/task"
)

// elsewhere lists the rows whose case needs a network, with the test that has it.
var elsewhere = map[string]string{
	"lists without a mask":              "TestBatches",
	"mixed examples":                    "TestBatches",
	"mixed examples of a chosen batch":  "TestBatches",
	"another spread at the first layer": "TestPictures",
	"other data at the first layer":     "TestPictures",
}

// Every row of the tables has a name of its own, a case in which it fires, and the same case repaired, in which nothing does.
func TestFaults(t *testing.T) {
	fired := map[string]bool{}
	for _, cases := range [][]faultCase{formCases(), numberCases(), inputCases()} {
		for _, c := range cases {
			if f := c.wrong(); f == nil || f.Name != c.name {
				t.Errorf("%s: found %+v", c.name, f)
			}
			if f := c.right(); f != nil {
				t.Errorf("%s, repaired: found %s: %v", c.name, f.Name, f)
			}
			fired[c.name] = true
		}
	}
	rows := named(t)
	if len(rows) < 55 {
		t.Errorf("%d rows: the search for names is broken", len(rows))
	}
	for i, row := range rows {
		has := elsewhere[row] != ""
		for name := range fired {
			has = has || strings.HasPrefix(name, row)
		}
		if !has {
			t.Errorf("%q has no case", row)
		}
		if slices.Contains(rows[:i], row) && !strings.HasSuffix(row, " ") { // else it is a beginning
			t.Errorf("%q is the name of two rows", row)
		}
	}
}

// named returns the names of all rows in the code of this package. Of a name that is made, it is the beginning.
func named(t *testing.T) (names []string) {
	t.Helper()
	add := func(e ast.Expr) {
		for {
			switch x := e.(type) {
			case *ast.BinaryExpr:
				e = x.X
				continue
			case *ast.CallExpr:
				e = x.Args[0]
				continue
			case *ast.BasicLit:
				name, err := strconv.Unquote(x.Value)
				if err != nil {
					t.Fatal(err)
				}
				name, _, _ = strings.Cut(name, "%")
				names = append(names, name)
			}
			return
		}
	}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range files {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CallExpr:
				if f, ok := n.Fun.(*ast.Ident); ok && f.Name == "then" {
					add(n.Args[0])
				}
			case *ast.KeyValueExpr:
				if k, ok := n.Key.(*ast.Ident); ok && k.Name == "Name" {
					add(n.Value)
				}
			}
			return true
		})
	}
	return names
}

type faultCase struct {
	name         string
	wrong, right func() *Fault
}

func formCases() (all []faultCase) {
	r := rand.New(rand.NewPCG(11, 12))
	const n, classes = 64, 4
	z := rowsOf(n, classes, func(int, int) float64 { return 2 * r.NormFloat64() })
	p, batch := slices.Clone(z), slices.Clone(z)
	for row := range slices.Chunk(p, classes) {
		sum := total(row, math.Exp)
		for k, v := range row {
			row[k] = float32(math.Exp(float64(v)) / sum)
		}
	}
	for first := 0; first < n; first += 16 {
		for k := range classes {
			sum := 0.0
			for i := first; i < first+16; i++ {
				sum += math.Exp(float64(z[i*classes+k]))
			}
			for i := first; i < first+16; i++ {
				batch[i*classes+k] = float32(math.Exp(float64(z[i*classes+k])) / sum)
			}
		}
	}
	mapped := func(from []float32, f func(float64) float64) (out []float32) {
		for _, v := range from {
			out = append(out, float32(f(float64(v))))
		}
		return out
	}
	some := slices.Clone(p)
	for i := range n * classes / 2 {
		some[i] *= float32(1 + i/classes%5)
	}
	sigmoid := func(x float64) float64 { return 1 / (1 + math.Exp(-x)) }
	affine := open()
	affine.Affine = true
	in := func(low, high float64) infer.OutputProperties { return infer.OutputProperties{Low: low, High: high} }
	inf := math.Inf(1)
	add := func(name string, wrong, right Record) {
		decide := func(rec Record) func() *Fault {
			rec.Count, rec.Batch = classes, max(rec.Batch, 1)
			return func() *Fault {
				if _, err := rec.Decide(); err != nil {
					return err.(*Fault)
				}
				return nil
			}
		}
		all = append(all, faultCase{name, decide(wrong), decide(right)})
	}
	of := func(task string, scores []float32, known task.Form, properties infer.OutputProperties) Record {
		return Record{Task: task, Scores: scores, Known: known, OutputProperties: properties}
	}
	good, labels := of("classes", z, "", affine), of("labels", z, "", affine)
	over := of("classes", batch, "", open())
	over.Batch = 16
	add("probabilities, and the card says otherwise", of("classes", p, task.Logits, open()), of("classes", p, task.Probabilities, open()))
	add("softmax over the batch", over, of("classes", p, "", open()))
	add("percentages", of("classes", mapped(p, func(x float64) float64 { return 100 * x }), "", open()), of("classes", p, "", open()))
	add("some rows are probabilities", of("classes", some, "", open()), of("classes", p, "", open()))
	add("logarithms to base 2", of("classes", mapped(p, math.Log2), "", open()), of("classes", mapped(p, math.Log), "", open()))
	add("logarithms to base 10", of("classes", mapped(p, math.Log10), "", open()), of("classes", mapped(p, math.Log), "", open()))
	add("no log-probabilities of classes", of("classes", z, task.LogProbabilities, open()), of("classes", mapped(p, math.Log), task.LogProbabilities, open()))
	add("no probabilities of classes", of("classes", z, task.Probabilities, open()), of("classes", p, task.Probabilities, open()))
	add("no probabilities", of("labels", z, task.Probabilities, open()), of("labels", mapped(z, sigmoid), task.Probabilities, open()))
	add("no log-probabilities", of("labels", z, task.LogProbabilities, open()),
		of("labels", mapped(z, func(x float64) float64 { return math.Log(sigmoid(x)) }), task.LogProbabilities, open()))
	add("probabilities or logits", of("labels", mapped(z, sigmoid), "", open()), of("labels", mapped(z, sigmoid), "", in(0, 1)))
	add("independent labels", of("classes", mapped(z, sigmoid), "", in(0, 1)), of("classes", p, "", in(0, 1)))
	add("evidence of classes", of("classes", mapped(z, math.Exp), "", in(0, inf)), good)
	add("evidence", of("labels", mapped(z, math.Exp), "", in(0, inf)), labels)
	add("scores below 0", of("labels", mapped(z, func(x float64) float64 { return -math.Exp(x) }), "", in(-inf, 0)), labels)
	add("tanh", of("classes", mapped(z, math.Tanh), "", in(-1, 1)), good)
	add("cosines of classes", of("classes", mapped(z, math.Cos), "", open()), of("classes", mapped(z, math.Cos), "", affine))
	add("no score is negative", of("classes", mapped(z, math.Exp), "", open()), good)
	add("cosines", of("labels", mapped(z, math.Cos), "", open()), of("labels", mapped(z, math.Cos), "", affine))
	add("no score is positive", of("labels", mapped(z, func(x float64) float64 { return -math.Exp(x) }), "", open()), labels)
	biases := []float64{2, 0.5, -1, -3}
	coral := rowsOf(n, classes, func(i, k int) float64 { return 2*float64(z[i*classes]) + biases[k] })
	steps := rowsOf(n, classes, func(i, k int) float64 {
		q := 1.0
		for j := range k + 1 {
			q *= sigmoid(float64(z[i*classes])*float64(j+1)/2 + biases[j] + float64(z[i*classes+1])/3)
		}
		return q
	})
	add("CORAL", of("classes", coral, "", affine), good)
	add("steps of an ordinal scale", of("labels", steps, "", in(0, 1)), of("labels", mapped(z, sigmoid), "", in(0, 1)))
	return all
}

func numberCases() (all []faultCase) {
	w := newWorld(rand.New(rand.NewPCG(6, 6)), 200, 100)
	p := func(i int) float64 { return 1 / (1 + math.Exp(w.mean[i]/50)) }
	type network struct {
		spec          task.RegressionSpec
		y             []float64
		first, second infer.OutputProperties
		score         func(i int) []float64
	}
	positive := infer.OutputProperties{Low: 0, High: math.Inf(1), Op: "Softplus"}
	root, affine := positive, open()
	root.Op, affine.Affine = "Sqrt", true
	byVariance, byLog := task.RegressionSpec{Head: regression.ByVariance}, task.RegressionSpec{Head: regression.ByLogVariance}
	means := network{task.RegressionSpec{}, w.y, open(), open(), func(i int) []float64 { return []float64{w.mean[i]} }}
	variances := network{byVariance, w.y, open(), positive, func(i int) []float64 { return []float64{w.mean[i], w.std[i] * w.std[i]} }}
	logs := network{byLog, w.y, open(), open(), func(i int) []float64 { return []float64{w.mean[i], 2 * math.Log(w.std[i])} }}
	with := func(n network, change func(*network)) network { change(&n); return n }
	for name, c := range map[string][2]network{
		"numbers are probabilities of classes": {with(means, func(n *network) { n.score = func(i int) []float64 { return []float64{p(i), 1 - p(i)} } }), means},
		"standard deviations for variances":    {with(variances, func(n *network) { n.second = root }), variances},
		"logarithms for variances":             {with(variances, func(n *network) { n.second = affine }), variances},
		"variances for means": {with(variances, func(n *network) { n.spec, n.y = task.RegressionSpec{}, nil }),
			with(variances, func(n *network) { n.spec, n.y, n.second = task.RegressionSpec{}, nil, open() })},
		"quantiles for means": {with(means, func(n *network) {
			n.y, n.score = nil, func(i int) []float64 { return []float64{w.mean[i] - w.std[i], w.mean[i], w.mean[i] + w.std[i]} }
		}), with(means, func(n *network) {
			n.y, n.score = nil, func(i int) []float64 { return []float64{w.mean[i], w.std[i], -w.std[i]} }
		})},
		"targets outside the graph's range": {with(means, func(n *network) {
			n.first, n.second, n.y = infer.OutputProperties{Low: 0, High: 1}, infer.OutputProperties{Low: 0, High: 1}, add(w.y, 900)
		}), means},
		"another reading of means": {with(means, func(n *network) {
			n.y = add(w.y, 500)
			n.score = func(i int) []float64 { return []float64{w.mean[i] / 50} }
		}), means},
		"another reading of variances": {with(variances, func(n *network) {
			n.spec = byLog
			n.score = func(i int) []float64 { return []float64{w.mean[i], w.std[i] * w.std[i]} }
		}), logs},
		"negative variances": {with(means, func(n *network) {
			n.spec, n.y = byVariance, nil
			n.score = func(i int) []float64 { return []float64{w.mean[i], -1} }
		}), variances},
	} {
		check := func(n network) func() *Fault {
			return func() *Fault {
				rec := &Record{Task: "regression", Count: len(n.score(0)), Scores: rowsOf(len(w.y), len(n.score(0)), func(i, k int) float64 { return n.score(i)[k] })}
				if n.y != nil {
					rec.Labels = target.Target{Values: n.y, Width: 1}
				}
				report := &Report{}
				if err := rec.CheckNumbers(report, n.spec, n.first, n.second); err != nil {
					return err.(*Fault)
				}
				if report.Found == nil {
					return nil
				}
				return report.Found[0]
			}
		}
		all = append(all, faultCase{name, check(c[0]), check(c[1])})
	}
	return all
}

// inputCases makes, for each known change of an input, an input that has the fault, besides others.
func inputCases() (all []faultCase) {
	r := rand.New(rand.NewPCG(21, 22))
	const n, size = 128, 64
	pixels := func(groups int) (out [][]float32) {
		for range n {
			x, light := make([]float32, groups*size), 0.42+0.1*r.NormFloat64()
			for k := range x {
				p := light + 0.25*r.NormFloat64() - 0.06*float64(k/size)
				x[k] = float32(min(max(p*p, 0), 1))
			}
			out = append(out, x)
		}
		return out
	}
	input := func(values [][]float32, groups int) part {
		return part{picture: true, values: values, step: size, sample: moments.NewSample(moments.Channels, groups, size, values)}
	}
	colours := preprocess.Settings{Mean: []float64{0.1, 0.2, 0.3}, Std: []float64{0.3, 0.2, 0.25}}
	mnist := preprocess.Settings{Mean: []float64{0.1307}, Std: []float64{0.3081}}
	for _, c := range []struct {
		groups   int
		settings preprocess.Settings
	}{{1, mnist}, {3, colours}, {3, preprocess.Settings{}}} {
		how := Inputs{Preprocess: c.settings, From: "train.npz"}
		raw := pixels(c.groups)
		apply := input(raw, c.groups).normalise(c.settings, false)
		clean := input(changedBy(raw, apply, c.groups, size), c.groups)
		trained := input(changedBy(pixels(c.groups), apply, c.groups, size), c.groups).sample.Summary()
		for i, f := range clean.changes(c.settings) {
			if slices.ContainsFunc(clean.changes(c.settings)[:i], func(before Fault) bool { return same(before.Undo, f.Undo, c.groups) }) {
				continue // the likely one is named
			}
			wrong := input(changedBy(clean.values, inverse(*f.Undo, c.groups), c.groups, size), c.groups)
			all = append(all, faultCase{f.Name,
				func() *Fault { return First(wrong.against(trained, how), 0) },
				func() *Fault { return First(clean.against(trained, how), 0) }})
		}
		if c.groups > 1 {
			continue
		}
		right := func() *Fault { return First(clean.against(trained, how), 0) }
		other := func(f func(float32) float32) func() *Fault {
			return func() *Fault {
				values := [][]float32{}
				for _, x := range raw {
					y := make([]float32, len(x))
					for k, v := range x {
						y[k] = f(v)
					}
					values = append(values, y)
				}
				return First(input(changedBy(values, apply, 1, size), 1).against(trained, how), 0)
			}
		}
		all = append(all, faultCase{"lower contrast", other(func(v float32) float32 { return 0.3 * v }), right},
			faultCase{"other data", other(func(float32) float32 { return r.Float32() }), right},
			faultCase{"no pixels", func() *Fault {
				values := pixels(1)
				for _, x := range values {
					for k := range x {
						x[k] = float32(40 * r.NormFloat64())
					}
				}
				return First(input(values, 1).plausible(how), 0)
			}, func() *Fault { return First(clean.plausible(how), 0) }})
	}
	return slices.Concat(all, tokenCases(r), columnCases(r))
}

// changedBy returns changed values, of groups of the given size.
func changedBy(values [][]float32, c moments.Change, groups, size int) (out [][]float32) {
	for _, x := range values {
		y := make([]float32, len(x))
		for k := range x {
			g := k / size % groups
			from, scale, shift := c.Group(g)
			y[k] = float32(scale*float64(x[k+(from-g)*size]) + shift)
		}
		out = append(out, y)
	}
	return out
}

// same reports whether two changes do the same.
func same(a, b *moments.Change, groups int) bool {
	for g := range groups {
		fromA, scaleA, shiftA := a.Group(g)
		fromB, scaleB, shiftB := b.Group(g)
		if fromA != fromB || math.Abs(scaleA-scaleB) > 1e-6 || math.Abs(shiftA-shiftB) > 1e-6 {
			return false
		}
	}
	return true
}

// inverse undoes a change whose swap of groups is its own inverse.
func inverse(c moments.Change, groups int) moments.Change {
	out := moments.Change{From: c.From, Scale: make([]float64, groups), Shift: make([]float64, groups)}
	for g := range groups {
		from, scale, shift := c.Group(g)
		out.Scale[from], out.Shift[from] = 1/scale, -shift/scale
	}
	return out
}

func tokenCases(r *rand.Rand) (all []faultCase) {
	texts := func(first, ids int64) part {
		var all [][]int64
		for range 200 {
			text := make([]int64, 30)
			for k := range text {
				text[k] = first + int64(r.ExpFloat64()*8)*7%ids
			}
			all = append(all, text)
		}
		return part{sample: moments.NewTokens(all)}
	}
	trained, how := texts(10, 50).sample.Summary(), Inputs{From: "train.npz"}
	clean := texts(10, 50)
	add := func(name string, p part) {
		all = append(all, faultCase{name, func() *Fault { return First(p.against(trained, how), 0) },
			func() *Fault { return First(clean.against(trained, how), 0) }})
	}
	for _, f := range clean.changes(preprocess.Settings{}) {
		_, _, shift := f.Undo.Group(0)
		add(f.Name, texts(10-int64(shift), 50))
	}
	add("ids beyond training", texts(500, 50))
	uniform := texts(10, 50)
	var flat [][]int64
	for range 200 {
		text := make([]int64, 30)
		for k := range text {
			text[k] = 10 + r.Int64N(50)
		}
		flat = append(flat, text)
	}
	uniform.sample = moments.NewTokens(flat)
	add("other frequent ids", uniform)
	return all
}

func columnCases(r *rand.Rand) []faultCase {
	rows := func(scale float64) part {
		var values [][]float32
		for range 200 {
			values = append(values, []float32{float32(20 + 5*r.NormFloat64()), float32(scale * (70 + 10*r.NormFloat64())), float32(r.NormFloat64())})
		}
		return part{values: values, step: 1, sample: moments.NewSample(moments.Columns, 3, 1, values)}
	}
	trained, how := rows(1).sample.Summary(), Inputs{From: "train.csv"}
	check := func(p part) func() *Fault {
		return func() *Fault { return First(p.against(trained, how), 0) }
	}
	return []faultCase{{"columns", check(rows(1 / 2.2046)), check(rows(1))}}
}

// A property silences rows that only guess, and no others.
func TestSilenced(t *testing.T) {
	for unless, want := range map[Property]bool{0: true, Foreign: false, Frozen: true, Foreign | Frozen: false} {
		f := Fault{When: true, Unless: unless}
		if f.Fires(Foreign) != want || !f.Fires(0) {
			t.Errorf("unless %d: fires %v", unless, f.Fires(Foreign))
		}
	}
	if f := (Fault{Cause: "a", Hint: "b\nc"}); f.String() != "a. b\nc" || f.Error() != "a" || fmt.Sprint(f.Hints()) != "[b c]" {
		t.Errorf("%q, %q, %q", f.String(), f.Error(), f.Hints())
	}
}
