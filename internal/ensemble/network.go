package ensemble

import (
	"fmt"

	"github.com/swagwrap/swagwrap/bnupdate"
	"github.com/swagwrap/swagwrap/onnxio"
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
	classes int64 // 0 if the graph does not say
}

// NewNetwork reads the graph that p carries.
func NewNetwork(p *swag.Posterior) (*Network, error) {
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
	if n.plan, err = bnupdate.NewPlan(m, p.Layout); err != nil {
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

// HasBatchNorm reports whether the network has statistics to recompute.
func (n *Network) HasBatchNorm() bool { return n.plan.Layers() > 0 }

// Model returns the network with the given weights and statistics.
func (n *Network) Model(parameters, statistics weights.Vector) (onnxio.Filled, error) {
	return n.runtime.Fill(n.Posterior.Layout, parameters, statistics)
}

// Graph returns the template of the files as the exporter wrote them.
func (n *Network) Graph() *onnxio.Template { return n.graph }

// Checkpoint returns the weights and statistics of a checkpoint of the same
// network. The vectors are valid until m is closed.
func (n *Network) Checkpoint(m *onnxio.Model) (parameters, statistics weights.Vector, err error) {
	same, err := m.As(n.model)
	if err != nil {
		return nil, nil, err
	}
	if parameters, err = same.Vector(n.Posterior.Layout, weights.Parameter); err != nil {
		return nil, nil, err
	}
	statistics, err = same.Vector(n.Posterior.Layout, weights.Statistic)
	return parameters, statistics, err
}
