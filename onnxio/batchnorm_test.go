package onnxio

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/swagwrap/swagwrap/fixtures/reliability"
	"github.com/swagwrap/swagwrap/onnxio/internal/wire"
)

func TestBatchNorms(t *testing.T) {
	for name, want := range map[string][]string{
		"batchnorm":          {"bn1 a.running_mean a.running_var 3 false false", "bn2 b.running_mean b.running_var 3 false false"},
		"batchnorm-opset9":   {"bn a.running_mean a.running_var 3 true false"},
		"batchnorm-training": {"bn a.running_mean a.running_var 3 false true"},
		"batchnorm-identity": {"bn1 a.running_mean a.running_var 3 false false"},
		"raw-f32":            nil,
	} {
		bns, err := fixture(t, name).BatchNorms()
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		var got []string
		for _, bn := range bns {
			got = append(got, fmt.Sprint(bn.Node.Name, " ", bn.Mean, " ", bn.Var, " ", bn.Channels, bn.OldOpset, bn.IsTraining))
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

func TestBatchNormErrors(t *testing.T) {
	stats := func(mean, vari int64) [][]byte {
		return [][]byte{tensor("m", Float, []int64{mean}, make([]byte, 4*mean)), tensor("v", Float, []int64{vari}, make([]byte, 4*vari))}
	}
	bn := func(domain string, inputs ...string) []byte {
		return wire.AppendString(node("BatchNormalization", "bn", inputs, []string{"y"}), wire.NodeDomain, domain)
	}
	for name, c := range map[string]struct {
		node []byte
		init [][]byte
		want string
	}{
		"four inputs":     {bn("", "x", "g", "b", "m"), stats(2, 2), `m.onnx: node "bn": batch norm with 4 inputs, want 5`},
		"unlike shapes":   {bn("", "x", "g", "b", "m", "v"), stats(2, 3), `m.onnx: tensor "v": shape [3], want [2] as its running mean has`},
		"mean = variance": {bn("", "x", "g", "b", "m", "m"), stats(2, 2), `m.onnx: tensor "m": running statistics shared by batch norm nodes "bn" and "bn"`},
		"full domain":     {bn("ai.onnx", "x", "g", "b", "m", "m"), stats(2, 2), `shared by`},
	} {
		m := parse(t, encodeModel(graph([][]byte{c.node}, c.init, [][]byte{output("y", Float)})))
		_, err := m.BatchNorms()
		wantError(t, name, err, c.want, "")
	}
	// A model of several members may share frozen statistics. It runs, and nothing is recomputed in it.
	frozen := parse(t, encodeModel(graph([][]byte{bn("", "x", "g", "b", "m", "v"), bn("", "z", "g", "b", "m", "v")}, stats(2, 2), [][]byte{output("y", Float)})))
	if _, err := frozen.Runtime(); err != nil {
		t.Errorf("shared statistics in a model that only runs: %v", err)
	}
	other := parse(t, encodeModel(graph([][]byte{bn("com.example", "x")}, nil, [][]byte{output("y", Float)})))
	if bns, err := other.BatchNorms(); err != nil || len(bns) > 0 {
		t.Errorf("another domain's operator: %v, %v", bns, err)
	}
}

// Before opset 14 the number of outputs says whether a batch norm trains, from
// then on an attribute.
func TestTrainingMode(t *testing.T) {
	for _, c := range []struct {
		opset         uint64
		outputs       string
		attributes    [][]byte
		old, training bool
	}{
		{13, "y", nil, true, false},
		{13, "y a b c d", nil, true, true},
		{14, "y", nil, false, false},
		{14, "y", [][]byte{intAttribute("training_mode", 0)}, false, false},
		{14, "y a b", [][]byte{intAttribute("training_mode", 1)}, false, true},
	} {
		bn := node("BatchNormalization", "bn", []string{"x", "g", "b", "m", "v"}, strings.Fields(c.outputs), c.attributes...)
		g := graph([][]byte{bn}, [][]byte{tensor("m", Float, nil, make([]byte, 4)), tensor("v", Float, nil, make([]byte, 4))}, [][]byte{output("y", Float)})
		b := wire.AppendBytes(varintField(nil, wire.ModelIR, 4), wire.ModelGraph, g)
		m := parse(t, wire.AppendBytes(b, wire.ModelOpset, varintField(nil, wire.OpsetVersion, c.opset)))
		bns, err := m.BatchNorms()
		if err != nil || len(bns) != 1 || bns[0].OldOpset != c.old || bns[0].IsTraining != c.training {
			t.Errorf("opset %d, outputs %s: %+v, %v", c.opset, c.outputs, bns, err)
		}
	}
}

// Identity nodes in a circle, or in a chain that every node walks, must not
// keep the reader busy.
func TestIdentityChains(t *testing.T) {
	var nodes [][]byte
	const n = 30_000
	for i := range n {
		nodes = append(nodes, node("Identity", "", []string{fmt.Sprint(i)}, []string{fmt.Sprint((i + 1) % n)}))
		nodes = append(nodes, node("BatchNormalization", "", []string{"x", "g", "b", "0", "0"}, []string{"y"}))
	}
	m := parse(t, encodeModel(graph(nodes, nil, [][]byte{output("y", Float)})))
	reliability.CPU(t, 10*time.Second, func() {
		if bns, err := m.BatchNorms(); err != nil || len(bns) > 0 {
			t.Errorf("%d batch norms, %v", len(bns), err)
		}
	})
}

func TestRanks(t *testing.T) {
	w := tensor("w", Float, []int64{4, 1, 3, 3}, make([]byte, 4*36))
	nodes := [][]byte{
		node("Conv", "", []string{"x", "w"}, []string{"conv"}),
		node("Relu", "", []string{"conv"}, []string{"relu"}),
		node("Add", "", []string{"elsewhere", "relu"}, []string{"sum"}),
		node("Flatten", "", []string{"sum"}, []string{"flat"}),
		node("NonZero", "", []string{"flat"}, []string{"unknown"}),
		node("Relu", "", []string{"unknown"}, []string{"unknown too"}),
	}
	ranks := parse(t, encodeModel(graph(nodes, [][]byte{w}, [][]byte{output("flat", Float)}))).Ranks()
	for name, want := range map[string]int{"w": 4, "conv": 4, "relu": 4, "sum": 4, "flat": 2, "unknown": 0, "unknown too": 0} {
		if ranks[name] != want {
			t.Errorf("%q has rank %d, want %d", name, ranks[name], want)
		}
	}
}
