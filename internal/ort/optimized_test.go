package ort

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/swagwrap/swagwrap/onnxio"
	"github.com/swagwrap/swagwrap/onnxio/checkpoints"
	"github.com/swagwrap/swagwrap/weights"
	binding "github.com/yalue/onnxruntime_go"
)

// activations are the operators that ONNX Runtime can fuse into the convolution before them
// (onnxruntime/core/optimizer/conv_activation_fusion.cc).
var activations = []string{"Clip", "HardSigmoid", "LeakyRelu", "Relu", "Sigmoid", "Tanh"}

// cannotLoad are networks of fixtures that ONNX Runtime's CPU kernels do not run, and the reason.
var cannotLoad = map[string]string{
	"exporters/f16/bf16-dynamo/ckpt-1.onnx": "tensor(bfloat16)",
}

// In an exported model ONNX Runtime fuses every convolution with the batch norm and the activation behind it, if
// nothing else uses the values in between. float16 is an exception: it computes activations in float32. The models are those of all exporters in fixtures, and of all networks
// there. Each is exported from a checkpoint, and from a posterior, which has no weights.
func TestExportsFuse(t *testing.T) {
	root := filepath.Join("..", "..", "fixtures")
	seen, fused := make(map[string]bool), 0
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Name() == "large" { // its weights are made by a script
			return fs.SkipDir
		}
		if err != nil || filepath.Ext(path) != ".onnx" {
			return err
		}
		m, err := onnxio.Open(path)
		if err != nil {
			return err
		}
		defer m.Close()
		name, err := filepath.Rel(root, path)
		if graph := describe(m); err != nil || seen[graph] {
			return err
		} else {
			seen[graph] = true
		}
		set, err := checkpoints.New([]*onnxio.Model{m})
		if err != nil {
			return nil // such checkpoints are refused
		}
		t.Run(name, func(t *testing.T) {
			none, posterior := &weights.Layout{}, posteriorOf(t, m, set.Layout)
			for kind, c := range map[string]struct {
				*onnxio.Model
				*weights.Layout
			}{"checkpoint": {m, none}, "posterior": {posterior, set.Layout}} {
				exported := export(t, c.Model, c.Layout, m)
				checkNeeded(t, kind, m, exported)
				got, err := optimized(t, exported)
				if why, known := cannotLoad[name]; known {
					if err == nil || !strings.Contains(err.Error(), why) {
						t.Errorf("%s: %v, want an error with %q", kind, err, why)
					}
					continue
				}
				if err != nil {
					t.Fatalf("%s: %v", kind, err)
				}
				fused += checkFused(t, kind, m, got)
			}
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(seen) < 50 || fused < 200 {
		t.Errorf("%d graphs with %d fused convolutions: where are the others?", len(seen), fused)
	}
}

// describe returns the graph's operators and the shapes of its tensors.
func describe(m *onnxio.Model) string {
	var b strings.Builder
	fmt.Fprint(&b, m.ProducerName, m.IRVersion, m.Opset)
	for _, n := range m.Graph.Nodes {
		fmt.Fprint(&b, n.OpType, len(n.Inputs), " ")
	}
	for _, x := range m.Tensors() {
		fmt.Fprint(&b, x.ElemType, x.Shape)
	}
	return b.String()
}

// posteriorOf returns the model without weights, as a posterior holds it.
func posteriorOf(t *testing.T, m *onnxio.Model, l *weights.Layout) *onnxio.Model {
	t.Helper()
	template, err := onnxio.NewTemplate(m, l)
	if err != nil {
		t.Fatal(err)
	}
	out, err := template.Model(m.Path, l)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// export writes the model as users get it, with the weights of full, and returns its path.
func export(t *testing.T, m *onnxio.Model, l *weights.Layout, full *onnxio.Model) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "model.onnx")
	template, err := onnxio.NewExportTemplate(m, l)
	if err != nil {
		t.Fatal(err)
	}
	parameters, err := full.Vector(l, weights.Parameter)
	if err != nil {
		t.Fatal(err)
	}
	statistics, err := full.Vector(l, weights.Statistic)
	if err != nil {
		t.Fatal(err)
	}
	var files []*os.File
	err = template.Write(filepath.Base(path), func(name string) (io.Writer, error) {
		file := filepath.Join(filepath.Dir(path), name)
		if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
			return nil, err
		}
		f, err := os.Create(file)
		files = append(files, f)
		return f, err
	}, l, parameters, statistics)
	for _, f := range files {
		f.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// optimized returns the model at path after ONNX Runtime's optimisation. The level is "extended", because the level
// after it has another form of convolution for each processor.
func optimized(t *testing.T, path string) (*onnxio.Model, error) {
	t.Helper()
	m, err := onnxio.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	sig := m.Signature()
	to := path + ".optimized"
	so, err := binding.NewSessionOptions()
	if err != nil {
		t.Fatal(err)
	}
	defer so.Destroy()
	for _, err := range []error{so.SetIntraOpNumThreads(1), so.SetGraphOptimizationLevel(binding.GraphOptimizationLevelEnableExtended), so.SetOptimizedModelFilePath(to)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	s, err := binding.NewDynamicAdvancedSession(path, names(valueInfos(sig.Inputs)), names(valueInfos(sig.Outputs)), so)
	if err != nil {
		return nil, err
	}
	s.Destroy()
	out, err := onnxio.Open(to)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { out.Close() })
	return out, nil
}

// checkFused compares the optimised graph with the exporter's own. It returns the number of fused activations.
func checkFused(t *testing.T, kind string, m, optimized *onnxio.Model) int {
	t.Helper()
	uses := usesOf(m)
	// convolved are the values that a fused convolution can give.
	convolved := make(map[string]bool)
	keptNorms, activated := 0, 0
	for _, n := range m.Graph.Nodes {
		alone := len(n.Inputs) > 0 && convolved[n.Inputs[0]] && uses[n.Inputs[0]] == 1
		switch {
		case n.OpType == "Conv":
			convolved[n.Outputs[0]] = true
		case n.OpType == "BatchNormalization" && alone:
			convolved[n.Outputs[0]] = true
		case n.OpType == "BatchNormalization":
			keptNorms++
		case slices.Contains(activations, n.OpType) && alone:
			activated++
		}
	}
	count := make(map[string]int)
	for _, n := range optimized.Graph.Nodes {
		count[n.OpType]++
	}
	if got := count["BatchNormalization"]; got > keptNorms {
		t.Errorf("%s: %d batch norms are left, want %d: %v", kind, got, keptNorms, count)
	}
	if m.FeedInputs()[0].ElemType == onnxio.Float16 {
		activated = 0
	}
	// Some have a bias or a factor as a node of its own in between, which is fused too.
	if got := count["FusedConv"]; got < activated {
		t.Errorf("%s: %d convolutions are fused with their activation, want %d: %v", kind, got, activated, count)
	}
	return count["FusedConv"]
}

// checkNeeded fails if a constant of the exported model is no longer used. ONNX Runtime would warn of it.
func checkNeeded(t *testing.T, kind string, m *onnxio.Model, path string) {
	t.Helper()
	out, err := onnxio.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	before, after := usesOf(m), usesOf(out)
	for _, n := range out.Graph.Nodes {
		if name := n.Outputs[0]; n.OpType == "Constant" && after[name] == 0 && before[name] > 0 {
			t.Errorf("%s: nothing uses constant %q any more", kind, name)
		}
	}
}

// usesOf counts the uses of each value.
func usesOf(m *onnxio.Model) map[string]int {
	uses := make(map[string]int)
	for _, g := range m.Graphs() {
		for _, n := range g.Nodes {
			for _, in := range n.Inputs {
				uses[in]++
			}
		}
		for _, out := range g.Outputs {
			uses[out.Name]++
		}
	}
	return uses
}
