package bnupdate

import (
	"context"
	"slices"
	"testing"

	"github.com/swagwrap/swagwrap/onnxio"
	"github.com/swagwrap/swagwrap/weights"
)

// constant is a Runner of three batches in which every recomputed layer of a plan
// has the mean 2 and the unbiased variance 3.
type constant struct{ p *Plan }

func (c constant) Batches() int { return 3 }

func (c constant) Run(context.Context, int) (Batch, error) {
	b := Batch{Images: 4}
	for _, l := range c.p.layers {
		n := l.mean.Len()
		b.Mean = append(b.Mean, slices.Repeat([]float32{2}, int(n)))
		b.Var = append(b.Var, slices.Repeat([]float32{3 * 3. / 4}, int(n)))
		b.Shapes = append(b.Shapes, []int64{4, n})
	}
	return b, nil
}

// keeping plans for the first checkpoint of l's network, with statistics that name
// their own place.
func keeping(t *testing.T, m *onnxio.Model, l *weights.Layout, keep func(name string) bool) (*Plan, []float32) {
	t.Helper()
	own := make([]float32, l.Len(weights.Statistic))
	for i := range own {
		own[i] = float32(i + 1)
	}
	p, err := NewPlan(m, l, Keep{Statistics: own, Layer: func(mean, variance weights.Tensor) bool {
		if mean.Name[:len(mean.Name)-len("mean")] != variance.Name[:len(variance.Name)-len("var")] {
			t.Errorf("asked about %q and %q together", mean.Name, variance.Name)
		}
		return keep(mean.Name)
	}})
	if err != nil {
		t.Fatal(err)
	}
	return p, own
}

// rewritten renders the plan's network and reads it back.
func rewritten(t *testing.T, p *Plan, m *onnxio.Model, l *weights.Layout) *onnxio.Model {
	t.Helper()
	parameters, err := m.Vector(l, weights.Parameter)
	if err != nil {
		t.Fatal(err)
	}
	data, err := p.Template.Render(l, parameters, make(weights.Slice, len(p.kept)))
	if err != nil {
		t.Fatal(err)
	}
	out, err := onnxio.Parse("pass.onnx", data)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// Kept layers normalise by their own statistics in the pass and give nothing out;
// the others are rewritten as ever, and each has its own place in the result.
//
// Kills: a kept layer that is normalised by its batch; outputs numbered so that those
// after a kept layer are taken for another's; kept statistics left at 0.
func TestNewPlanKeeps(t *testing.T) {
	models, l := openSome(t, "epoch-01.onnx", "epoch-30.onnx")
	m := models[0]
	bns, err := m.BatchNorms()
	if err != nil {
		t.Fatal(err)
	}
	frozen := []string{bns[0].Mean, bns[4].Mean, bns[7].Mean}
	p, own := keeping(t, m, l, func(name string) bool { return slices.Contains(frozen, name) })
	if p.Layers() != 5 || len(p.Outputs) != 3*5 || !slices.Equal(p.Kept(), frozen) {
		t.Fatalf("%d layers, %d outputs, %q kept, want %q", p.Layers(), len(p.Outputs), p.Kept(), frozen)
	}

	pass := rewritten(t, p, m, l)
	if got, want := len(pass.Graph.Outputs), len(m.Graph.Outputs)+3*5; got != want {
		t.Errorf("%d graph outputs, want %d", got, want)
	}
	after, err := pass.BatchNorms()
	if err != nil || len(after) != len(bns) {
		t.Fatalf("%d batch norms, %v", len(after), err)
	}
	rest := p.Outputs
	for i, bn := range after {
		if slices.Contains(frozen, bns[i].Mean) {
			if bn.IsTraining || len(bn.Node.Outputs) != 1 || bn.Mean != bns[i].Mean {
				t.Errorf("kept layer %d: training %v, outputs %q, mean %q", i, bn.IsTraining, bn.Node.Outputs, bn.Mean)
			}
			continue
		}
		if !bn.IsTraining || !slices.Equal(bn.Node.Outputs[1:], rest[:2]) {
			t.Errorf("layer %d: training %v, outputs %q, want %q at the end", i, bn.IsTraining, bn.Node.Outputs, rest[:2])
		}
		rest = rest[3:]
	}

	res := recompute(t, p, constant{p}, Reference)
	split := func(name string) (mean, variance weights.Tensor) {
		at := slices.IndexFunc(bns, func(bn onnxio.BatchNorm) bool { return bn.Mean == name })
		mean, _ = l.Find(name)
		variance, _ = l.Find(bns[at].Var)
		return mean, variance
	}
	for _, bn := range bns {
		mean, variance := split(bn.Mean)
		for c := range mean.Len() {
			want := [2]float32{2, 3}
			if slices.Contains(frozen, bn.Mean) {
				want = [2]float32{own[mean.Offset+c], own[variance.Offset+c]}
			}
			if got := [2]float32{res.Statistics[mean.Offset+c], res.Statistics[variance.Offset+c]}; got != want {
				t.Fatalf("%s, channel %d: mean and variance %v, want %v", bn.Mean, c, got, want)
			}
		}
	}
}

// A plan that keeps all layers has nothing to run.
func TestNewPlanKeepsAll(t *testing.T) {
	models, l := openSome(t, "epoch-01.onnx", "epoch-30.onnx")
	p, own := keeping(t, models[0], l, func(string) bool { return true })
	if p.Layers() != 0 || len(p.Outputs) != 0 || len(p.Kept()) != 8 {
		t.Errorf("%d layers, outputs %q, %q kept", p.Layers(), p.Outputs, p.Kept())
	}
	pass := rewritten(t, p, models[0], l)
	if got, want := len(pass.Graph.Outputs), len(models[0].Graph.Outputs); got != want {
		t.Errorf("%d graph outputs, want %d", got, want)
	}
	if res := recompute(t, p, nil, Reference); !slices.Equal(res.Statistics, own) || res.Images != 0 || res.Batches() != 0 {
		t.Errorf("%d images in %d batches, statistics %v", res.Images, res.Batches(), res.Statistics)
	}
}

// A network that was exported in training mode would normalise by its batches: its
// kept layers are brought back to inference.
func TestNewPlanKeepsTrainingMode(t *testing.T) {
	const folder = "../../exporters/bn-1d-3d/training-mode/"
	models, l := openSome(t, folder+"ckpt-1.onnx", folder+"ckpt-2.onnx")
	before, err := models[0].BatchNorms()
	if err != nil || len(before) != 2 || !before[0].IsTraining {
		t.Fatalf("batch norms %+v, %v, want two in training mode", before, err)
	}
	p, _ := keeping(t, models[0], l, func(name string) bool { return name == before[0].Mean })
	after, err := rewritten(t, p, models[0], l).BatchNorms()
	if err != nil || len(after) != 2 {
		t.Fatalf("%d batch norms, %v", len(after), err)
	}
	if after[0].IsTraining || len(after[0].Node.Outputs) != 1 || !after[1].IsTraining {
		t.Errorf("training mode %v and %v, want the second only; outputs of the first %q", after[0].IsTraining, after[1].IsTraining, after[0].Node.Outputs)
	}
}
