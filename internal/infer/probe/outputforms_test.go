package probe_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/swagwrap/swagwrap/fixtures/infertest"
	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/infer/probe"
	"github.com/swagwrap/swagwrap/internal/target"
	"github.com/swagwrap/swagwrap/internal/task"
	"github.com/swagwrap/swagwrap/onnxio"
	"github.com/swagwrap/swagwrap/onnxio/checkpoints"
	"github.com/swagwrap/swagwrap/swag"
)

// made is standard normal inputs of the tiny networks of fixtures/outputforms/make_small.py.
type made struct {
	rows   [][]float32
	labels target.Target
}

func newMade(n int) *made {
	r := rand.New(rand.NewPCG(7, 7))
	d := &made{}
	for range n {
		row := make([]float32, 6)
		for k := range row {
			row[k] = float32(r.NormFloat64())
		}
		d.rows = append(d.rows, row)
	}
	return d
}

func (d *made) Len() int                             { return len(d.rows) }
func (d *made) Shape() []int64                       { return []int64{6} }
func (d *made) Labels() target.Target                { return d.labels }
func (d *made) ClassNames() []string                 { return nil }
func (d *made) Name(i int) string                    { return fmt.Sprint(i) }
func (d *made) Sources() []dataset.Source            { return nil }
func (d *made) Read(dst dataset.Values, i int) error { copy(dst.Floats, d.rows[i]); return nil }

// The decision for every form of output. What no program can know is refused: then these words are
// in the error.
var decisions = map[string]map[string][]string{
	"classes": {
		"logits by default": {
			"logits",
			"logits / 2",
			"clamp(logits, -10, 10)",
			"30 tanh(z / 30)",
			"logits in [0, 1]",
		},
		"probabilities by graph": {
			"softmax",
			"softmax dim=-1",
			"softmax(z / 2)",
			"softmax as [N, C, 1]",
			"softmax as [N, 1, C]",
			"softmax in half",
		},
		"log-probabilities by graph": {
			"log_softmax",
		},
		"probabilities by values": {
			"exp(log_softmax)",
			"clamp(softmax, 1e-7)",
			"clamp(softmax, 1e-3)",
			"label smoothing .99p + .001",
			"softmax by hand",
			"stable softmax by hand",
			"softmax * 1.0",
			"mean of two softmaxes",
			"p^2 / sum",
			"normalize(softplus)",
			"Dirichlet mean",
			"softmax twice transposed",
			"noise layer p @ T",
			"where(p < 1e-8, 0, p)",
		},
		"log-probabilities by values": {
			"log(softmax)",
			"log(softmax + 1e-9)",
			"log_softmax by hand",
			"z - logsumexp",
		},
		"refused: adds up to": {
			"label smoothing .9p + .01",
			"percent",
		},
		"refused: the softmax goes over the examples": {
			"softmax over the batch",
		},
		"refused: the scores are not such": {
			"softmax of [N, 1, C] over axis 1",
		},
		"refused: logarithms of probabilities to base": {
			"log2(softmax)",
			"log10(softmax)",
		},
		"refused: at 0 or above": {
			"evidence: softplus",
			"evidence: relu",
			"exp(z)",
		},
		"refused: in [-1, 1]": {
			"cosines",
			"tanh",
		},
		"refused: some rows": {
			"rows of zeros",
		},
	},
	"binary": {
		"logits by default": {
			"logit",
			"logit / 2",
			"clamp(logit, -10, 10)",
		},
		"probabilities by graph": {
			"sigmoid",
			"sigmoid, squeezed",
			"sigmoid().clamp()",
			"1 / (1 + exp(-z))",
			"exp(z) / (1 + exp(z))",
			"reciprocal",
			"(tanh(z / 2) + 1) / 2",
			"exp(logsigmoid)",
			"1 - sigmoid(-z)",
			"label smoothing .98p + .01",
			"sigmoid * 1.0",
			"sigmoid in half",
			"sigmoid(z / 2)",
			"softmax([0, z])[1]",
			"mean of two sigmoids",
			"where(p < .01, .01, p)",
			"hardsigmoid",
			"clamp(z / 6 + .5, 0, 1)",
			"probit",
			"probit, Normal.cdf by hand",
			"sigmoid ** 1",
			"min(sigmoid, 1)",
			"1 - exp(-softplus)",
		},
		"probabilities by labels": {
			"sqrt(sigmoid ** 2)",
		},
		"logits by graph": {
			"logits in [0, 1]",
		},
		"refused: at 0 or below": {
			"logsigmoid",
			"-softplus(-z)",
			"log(sigmoid)",
		},
		"refused: at 0 or above": {
			"percent",
			"evidence: softplus",
			"rate: exp(z)",
		},
		"refused: in [-1, 1]": {
			"tanh",
		},
	},
	"labels": {
		"probabilities by graph": {
			"softmax of each [0, z]",
			"sigmoid as [N, L, 1]",
		},
	},
}

// network is a tiny network of a task with the scores taken from one of its outputs.
func network(t *testing.T, name, output string) (*infer.Network, error) {
	t.Helper()
	p := infertest.Fit(t, infertest.Open(t, "testdata/"+name+"-1.onnx"), infertest.Open(t, "testdata/"+name+"-2.onnx"))
	p.Card.Task, p.Card.Output = name, output
	return infer.NewNetwork(p, infer.RecomputeTrained, "")
}

// decide runs a network over data and returns the decision, or what was refused.
func decide(t *testing.T, n *infer.Network, data dataset.Dataset) (string, *probe.Report) {
	t.Helper()
	ctx, e := context.Background(), infertest.Engine(t)
	s, err := probe.Hold(data, 1<<20, 2)
	if err != nil {
		t.Fatal(err)
	}
	run, err := probe.NewRunner(e, n)
	if err != nil {
		t.Fatal(err)
	}
	defer run.Close()
	report := &probe.Report{}
	if err := run.CheckScores(ctx, report, s, 0); err != nil {
		if !errors.As(err, new(*probe.Fault)) {
			t.Fatal(err)
		}
		return "refused: " + err.Error(), nil
	}
	return string(report.Scores.Form) + " by " + report.Scores.By, report
}

// decideFirst is decide by the first batch of a run of n, if that leaves no doubt. The decision is another network's, so n
// learns nothing.
func decideFirst(t *testing.T, name, output string, n *infer.Network, data dataset.Dataset) (decision string, settled bool) {
	t.Helper()
	run, err := probe.NewRunner(infertest.Engine(t), n)
	if err != nil {
		t.Fatal(err)
	}
	defer run.Close()
	rows := make([]int, 32)
	for i := range rows {
		rows[i] = i
	}
	count, scores, err := run.Run(context.Background(), data, rows)
	if err != nil {
		t.Fatal(err)
	}
	other, err := network(t, name, output)
	if err == nil {
		run.Close()
		run, err = probe.NewRunner(infertest.Engine(t), other)
	}
	if err != nil {
		t.Fatal(err)
	}
	report := &probe.Report{}
	settled, err = run.CheckFirst(report, &infer.FirstScores{Examples: len(rows), Count: count, Scores: scores, Exact: true}, data)
	switch {
	case err != nil:
		decision = "refused: " + err.Error()
	case settled:
		decision = string(report.Scores.Form) + " by " + report.Scores.By
	case report.Scores != nil || other.Form() != n.Form():
		t.Errorf("%s, %s: a doubt decides: %v", name, output, report.Scores)
	}
	return decision, settled
}

// Independent labels have the outputs of one score, and some of their own.
func TestOutputProperties(t *testing.T) {
	t.Parallel()
	count, atOnce := 0, 0
	for name, table := range decisions {
		data := labelled(t, name)
		tables := []map[string][]string{table}
		if name == "labels" {
			tables = append(tables, decisions["binary"])
		}
		for _, table := range tables {
			for want, outputs := range table {
				for _, output := range outputs {
					if infertest.Open(t, "testdata/"+name+"-1.onnx").Graph.Producer(output) == nil {
						continue // of one score only
					}
					n, err := network(t, name, output)
					if err != nil {
						t.Fatal(err)
					}
					if told := toldOf(t, name, output); strings.Contains(told, "Only their values") != n.Undecided() || strings.Contains(told, "are logits:") == (n.Undecided() || n.Form() != "") {
						t.Errorf("%s, %s: inspect says %q; undecided: %v", name, output, told, n.Undecided())
					}
					first, settled := decideFirst(t, name, output, n, data)
					got, _ := decide(t, n, data)
					if settled {
						atOnce++
						if first != got {
							t.Errorf("%s, %s: %s by the first batch, want %s", name, output, first, got)
						}
					}
					words, refused := strings.CutPrefix(want, "refused: ")
					if got != want && !(refused && strings.HasPrefix(got, "refused: ") && strings.Contains(got, words)) {
						t.Errorf("%s, %s: %s, want %s", name, output, got, want)
					}
					count++
				}
			}
		}
	}
	if count < 100 || atOnce < 20 {
		t.Errorf("%d endings, %d of them by the first batch, want over 100 and over 20", count, atOnce)
	}
	for name, output := range map[string]string{"classes": "sigmoid of each class", "binary": "cat([1 - p, p])"} {
		_, err := network(t, name, output)
		infertest.WantError(t, err, "Task ")
	}
}

// toldOf is what inspect says of the form of the scores of a bare ONNX file.
func toldOf(t *testing.T, name, output string) string {
	t.Helper()
	m := infertest.Open(t, "testdata/"+name+"-1.onnx")
	g, err := infer.ReadGraph(m, output, swag.Card{})
	if err != nil {
		t.Fatal(err)
	}
	set, err := checkpoints.New([]*onnxio.Model{m})
	if err != nil {
		t.Fatal(err)
	}
	g.Judge(m, set.Layout)
	return g.Told()
}

// Without labels nothing decides about scores in [0, 1] that the graph does not bound.
func TestUnlabelled(t *testing.T) {
	t.Parallel()
	n, err := network(t, "binary", "sqrt(sigmoid ** 2)")
	if err != nil {
		t.Fatal(err)
	}
	if got, _ := decide(t, n, newMade(probe.Examples)); !strings.Contains(got, "neither the graph nor the labels tell which") {
		t.Errorf("got %s", got)
	}
	if err := n.Decide(task.Probabilities); err != nil { // as the setting Scores does
		t.Fatal(err)
	}
	if got, _ := decide(t, n, newMade(probe.Examples)); got != "probabilities by card" {
		t.Errorf("with Scores probabilities: %s", got)
	}
}

// scoresOf returns what the last checkpoint of n gives for the data.
func scoresOf(t *testing.T, n *infer.Network, d *made) (count int, scores []float32) {
	t.Helper()
	run, s := looking(t, n, d)
	raw, err := run.Record(context.Background(), s, s.Len())
	if err != nil {
		t.Fatal(err)
	}
	return raw.Count, raw.Scores
}

// labelled is made data with labels drawn from the probabilities of the last checkpoint.
func labelled(t *testing.T, name string) *made {
	t.Helper()
	d := newMade(probe.Examples)
	output := "logit"
	if name == "classes" {
		return d
	}
	n, err := network(t, name, output)
	if err != nil {
		t.Fatal(err)
	}
	count, z := scoresOf(t, n, d)
	r := rand.New(rand.NewPCG(8, 8))
	for _, v := range z {
		y := 0
		if r.Float64() < 1/(1+math.Exp(-float64(v))) {
			y = 1
		}
		if name == "binary" {
			d.labels.Classes = append(d.labels.Classes, y)
		} else {
			d.labels.Values, d.labels.Width = append(d.labels.Values, float64(y)), count
		}
	}
	return d
}
