package diagnosis

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/swagwrap/swagwrap/internal/report"
	"github.com/swagwrap/swagwrap/onnxio"
	"github.com/swagwrap/swagwrap/onnxio/checkpoints"
	"github.com/swagwrap/swagwrap/weights"
)

// noWeights is a model of IR version 8 and opset 17 whose graph "g" is one Relu, from
// x to y.
const noWeights = "\x08\x08" + "\x3a\x1b" + "\x0a\x0c\x0a\x01x\x12\x01y\x22\x04Relu" + "\x12\x01g" + "\x5a\x03\x0a\x01x" + "\x62\x03\x0a\x01y" + "\x42\x02\x10\x11"

// parse reads models of cmd/swagwrap/testdata under their names there. Two more are
// made here: "again", ckpt-1 by another producer, and "weightless".
func parse(t *testing.T, names ...string) []*onnxio.Model {
	t.Helper()
	var models []*onnxio.Model
	for _, name := range names {
		var data []byte
		switch name {
		case "weightless":
			data = []byte(noWeights)
		case "again":
			data = bytes.Replace(file(t, "ckpt-1"), []byte("make.py"), []byte("made.py"), 1)
		default:
			data = file(t, name)
		}
		m, err := onnxio.Parse(name+".onnx", data)
		if err != nil {
			t.Fatal(err)
		}
		models = append(models, m)
	}
	return models
}

func file(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("../../../cmd/swagwrap/testdata", name+".onnx"))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func diagnose(t *testing.T, names ...string) *Diagnosis {
	t.Helper()
	d, err := Diagnose(t.Context(), parse(t, names...))
	if err != nil {
		t.Fatalf("%q: %v", names, err)
	}
	return d
}

func TestVerdict(t *testing.T) {
	t.Parallel()
	const (
		two      = "2 checkpoints: the covariance has rank 2, and 20 or more are better"
		told     = "say at the fit what they are: Task classes (a score for each "
		diverged = "training diverged: leave this checkpoint out, or lower the learning rate"
	)
	for _, c := range []struct {
		models   []string
		verdict  string // all of it
		usable   bool
		hint     string   // in one of the hints; "" for no hint
		warnings []string // all of them
	}{
		{[]string{"ckpt-1"}, "usable, with more checkpoints of the same network", true, told, nil},
		{[]string{"ckpt-1", "ckpt-2"}, "usable with warnings: 2 checkpoints of one network", true, told, []string{two}},
		{[]string{"ckpt-1", "ckpt-2", "ckpt-10"}, "usable with warnings: 3 checkpoints of one network", true, told,
			[]string{"3 checkpoints: the covariance has rank 3, and 20 or more are better"}},
		{[]string{"softmax-1"}, "usable, with more checkpoints of the same network", true, "", nil},
		{[]string{"labels-1", "labels-2"}, "usable with warnings: 2 checkpoints of one network",
			true, told, []string{two}},
		{[]string{"ckpt-1", "renamed"}, "usable with warnings: 2 checkpoints of one network", true, told,
			[]string{two, "tensors have other names in other files, and were matched by their place in the graph"}},
		{[]string{"training-1"}, "usable with warnings, with more checkpoints of the same network", true, told,
			[]string{"the graph was exported in training mode (Dropout is active): everything swagwrap writes is brought back to inference. Members score " +
				"without dropout; only the row swa-dropout of the comparison drops. Export after model.eval() if you do not want that row"}},
		{[]string{"fixed-batch-1"}, "usable with warnings, with more checkpoints of the same network", true, told,
			[]string{`input "input" takes batches of 4 only: batch-norm statistics need larger ones, in which the graph is run if it allows; export with a dynamic batch dimension`}},

		{[]string{"folded-1"}, `not usable: batch norm is folded into the weights: tensor "onnx::Conv_7" has the name that PyTorch's TorchScript exporter gives to a weight with batch norm folded in`,
			false, "export the checkpoints again with batch norm kept: torch.onnx.export(", nil},
		{[]string{"nan"}, `not usable: nan.onnx: tensor "fc.weight": value NaN at index 4, want finite weights of less than 1.8e+19; 1 such values in all`, false, diverged, nil},
		{[]string{"ckpt-1", "inf"}, `not usable: inf.onnx: tensor "bn.bias": value +Inf at index 1, want finite weights of less than 1.8e+19; 1 such values in all`, false, diverged, []string{two}},
		{[]string{"nan", "inf"}, `not usable: nan.onnx: tensor "fc.weight": value NaN at index 4, want finite weights of less than 1.8e+19; 1 such values in all`, false, diverged, []string{two}},
		{[]string{"ckpt-1", "ckpt-1"}, "not usable: ckpt-1.onnx and ckpt-1.onnx are the same", false, "give every checkpoint once", []string{two}},
		{[]string{"ckpt-1", "wider"}, `not usable: wider.onnx: tensor "conv.weight": shape [4 1 3 3], want [2 1 3 3] as in ckpt-1.onnx`,
			false, `also tensor "fc.weight": shape [3 4], want [3 2]`, []string{two}},
		{[]string{"ckpt-1", "double"}, `not usable: double.onnx: tensor "conv.weight": type double, want float as in ckpt-1.onnx`,
			false, "all checkpoints must come from one network", []string{two}},
		{[]string{"ckpt-1", "again"}, "not usable: no tensor differs between the files", false, "", []string{two}},
		{[]string{"weightless"}, "not usable: no floating-point weights in it", false, "", nil},
	} {
		d := diagnose(t, c.models...)
		if d.Verdict != c.verdict || d.Usable != c.usable {
			t.Errorf("%q: %q, usable %v, want %q, %v", c.models, d.Verdict, d.Usable, c.verdict, c.usable)
		}
		if !slices.Equal(d.Warnings, c.warnings) {
			t.Errorf("%q: warnings %q, want %q", c.models, d.Warnings, c.warnings)
		}
		hints := strings.Join(d.Hints, "\n")
		if !strings.Contains(hints, c.hint) || c.hint == "" && hints != "" {
			t.Errorf("%q: hints %q, want %q", c.models, d.Hints, c.hint)
		}
	}
}

// As many checkpoints as the paper has columns are enough.
func TestEnough(t *testing.T) {
	t.Parallel()
	model := parse(t, "ckpt-1")[0]
	for n, warned := range map[int]bool{1: false, 2: true, 19: true, 20: false, 30: false} {
		d := Diagnosis{Files: make([]fileInfo, n)}
		if d.warn(model, nil, nil); (len(d.Warnings) == 1) != warned {
			t.Errorf("%d checkpoints: %q", n, d.Warnings)
		}
	}
}

// The norms and distances are those of plain loops over the weights.
func TestMoved(t *testing.T) {
	t.Parallel()
	names := []string{"ckpt-1", "ckpt-2", "ckpt-10"}
	d, models := diagnose(t, names...), parse(t, names...)
	set, err := checkpoints.New(models)
	if err != nil {
		t.Fatal(err)
	}
	var before weights.Slice
	for i, m := range models {
		v, err := m.Vector(set.Layout, weights.Parameter)
		if err != nil {
			t.Fatal(err)
		}
		theta := make(weights.Slice, v.Len())
		if err := v.ReadAt(theta, 0); err != nil {
			t.Fatal(err)
		}
		var norm, moved float64
		for j, w := range theta {
			norm += float64(w) * float64(w)
			if before != nil {
				moved += math.Pow(float64(w)-float64(before[j]), 2)
			}
		}
		f := d.Files[i]
		if f.Norm == nil || math.Abs(*f.Norm-math.Sqrt(norm)) > 1e-12 {
			t.Errorf("%s: norm %v, want %v", f.Path, f.Norm, math.Sqrt(norm))
		}
		switch {
		case i == 0:
			if f.Moved != nil {
				t.Errorf("the first moved by %v", *f.Moved)
			}
		case f.Moved == nil || math.Abs(*f.Moved-math.Sqrt(moved/norm)) > 1e-12:
			t.Errorf("%s: moved %v, want %v", f.Path, f.Moved, math.Sqrt(moved/norm))
		}
		before = theta
	}
	if d.Parameters != int64(len(before)) {
		t.Errorf("%d parameters, want %d", d.Parameters, len(before))
	}
}

func TestWriteText(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		models []string
		want   string
	}{
		{[]string{"ckpt-1", "nan"}, `ckpt-1.onnx
… nan.onnx, 2 files
  producer  make.py, opset 17, IR 8, 654 B
  input     input  float [batch 1 4 4]
  output    logits  float [batch 3]
  weights   31, in parameter tensors: 5; batch-norm layers: 1; constant float tensors: 0

tensor           shape    type  role
conv.weight      2 1 3 3  F32   parameter
fc.weight        3 2      F32   parameter
fc.bias          3        F32   parameter
bn.weight        2        F32   parameter
bn.bias          2        F32   parameter
bn.running_mean  2        F32   statistic
bn.running_var   2        F32   statistic

parameter  5: differ between checkpoints
statistic  2: batch norm reads its running statistics from them

checkpoint      ‖θ‖     moved  implausible
ckpt-1.onnx  5.1306    —
nan.onnx     6.4917  128.04 %            1

warning: 2 checkpoints: the covariance has rank 2, and 20 or more are better
verdict: not usable: nan.onnx: tensor "fc.weight": value NaN at index 4, want finite weights of less than 1.8e+19; 1 such values in all
`},
		// Files that are not of one network have no tensors to show.
		{[]string{"ckpt-1", "wider"}, `ckpt-1.onnx
… wider.onnx, 2 files
  producer  make.py, opset 17, IR 8, 654 B
  input     input  float [batch 1 4 4]
  output    logits  float [batch 3]
  weights   0, in parameter tensors: 0; batch-norm layers: 1; constant float tensors: 0

warning: 2 checkpoints: the covariance has rank 2, and 20 or more are better
verdict: not usable: wider.onnx: tensor "conv.weight": shape [4 1 3 3], want [2 1 3 3] as in ckpt-1.onnx
`},
	} {
		var b strings.Builder
		if err := diagnose(t, c.models...).WriteText(&b, report.Screen{Verbose: true}); err != nil || b.String() != c.want {
			t.Errorf("%q: %v, got\n%s\nwant\n%s", c.models, err, b.String(), c.want)
		}
	}

	// What no small model of ours has: tied tensors, and dimensions without a name.
	d := Diagnosis{Files: []fileInfo{{Path: "m.onnx"}}, Inputs: []tensorInfo{{"x", "float", []int64{-1, 3, -1}, []string{"", "", "width"}}},
		Tensors: []weights.Tensor{{Name: "head", Shape: []int64{2, 3}, DType: weights.F32, Role: weights.Parameter, Tied: "embedding", Transposed: true}}}
	var b strings.Builder
	if err := d.WriteText(&b, report.Screen{Verbose: true}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"input     x  float [? 3 width]\n", "parameter, tied to embedding, transposed\n", "parameter  1: what more checkpoints would show to differ\n"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
}

// Tensors come in groups of one role and one reason; each by itself only where they are few.
func TestWriteTensors(t *testing.T) {
	t.Parallel()
	var tensors []weights.Tensor
	for i := range 70 {
		x := weights.Tensor{Name: fmt.Sprintf("t%d", i), Shape: []int64{2}, DType: weights.F32, Role: weights.Parameter}
		if i%10 == 9 {
			x.Role, x.Reason = weights.Buffer, []string{"its name", "its values"}[i/10%2]
		}
		tensors = append(tensors, x)
	}
	groups := `parameter  63: differ between checkpoints
buffer     4: its name: "t9", "t29", "t49" and 1 more
buffer     3: its values: "t19", "t39", "t59"
`
	for all, want := range map[bool]string{false: groups + "the inspection with Verbose lists each of the 70 tensors\n\n", true: "t69     2      F32   buffer\n\n" + groups + "\n"} {
		var b strings.Builder
		if err := WriteTensors(&b, report.Screen{Verbose: true}, tensors, 2, all); err != nil || !strings.HasSuffix(b.String(), want) || all != strings.Contains(b.String(), "t0 ") {
			t.Errorf("%v: %v\n%s\nwant\n%s", all, err, b.String(), want)
		}
	}
}

// Members have the last checkpoint's buffers where nothing makes new ones, which is a
// warning with its size: here the last of 2, 4 and 9 is 4/9 of itself from the mean.
func TestBuffersWarn(t *testing.T) {
	t.Parallel()
	l, err := weights.NewLayout([]weights.Tensor{{Name: "w", Shape: []int64{1}, DType: weights.F32, Role: weights.Parameter},
		{Name: "ema_w", Shape: []int64{1}, DType: weights.F32, Role: weights.Buffer, Reason: "its name"}})
	if err != nil {
		t.Fatal(err)
	}
	notes, warnings := Buffers(parse(t, "ckpt-1")[0], l, [][]float32{{2}, {4}, {9}})
	want := `buffers: "ema_w" (its name). They are kept out of the average, and every member has the last checkpoint's, which differ by 44.4 % from the average of all 3 checkpoints. If they are weights, the fit with Role NAME=parameter would average them`
	if len(notes) != 0 || len(warnings) != 1 || warnings[0] != want {
		t.Errorf("notes %q, warnings %q, want %q", notes, warnings, want)
	}
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

// A text that is cut short anywhere is an error.
func TestWriteTextFails(t *testing.T) {
	t.Parallel()
	d := diagnose(t, "ckpt-1", "ckpt-2")
	var whole bytes.Buffer
	if err := d.WriteText(&whole, report.Screen{Verbose: true}); err != nil {
		t.Fatal(err)
	}
	for n := range whole.Len() {
		room := full(n)
		if err := d.WriteText(&room, report.Screen{Verbose: true}); !errors.Is(err, errFull) {
			t.Fatalf("%d of %d bytes: %v", n, whole.Len(), err)
		}
	}
}

// JSON has null where there is no number, lists that are never null, and free
// dimensions as −1.
func TestJSON(t *testing.T) {
	t.Parallel()
	js, err := json.Marshal(diagnose(t, "ckpt-1", "ckpt-2"))
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Producer string
		Opset    int
		Inputs   []struct {
			Name, Type string
			Shape      []int64
		}
		Parameters int
		BatchNorms int `json:"batch_norm_layers"`
		Files      []struct {
			Path, SHA256 string
			Norm, Moved  *float64
		}
		Duplicates [][2]string
		Warnings   []string
		Usable     bool
		Hints      []string
	}
	if err := json.Unmarshal(js, &got); err != nil {
		t.Fatal(err)
	}
	if got.Producer != "make.py" || got.Opset != 17 || got.Parameters != 31 || got.BatchNorms != 1 || !got.Usable || len(got.Warnings) != 1 {
		t.Errorf("%s", js)
	}
	if got.Duplicates == nil || got.Hints == nil {
		t.Errorf("null for a list: %s", js)
	}
	if in := got.Inputs; len(in) != 1 || in[0].Type != "float" || !slices.Equal(in[0].Shape, []int64{-1, 1, 4, 4}) {
		t.Errorf("inputs %+v", in)
	}
	if f := got.Files; len(f) != 2 || f[0].Moved != nil || f[1].Moved == nil || f[0].Norm == nil || f[1].Path != "ckpt-2.onnx" || len(f[1].SHA256) != 64 {
		t.Errorf("files %+v", f)
	}
}

func TestOfStops(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if d, err := Diagnose(ctx, parse(t, "ckpt-1", "ckpt-2")); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, %v", d, err)
	}
}

func TestFolded(t *testing.T) {
	t.Parallel()
	if path, sign := Folded(parse(t, "ckpt-1", "folded-2", "folded-1")); path != "folded-2.onnx" || sign == nil {
		t.Errorf("%q, %v", path, sign)
	}
	if path, sign := Folded(parse(t, "ckpt-1", "ckpt-2")); path != "" || sign != nil {
		t.Errorf("%q, %v", path, sign)
	}
}
