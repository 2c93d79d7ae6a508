package main

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/swagwrap/swagwrap/fixtures/infertest"
	"github.com/swagwrap/swagwrap/internal/numpy"
	"github.com/swagwrap/swagwrap/internal/study/summary"
)

// expectedCase is a task with networks.
type expectedCase struct {
	name, figure string
	fit          []string // options, and checkpoints
	run          []string // options of score
	array        string   // the predictions in an .npz file
	width        int      // numbers of target for an example; 0 for a class
	// of returns a number of labels from n predicted ones, and unknown stands for none.
	of      func(r *rand.Rand, predicted func(k int) float64, n int) float64
	unknown float64
	parts   int // estimates of labels or targets
	pixels  int // of an example with several positions
}

// class is the most probable one, or another.
func class(r *rand.Rand, predicted func(k int) float64, n int) float64 {
	best := 0
	for k := range n {
		if predicted(k) > predicted(best) {
			best = k
		}
	}
	if r.Float64() < 0.35 {
		best = r.IntN(n)
	}
	return float64(best)
}

func there(r *rand.Rand, predicted func(k int) float64, _ int) float64 {
	if (predicted(0) >= 0.5) != (r.Float64() < 0.3) {
		return 1
	}
	return 0
}

func near(r *rand.Rand, predicted func(k int) float64, _ int) float64 {
	return predicted(0) + r.NormFloat64()
}

var expectedCases = []expectedCase{
	{name: "classes", figure: "accuracy", fit: []string{"--task", "classes", "testdata/ckpt-1.onnx", "testdata/ckpt-2.onnx"}, array: "probs", of: class, unknown: math.NaN()},
	{name: "binary", figure: "accuracy", fit: []string{"--task", "binary", "testdata/binary-1.onnx", "testdata/binary-2.onnx"}, array: "probs", of: class, unknown: math.NaN()},
	{name: "labels", figure: "accuracy", fit: []string{"--task", "labels", "--output-name", "logits", "testdata/labels-1.onnx", "testdata/labels-2.onnx"}, array: "probabilities", width: 3, of: there, unknown: -1, parts: 3},
	{name: "number", figure: "rmse", fit: []string{"--task", "regression", "--targets", "head=none", "--noise-std", "1", "testdata/binary-1.onnx", "testdata/binary-2.onnx"}, array: "mean", width: 1, of: near},
	{name: "numbers", figure: "rmse", fit: []string{"--task", "regression", "--targets", "head=log-variance", "testdata/four-classes-1.onnx", "testdata/four-classes-2.onnx"}, array: "mean", width: 2, of: near, parts: 2},
	{name: "pixels", figure: "accuracy", fit: []string{"--template", "model.onnx", "--task", "classes", "--ignore-index", "255", "--preprocess", "input-size=16x24", "epoch-3.pt", "epoch-7.pt"}, run: []string{"--arrays", "pixels"}, array: "probs", of: class, unknown: 255, pixels: 16 * 24},
}

const examples, someLabelled = 60, 20

// pictures returns random pictures.
func (c *expectedCase) pictures(seed uint64) []byte {
	r := rand.New(rand.NewPCG(56, seed))
	shape := []int{examples, 1, 4, 4}
	if c.pixels > 0 {
		shape = []int{examples, 16, 24, 3}
	}
	data := numpy.Header("|u1", shape...)
	for range examples * shape[1] * shape[2] * shape[3] {
		data = append(data, byte(r.IntN(256)))
	}
	return data
}

// target returns an array of what is true of the first pictures: mostly what is predicted.
func (c *expectedCase) target(t *testing.T, predicted string, known int) []byte {
	t.Helper()
	f, err := numpy.Open(predicted)
	check(t, err)
	defer f.Close()
	all, err := f.Read(c.array, numpy.Values)
	check(t, err)
	values, r := all.Float64s(), rand.New(rand.NewPCG(56, 9))
	each := max(1, c.width, c.pixels)
	shape, dtype := []int{examples}, "<f8"
	switch {
	case c.pixels > 0:
		shape, dtype = append(shape, 16, 24), "<i8"
	case c.width > 0:
		shape = append(shape, c.width)
	}
	data, n := numpy.Header(dtype, shape...), len(values)/examples/each
	for i := range examples * each {
		v := c.of(r, func(k int) float64 {
			if c.pixels > 0 { // [N C H W]
				return values[(i/each*n+k)*each+i%each]
			}
			return values[i*n+k]
		}, n)
		if i/each >= known {
			v = c.unknown
		}
		bits := math.Float64bits(v)
		if dtype == "<i8" {
			bits = uint64(int64(v))
		}
		data = binary.LittleEndian.AppendUint64(data, bits)
	}
	return data
}

// list writes pictures, and a list of them with the targets of some. It returns the path of the list.
func (c *expectedCase) list(t *testing.T, dir string) string {
	t.Helper()
	r := rand.New(rand.NewPCG(56, 7))
	list := "path,target"
	for k := 1; k < c.width; k++ {
		list += fmt.Sprintf(",target_%d", k)
	}
	list += "\n"
	for i := range examples {
		data := []byte("P5 4 4 255\n")
		for range 16 {
			data = append(data, byte(r.IntN(256)))
		}
		name := fmt.Sprintf("picture-%02d.pgm", i)
		check(t, os.WriteFile(filepath.Join(dir, name), data, 0o600))
		list += name
		for range c.width {
			list += ","
			if i < someLabelled {
				list += fmt.Sprint(r.NormFloat64())
			}
		}
		list += "\n"
	}
	path := filepath.Join(dir, "list.csv")
	check(t, os.WriteFile(path, []byte(list), 0o600))
	return path
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestExpectedTable asks every task what to expect, in every format: without labels, with some, by group, in parts, and for the rows to
// label next. All say the same.
func TestExpectedTable(t *testing.T) {
	testdata := absolute(t, "testdata")
	pixels := infertest.Path("fixtures/dense/pixels")
	for _, c := range expectedCases {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			at := func(name string) string { return filepath.Join(dir, name) }
			run := func(args ...string) string {
				t.Helper()
				code, printed := program(t, args...)
				if code != 0 {
					t.Fatalf("%q: exit code %d: %s", args, code, printed)
				}
				return printed
			}
			var fit []string
			for _, arg := range c.fit {
				arg = strings.Replace(arg, "testdata/", testdata+"/", 1)
				if c.pixels > 0 && (strings.HasSuffix(arg, ".pt") || arg == "model.onnx") {
					arg = filepath.Join(pixels, arg)
				}
				fit = append(fit, arg)
			}
			score := func(args ...string) string { return run(append(append([]string{"score"}, c.run...), args...)...) }
			run(append([]string{"fit", "-q", "-o", at("p.safetensors")}, fit...)...)
			run("sample", "-q", "--method", "iterates", "-o", at("e.safetensors"), at("p.safetensors"))
			write := func(name string, data []byte) { check(t, os.WriteFile(at(name), data, 0o600)) }
			write("val.npy", c.pictures(1))
			write("new.npy", c.pictures(2))
			for _, name := range []string{"val", "new"} {
				score("-q", "--probs", "-o", at("predicted-"+name+".npz"), at("e.safetensors"), at(name+".npy"))
			}
			write("val-labels.npy", c.target(t, at("predicted-val.npz"), examples))
			write("kinds.csv", []byte("kind\n"+strings.Repeat("a\nb\n", examples/2)))
			score("-q", "--probs", "-o", at("val.npz"), "--labels", at("val-labels.npy"), at("e.safetensors"), at("val.npy"))
			run("calibrate", "-o", at("c.safetensors"), "--ensemble", at("e.safetensors"), at("val.npz"))
			var first string
			formats := []string{"csv", "jsonl", "parquet", "npz"}
			if c.pixels > 0 {
				formats = []string{"csv", "npz"} // the columns of all formats are those of other tasks
			}
			for _, format := range formats {
				groups := []string{"--groups", "report=" + at("kinds.csv") + ":kind"}
				printed := score(append(groups, "--next-labels", "5", "-o", at("new."+format), at("c.safetensors"), at("new.npy"))...)
				e := c.check(t, at("new."+format), printed, 0)
				if is := jsonOf(t, e); first == "" {
					first = is
				} else if is != first {
					t.Errorf("%s: %s, want %s", format, is, first)
				}
				if format == "parquet" || c.pixels > 0 && format != "csv" {
					continue
				}
				for k := range 2 {
					score("-q", "--part", fmt.Sprintf("%d/2", k), "-o", at("parts."+format), at("c.safetensors"), at("new.npy"))
				}
				printed = run(append(append([]string{"merge", "--next-labels", "5"}, groups...), "-o", at("parts."+format))...)
				if is := jsonOf(t, c.check(t, at("parts."+format), printed, 0)); is != first {
					t.Errorf("parts of %s: %s, want %s", format, is, first)
				}
				some := []string{"--labels", at("some-labels.npy"), at("c.safetensors"), at("new.npy")}
				write("some-labels.npy", c.target(t, at("predicted-new.npz"), someLabelled))
				if c.figure == "rmse" { // an array has no number for an unknown target, and a list has empty cells
					some = []string{at("c.safetensors"), c.list(t, dir)}
				}
				printed = score(append(append(groups, "--next-labels", "5", "-o", at("some."+format)), some...)...)
				c.check(t, at("some."+format), printed, someLabelled)
			}
			if c.figure == "accuracy" {
				if c.pixels > 0 {
					c.run = append(c.run, "--maps", at("maps"))
				}
				score("-q", "--groups", "report="+at("kinds.csv")+":kind", "--montage", at("m.html"), "-o", at("m.csv"), at("c.safetensors"), at("new.npy"))
				page, err := os.ReadFile(at("m.html"))
				if check(t, err); !strings.Contains(string(page), "accuracy to expect") || !strings.Contains(string(page), "a, 30 examples: ") {
					t.Error("the montage does not say what to expect")
				}
			}
		})
	}
}

// check returns what the sidecar of a result says, and compares it with what the program printed.
func (c *expectedCase) check(t *testing.T, path, printed string, labelled int) *summary.Expected {
	t.Helper()
	e := expectedOf(t, path)
	title := map[string]string{"accuracy": "accuracy to expect", "rmse": "RMSE to expect"}[c.figure]
	if string(e.All.Figure) != c.figure || e.All.Examples != examples || !strings.Contains(printed, title) || !strings.Contains(printed, "a, 30 examples: ") {
		t.Errorf("%s: %s: %s", path, jsonOf(t, e.All), printed)
	}
	if len(e.Parts) != c.parts || len(e.Groups) != 2 || len(e.Next) != 5 || (len(e.Examples) > 0) != (c.pixels > 0) {
		t.Errorf("%s: %d parts, %d groups, %d rows to label next, %d examples", path, len(e.Parts), len(e.Groups), len(e.Next), len(e.Examples))
	}
	if l := e.All.Labels; (l != nil) != (labelled > 0) || l != nil && (l.Examples != labelled || !(l.Low <= l.Combined && l.Combined <= l.High) || !strings.Contains(printed, fmt.Sprintf("with %d labels: ", labelled))) {
		t.Errorf("%s: labels %s: %s", path, jsonOf(t, l), printed)
	}
	if e.All.Bound == "" && !(e.All.Low <= e.All.Value() && e.All.Value() <= e.All.High) {
		t.Errorf("%s: %s", path, jsonOf(t, e.All))
	}
	for k, row := range e.Next {
		if row.Row < labelled || k > 0 && row.Row <= e.Next[k-1].Row || row.Confidence == 0 && row.Std == 0 {
			t.Errorf("%s: row %d to label next: %+v", path, k, row)
		}
	}
	return e
}
