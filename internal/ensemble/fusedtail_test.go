package ensemble_test

import (
	"bytes"
	"encoding/binary"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/swagwrap/swagwrap/calibrate"
	"github.com/swagwrap/swagwrap/calibrate/sets"
	"github.com/swagwrap/swagwrap/fixtures/infertest"
	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/guarantee"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/task"
	"github.com/swagwrap/swagwrap/onnxio"
	"github.com/swagwrap/swagwrap/onnxio/fused"
	"github.com/swagwrap/swagwrap/swag"
	"github.com/swagwrap/swagwrap/weights"
)

// Fields of protocol buffers.
func field(num protowire.Number, parts ...[]byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(nil, num, protowire.BytesType), bytes.Join(parts, nil))
}

func text(num protowire.Number, s string) []byte { return field(num, []byte(s)) }

func number(num protowire.Number, v int) []byte {
	return protowire.AppendVarint(protowire.AppendTag(nil, num, protowire.VarintType), uint64(v))
}

// value is float [n, sizes].
func value(name string, sizes ...int) []byte {
	dims := [][]byte{field(1, text(2, "n"))}
	for _, size := range sizes {
		dims = append(dims, field(1, number(1, size)))
	}
	return bytes.Join([][]byte{text(1, name), field(2, field(1, number(1, 1), field(2, dims...)))}, nil)
}

// shifting is a network whose scores are what it takes plus one weight for each, and then an
// activation: members can have any scores.
func shifting(opset, count int, activation string) []byte {
	return deaf(opset, count, count, activation)
}

// deaf is [shifting] that takes more numbers, and leaves out all after the first count.
func deaf(opset, taken, count int, activation string) []byte {
	weight := bytes.Join([][]byte{number(1, 1), number(1, count), number(2, 1), text(8, "w"), field(9, make([]byte, 4*count))}, nil)
	x, nodes := "x", [][]byte(nil)
	weights := field(5, weight)
	if taken > count {
		x = "first"
		places := bytes.Join([][]byte{number(1, count), number(2, 7), text(8, "places")}, nil)
		for i := range count {
			places = append(places, number(7, i)...)
		}
		weights = append(weights, field(5, places)...)
		axis := field(5, text(1, "axis"), number(3, 1), number(20, 2))
		nodes = append(nodes, field(1, text(1, "x"), text(1, "places"), text(2, x), text(4, "Gather"), axis))
	}
	nodes = append(nodes, field(1, text(1, x), text(1, "w"), text(2, "z"), text(4, "Add")))
	out := "z"
	if activation != "" {
		out = "y"
		nodes = append(nodes, field(1, text(1, "z"), text(2, "y"), text(4, activation)))
	}
	graph := bytes.Join(append(nodes, text(2, "g"), weights, field(11, value("x", taken)), field(12, value(out, count))), nil)
	return bytes.Join([][]byte{number(1, 7), field(8, number(2, opset)), field(7, graph)}, nil)
}

// What a model makes of its members' scores is what float64 makes of them, to 1e-6: where
// probabilities are too small for float32 and a temperature raises them again, where a scale is
// negative, and with many classes and many members.
func TestFusedAverage(t *testing.T) {
	t.Parallel()
	e := engine(t)
	temperature := func(v float64) *task.Calibration { return task.WithNumber("classes", v) }
	vector := func(scale, bias []float64) *task.Calibration {
		return &task.Calibration{Method: task.ByVector, Scale: scale, Bias: bias}
	}
	shared := &task.Shares{Training: []float64{0.5, 0.3, 0.2}, Now: []float64{0.1, 0, 0.9}}
	stepped := &task.Calibration{Method: task.ByVennAbers, VennAbers: &calibrate.VennAbers{Knots: []float64{-3, -1, 0.25, 2}, Zero: []float64{0, 0.2, 0.3, 0.7}, One: []float64{0.1, 0.3, 0.5, 0.9}}}
	for _, c := range []struct {
		name           string
		opset          int
		count, members int
		activation     string
		spread         float64 // of scores
		weights        []float64
		by             *task.Calibration
	}{
		{"thirty members", 13, 10, 30, "", 2, nil, nil},
		{"one member", 13, 10, 1, "", 2, nil, temperature(1.5)},
		{"old opset", 7, 10, 3, "", 2, nil, temperature(1.5)},
		{"newest axes", 18, 10, 3, "", 2, nil, nil},
		{"a thousand classes", 13, 1000, 9, "", 1, nil, temperature(1.2)},
		{"nearly uniform", 13, 1000, 5, "", 1e-3, nil, nil},
		{"a hundred classes", 13, 100, 3, "", 3, nil, nil},
		{"ten thousand classes", 13, 10_000, 3, "", 1, nil, nil},
		{"a hundred members", 13, 5, 100, "", 3, nil, nil},
		{"weights", 13, 4, 3, "", 3, []float64{0.7, 0.2, 0.1}, temperature(0.5)},
		{"sure, hot", 13, 10, 5, "", 120, nil, temperature(50)},
		{"sure, vector", 13, 3, 4, "", 20, nil, vector([]float64{1.5, 0.1, -0.5}, []float64{0.3, 0, -1})},
		{"probabilities", 13, 10, 4, "Softmax", 2, nil, temperature(2)},
		{"probabilities, some 0", 13, 3, 4, "Softmax", 300, nil, temperature(3)},
		{"probabilities, some 0, vector", 13, 3, 4, "Softmax", 300, nil, vector([]float64{1.5, 0, -0.5}, []float64{0.3, 0, -1})},
		{"log-probabilities", 13, 10, 4, "LogSoftmax", 2, nil, nil},
		{"binary", 13, 1, 5, "", 4, nil, temperature(1.7)},
		{"binary, sure", 13, 1, 5, "", 60, nil, temperature(9)},
		{"structured vector", 13, 3, 4, "", 3, nil, &task.Calibration{Method: task.ByStructured, Temperature: 1.5, Uniform: 0.01, Scale: []float64{1.2, 0.9, 1}, Bias: []float64{0.3, 0, -0.2}}},
		{"structured matrix", 7, 3, 4, "", 3, nil, &task.Calibration{Method: task.ByMatrix, Temperature: 0.8, Uniform: 0.01, Matrix: []float64{1.2, 0.1, 0, -0.2, 0.9, 0.3, 0, 0.1, 1}, Bias: []float64{0.3, 0, -0.2}}},
		{"probabilities, some 0, structured", 13, 3, 4, "Softmax", 300, nil, &task.Calibration{Method: task.ByStructured, Temperature: 3, Uniform: 0.01, Scale: []float64{1.2, 0.9, 1}, Bias: []float64{0.3, 0, -0.2}}},
		{"two classes, quadratic", 13, 2, 4, "", 3, nil, &task.Calibration{Method: task.ByQuadratic, Coefficients: []float64{0.2, 0.8, -0.03}}},
		{"binary, quadratic", 13, 1, 4, "", 3, nil, &task.Calibration{Method: task.ByQuadratic, Coefficients: []float64{0.2, 0.8, 0.03}}},
		{"two classes, Venn–Abers", 13, 2, 4, "", 3, nil, stepped},
		{"binary, Venn–Abers", 7, 1, 4, "", 3, nil, stepped},
		{"binary, quadratic, old opset", 7, 1, 4, "", 3, nil, &task.Calibration{Method: task.ByQuadratic, Coefficients: []float64{0.2, 0.8, 0.03}}},
		{"log-probabilities, old opset", 7, 10, 3, "LogSoftmax", 2, nil, temperature(1.5)},
		{"binary, sure, Venn–Abers", 13, 1, 5, "", 60, nil, stepped},
		{"binary probability, structured", 13, 1, 5, "Sigmoid", 4, nil, &task.Calibration{Method: task.ByStructured, Temperature: 1.5, Uniform: 0.01, Scale: []float64{1.2, 0.9}, Bias: []float64{0.3, 0}}},
		{"binary probability", 13, 1, 5, "Sigmoid", 4, nil, vector([]float64{0.8, 1.1}, []float64{0.2, 0})},
		{"shares", 13, 3, 4, "", 3, nil, shared.With(nil)},
		{"shares, temperature", 7, 3, 4, "", 3, nil, shared.With(temperature(1.5))},
		{"shares, probabilities, some 0, vector", 13, 3, 4, "Softmax", 300, nil, shared.With(vector([]float64{1.5, 0, -0.5}, []float64{0.3, 0, -1}))},
		{"shares, binary", 13, 1, 5, "", 4, nil, (&task.Shares{Training: []float64{0.9, 0.1}, Now: []float64{0.4, 0.6}}).With(temperature(1.7))},
	} {
		t.Run(c.name, func(t *testing.T) {
			model, err := onnxio.Parse("net.onnx", shifting(c.opset, c.count, c.activation))
			if err != nil {
				t.Fatal(err)
			}
			l, err := weights.NewLayout([]weights.Tensor{{Name: "w", Shape: []int64{1, int64(c.count)}, DType: weights.F32, Role: weights.Parameter}})
			if err != nil {
				t.Fatal(err)
			}
			graph, err := infer.ReadGraph(model, "", swag.Card{})
			if err != nil {
				t.Fatal(err)
			}
			what, err := graph.Task(infer.Layout{Count: c.count, Positions: 1})
			if err != nil {
				t.Fatal(err)
			}
			r := rand.New(rand.NewPCG(3, 3))
			var vectors []weights.Slice
			for range c.members {
				v := make(weights.Slice, c.count)
				for i := range v {
					v[i] = float32(c.spread * r.NormFloat64())
				}
				vectors = append(vectors, v)
			}
			count := min(1000, max(6, 20_000/c.count)) // of many examples the largest rounding counts
			if c.spread > 100 {
				// Of scores of hundreds float32 has few digits. A model takes probabilities that are no normal float32 for 0, and a
				// negative scale would raise them.
				count = 6
			}
			values := make([]float32, count*c.count)
			for i := range values {
				values[i] = float32(c.spread * r.NormFloat64())
			}
			if c.weights == nil {
				for range c.members {
					c.weights = append(c.weights, 1/float64(c.members))
				}
			}

			examples := list{made{shape: []int64{int64(c.count)}, count: count}, values}
			joined := joinMembers(t, model, l, graph, what.(task.Fusable), vectors, c.weights, c.by)
			smallConstants(t, joined)
			for _, n := range joined.Graph.Nodes {
				if n.OpType == "Sign" { // that of 0 is 1 in rten
					t.Errorf("node %q is a Sign", n.Name)
				}
			}
			near(t, run(t, e, joined, examples), averaged(t, e, model, l, vectors, what, c.weights, c.by, examples), 1e-6)
		})
	}
}

// smallConstants are those that float16 holds, also where a converter clips them to 10⁻⁷ and 10⁴.
func smallConstants(t *testing.T, m *onnxio.Model) {
	t.Helper()
	for _, of := range m.Graph.Initializers {
		if !strings.HasPrefix(of.Name, "average/") || of.ElemType != onnxio.Float {
			continue
		}
		for b := range slices.Chunk(m.Elements(of), 4) {
			v := math.Float32frombits(binary.LittleEndian.Uint32(b))
			if size := math.Abs(float64(v)); size != 0 && !(size >= 1e-7 && size <= 1e4) {
				t.Errorf("constant %s has %g", of.Name, v)
			}
		}
	}
}

// joinMembers is the model of members with these weights.
func joinMembers(t *testing.T, model *onnxio.Model, l *weights.Layout, graph *infer.Graph, what task.Fusable, vectors []weights.Slice, w []float64, by *task.Calibration, also ...func(m *fused.Model, of []task.Output)) *onnxio.Model {
	t.Helper()
	template, err := onnxio.NewWholeTemplate(model, l)
	if err != nil {
		t.Fatal(err)
	}
	n, err := fused.NewNetwork("net.onnx", template, l, graph.Inputs, graph.Output())
	if err != nil {
		t.Fatal(err)
	}
	var members []fused.Member
	for k := range vectors {
		members = append(members, fused.Member{Number: k})
	}
	m, err := fused.New([]*fused.Network{n}, members, fused.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var record []task.MemberOutcome
	for k := range members {
		record = append(record, what.Say(m, m.Scores(k)))
	}
	of := task.Visible(m, what.Fuse(m, record, w, by), m.Finite())
	for _, o := range of {
		if err := m.Gives(o.Name, o.Value, int64(o.Width)); err != nil {
			t.Fatal(err)
		}
	}
	for _, add := range also {
		add(m, of)
	}
	var file bytes.Buffer
	err = m.Write("fused.onnx", func(string) (io.Writer, error) { return &file, nil }, func(do func(weights.Vector) error) error {
		for _, v := range vectors {
			if err := do(v); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	together, err := onnxio.Parse("fused.onnx", file.Bytes())
	if err == nil {
		err = infertest.NodeReadsOutput(together)
	}
	if err != nil {
		t.Fatal(err)
	}
	return together
}

// A number that is not finite shows in all outputs, also where the network drops it: sets are empty, and the model abstains. Other
// examples stay as they are.
func TestNotFiniteStaysVisible(t *testing.T) {
	t.Parallel()
	e := engine(t)
	const taken, count = 12, 10
	for _, c := range []struct {
		of     string
		opset  int
		method sets.Method
	}{{"classes", 7, sets.APS}, {"classes", 13, sets.LAC}, {"classes", 18, sets.RAPS}, {"labels", 13, sets.LAC}, {"regression", 13, ""}} {
		model, err := onnxio.Parse("net.onnx", deaf(c.opset, taken, count, ""))
		if err != nil {
			t.Fatal(err)
		}
		coverage := &guarantee.Coverage{Level: 0.9, Method: string(c.method), Cells: []guarantee.Cell{{Cuts: []float32{0.01}}}}
		switch c.method {
		case sets.APS, sets.RAPS:
			coverage.Cells[0].Cuts[0] = 1 << 21
		case "":
			one := make([]*float64, count)
			for k := range one {
				one[k] = ptr(2.)
			}
			coverage = &guarantee.Coverage{Level: 0.9, Method: guarantee.ByEpistemic, Cells: []guarantee.Cell{{Thresholds: one}}}
		}
		g := &guarantee.Guarantee{Coverage: coverage}
		if c.of == "classes" {
			g.Answers = &guarantee.Answers{Risk: 0.1, Cut: 0.01}
		}
		x := list{made{shape: []int64{taken}, count: 6}, make([]float32, 6*taken)}
		for i := range x.values {
			x.values[i] = float32(i % 7)
		}
		x.values[1*taken+11], x.values[2*taken+10], x.values[3*taken] = float32(math.NaN()), float32(math.Inf(-1)), float32(math.Inf(1))
		names := map[string][]string{
			"classes":    {"prob", "entropy", "mutual_information", task.SetColumn, task.AbstainColumn},
			"labels":     {"prob", "entropy", "mutual_information", task.SetColumn},
			"regression": {"mean", "epistemic_std", task.LowerColumn, task.UpperColumn},
		}[c.of]
		out := guaranteedOutputs(t, e, promisingOf(t, model, c.of, count, g), x, names...)
		for k, name := range names {
			width := len(out[k]) / x.count
			for i := range x.count {
				want := map[string]float32{task.SetColumn: 0, task.AbstainColumn: 1}[name]
				for _, v := range out[k][i*width:][:width] {
					bad := i > 0 && i < 4
					if wanted := v == want && strings.Contains(task.SetColumn+task.AbstainColumn, name) || v != v; bad && !wanted || !bad && v != v {
						t.Errorf("%v: %s of example %d is %v", c, name, i, v)
					}
				}
			}
		}
	}
}

// averaged is what float64 makes of members' scores, each run by itself.
func averaged(t *testing.T, e *infer.Engine, model *onnxio.Model, l *weights.Layout, members []weights.Slice, what task.Task, w []float64, by *task.Calibration, x list) (out record) {
	t.Helper()
	template, err := onnxio.NewRuntimeTemplate(model, l)
	if err != nil {
		t.Fatal(err)
	}
	width := what.About().Width
	mean, expected := make([]float64, x.Len()*width), make([]float64, x.Len())
	for k, v := range members {
		filled, err := template.Fill(l, v, weights.Slice{})
		if err != nil {
			t.Fatal(err)
		}
		scores := outputs(t, e, filled, x, x.Len())[0]
		p := make([]float64, width)
		for i := range x.Len() {
			entropy, err := what.Outcome(p, scores[i*x.size():][:x.size()])
			if err != nil {
				t.Fatal(err)
			}
			for j, q := range p {
				mean[i*width+j] += w[k] * q
			}
			expected[i] += w[k] * entropy
		}
	}
	out.mutual = calibrate.MutualInformation(nil, mean, width, expected)
	out.prob = mean
	if by != nil {
		out.prob = what.Apply(nil, by, mean)
	}
	for i := range x.Len() {
		out.entropy = append(out.entropy, calibrate.Entropy(out.prob[i*width:][:width]))
	}
	return out
}

// list is examples in memory.
type list struct {
	made
	values []float32
}

func (x list) size() int { return int(x.shape[0]) }
func (x list) Read(dst dataset.Values, i int) error {
	copy(dst.Floats, x.values[i*x.size():])
	return nil
}
