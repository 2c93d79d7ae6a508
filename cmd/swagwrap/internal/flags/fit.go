package flags

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/study/diagnosis"
	"github.com/swagwrap/swagwrap/internal/task"
	"github.com/swagwrap/swagwrap/onnxio"
	"github.com/swagwrap/swagwrap/onnxio/checkpoints"
	"github.com/swagwrap/swagwrap/swag"
	"github.com/swagwrap/swagwrap/weights"
)

// FitInputs are the open files of a fit.
type FitInputs struct {
	*Env
	c        *cli.Context
	models   []*onnxio.Model
	previous *infer.Network // the posterior to extend, or nil
	source   *Source
	others   []string // see checkpoints.Template
	card     swag.Card
}

// NewFitInputs returns inputs without open files. The caller closes them.
func (a *Env) NewFitInputs(c *cli.Context) *FitInputs { return &FitInputs{Env: a, c: c} }

// Close closes all files.
func (s *FitInputs) Close() {
	CloseModels(s.models)
	s.source.Close()
	if s.previous != nil {
		s.previous.Posterior.Close()
	}
}

// readCard makes the model card, and checks it against the graph. It fails if neither the graph nor the card has a
// required setting.
func (s *FitInputs) readCard() (card swag.Card, err error) {
	if s.previous != nil {
		card = s.previous.Posterior.Card
	}
	if card, err = Card(s.c, card); err != nil {
		return card, err
	}
	m := s.models[len(s.models)-1]
	if n := len(m.Graph.Outputs); n > 1 && card.Output == "" {
		s.Logf(s.c, "the network has %d outputs: the scores are taken from the first, %q (--output-name)", n, m.Graph.Outputs[0].Name)
	}
	g, err := infer.ReadGraph(m, card.Output, card)
	if err != nil {
		return card, BadInput(err)
	}
	if card.Columns, err = ofInputs("columns", card.Columns, g); err != nil {
		return card, err
	}
	if card.Pad, err = ofInputs("pad", card.Pad, g); err != nil {
		return card, err
	}
	if card.Task == "" {
		if card.Task, err = g.InferTask(len(card.ClassNames)); err != nil {
			err = fmt.Errorf("%s: %w", m.Path, err)
			if u := new(task.AmbiguousTask); errors.As(err, &u) {
				hints := u.Hints()
				if u.Activation != "" {
					hints = append(hints, diagnosis.OtherOutputs(m)...)
				}
				return card, Usagef(strings.Join(hints, "\n"), "%w", err)
			}
			return card, BadInput(err, diagnosis.OtherOutputs(m)...)
		}
	}
	if f := g.Proven(); f != "" && card.Task != "regression" {
		card.Scores = string(f)
	}
	if err := g.CheckNames(card.ClassNames); err != nil {
		return card, BadInput(fmt.Errorf("%s: %w", m.Path, err))
	}
	return card, nil
}

// open opens models after those of an older posterior that are already open. It hashes the content of all.
func (s *FitInputs) open(paths []string) ([]swag.Checkpoint, error) {
	if s.source.Template != nil {
		s.source.Template.Others = s.others
	}
	models, err := s.source.Open(paths)
	if err != nil {
		return nil, err
	}
	s.models = append(s.models, models...)
	for _, note := range s.source.Notes() {
		s.Logf(s.c, "%s", note)
	}
	if s.card, err = s.readCard(); err != nil { // before most data is read
		return nil, err
	}
	size := int64(0)
	for _, m := range s.models {
		size += m.Size()
	}
	bar := s.ProgressBytes(s.c, "reading", size)
	defer bar.Done()
	sums, err := checkpoints.Sums(s.c.Context, s.models, bar.Add)
	if err != nil {
		return nil, err
	}
	var opened []swag.Checkpoint
	older := len(s.models) - len(models)
	for i, m := range s.models {
		c := swag.Checkpoint{Path: RelativeTo(s.c.String("output"), m.Path), Given: m.Path, SHA256: sums[i], StateDict: s.source.key(m)}
		if i < older {
			c.StateDict = s.previous.Posterior.Models()[i].StateDict
		}
		opened = append(opened, c)
	}
	return opened, nil
}

// release frees the memory of all files.
func (s *FitInputs) release() {
	for _, m := range s.models {
		m.Release()
	}
}

// Input opens all inputs of the fit. others are checkpoints of the run that are not fitted.
func (s *FitInputs) Input(paths, others []string, opts *swag.FitOptions) (swag.Input, error) {
	s.others = others
	it, err := s.input(paths, opts)
	if err != nil {
		return it, err
	}
	it.Card = s.card
	for _, w := range s.source.warnings() {
		if !slices.Contains(it.Warnings, w) {
			it.Warnings = append(it.Warnings, w)
		}
	}
	it.Template, err = s.source.recipe()
	return it, err
}

func (s *FitInputs) input(paths []string, opts *swag.FitOptions) (swag.Input, error) {
	if older := s.c.String("extend"); older != "" {
		n, err := s.OpenNetwork(s.c, older)
		if err != nil {
			return swag.Input{}, err
		}
		s.previous = n
		if s.source, err = OpenSource(s.c, n.Template()); err != nil {
			return swag.Input{}, err
		}
		if n.Posterior.Continues() == nil {
			return s.continued(paths, opts)
		}
	}
	if s.source == nil {
		var err error
		if s.source, err = OpenSource(s.c, nil); err != nil {
			return swag.Input{}, err
		}
	}
	return s.anew(paths, opts)
}

// anew returns the input for a fit from the first checkpoint on. If an older posterior does not hold enough to continue
// from, its checkpoints are read again.
func (s *FitInputs) anew(paths []string, opts *swag.FitOptions) (it swag.Input, err error) {
	theta0 := s.c.String("theta0")
	if theta0 != "" {
		paths = append([]string{theta0}, paths...)
	}
	if s.previous != nil {
		if err := s.older(opts); err != nil {
			return it, err
		}
	}
	if it.Checkpoints, err = s.open(paths); err != nil {
		return it, err
	}
	if err := s.checkOlder(it.Checkpoints); err != nil {
		return it, err
	}
	if it.Warnings, err = s.sound(it.Checkpoints); err != nil {
		return it, err
	}
	var rules []checkpoints.RoleRule
	for _, text := range opts.Roles {
		rule, err := checkpoints.ParseRoleRule(text)
		if err != nil {
			return it, BadInput(fmt.Errorf("role %w", err))
		}
		rules = append(rules, rule)
	}
	set, err := checkpoints.New(s.models, rules...)
	if err != nil {
		return it, BadInput(err)
	}
	if err := s.vectors(&it, set, set.Models[set.Reference], opts.Dropout); err != nil {
		return it, BadInput(err)
	}
	if theta0 != "" || s.previous != nil && s.previous.Posterior.Theta0 != nil {
		it.Theta0, it.Checkpoints = &it.Checkpoints[0], it.Checkpoints[1:]
	}
	if len(it.Checkpoints) < 2 {
		return it, Usagef("SWAG averages the iterates of SGD: export one checkpoint an epoch", "%d checkpoint: a covariance needs at least 2, and 20 or more are better", len(it.Checkpoints))
	}
	return it, nil
}

// older opens the checkpoints of the posterior that is extended, θ0 first, and copies its options.
func (s *FitInputs) older(opts *swag.FitOptions) error {
	p := s.previous.Posterior
	s.Logf(s.c, "%v: all its checkpoints are read again", p.Continues())
	o := p.Options
	opts.Rank, opts.DiagOnly, opts.Deviations, opts.Reference = o.Rank, o.Rank == 0, o.Deviations, o.Compat != ""
	opts.ReferToCheckpoints, opts.Dropout, opts.Roles = o.Referenced, o.Dropout, o.Roles
	for _, c := range p.Models() {
		m, err := s.previous.Open(c, "")
		if err != nil {
			return BadInput(err)
		}
		s.models = append(s.models, m)
	}
	return nil
}

// checkOlder fails if a checkpoint of the older posterior has changed since the fit.
func (s *FitInputs) checkOlder(checkpoints []swag.Checkpoint) error {
	if s.previous == nil {
		return nil
	}
	for i, old := range s.previous.Posterior.Models() {
		if c := checkpoints[i]; c.SHA256 != old.SHA256 {
			return BadInput(fmt.Errorf("%s: its content has the SHA-256 %s, but %s was fitted to %s", c, c.SHA256, s.previous.Posterior.Path, old.SHA256))
		}
	}
	return nil
}

// continued returns the input for extending a posterior.
func (s *FitInputs) continued(paths []string, opts *swag.FitOptions) (it swag.Input, err error) {
	p := s.previous.Posterior
	it.Previous, opts.Dropout, opts.Roles = p, p.Options.Dropout, p.Options.Roles
	if it.Checkpoints, err = s.open(paths); err != nil {
		return it, err
	}
	for _, old := range p.Checkpoints {
		for _, c := range it.Checkpoints {
			if c.SHA256 == old.SHA256 {
				return it, BadInput(fmt.Errorf("%s: is in %s already, as %s", c, p.Path, old.Path), "give the checkpoints since then")
			}
		}
	}
	warnings, err := s.sound(it.Checkpoints)
	if err != nil {
		return it, err
	}
	it.Warnings = slices.Compact(append(slices.Clone(p.Warnings), warnings...))
	set, err := s.previous.Continue(s.models)
	if err != nil {
		return it, BadInput(err)
	}
	it.Graph = p.Graph
	var graph *onnxio.Model
	if set.Reference >= 0 {
		graph = set.Models[set.Reference]
	}
	return it, BadInput(s.vectors(&it, set, graph, opts.Dropout))
}

// sound refuses checkpoints that are given twice or are folded. It returns warnings for the users of the posterior.
func (s *FitInputs) sound(given []swag.Checkpoint) (warnings []string, err error) {
	var sums []string
	for _, c := range given {
		sums = append(sums, c.SHA256)
	}
	if twins := checkpoints.Twins(s.models, sums); len(twins) > 0 {
		err := fmt.Errorf("%s: has the same content as %s", twins[0][1], twins[0][0])
		if twins[0][0] == twins[0][1] {
			err = fmt.Errorf("%s: is given twice", twins[0][0])
		}
		return nil, BadInput(err, "give every checkpoint once")
	}
	return refuseFolded(s.c, s.models)
}

// vectors sets the weights and statistics of the models. graph, if not nil, is the graph of the network.
func (s *FitInputs) vectors(it *swag.Input, set *checkpoints.Set, graph *onnxio.Model, dropout bool) (err error) {
	if set.ByPlace {
		s.Logf(s.c, "tensors have other names in other files, and were matched by their place in the graph")
	}
	it.Layout, it.Release = set.Layout, s.release
	for i, m := range set.Models {
		c := &it.Checkpoints[i]
		if c.Theta, err = m.Vector(it.Layout, weights.Parameter); err != nil {
			return err
		}
		if c.Statistics, err = m.Vector(it.Layout, weights.Statistic); err != nil {
			return err
		}
	}
	if err := s.buffers(it, set, graph); err != nil {
		return err
	}
	if graph == nil {
		return nil
	}
	if dropout {
		graph = graph.WithDropout()
	}
	template, err := onnxio.NewTemplate(graph, it.Layout)
	if err != nil {
		return err
	}
	it.Graph, err = template.MarshalBinary()
	return err
}

// buffers reports which tensors are kept out of the average. It warns of those that will not match the averaged
// weights.
func (s *FitInputs) buffers(it *swag.Input, set *checkpoints.Set, graph *onnxio.Model) error {
	var rows [][]float32
	if it.Previous != nil {
		rows, graph = it.Previous.StoredStatistics, s.previous.Skeleton() // it has the names of the layout
	}
	for _, c := range it.Checkpoints[len(it.Checkpoints)-len(set.Models):] {
		row := make([]float32, c.Statistics.Len())
		if err := c.Statistics.ReadAt(row, 0); err != nil {
			return err
		}
		rows = append(rows, row)
	}
	notes, warnings := diagnosis.Buffers(graph, it.Layout, rows)
	for _, note := range notes {
		s.Logf(s.c, "%s", note)
	}
	for _, w := range warnings {
		if !slices.Contains(it.Warnings, w) {
			it.Warnings = append(it.Warnings, w)
		}
	}
	return nil
}

// refuseFolded refuses checkpoints with batch norm folded in. With
// --allow-folded it returns a warning that stays with the posterior.
func refuseFolded(c *cli.Context, models []*onnxio.Model) (warnings []string, err error) {
	path, folding := diagnosis.Folded(models)
	switch {
	case folding == nil:
		return nil, nil
	case c.Bool("allow-folded"):
		return []string{fmt.Sprintf("%s: %v; members predict worse than they could", path, folding)}, nil
	}
	return nil, BadInput(fmt.Errorf("%s: %v", path, folding), append(diagnosis.FoldingHints(folding), "--allow-folded continues anyway")...)
}
