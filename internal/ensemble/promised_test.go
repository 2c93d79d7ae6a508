package ensemble_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/swagwrap/swagwrap/calibrate/sets"
	"github.com/swagwrap/swagwrap/internal/guarantee"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/task"
	"github.com/swagwrap/swagwrap/onnxio"
	"github.com/swagwrap/swagwrap/onnxio/fused"
	"github.com/swagwrap/swagwrap/swag"
	"github.com/swagwrap/swagwrap/weights"
)

// promising is the model of three members with a guarantee. Sets and abstention are numbers here.
func promising(t *testing.T, of string, opset, count int, g *guarantee.Guarantee) *onnxio.Model {
	t.Helper()
	model, err := onnxio.Parse("net.onnx", shifting(opset, count, ""))
	if err != nil {
		t.Fatal(err)
	}
	return promisingOf(t, model, of, count, g)
}

func promisingOf(t *testing.T, model *onnxio.Model, of string, count int, g *guarantee.Guarantee) *onnxio.Model {
	t.Helper()
	l, err := weights.NewLayout([]weights.Tensor{{Name: "w", Shape: []int64{1, int64(count)}, DType: weights.F32, Role: weights.Parameter}})
	if err != nil {
		t.Fatal(err)
	}
	graph, err := infer.ReadGraph(model, "", swag.Card{})
	if err != nil {
		t.Fatal(err)
	}
	what, err := task.New(of, task.OutputSpec{Output: "z", Count: count})
	if err != nil {
		t.Fatal(err)
	}
	var vectors []weights.Slice
	r := rand.New(rand.NewPCG(3, 1))
	for range 3 {
		v, shift := make(weights.Slice, count), float32(r.NormFloat64())
		for i := range v {
			v[i] = shift // equal for all classes, so that ties stay ties
		}
		vectors = append(vectors, v)
	}
	joined := joinMembers(t, model, l, graph, what.(task.Fusable), vectors, []float64{1. / 3, 1. / 3, 1. / 3}, nil, func(m *fused.Model, of []task.Output) {
		guaranteed, err := g.Fuse(m, what, of)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range guaranteed {
			value := m.Node("Cast", []string{o.Value}, fused.Attribute{Name: "to", Int: int64(onnxio.Float)})
			if err := m.Gives(o.Name, value, int64(o.Width)); err != nil {
				t.Fatal(err)
			}
		}
	})
	if g.Coverage.Method != string(sets.LAC) { // its cuts are probabilities, which may be small
		smallConstants(t, joined)
	}
	return joined
}

// tied are examples whose scores are random, the same for all classes, the same for some, or very different.
func tied(count int) list {
	r := rand.New(rand.NewPCG(9, uint64(count)))
	x := list{made: made{shape: []int64{int64(count)}, count: 40}}
	for i := range x.count {
		for range count {
			v := r.NormFloat64() * []float64{1, 4, 12, 0}[i%4]
			if i%8 > 3 {
				v = math.Round(v)
			}
			x.values = append(x.values, float32(v))
		}
	}
	return x
}

// For the same probabilities, the sets of a model are those of score bit for bit, also on ties. Cuts are exactly the
// probability or the sum of some class, or next to it.
func TestGuaranteedSets(t *testing.T) {
	t.Parallel()
	e := engine(t)
	for _, c := range []struct {
		of            string
		opset, count  int
		method        sets.Method
		penalty       float64
		free, classes int // classes is the number of cuts
	}{
		{"labels", 13, 1, sets.LAC, 0, 0, 1},
		{"labels", 7, 10, sets.LAC, 0, 0, 10},
		{"classes", 7, 10, sets.LAC, 0, 0, 1},
		{"classes", 13, 10, sets.LAC, 0, 0, 10},
		{"classes", 13, 1000, sets.LAC, 0, 0, 1},
		{"classes", 7, 10, sets.APS, 0, 0, 1},
		{"classes", 9, 2, sets.APS, 0, 0, 1},
		{"classes", 12, 32, sets.RAPS, 0.3, 1, 32},
		{"classes", 11, 33, sets.APS, 0, 0, 1},
		{"classes", 17, 10, sets.APS, 0, 0, 10},
		{"classes", 13, 1000, sets.APS, 0, 0, 1},
		{"classes", 18, 10, sets.RAPS, 0.01, 2, 1},
		{"classes", 13, 1000, sets.RAPS, 0.5, 5, 1},
		{"classes", 13, 1000, sets.RAPS, 0.001, 3, 1000},
	} {
		t.Run(fmt.Sprint(c), func(t *testing.T) {
			t.Parallel()
			x := tied(c.count)
			coverage := &guarantee.Coverage{Level: 0.9, Method: string(c.method), Penalty: c.penalty, Free: c.free, Cells: []guarantee.Cell{{Cuts: []float32{0.5}}}}
			g := &guarantee.Guarantee{Coverage: coverage}
			if c.of == "classes" {
				g.Answers = &guarantee.Answers{Risk: 0.1, Cut: 0.5}
			}
			prob := guaranteedOutputs(t, e, promising(t, c.of, c.opset, c.count, g), x, "prob")[0]
			rule := coverage.Rule(&coverage.Cells[0])
			var ranking sets.Ranking
			for round := range 6 {
				// A cut at a value that occurs, at the next below it, or at the next above.
				cuts := make([]float32, c.classes)
				for k := range cuts {
					i := (7*round + k) % x.Len()
					row := wide(prob[i*c.count:][:c.count])
					at := float32(row[(k+round)%c.count])
					if c.method != sets.LAC {
						at = ranking.Scores(rule, row)[(k+round)%c.count]
					}
					cuts[k] = math.Float32frombits(math.Float32bits(at) + uint32(round%3) - 1)
				}
				coverage.Cells[0].Cuts = cuts
				if g.Answers != nil {
					g.Answers.Cut = cuts[0]
					if c.method != sets.LAC {
						g.Answers.Cut = prob[round]
					}
				}
				names := []string{"prob", task.SetColumn}
				if g.Answers != nil {
					names = append(names, task.AbstainColumn)
				}
				out := guaranteedOutputs(t, e, promising(t, c.of, c.opset, c.count, g), x, names...)
				checkGuaranteed(t, g, c.count, out)
			}
		})
	}
}

// A set of an example does not depend on how many examples the model gets.
func TestGuaranteedSetsOfAnyNumber(t *testing.T) {
	t.Parallel()
	e := engine(t)
	for _, count := range []int{10, 40} { // compared, and sorted
		x := tied(count)
		g := &guarantee.Guarantee{Coverage: &guarantee.Coverage{Level: 0.9, Method: string(sets.APS), Cells: []guarantee.Cell{{Cuts: []float32{1 << 20}}}}}
		m := promising(t, "classes", 13, count, g)
		all := guaranteedOutputs(t, e, m, x, task.SetColumn)[0]
		filled, err := m.Runtime()
		if err != nil {
			t.Fatal(err)
		}
		s, err := e.Open(t.Context(), nil, filled, task.SetColumn)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		for n := 1; n < 6; n++ {
			got, err := s.Feed(t.Context(), x, []int{0, 1, 2, 3, 4, 5}[:n])
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(got[0].F32, all[:n*count]) {
				t.Errorf("%d classes, %d examples: other sets than in a larger batch", count, n)
			}
		}
	}
}

func guaranteedOutputs(t *testing.T, e *infer.Engine, m *onnxio.Model, x list, names ...string) [][]float32 {
	t.Helper()
	filled, err := m.Runtime()
	if err != nil {
		t.Fatal(err)
	}
	return outputs(t, e, filled, x, 16, names...)
}

// checkGuaranteed compares what a model gives with what a rule makes of its probabilities.
func checkGuaranteed(t *testing.T, g *guarantee.Guarantee, count int, out [][]float32) {
	t.Helper()
	rule, want := g.Coverage.Rule(&g.Coverage.Cells[0]), make([]bool, count)
	var ranking sets.Ranking
	in, different := 0, 0
	for i := 0; i < len(out[0]); i += count {
		row := wide(out[0][i:][:count])
		ranking.Make(want, rule, row)
		most := float32(0)
		for k, w := range want {
			if w {
				in++
			}
			if w != (out[1][i+k] == 1) {
				different++
			}
			most = max(most, float32(row[k]))
		}
		if g.Answers != nil && (most <= g.Answers.Cut) != (out[2][i/count] == 1) {
			t.Errorf("example %d: abstain is %v, confidence %v, cut %v", i/count, out[2][i/count], most, g.Answers.Cut)
		}
	}
	if different > 0 {
		t.Errorf("%d of %d decisions differ, %d classes in sets", different, len(out[1]), in)
	}
}
