package infer_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/swagwrap/swagwrap/fixtures/infertest"
	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/dataset/text"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/memory"
	"github.com/swagwrap/swagwrap/internal/numpy"
	"github.com/swagwrap/swagwrap/internal/task"
	"github.com/swagwrap/swagwrap/onnxio"
	"github.com/swagwrap/swagwrap/swag"
)

// modelList is a MemberSource of models that may have several graphs.
type modelList []infer.Model

func (l modelList) Parts() (parts []infer.Part) {
	for _, m := range l {
		parts = append(parts, infer.Part{Count: 1, Graph: m.Graph})
	}
	if len(parts) > 0 && !slices.ContainsFunc(l, func(m infer.Model) bool { return m.Graph != l[0].Graph }) {
		return []infer.Part{{Count: len(l), Graph: l[0].Graph}}
	}
	return parts
}

func (l modelList) Each(_ context.Context, first, count int, f func(infer.Model) error) error {
	for _, m := range l[first:][:count] {
		if err := f(m); err != nil {
			return err
		}
	}
	return nil
}

// languageModels opens checkpoints of one network in testdata/states.
func languageModels(t testing.TB, card swag.Card, names ...string) (l modelList) {
	t.Helper()
	var g *infer.Graph
	for _, name := range names {
		m := infertest.Open(t, filepath.Join("testdata/states", name+".onnx"))
		if g == nil {
			var err error
			card.Task = task.NextToken
			if g, err = infer.ReadGraph(m, "", card); err != nil {
				t.Fatal(err)
			}
		}
		filled, err := m.Runtime()
		if err != nil {
			t.Fatal(err)
		}
		l = append(l, infer.Model{Name: name, Graph: g, Weight: 1, Filled: filled})
	}
	return l
}

// golden is testdata/states/expected.json.
type golden struct {
	text   [][]int
	models map[string]struct {
		Stateful []float64 `json:"carried"`
		Fresh    []float64
	}
}

func readGolden(t testing.TB) (g golden) {
	t.Helper()
	js, err := os.ReadFile("testdata/states/expected.json")
	if err != nil {
		t.Fatal(err)
	}
	var all map[string]json.RawMessage
	if err := json.Unmarshal(js, &all); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(all["text"], &g.text); err != nil {
		t.Fatal(err)
	}
	delete(all, "text")
	js, _ = json.Marshal(all)
	if err := json.Unmarshal(js, &g.models); err != nil {
		t.Fatal(err)
	}
	return g
}

// open opens the text of the goldens for a network.
func (g golden) open(t testing.TB, graph *infer.Graph, spec string) dataset.Dataset {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tokens.npy")
	b := numpy.Header("|u1", len(g.text)*len(g.text[0]))
	for _, row := range g.text {
		for _, v := range row {
			b = append(b, byte(v))
		}
	}
	if err := os.WriteFile(path, b, 0o666); err != nil {
		t.Fatal(err)
	}
	how, err := text.ParseCutting(spec)
	if err != nil {
		t.Fatal(err)
	}
	how.Grows = graph.Grows()
	d, err := dataset.Open([]string{path}, dataset.Options{Text: &how, Fields: graph.Fields()})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

const golden4 = "rows=3 bptt=4"

// logs runs a scorer from an example on, and returns the log-probabilities [rows, predictions, words].
func logs(t testing.TB, s *infer.Scorer, data dataset.Dataset, first int) []float64 {
	t.Helper()
	const rows, bptt, predictions, words = 3, 4, 10, 7
	out := make([]float64, rows*predictions*words)
	err := s.Run(t.Context(), first, nil, func(c *infer.Chunk) error {
		width := c.Task.About().Width
		for i := range c.Len {
			at := c.First + i
			a := c.Average(make([]float64, width), i)
			for p := range min(bptt, predictions-at/rows*bptt) {
				row := a.Outcome[p*(words+1):][:words]
				for w, v := range row {
					out[((at%rows)*predictions+at/rows*bptt+p)*words+w] = math.Log(v)
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func farthest(a, b []float64) (most float64) {
	for i := range a {
		most = max(most, math.Abs(a[i]-b[i]))
	}
	return most
}

// The states come from the window before, for layers, layouts and exporters of all kinds. The numbers are PyTorch's in
// float64.
func TestStateful(t *testing.T) {
	t.Parallel()
	want := readGolden(t)
	for _, tt := range []struct {
		name  string
		files []string
		pairs string
	}{
		{"lstm1", []string{"lstm1"}, "{h0 hn 1} {c0 cn 1}"},
		{"lstm2", []string{"lstm2-a"}, "{h0 hn 1} {c0 cn 1}"},
		{"both", []string{"lstm2-a", "lstm2-b"}, "{h0 hn 1} {c0 cn 1}"},
		{"gru", []string{"gru"}, "{h hn 1}"},
		{"rnn", []string{"rnn"}, "{h h1 1}"},
		{"flat", []string{"flat"}, "{h0 hn 1} {c0 cn 1}"},
		{"timefirst", []string{"timefirst"}, "{a getitem_1 1} {b getitem_2 1}"},
		{"fixed", []string{"fixed"}, "{h0 hn 1} {c0 cn 1}"},
		{"cell", []string{"cell"}, "{h_in h_out 0} {c_in c_out 0}"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			models := languageModels(t, swag.Card{}, tt.files...)
			if got := fmt.Sprint(models[0].States()); got != "["+tt.pairs+"]" {
				t.Errorf("states %v, want %v", got, tt.pairs)
			}
			g := want.models[tt.name]
			for _, of := range []struct {
				spec string
				want []float64
			}{{golden4, g.Stateful}, {golden4 + " reset=windows", g.Fresh}} {
				data := want.open(t, models[0].Graph, of.spec)
				s, err := infer.NewScorer(t.Context(), infertest.Engine(t), models, data, infer.Options{})
				if err != nil {
					t.Fatal(err)
				}
				if off := farthest(logs(t, s, data, 0), of.want); off > 1e-6 {
					t.Errorf("%s: log-probabilities differ by %v", of.spec, off)
				}
			}
			if farthest(g.Stateful, g.Fresh) < 0.01 {
				t.Error("the goldens do not tell states that are carried")
			}
		})
	}
}

// Neither the number of threads, nor memory, nor a run that goes on from a later window changes a bit.
func TestStatefulSameBits(t *testing.T) {
	t.Parallel()
	models := languageModels(t, swag.Card{}, "lstm2-a", "lstm2-b", "lstm2-a")
	models[1].Weight = 0.5
	golden := readGolden(t)
	data := golden.open(t, models[0].Graph, golden4)
	run := func(first, batch, workers int, small bool) []float64 {
		e := infer.NewEngine(infertest.Runtime(t), infer.EngineOptions{BatchSize: batch, Threads: workers})
		s, err := infer.NewScorer(t.Context(), e, models, data, infer.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if small { // one window at a time, with sessions opened for each
			s.Small()
		}
		return logs(t, s, data, first)
	}
	for _, batch := range []int{0, 2} {
		want := run(0, batch, 1, false)
		for workers := 1; workers <= 5; workers += 2 {
			for _, small := range []bool{false, true} {
				if got := run(0, batch, workers, small); !slices.Equal(got, want) {
					t.Errorf("batches of %d, %d workers, small %v: other bits", batch, workers, small)
				}
			}
		}
		const rows, later = 3, 2 // the last window alone
		got := run(rows*later, batch, 2, true)
		for r := range rows {
			if at := (r*10 + 8) * 7; !slices.Equal(got[at:][:14], want[at:][:14]) {
				t.Errorf("batches of %d: another last window", batch)
			}
		}
	}
}

// What cannot be continued is refused, with the reason.
func TestStatefulRefused(t *testing.T) {
	t.Parallel()
	open := func(name string, card swag.Card) error {
		_, err := infer.ReadGraph(infertest.Open(t, filepath.Join("testdata/states", name+".onnx")), "", card)
		return err
	}
	state := func(pairs ...swag.StatePair) swag.Card { return swag.Card{State: pairs} }
	pair := func(in, out string) swag.StatePair { return swag.StatePair{In: in, Out: out, Axis: -1} }
	infertest.WantError(t, open("tied", swag.Card{}), "Was one tensor given for two arguments at export?")
	infertest.WantError(t, open("lstm1", state(pair("h1", "hn"))), `tensor "h1": named as a state, and not among ["x" "h0" "c0"]`)
	infertest.WantError(t, open("lstm1", state(pair("h0", "scores"))), `a state of shape [1 batch 6], and output "scores", which gives its next value, has the shape [batch time 7]`)
	infertest.WantError(t, open("lstm1", state(pair("x", "hn"))), "a state of type int64")

	golden := readGolden(t)
	swapped := languageModels(t, state(pair("h0", "cn"), pair("c0", "hn")), "lstm1")
	s, err := infer.NewScorer(t.Context(), infertest.Engine(t), swapped, golden.open(t, swapped[0].Graph, golden4), infer.Options{})
	if err == nil {
		err = s.Run(t.Context(), 0, nil, func(*infer.Chunk) error { return nil })
	}
	infertest.WantError(t, err, "two halves of a window, with states carried from the first to the second (h0=cn, c0=hn), have other scores than the whole window")

	none := languageModels(t, swag.Card{State: []swag.StatePair{}}, "gru")
	if none[0].States() != nil || len(none[0].Inputs) != 2 {
		t.Errorf("states %v, inputs %v", none[0].States(), none[0].Inputs)
	}
	for spec, refused := range map[string]bool{golden4: true, golden4 + " reset=windows": false} {
		_, err := infer.NewScorer(t.Context(), infertest.Engine(t), none, golden.open(t, swapped[0].Graph, spec), infer.Options{})
		if err == nil || strings.Contains(err.Error(), "the network takes no states, so each window would begin with zeros") != refused {
			t.Errorf("%s: error %v", spec, err) // without the refusal, the data has no array for the state
		}
	}
}

// ONNX Runtime 1.32 ends the process if a recurrent operator of float16 is to run on the processor.
func TestHalfRecurrence(t *testing.T) {
	t.Parallel()
	g, err := infer.ReadGraph(infertest.Open(t, "testdata/states/half.onnx"), "", swag.Card{Task: "classes"})
	if err != nil {
		t.Fatal(err)
	}
	_, err = infertest.Run(t).Open(t.Context(), g, onnxio.Filled{})
	infertest.WantError(t, err, "the operator GRU in float16: ONNX Runtime has none for the processor")
}

// A cache of keys and values grows from window to window, up to the context. Masks and positions grow with it. The numbers
// are those of transformers without a cache. ONNX Runtime computes those of a cache in float16.
func TestCaches(t *testing.T) {
	t.Parallel()
	var want map[string][]float64
	js, err := os.ReadFile("testdata/states/caches.json")
	if err == nil {
		err = json.Unmarshal(js, &want)
	}
	if err != nil {
		t.Fatal(err)
	}
	golden := readGolden(t)
	for _, tt := range []struct{ name, context, pairs string }{
		{"gpt2", "", "{past_key_values.0.key present.0.key 0} {past_key_values.0.value present.0.value 0}"}, // a table of 8 positions
		{"llama", " context=8", "{past_key_values.layers.0.keys cache.layers.0.keys 0} {past_key_values.layers.0.values cache.layers.0.values 0}"},
		{"llama16", " context=8", "{past_key_values.layers.0.keys cache.layers.0.keys 0} {past_key_values.layers.0.values cache.layers.0.values 0}"},
	} {
		models := languageModels(t, swag.Card{}, tt.name)
		if got := fmt.Sprint(models[0].States()); got != "["+tt.pairs+"]" {
			t.Errorf("states %v, want %v", got, tt.pairs)
		}
		score := func(spec string, batch int) []float64 {
			t.Helper()
			data := golden.open(t, models[0].Graph, spec)
			e := infer.NewEngine(infertest.Runtime(t), infer.EngineOptions{BatchSize: batch})
			s, err := infer.NewScorer(t.Context(), e, models, data, infer.Options{})
			if err != nil {
				t.Fatal(err)
			}
			return logs(t, s, data, 0)
		}
		for batch := range 4 {
			if off := farthest(score(golden4+tt.context, batch), want[tt.name]); off > 1e-6 {
				t.Errorf("%s, batches of %d: log-probabilities differ by %v", tt.name, batch, off)
			}
		}
		if off := farthest(score(golden4+" reset=windows", 0), want[tt.name]); off < 0.01 {
			t.Errorf("%s: the cache changes log-probabilities by %v only", tt.name, off)
		}
	}
	models := languageModels(t, swag.Card{}, "llama")
	e := infer.NewEngine(infertest.Runtime(t), infer.EngineOptions{Memory: memory.New(1 << 10)})
	_, err = infer.NewScorer(t.Context(), e, models, golden.open(t, models[0].Graph, golden4+" context=8"), infer.Options{})
	infertest.WantError(t, err, "states take 0 MiB (models: 1, rows: 3), and half of the memory is 0 MiB")
}

// Names pair the states of networks without recurrent operators. Equal shapes alone pair nothing.
func TestStateNames(t *testing.T) {
	t.Parallel()
	value := func(name string, shape ...int64) onnxio.Value {
		return onnxio.Value{Name: name, ElemType: onnxio.Float, Shape: shape, Dims: make([]string, len(shape))}
	}
	x := onnxio.Value{Name: "x", ElemType: onnxio.Int64, Shape: []int64{-1, -1}, Dims: []string{"batch", "time"}}
	for _, tt := range []struct {
		in, out string
		pair    bool
	}{
		{"h0", "hn", true}, {"h", "h1", true}, {"h_in", "h_out", true}, {"state", "new_state", true}, {"state_0", "state_n", true}, {"hx", "h", true},
		{"h0", "cn", false}, {"mask", "hn", false}, {"a", "b", false},
	} {
		g := &onnxio.Graph{Inputs: []onnxio.Value{x, value(tt.in, -1, 4)}, Outputs: []onnxio.Value{value("scores", -1, -1, 7), value(tt.out, -1, 4)},
			Nodes: []onnxio.Node{{OpType: "Add", Inputs: []string{"x", tt.in}, Outputs: []string{"scores"}}}}
		got, err := infer.ReadGraph(&onnxio.Model{Graph: g}, "", swag.Card{Task: task.NextToken})
		if err != nil {
			t.Errorf("%s, %s: %v", tt.in, tt.out, err)
		} else if (got.States() != nil) != tt.pair {
			t.Errorf("%s, %s: states %v", tt.in, tt.out, got.States())
		}
	}
}
