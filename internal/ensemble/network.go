package ensemble

import (
	"fmt"
	"slices"
	"strings"

	"github.com/swagwrap/swagwrap/bnupdate"
	"github.com/swagwrap/swagwrap/onnxio"
	ckpt "github.com/swagwrap/swagwrap/onnxio/checkpoints"
	"github.com/swagwrap/swagwrap/swag"
	"github.com/swagwrap/swagwrap/weights"
)

// Network is a posterior's graph, ready to be filled with weights.
type Network struct {
	Posterior *swag.Posterior
	// Input is what the network takes; -1 stands for a free dimension.
	Input onnxio.Value

	graph   *onnxio.Template // its files as they were
	model   *onnxio.Model    // the same, without weights
	runtime *onnxio.Template // for sessions
	plan    *bnupdate.Plan
	stale   bool  // keeps statistics that training updated
	classes int64 // 0 if the graph does not say
}

// Statistics says which batch-norm statistics are recomputed.
type Statistics int

const (
	// RecomputeTrained recomputes those that training updated. Those that are equal
	// in all checkpoints were frozen, and are kept.
	RecomputeTrained Statistics = iota
	RecomputeAll
	// KeepAll keeps those of the last checkpoint.
	KeepAll
)

var statistics = []string{"auto", "recompute", "keep"}

// String returns the word of --bn.
func (s Statistics) String() string { return statistics[s] }

// ParseStatistics is the inverse of [Statistics.String].
func ParseStatistics(word string) (Statistics, error) {
	i := slices.Index(statistics, word)
	if i < 0 {
		return 0, fmt.Errorf("%q: want one of %s", word, strings.Join(statistics, ", "))
	}
	return Statistics(i), nil
}

// NewNetwork reads the graph that p carries.
func NewNetwork(p *swag.Posterior, which Statistics) (*Network, error) {
	bad := func(err error) error { return fmt.Errorf("%s: graph: %w", p.Path, err) }
	graph, err := onnxio.ParseTemplate(p.Graph)
	if err != nil {
		return nil, bad(err)
	}
	m, err := graph.Model(p.Path, p.Layout)
	if err != nil {
		return nil, bad(err)
	}
	n := &Network{Posterior: p, graph: graph, model: m}
	if p.Options.Dropout {
		m = m.WithDropout()
	}
	if n.runtime, err = onnxio.NewRuntimeTemplate(m, p.Layout); err != nil {
		return nil, err
	}
	keep := bnupdate.Keep{Statistics: p.Statistics, Layer: func(mean, variance weights.Tensor) bool {
		frozen := p.Frozen(mean) && p.Frozen(variance)
		n.stale = n.stale || which == KeepAll && !frozen
		return which == KeepAll || which == RecomputeTrained && frozen
	}}
	if n.plan, err = bnupdate.NewPlan(m, p.Layout, keep); err != nil {
		return nil, err
	}
	n.classes = classCount(m)
	n.Input, err = soleInput(m)
	return n, err
}

func soleInput(m *onnxio.Model) (onnxio.Value, error) {
	in := m.FeedInputs()
	if len(in) != 1 {
		return onnxio.Value{}, &onnxio.Error{Path: m.Path, What: fmt.Sprintf("the network takes %d inputs, want 1", len(in)),
			Hint: "networks with several inputs are not supported yet: wrap the model so that it takes one tensor"}
	}
	if len(in[0].Shape) == 0 {
		return onnxio.Value{}, &onnxio.Error{Path: m.Path, Tensor: in[0].Name, What: "the input has no batch dimension"}
	}
	return in[0], nil
}

// TakesBytes reports whether the network takes uint8 values, and normalises them
// itself.
func (n *Network) TakesBytes() bool { return n.Input.ElemType == onnxio.Uint8 }

// Recomputes reports whether the network has batch-norm statistics that are to be
// recomputed.
func (n *Network) Recomputes() bool { return n.plan.Layers() > 0 }

// Layers is the number of batch-norm layers whose statistics are recomputed.
func (n *Network) Layers() int { return n.plan.Layers() }

// Kept names the batch-norm layers that keep their statistics, by their running
// means.
func (n *Network) Kept() []string { return n.plan.Kept() }

// Model returns the network with the given weights and statistics.
func (n *Network) Model(parameters, statistics weights.Vector) (onnxio.Filled, error) {
	return n.runtime.Fill(n.Posterior.Layout, parameters, statistics)
}

// Graph returns the template of the files as the exporter wrote them.
func (n *Network) Graph() *onnxio.Template { return n.graph }

// Checkpoint returns the weights and statistics of a checkpoint of the same
// network. The vectors are valid until m is closed.
func (n *Network) Checkpoint(m *onnxio.Model) (parameters, statistics weights.Vector, err error) {
	same, err := ckpt.Match(m, n.model)
	if err != nil {
		return nil, nil, err
	}
	if parameters, err = same.Vector(n.Posterior.Layout, weights.Parameter); err != nil {
		return nil, nil, err
	}
	statistics, err = same.Vector(n.Posterior.Layout, weights.Statistic)
	return parameters, statistics, err
}
