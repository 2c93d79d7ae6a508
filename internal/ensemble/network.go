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

	like    *onnxio.Model    // the graph with θ_SWA's names and other values
	graph   *onnxio.Template // its files as they were
	runtime *onnxio.Template // one file, for sessions
	plan    *bnupdate.Plan
}

// NewNetwork reads the graph that p carries.
func NewNetwork(p *swag.Posterior) (*Network, error) {
	bad := func(err error) error { return fmt.Errorf("%s: graph: %w", p.Path, err) }
	graph, err := onnxio.ParseTemplate(p.Graph)
	if err != nil {
		return nil, bad(err)
	}
	n := &Network{Posterior: p, graph: graph}
	// The graph's nodes do not depend on the weights: any will do to read it.
	if n.like, err = graph.Model(p.Path, p.Layout, make(weights.Slice, p.Len()), p.Statistics); err != nil {
		return nil, bad(err)
	}
	if p.Options.Dropout {
		n.like = n.like.WithDropout()
	}
	if n.runtime, err = onnxio.NewRuntimeTemplate(n.like, p.Layout); err != nil {
		return nil, err
	}
	if n.plan, err = bnupdate.NewPlan(n.like, p.Layout); err != nil {
		return nil, err
	}
	n.Input, err = soleInput(n.like)
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

// HasBatchNorm reports whether the network has statistics to recompute.
func (n *Network) HasBatchNorm() bool { return n.plan.Layers() > 0 }

// Model returns the network as ONNX with the given weights and statistics.
func (n *Network) Model(parameters, statistics weights.Vector) ([]byte, error) {
	return n.runtime.Render(n.Posterior.Layout, parameters, statistics)
}

// Graph returns the template of the files as the exporter wrote them.
func (n *Network) Graph() *onnxio.Template { return n.graph }

// Checkpoint returns the weights and statistics of a checkpoint of the same
// network. The vectors are valid until m is closed.
func (n *Network) Checkpoint(m *onnxio.Model) (parameters, statistics weights.Vector, err error) {
	same, err := m.As(n.like)
	if err != nil {
		return nil, nil, err
	}
	if parameters, err = same.Vector(n.Posterior.Layout, weights.Parameter); err != nil {
		return nil, nil, err
	}
	statistics, err = same.Vector(n.Posterior.Layout, weights.Statistic)
	return parameters, statistics, err
}
