package infer_test

import (
	"context"
	"errors"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/swagwrap/swagwrap/fixtures/infertest"
	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/onnxio"
	"github.com/swagwrap/swagwrap/swag"
	"github.com/swagwrap/swagwrap/weights"
)

func TestParseStatistics(t *testing.T) {
	t.Parallel()
	for _, s := range []infer.Statistics{infer.RecomputeTrained, infer.RecomputeAll, infer.KeepAll} {
		if got, err := infer.ParseStatistics(s.String()); err != nil || got != s {
			t.Errorf("%s: %v, %v", s, got, err)
		}
	}
	_, err := infer.ParseStatistics("none")
	infertest.WantError(t, err, `"none": want one of auto, recompute or keep`)
}

// What the graph says of scores is held against the model card.
func TestCard(t *testing.T) {
	t.Parallel()
	m := infertest.Open(t, infertest.Path(infertest.Small, "ckpt-1.onnx"))
	_, err := infer.ReadGraph(m, "", swag.Card{Task: "binary"})
	infertest.WantError(t, err, `3 numbers for an example, and the task binary has one score`)
	g, err := infer.ReadGraph(m, "", swag.Card{Task: "classes"})
	if err != nil || g.Known().About().Name != "classes" {
		t.Fatalf("%v, %v", g, err)
	}
	if g.CheckNames(nil) != nil || g.CheckNames([]string{"a", "b", "c"}) != nil {
		t.Error("three names do not suit three classes")
	}
	infertest.WantError(t, g.CheckNames([]string{"a", "b"}), "2 class names, and the network has 3 classes")
}

// Graphs that take what we cannot give, or give nothing.
func TestReadGraphRefused(t *testing.T) {
	t.Parallel()
	value := onnxio.Value{Name: "x", Shape: []int64{-1, 3}}
	for want, g := range map[string]*onnxio.Graph{
		"the network has no output":          {Inputs: []onnxio.Value{value}},
		"the network takes no input":         {Outputs: []onnxio.Value{{Name: "z"}}},
		`tensor "y": the input has no batch`: {Inputs: []onnxio.Value{{Name: "x", ElemType: onnxio.Float, Shape: []int64{-1}}, {Name: "y", ElemType: onnxio.Int64, Shape: []int64{}}}, Outputs: []onnxio.Value{{Name: "z"}}},
		"a cache with a sliding window": {Inputs: []onnxio.Value{{Name: "x", ElemType: onnxio.Int64, Shape: []int64{-1, -1}}, {Name: "past.0._sliding_window_tensor", ElemType: onnxio.Int64, Shape: []int64{}}},
			Outputs: []onnxio.Value{{Name: "z"}}},
		`tensor "y": an input of type string, want a float type, an integer type or bool`: {Inputs: []onnxio.Value{
			{Name: "x", ElemType: onnxio.Float, Shape: []int64{-1}}, {Name: "y", ElemType: onnxio.String, Shape: []int64{-1}}}, Outputs: []onnxio.Value{{Name: "z"}}},
		`tensor "y": takes batches of 3 only, and input "x" of 2`: {Inputs: []onnxio.Value{
			{Name: "x", ElemType: onnxio.Float, Shape: []int64{2}}, {Name: "y", ElemType: onnxio.Float, Shape: []int64{3}}}, Outputs: []onnxio.Value{{Name: "z"}}},
		"the input has no batch dimension": {Inputs: []onnxio.Value{{Name: "x"}}, Outputs: []onnxio.Value{{Name: "z"}}},
		`output "probs": want z`:           {Inputs: []onnxio.Value{value}, Outputs: []onnxio.Value{{Name: "z"}}},
		"shape [batch 21 64], want a row of scores": {Inputs: []onnxio.Value{value},
			Outputs: []onnxio.Value{{Name: "probs", Shape: []int64{-1, 21, 64}, Dims: []string{"batch", "", ""}}}},
		"shape [], want a row of scores": {Inputs: []onnxio.Value{value}, Outputs: []onnxio.Value{{Name: "probs", Shape: []int64{}}}},
	} {
		_, err := infer.ReadGraph(&onnxio.Model{Graph: g}, "probs", swag.Card{})
		infertest.WantError(t, err, want)
	}
}

// Scores for pixels and for positions of a sequence are no row of scores. Names of axes and the number of axes tell which
// axis has the scores of a position. If they do not, the hint asks for it, and names the outputs that may be a row.
func TestNotARow(t *testing.T) {
	t.Parallel()
	ids := onnxio.Value{Name: "ids", ElemType: onnxio.Int64, Shape: []int64{-1, -1}, Dims: []string{"batch", "t"}}
	pooled := onnxio.Value{Name: "pooled", Shape: []int64{-1, 8}, Dims: []string{"batch", ""}}
	pixels := onnxio.Value{Name: "x", ElemType: onnxio.Float, Shape: []int64{-1, 3, -1, -1}, Dims: []string{"batch", "", "h", "w"}}
	last := onnxio.Value{Name: "x", ElemType: onnxio.Float, Shape: []int64{-1, 8, 8, 3}, Dims: []string{"batch", "", "", ""}}
	const refused = 9
	for _, tt := range []struct {
		in    onnxio.Value
		shape []int64
		dims  []string
		axis  int // 0 if it may be a row
	}{
		{ids, []int64{-1, -1, 20}, []string{"batch", "t", ""}, -1},
		{ids, []int64{-1, 20, -1}, []string{"batch", "", "t"}, 1},
		{ids, []int64{-1, 5, 20}, []string{"batch", "", ""}, refused},
		{ids, []int64{-1, 3, 8, 8}, []string{"batch", "", "", ""}, refused},
		{pixels, []int64{-1, 3, 8, 8}, []string{"batch", "", "", ""}, 1},
		{pixels, []int64{-1, 11, -1, -1}, []string{"batch", "", "h", "w"}, 1},
		{pixels, []int64{-1, -1, -1, 11}, []string{"batch", "h", "w", ""}, -1},
		{pixels, []int64{-1, 11, -1, -1}, []string{"batch", "", "4*(((h - 1)//4)) + 4", "2*w"}, 1},
		{ids, []int64{-1, -1, 20}, []string{"batch", "t - 1", ""}, -1},
		{last, []int64{-1, 8, 8, 11}, []string{"batch", "", "", ""}, refused},
		{ids, []int64{-1, -1, 20}, []string{"batch", "other", ""}, 0}, // may be 1
		{ids, []int64{-1, 10, -1, -1}, []string{"batch", "", "h", "w"}, 0},
		{ids, []int64{-1, -1}, []string{"batch", "t"}, 0},
		{ids, []int64{-1, 10, 1, 1}, []string{"batch", "", "", ""}, 0},
	} {
		out := onnxio.Value{Name: "y", Shape: tt.shape, Dims: tt.dims}
		g, err := infer.ReadGraph(&onnxio.Model{Graph: &onnxio.Graph{Inputs: []onnxio.Value{tt.in}, Outputs: []onnxio.Value{out, pooled}}}, "y", swag.Card{})
		asks := (*onnxio.Error)(nil)
		switch {
		case errors.As(err, &asks) != (tt.axis == refused):
			t.Errorf("%v %v: error %v, want it to be refused: %t", tt.shape, tt.dims, err, tt.axis == refused)
		case asks != nil && (!strings.Contains(asks.Hint, "ClassAxis -1") || !strings.Contains(asks.Hint, "OutputName pooled")):
			t.Errorf("%v: hint %q, want the flag and the other output", tt.shape, asks.Hint)
		case asks == nil && g.Axis() != tt.axis:
			t.Errorf("%v %v: scores along axis %d, want %d", tt.shape, tt.dims, g.Axis(), tt.axis)
		}
	}
}

// A task with several positions names the axis of its scores. All other axes behind the batch are positions.
func TestPositions(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		axis  int
		shape []int64
		want  infer.Layout
	}{
		{-1, []int64{-1, 5, 20}, infer.Layout{Count: 20, Positions: 5, Sides: [3]int{5}}},
		{-1, []int64{4, -1, 20}, infer.Layout{Count: 20, Positions: 0}},
		{1, []int64{-1, 21, 6, 4}, infer.Layout{Count: 21, Positions: 24, Sides: [3]int{6, 4}}},
		{1, []int64{2, 21, -1, -1}, infer.Layout{Count: 21, Positions: 0}},
		{1, []int64{-1, 21, 2, 3, 4}, infer.Layout{Count: 21, Positions: 24, Sides: [3]int{2, 3, 4}}},
		{0, []int64{-1, 21, 1, 1}, infer.Layout{Count: 21, Positions: 1}},
		{-1, nil, infer.Layout{Positions: 1}},
	} {
		got, err := infer.LayoutOf(tt.axis, onnxio.Value{Shape: tt.shape, Dims: make([]string, len(tt.shape))}, nil)
		if err != nil || got != tt.want {
			t.Errorf("%v with scores along axis %d: %+v, %v, want %+v", tt.shape, tt.axis, got, err, tt.want)
		}
	}
}

// What a network takes and gives is described in words.
func TestPermits(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		in, out     []int64
		op, card    string
		takes, give string // or what the error holds
	}{
		{[]int64{-1, 3, 32, 32}, []int64{-1, 10}, "Softmax", "", "coloured pictures, or arrays of shape [3 32 32]", `output "y": 10 classes, a probability for each`},
		{[]int64{-1, 3, -1, -1}, []int64{-1, 10, 1, 1}, "LogSoftmax", "", "coloured pictures, or arrays of shape [3 ? ?]", `output "y": 10 classes, a log-probability for each`},
		{[]int64{8, 28, 28, 1}, []int64{8, 1}, "Sigmoid", "", "grey pictures, or arrays of shape [28 28 1], in batches of 8 only", `output "y": the probability of class 1 of 2`},
		{[]int64{1, 7}, []int64{1, 10}, "Gemm", "classes", "arrays of shape [7], in batches of 1 only", `output "y": 10 classes, a logit for each`},
		{[]int64{-1, 7}, []int64{-1, -1}, "Gemm", "classes", "arrays of shape [7]", `output "y", for the task "classes"`},
		{[]int64{-1, 7}, []int64{-1, 10}, "Gemm", "", "arrays of shape [7]", "10 numbers for an example, with no activation behind"},
		{[]int64{-1, 7}, []int64{-1, 10}, "Sigmoid", "", "arrays of shape [7]", "do not exclude each other"},
	} {
		dims := func(n int) []string { return make([]string, n) }
		g, err := infer.ReadGraph(&onnxio.Model{Graph: &onnxio.Graph{Nodes: []onnxio.Node{{OpType: tc.op, Inputs: []string{"x"}, Outputs: []string{"y"}}},
			Inputs:  []onnxio.Value{{Name: "x", Shape: tc.in, Dims: dims(len(tc.in))}},
			Outputs: []onnxio.Value{{Name: "y", Shape: tc.out, Dims: dims(len(tc.out))}}}}, "", swag.Card{Task: tc.card})
		if err != nil {
			t.Errorf("%+v: %v", tc, err)
			continue
		}
		gives, err := g.Gives()
		if err != nil {
			gives = err.Error()
		}
		if g.TakesPictures() != strings.Contains(tc.takes, "pictures") {
			t.Errorf("takes %q, and pictures: %v", g.Takes(), g.TakesPictures())
		}
		if g.Takes() != tc.takes || !strings.Contains(gives, tc.give) {
			t.Errorf("takes %q, gives %q, want %q and %q", g.Takes(), gives, tc.takes, tc.give)
		}
	}
}

func TestCheckpointPath(t *testing.T) {
	t.Parallel()
	p := &swag.Posterior{Path: "run/p.safetensors"}
	for _, tc := range []struct{ path, folder, want string }{
		{"ckpt/a.onnx", "", "run/ckpt/a.onnx"},
		{"/data/a.onnx", "", "/data/a.onnx"},
		{"ckpt/a.onnx", "moved", "moved/a.onnx"},
	} {
		if got := infer.CheckpointPath(p, swag.Checkpoint{Path: tc.path}, tc.folder); got != filepath.FromSlash(tc.want) {
			t.Errorf("%s in %q: %s, want %s", tc.path, tc.folder, got, tc.want)
		}
	}
}

// A posterior that refers to its checkpoints has the members of one that holds all
// itself, and refuses checkpoints that have changed.
func TestAttach(t *testing.T) {
	t.Parallel()
	models := infertest.Two(t, "ckpt")
	whole := infertest.Fit(t, models...)
	draw := func(p *swag.Posterior) (out weights.Slice) {
		t.Helper()
		err := infer.EachMember(t.Context(), nil, p, swag.SampleOptions{Seed: 1, Scale: 0.5}, 0, 1, func(_ int, parameters weights.Vector) error {
			out = make(weights.Slice, parameters.Len())
			return parameters.ReadAt(out, 0)
		})
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	refers := infertest.FitWith(t, swag.FitOptions{ReferToCheckpoints: true}, models...)
	n := infertest.Network(t, refers)
	if err := n.Attach(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(draw(refers), draw(whole)) {
		t.Error("other members")
	}
	if set, err := n.Continue(infertest.Two(t, "ckpt")); err != nil || len(set.Models) != 2 {
		t.Errorf("further checkpoints: %v", err)
	}
	if _, err := n.Continue([]*onnxio.Model{infertest.Open(t, infertest.Path(infertest.Small, "wider.onnx"))}); err == nil {
		t.Error("a wider network continues this one")
	}

	changed := infertest.Network(t, infertest.FitWith(t, swag.FitOptions{ReferToCheckpoints: true}, models...))
	changed.Posterior.Checkpoints[1].SHA256 = "00"
	infertest.WantError(t, changed.Attach(t.Context()), "ckpt-2.onnx: its content has the SHA-256 ")
	changed.Posterior.Checkpoints[1].Path += ".gone"
	infertest.WantError(t, changed.Attach(t.Context()), "ckpt-2.onnx.gone")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	gone := infertest.Network(t, infertest.FitWith(t, swag.FitOptions{ReferToCheckpoints: true}, models...))
	if err := gone.Attach(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// A network with weights of another template gives what it gives with its own, and
// every error of one that has no such weights says whose it is.
func TestOther(t *testing.T) {
	t.Parallel()
	p := infertest.Fit(t, infertest.Two(t, "ckpt")...)
	n, e, images := infertest.Network(t, p), infertest.Run(t), tinyImages(t)
	if n.TakesBytes() || n.Layers() != 1 || n.Output() != "logits" {
		t.Errorf("takes bytes: %v, %d layers, output %q", n.TakesBytes(), n.Layers(), n.Output())
	}
	template, err := onnxio.NewRuntimeTemplate(n.Skeleton(), p.Layout)
	if err != nil {
		t.Fatal(err)
	}
	infertest.SWA(t, p, func(parameters weights.Vector) error {
		own, err := n.Model("SWA", parameters, p.Statistics)
		if err != nil {
			return err
		}
		other, err := n.Other(template, "SWA", parameters, p.Statistics)
		if err != nil {
			return err
		}
		a, b := &infer.Sums{}, &infer.Sums{}
		if err := errors.Join(e.Predict(t.Context(), own, images, a), e.Predict(t.Context(), other, images, b)); err != nil {
			return err
		}
		if !slices.Equal(a.Outcome, b.Outcome) || own.Name != p.Path+": SWA" || other.Name != own.Name {
			t.Errorf("%s and %s differ", own.Name, other.Name)
		}
		wrong := infertest.Data(t, infertest.Path(infertest.Small, "five-by-five.npz"), dataset.Options{})
		infertest.WantError(t, e.Predict(t.Context(), own, wrong, &infer.Sums{}), p.Path+": SWA: ")
		return nil
	})
	if err := infer.EachMember(t.Context(), nil, p, swag.SampleOptions{Scale: -1}, 0, 1, func(int, weights.Vector) error { return nil }); err == nil {
		t.Error("a scale below 0 was taken")
	}
}

// A draw that makes a tensor under a root negative is refused: the graph adds 0.001 to it first. Others are taken.
func TestRoots(t *testing.T) {
	t.Parallel()
	var models []*onnxio.Model
	for _, epoch := range []string{"1", "2", "3"} {
		models = append(models, infertest.Open(t, infertest.Path("fixtures/buffers/checkpoints/learned-ts-"+epoch+".onnx")))
	}
	p := infertest.Fit(t, models...)
	n := infertest.Network(t, p)
	under, ok := p.Layout.Find("1.var")
	if !ok || under.Role != weights.Parameter {
		t.Fatalf("%+v, want a parameter", under)
	}
	draw := make(weights.Slice, p.Layout.Len(weights.Parameter))
	for i := range draw {
		draw[i] = 1
	}
	for _, c := range []struct {
		value float32
		taken bool
	}{{0, true}, {-0.0009, true}, {-0.0011, false}, {float32(math.NaN()), false}} {
		draw[under.Offset+1] = c.value
		_, err := n.State(draw)
		var refused *onnxio.Error
		if c.taken != (err == nil) || !c.taken && (!errors.As(err, &refused) || refused.Tensor != "1.var" ||
			!strings.Contains(refused.What, "at index 1, and the graph takes the root") || !strings.Contains(refused.Hint, "1.var=buffer")) {
			t.Errorf("%v: error %v", c.value, err)
		}
	}
}
