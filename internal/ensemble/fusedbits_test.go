package ensemble_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/swagwrap/swagwrap/fixtures/infertest"
	"github.com/swagwrap/swagwrap/fixtures/testfile"
	"github.com/swagwrap/swagwrap/internal/ensemble"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/onnxio"
	"github.com/swagwrap/swagwrap/swag"
)

// Members in float16 and in 8 bits give nearly what score gives, and the operators of the network compute in these types: with batch
// norm of one and two dimensions, residuals, and convolutions of each channel alone.
func TestFusedInFewerBits(t *testing.T) {
	t.Parallel()
	e := engine(t)
	for _, c := range []struct {
		name       string
		half, int8 float64 // tolerances
		layers     int     // of a member in 8 bits
		whole      int     // matrices of a member in float16 that stay in float32: of recurrent layers, and those that an If reads
	}{
		{"torch-torchscript", 0.01, 0.06, 4, 0},
		{"torch-dynamo", 0.01, 0.06, 4, 0},
		{"bn-1d-3d/torchscript-opset13", 0.01, 0.06, 3, 0},
		{"bn-1d-3d/torchscript-opset7", 0.01, 0, 0, 0},
		{"torchvision-mobile/torchscript", 1e-4, 1e-3, 11, 0},
		{"transformer-tied/dynamo", 1e-3, 0.01, 5, 0},
		{"transformer-tied/torchscript-folding", 1e-3, 0.01, 5, 0},
		{"keras-tf2onnx/fused-bn", 0.01, 0.06, 4, 0},
		{"jax2onnx/nnx", 0.01, 0.06, 4, 0},
		{"attention", 0.01, 0.06, 1, 0},
		{"partly in float16", 0.01, 0.06, 3, 5},
		{"lstm/dynamo", 0.01, 0.06, 1, 0},
		{"lstm/torchscript", 0.01, 0.06, 1, 0},
		{"lstm/torchscript-default", 0.01, 0.06, 1, 6},
		{"control-flow/cond-dynamo", 0.01, 0.06, 1, 2},
		{"control-flow/cond-frozen", 0.01, 0.06, 1, 2},
		{"control-flow/cond-torchscript", 0.01, 0.06, 1, 2},
		{"control-flow/if-body-initializers", 0.01, 0.06, 1, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			var info struct{ Checkpoints []string }
			if made := map[string]func(*testing.T, int) []string{"attention": attention, "partly in float16": partly}[c.name]; made != nil {
				info.Checkpoints = made(t, 3)
			} else {
				testfile.JSON(t, infertest.Path(infertest.Exporters, c.name, "golden.json"), &info)
			}
			var models []*onnxio.Model
			for _, f := range info.Checkpoints {
				if !filepath.IsAbs(f) {
					f = infertest.Path(infertest.Exporters, c.name, f)
				}
				models = append(models, infertest.Open(t, f))
			}
			n := infertest.Network(t, infertest.FitWith(t, swag.FitOptions{Rank: 2}, models...))
			shape := slices.Clone(n.Input.Shape[1:])
			for i, d := range shape {
				if d < 0 {
					shape[i] = 5
				}
			}
			data := made{shape, 40, !n.Input.ElemType.DType().IsFloat()}
			networks := []*infer.Network{n}
			mix := members(networks, 3, nil)
			want := scored(t, e, mix, networks, data)

			half := &ensemble.Fused{Ensemble: mix, Networks: networks, Members: mix.All(), Half: true}
			m := infertest.Open(t, files(t, e, half))
			near(t, run(t, e, m, data), want, c.half)
			whole := 0
			for _, w := range m.Graph.Initializers {
				if w.ElemType == onnxio.Float && len(w.Shape) > 1 && strings.HasPrefix(w.Name, "member") {
					whole++
				}
			}
			if whole != c.whole*3 {
				t.Errorf("%d matrices in float32, want %d", whole, c.whole*3)
			}

			if c.layers == 0 { // its opset has no step for each channel
				return
			}
			eight := &ensemble.Fused{Ensemble: mix, Networks: networks, Members: mix.All()}
			if err := eight.Calibrate(t.Context(), e, data); err != nil {
				t.Fatal(err)
			}
			m = infertest.Open(t, files(t, e, eight))
			near(t, run(t, e, m, data), want, c.int8)
			layers := 0
			for _, w := range m.Graph.Initializers {
				if w.ElemType == onnxio.Int8 && len(w.Shape) > 1 {
					layers++
				}
			}
			if layers != c.layers*3 {
				t.Errorf("%d matrices in int8, want %d", layers, c.layers*3)
			}
		})
	}
}

// attention writes checkpoints of a network whose product of matrices takes the places first and then the batch, as that of
// torch.nn.MultiheadAttention does.
func attention(t *testing.T, count int) (paths []string) {
	const places, width = 6, 8
	return drawn(t, count, func(r *rand.Rand) [][]byte {
		return [][]byte{
			graphNode("LayerNormalization", "norm", text(1, "x"), text(1, "scale"), text(1, "shift")),
			graphNode("Transpose", "first", text(1, "norm"), listAttribute("perm", 1, 0, 2)),
			graphNode("MatMul", "product", text(1, "first"), text(1, "w")),
			graphNode("Transpose", "back", text(1, "product"), listAttribute("perm", 1, 0, 2)),
			graphNode("Add", "sum", text(1, "x"), text(1, "back")),
			graphNode("ReduceMean", "y", text(1, "sum"), listAttribute("axes", 1), field(5, text(1, "keepdims"), number(3, 0), number(20, 2))),
			normal("scale", 1, 0.1, r, width), normal("shift", 0, 0.1, r, width), normal("w", 0, 0.5, r, width, width),
			field(11, value("x", places, width)), field(12, value("y", width)),
		}
	})
}

// partly writes checkpoints of a network that computes partly in float32: recurrent layers with omitted inputs and outputs, control flow,
// and Celu. It has equal tensors of which one stays in float32, nodes without names, and an empty sequence.
func partly(t *testing.T, count int) (paths []string) {
	const places, width, hidden, classes = 5, 6, 4, 3
	omitted := text(1, "")
	size := field(5, text(1, "hidden_size"), number(3, hidden), number(20, 2))
	branch := func(name, op, out string) []byte {
		graph := [][]byte{graphNode("MatMul", out+"_own", text(1, "both"), text(1, "again")), graphNode(op, out, text(1, out+"_own")),
			text(2, name), field(12, value(out, hidden))}
		return field(5, text(1, name), field(6, graph...), number(20, 5))
	}
	return drawn(t, count, func(r *rand.Rand) [][]byte {
		seed := r.Uint64()
		tied := func(name string) []byte { return normal(name, 0, 0.5, rand.New(rand.NewPCG(seed, 1)), hidden, hidden) }
		return [][]byte{
			graphNode("Transpose", "turned", text(1, "x"), listAttribute("perm", 1, 0, 2)),
			field(1, text(1, "turned"), text(1, "w1"), text(1, "r1"), text(1, "no_bias"), text(2, ""), text(2, "state"), text(2, ""), text(4, "LSTM"), size),
			field(1, text(1, "turned"), text(1, "w2"), text(1, "r2"), omitted, omitted, text(1, "state"), text(2, ""), text(2, "last"), text(4, "RNN"), size),
			graphNode("Squeeze", "both", text(1, "last"), text(1, "zero")),
			graphNode("MatMul", "once_more", text(1, "both"), text(1, "once")),
			graphNode("Celu", "bent", text(1, "once_more")),
			graphNode("ReduceMean", "mean", text(1, "x"), field(5, text(1, "keepdims"), number(3, 0), number(20, 2))),
			graphNode("IsNaN", "missing", text(1, "mean")),
			graphNode("If", "branched", text(1, "missing"), branch("then_branch", "Neg", "t"), branch("else_branch", "Tanh", "e")),
			graphNode("Add", "sum", text(1, "bent"), text(1, "branched")),
			graphNode("SequenceEmpty", "none"),
			graphNode("SequenceInsert", "one", text(1, "none"), text(1, "sum")),
			graphNode("SequenceAt", "out_of_it", text(1, "one"), text(1, "zero")),
			graphNode("Gemm", "wide", text(1, "out_of_it"), text(1, "widening"), text(1, "nothing")),
			graphNode("MatMul", "y", text(1, "wide"), text(1, "last_w")),
			normal("w1", 0, 0.5, r, 1, 4*hidden, width), normal("r1", 0, 0.5, r, 1, 4*hidden, hidden), normal("no_bias", 0, 0, r, 1, 8*hidden),
			normal("w2", 0, 0.5, r, 1, hidden, width), normal("r2", 0, 0.5, r, 1, hidden, hidden),
			tied("once"), tied("again"), normal("widening", 0, 0.5, r, hidden, 8*hidden),
			normal("nothing", 0, 0, r, 1, 8*hidden),
			normal("last_w", 0, 0.5, r, 8*hidden, classes), field(5, number(1, 1), number(2, 7), text(8, "zero"), number(7, 0)),
			field(11, value("x", places, width)), field(12, value("y", classes)),
		}
	})
}

// drawn writes checkpoints of a network with drawn weights.
func drawn(t *testing.T, count int, graph func(r *rand.Rand) [][]byte) (paths []string) {
	for k := range count {
		fields := append(graph(rand.New(rand.NewPCG(uint64(k), 5))), text(2, "g"))
		path := filepath.Join(t.TempDir(), fmt.Sprintf("%d.onnx", k))
		if err := os.WriteFile(path, bytes.Join([][]byte{number(1, 8), field(8, number(2, 17)), field(7, fields...)}, nil), 0o600); err != nil {
			t.Fatal(err)
		}
		paths = append(paths, path)
	}
	return paths
}

func graphNode(op, out string, fields ...[]byte) []byte {
	return field(1, append(fields, text(2, out), text(4, op))...)
}

func listAttribute(name string, values ...int) []byte {
	a := [][]byte{text(1, name), number(20, 7)}
	for _, v := range values {
		a = append(a, number(8, v))
	}
	return field(5, a...)
}

// normal encodes an initializer of normally distributed numbers.
func normal(name string, centre, spread float64, r *rand.Rand, shape ...int) []byte {
	fields, size := [][]byte{number(2, 1), text(8, name)}, 1
	for _, d := range shape {
		fields, size = append(fields, number(1, d)), size*d
	}
	var raw []byte
	for range size {
		raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(float32(centre+spread*r.NormFloat64())))
	}
	return field(5, append(fields, field(9, raw))...)
}
