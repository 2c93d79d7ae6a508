package infer

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/swagwrap/swagwrap/bnupdate"
	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/names"
	"github.com/swagwrap/swagwrap/internal/setting"
	"github.com/swagwrap/swagwrap/internal/word"
	"github.com/swagwrap/swagwrap/onnxio"
	"github.com/swagwrap/swagwrap/onnxio/checkpoints"
	"github.com/swagwrap/swagwrap/swag"
	"github.com/swagwrap/swagwrap/weights"
)

// Network is a posterior's graph, ready to be filled with weights.
type Network struct {
	Posterior *swag.Posterior
	*Graph

	skeleton *onnxio.Model         // as the exporter wrote it, without weights
	template *checkpoints.Template // the same, for checkpoints that are not models of their own, or nil
	runtime  *onnxio.Template      // the graph that sessions run
	spectral *bnupdate.SpectralNorms
	roots    []root

	// Passes recompute batch-norm statistics.
	Passes *Passes

	// Names are those of the model card, and then those of the first files of a command that have names.
	Names names.Known
}

// Statistics says which batch-norm statistics are recomputed.
type Statistics int

const (
	// RecomputeTrained recomputes the statistics that training updated. Statistics that are equal in all checkpoints
	// were frozen, and are kept.
	RecomputeTrained Statistics = iota
	RecomputeAll
	// KeepAll keeps the statistics of the last checkpoint.
	KeepAll
)

var statistics = []string{"auto", "recompute", "keep"}

// String returns the value of --bn.
func (s Statistics) String() string { return statistics[s] }

// ParseStatistics is the inverse of [Statistics.String].
func ParseStatistics(name string) (Statistics, error) {
	i := slices.Index(statistics, name)
	if i < 0 {
		return 0, &word.Unknown{Word: name, Want: statistics}
	}
	return Statistics(i), nil
}

// NewNetwork reads the graph of p. output names its output with the scores; "" means the one of the model
// card.
func NewNetwork(p *swag.Posterior, which Statistics, output string) (*Network, error) {
	bad := func(err error) error { return fmt.Errorf("%s: graph: %w", p.Path, err) }
	files, err := onnxio.ParseTemplate(p.Graph)
	if err != nil {
		return nil, bad(err)
	}
	m, err := files.Model(p.Path, p.Layout)
	if err != nil {
		return nil, bad(err)
	}
	n := &Network{Posterior: p, skeleton: m, spectral: bnupdate.NewSpectralNorms(m, p.Layout)}
	for _, r := range m.Roots() {
		if t, ok := p.Layout.Find(r.Tensor); ok && t.Role == weights.Parameter {
			n.roots = append(n.roots, root{t, float32(r.Least)})
		}
	}
	if err := n.SoundStatistics(p.StoredStatistics); err != nil {
		return nil, fmt.Errorf("%s: section \"statistics\": %w", p.Path, err)
	}
	if p.Template != nil {
		var r checkpoints.Recipe
		if err := json.Unmarshal(p.Template, &r); err != nil {
			return nil, fmt.Errorf("%s: metadata \"template\": %w", p.Path, err)
		}
		n.template = checkpoints.NewTemplate(m, &r)
	}
	if n.runtime, err = onnxio.NewRuntimeTemplate(m, p.Layout); err != nil {
		return nil, err
	}
	n.Passes, err = newPasses(m, p.Layout, p.Statistics, func(mean, variance weights.Tensor) (kept, stale bool) {
		frozen := p.Frozen(mean) && p.Frozen(variance)
		return which == KeepAll || which == RecomputeTrained && frozen, which == KeepAll && !frozen
	})
	if err != nil {
		return nil, err
	}
	if n.Graph, err = ReadGraph(m, cmp.Or(output, p.Card.Output), p.Card); err != nil {
		return nil, err
	}
	n.Names = CardNames(p.Card)
	n.Graph.openForm(n.Undecided())
	return n, n.checkHead()
}

// CardNames returns the names that a model card gives. Patterns for columns are no names.
func CardNames(card swag.Card) names.Known {
	k := names.Known{Classes: card.ClassNames, ColumnsFrom: names.CardName}
	for input, columns := range card.Columns {
		if !slices.ContainsFunc(columns, func(name string) bool { return strings.Contains(name, "*") }) {
			if k.Columns == nil {
				k.Columns = map[string][]string{}
			}
			k.Columns[input] = columns
		}
	}
	return k
}

// Learn takes over the names of data that the networks do not know yet.
func Learn(networks []*Network, d dataset.Dataset) {
	for _, n := range networks {
		n.Names.Learn(dataset.Names(d))
	}
}

// SoundStatistics fails if a row of statistics is impossible for the network's batch norm.
func (n *Network) SoundStatistics(rows [][]float32) error {
	return checkpoints.SoundStatistics(n.skeleton, n.Posterior.Layout, rows)
}

// Accepts fails if the model card says of the scores what the graph rules out.
func (n *Network) Accepts(card swag.Card) error {
	_, err := ReadGraph(n.Passes.Model, n.Output(), card)
	return err
}

// TakesBytes reports whether the network takes uint8 values, and normalises them
// itself.
func (n *Network) TakesBytes() bool { return n.Input.ElemType == onnxio.Uint8 }

// Recomputes reports whether the network has batch-norm statistics that are to be
// recomputed.
func (n *Network) Recomputes() bool { return n.Passes.Plan.Layers() > 0 }

// Adapting returns the network with passes for [bnupdate.Plan.Mix] of all batch-norm layers with a weight, also of those that
// keep their statistics in other passes. It shares everything else.
func (n *Network) Adapting(weight float64) (*Network, error) {
	a := *n
	a.Passes = &Passes{Model: n.Passes.Model, Keep: bnupdate.Keep{Statistics: n.Posterior.Statistics}}
	a.Passes.New = func(m *onnxio.Model) (*bnupdate.Plan, error) {
		return bnupdate.NewMixedPlan(m, n.Posterior.Layout, a.Passes.Keep, weight)
	}
	a.Passes.Explicit = func() (*bnupdate.Plan, error) { return nil, errMixed }
	var err error
	a.Passes.Plan, err = a.Passes.New(a.Passes.Model)
	return &a, err
}

// errMixed sends passes to the CPU.
var errMixed = errors.New("a mixture of statistics is not written out in operators")

// Layers returns the number of batch-norm layers whose statistics are recomputed.
func (n *Network) Layers() int { return n.Passes.Plan.Layers() }

// Kept returns the batch-norm layers that keep their statistics, by the names of their running means.
func (n *Network) Kept() []string { return n.Passes.Plan.Kept() }

// A Model is a network with weights.
type Model struct {
	Name string // the member or checkpoint, for errors
	*Graph
	Weight float64 // weight of the model's outcomes in an average
	Filled onnxio.Filled
	// InOrder says that the runs of the model come one after the other, because its graph draws random numbers.
	InOrder bool

	kept *keptSession // nil if each call of Predict opens a session of its own
}

// With returns the model with other parameters, in a session of its own.
func (m Model) With(parameters weights.Vector) Model {
	m.Filled.Parameters, m.kept = parameters, nil
	return m
}

// callers returns the number of simultaneous runs of the model.
func (m Model) callers(e *Engine) int {
	if m.InOrder {
		return 1
	}
	return e.Threads()
}

// Model returns the network with the given weights and statistics. who names the member or checkpoint in errors.
func (n *Network) Model(who string, parameters, statistics weights.Vector) (Model, error) {
	return n.Other(n.runtime, who, parameters, statistics)
}

// LastCheckpoint returns the network as training left it: the last checkpoint, with its own batch-norm statistics.
func (n *Network) LastCheckpoint() (Model, error) {
	return n.Model("last checkpoint", n.Posterior.Last(), weights.Slice(n.Posterior.Statistics))
}

// Other is Model with another template of the same network.
func (n *Network) Other(t *onnxio.Template, who string, parameters, statistics weights.Vector) (Model, error) {
	filled, err := t.Fill(n.Posterior.Layout, parameters, statistics)
	return Model{Name: n.Posterior.Path + ": " + who, Graph: n.Graph, Weight: 1, Filled: filled}, err
}

// AsIs returns a checkpoint unchanged, with its own statistics. It may be of another network with scores of the same
// meaning.
func (n *Network) AsIs(m *onnxio.Model) (Model, error) {
	g, err := ReadGraph(m, n.Posterior.Card.Output, n.Posterior.Card)
	if err != nil {
		return Model{}, err
	}
	g.taken = n.taken
	if f := n.Form(); f != n.Proven() && g.Proven() == "" {
		err = g.Decide(f) // as decided for the network
	}
	if err != nil {
		return Model{}, err
	}
	filled, err := m.Runtime()
	return Model{Name: m.Path, Graph: g, Weight: 1, Filled: filled}, err
}

// A root is a parameter that the graph takes the square root of.
type root struct {
	tensor weights.Tensor
	least  float32 // the smallest element that has a root
}

// check fails if an element has no root: the network would give NaN, or hide it.
func (r root) check(parameters weights.Vector) error {
	values := make([]float32, r.tensor.Len())
	if err := parameters.ReadAt(values, r.tensor.Offset); err != nil {
		return err
	}
	if i := slices.IndexFunc(values, func(v float32) bool { return !(v >= r.least) }); i >= 0 {
		return &onnxio.Error{
			Tensor: r.tensor.Name,
			What: fmt.Sprintf("a draw has %v at index %d, and the graph takes the root of this tensor, which wants at least %v",
				values[i], i, r.least),
			Hint: "if it is a running statistic: " + setting.Fit.With(setting.Role.With(r.tensor.Name+"=buffer")) +
				"; if it is a weight, draw nearer to the mean: " + setting.Scale.String(),
		}
	}
	return nil
}

// State returns the statistics and buffers for the given weights, as one flat vector. The vectors of spectral norm
// are those of the weights. Everything else is from the last checkpoint: package batchnorm recomputes the batch-norm
// statistics. State fails if the graph takes the root of a weight below 0.
func (n *Network) State(parameters weights.Vector) (weights.Slice, error) {
	for _, r := range n.roots {
		if err := r.check(parameters); err != nil {
			return nil, err
		}
	}
	state := slices.Clone(n.Posterior.Statistics)
	if n.Posterior.Single() {
		return state, nil // they belong to the weights
	}
	return state, n.spectral.Update(state, parameters)
}

// Template returns the template for reading checkpoints that are not models of their own. It is nil if the posterior
// was not fitted to such checkpoints.
func (n *Network) Template() *checkpoints.Template { return n.template }

// Skeleton returns the exporter's model without its weights.
func (n *Network) Skeleton() *onnxio.Model { return n.skeleton }

// Vectors returns the weights and statistics of a checkpoint of the same network. They are valid until m is closed.
// Vectors fails if an element is one that no training leaves behind.
func (n *Network) Vectors(m *onnxio.Model) (parameters, statistics weights.Vector, err error) {
	same, err := checkpoints.Match(m, n.skeleton)
	if err == nil {
		err = checkpoints.Sound(m)
	}
	if err != nil {
		return nil, nil, err
	}
	if parameters, err = same.Vector(n.Posterior.Layout, weights.Parameter); err != nil {
		return nil, nil, err
	}
	statistics, err = same.Vector(n.Posterior.Layout, weights.Statistic)
	return parameters, statistics, err
}

// Passes are the plans for batch-norm passes of a network. Package batchnorm runs them.
type Passes struct {
	Plan   *bnupdate.Plan
	Keep   bnupdate.Keep // the layers that the plan keeps
	Model  *onnxio.Model // the model that the plan is made from
	Batch  int           // examples in a batch, 0 for any number; set by Ready
	Stale  bool          // keeps statistics that training updated
	Placed atomic.Bool   // see [Engine.Place]

	// New returns the plan for another model of the network.
	New func(m *onnxio.Model) (*bnupdate.Plan, error)
	// Explicit returns the plan that writes out batch norm in training in operators, for providers that support batch
	// norm in inference only.
	Explicit func() (*bnupdate.Plan, error)

	once sync.Once
	err  error
}

func newPasses(m *onnxio.Model, l *weights.Layout, stored weights.Slice,
	keep func(mean, variance weights.Tensor) (kept, stale bool)) (p *Passes, err error) {
	p = &Passes{Model: m}
	p.Keep = bnupdate.Keep{Statistics: stored, Layer: func(mean, variance weights.Tensor) bool {
		kept, stale := keep(mean, variance)
		p.Stale = p.Stale || stale
		return kept
	}}
	p.Explicit = sync.OnceValues(func() (*bnupdate.Plan, error) { return bnupdate.NewExplicitPlan(p.Model, l, p.Keep) })
	p.New = func(m *onnxio.Model) (*bnupdate.Plan, error) { return bnupdate.NewPlan(m, l, p.Keep) }
	p.Plan, err = p.New(m)
	return p, err
}

// Ready calls f once, to make the passes ready. Later calls return the same error.
func (p *Passes) Ready(f func() error) error {
	p.once.Do(func() { p.err = f() })
	return p.err
}
