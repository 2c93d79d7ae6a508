package main

import (
	"fmt"
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/flags"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/report"
	"github.com/swagwrap/swagwrap/onnxio"
	"github.com/swagwrap/swagwrap/onnxio/checkpoints"
	"github.com/swagwrap/swagwrap/swag"
	"github.com/swagwrap/swagwrap/swag/trajectory"
	"github.com/swagwrap/swagwrap/weights"
)

func (a *app) fitCommand() *cli.Command {
	return &cli.Command{
		Name:      "fit",
		Usage:     "build the posterior from checkpoints",
		ArgsUsage: "CKPT.onnx...",
		Description: `Reads SGD checkpoints of one network, exported as ONNX at a constant learning rate, and writes the SWAG posterior:
the mean of the weights, their variance, and the deviations of the last K checkpoints.

   swagwrap fit -o posterior.safetensors checkpoints/*.onnx

Training went on? --extend takes an older posterior and the checkpoints since:

   swagwrap fit -o new.safetensors --extend posterior.safetensors checkpoints/epoch-3?.onnx

The file holds the network's graph too: nothing else is needed to draw members from it. With --reference-checkpoints it
is a tenth as large, and draws on the checkpoints, which must then stay where they are.`,
		Flags: flags.Join(flags.OutputFlags, []cli.Flag{
			&cli.IntFlag{Name: "rank", Usage: "keep the deviations of the last `K` checkpoints", Value: swag.DefaultRank},
			&cli.BoolFlag{Name: "diag-only", Usage: "keep no deviations (SWAG-Diagonal)"},
			&cli.StringFlag{Name: "deviations", Usage: "take them from the `running` mean, as the paper does, or the best K of all from the final one: running|final", Value: string(swag.Running)},
			&cli.StringFlag{Name: "theta0", Usage: "count the pre-trained network in `FILE` as one model, as the paper's Algorithm 1 does"},
		}, flags.CardFlags, orderFlags, []cli.Flag{
			&cli.StringFlag{Name: "extend", Usage: "go on from the posterior in `FILE`, with its choices"},
			&cli.BoolFlag{Name: "reference-checkpoints", Usage: "leave the deviations in the checkpoints instead of storing them"},
			&cli.StringFlag{Name: "compat", Usage: "`reference`: compute number for number what the authors' code does (float32)"},
			&cli.BoolFlag{Name: "dropout", Usage: "keep the Dropout of a training-mode export on in predictions (never while batch norm is recomputed)"},
			&cli.BoolFlag{Name: "allow-folded", Usage: "go on although batch norm was folded into the weights"},
			flags.ThreadsFlag,
		}),
		Action: a.fit,
	}
}

// inherited are the flags that --extend takes from the older posterior.
var inherited = []string{"rank", "diag-only", "deviations", "theta0", "compat", "reference-checkpoints", "dropout"}

func (a *app) fit(c *cli.Context) error {
	if err := flags.Positionals(c); err != nil {
		return err
	}
	opts, err := fitOptions(c)
	if err != nil {
		return err
	}
	paths, err := a.checkpointOrder(c)
	if err != nil {
		return err
	}
	out, err := flags.CreateOutput(c.String("output"), c.Bool("force"), append(paths, c.String("theta0"), c.String("extend"))...)
	if err != nil {
		return err
	}
	defer out.Abort()

	s := &fitSources{app: a, c: c}
	defer s.close()
	it, err := s.iterates(paths, &opts)
	if err != nil {
		return err
	}
	if it.Card, err = s.card(); err != nil {
		return err
	}
	bar, last := &flags.Bar{}, int64(0)
	opts.Progress = func(done, total int64) {
		if last == 0 {
			bar = a.ProgressBytes(c, "fit", total)
		}
		bar.Add(int(done - last))
		last = done
	}
	err = swag.Fit(c.Context, out, it, opts)
	bar.Done()
	if err != nil {
		return flags.BadInput(err)
	}
	size, _ := out.Seek(0, 2)
	if err := out.Commit(); err != nil {
		return err
	}
	return a.describeFit(c, size)
}

func fitOptions(c *cli.Context) (swag.FitOptions, error) {
	opts := swag.FitOptions{Rank: c.Int("rank"), DiagOnly: c.Bool("diag-only"), Deviations: swag.Deviations(c.String("deviations")),
		Reference: c.String("compat") != "", ReferToCheckpoints: c.Bool("reference-checkpoints"), Dropout: c.Bool("dropout"),
		Workers: c.Int("threads"), Producer: flags.Producer(), Health: trajectory.Describe}
	switch {
	case c.IsSet("extend"):
		for _, flag := range inherited {
			if c.IsSet(flag) {
				return opts, flags.Usagef("fit a new posterior to choose anew", "--%s: --extend takes it from the older posterior", flag)
			}
		}
	case !opts.DiagOnly && opts.Rank < 2:
		return opts, flags.Usagef("--diag-only keeps no deviations at all", "--rank %d: want at least 2", opts.Rank)
	case opts.Deviations != swag.Running && opts.Deviations != swag.Final:
		return opts, flags.Usagef("", "--deviations %q: want running or final", opts.Deviations)
	case opts.Reference && c.String("compat") != "reference":
		return opts, flags.Usagef("", "--compat %q: want reference", c.String("compat"))
	case opts.Reference && (opts.Deviations == swag.Final || opts.ReferToCheckpoints):
		return opts, flags.Usagef("", "--compat reference: the authors' code has neither --deviations final nor --reference-checkpoints")
	case opts.Workers < 0:
		return opts, flags.Usagef("", "--threads %d: want a positive number", opts.Workers)
	}
	return opts, nil
}

// fitSources are the open files of a fit.
type fitSources struct {
	*app
	c        *cli.Context
	models   []*onnxio.Model
	previous *infer.Network
}

func (s *fitSources) close() {
	flags.CloseModels(s.models)
	if s.previous != nil {
		s.previous.Posterior.Close()
	}
}

// card makes the model card, and holds it against the graph where there is one.
func (s *fitSources) card() (card swag.Card, err error) {
	if s.previous != nil {
		card = s.previous.Posterior.Card
	}
	if card, err = flags.Card(s.c, card); err != nil || len(s.models) == 0 {
		return card, err
	}
	m := s.models[len(s.models)-1]
	g, err := infer.ReadGraph(m, "", card.Task)
	if err == nil {
		err = g.CheckNames(card.ClassNames)
	}
	if err != nil && (card.Task != "" || card.ClassNames != nil) {
		return card, flags.BadInput(fmt.Errorf("%s: %w", m.Path, err))
	}
	return card, nil
}

// open opens models, named by their content.
func (s *fitSources) open(paths []string) ([]swag.Checkpoint, error) {
	models, err := flags.OpenModels(paths)
	if err != nil {
		return nil, err
	}
	s.models = append(s.models, models...)
	size := int64(0)
	for _, m := range models {
		size += m.Size()
	}
	bar := s.ProgressBytes(s.c, "reading", size)
	defer bar.Done()
	sums, err := flags.ContentSums(s.c.Context, models, bar.Add)
	if err != nil {
		return nil, err
	}
	var checkpoints []swag.Checkpoint
	for i, m := range models {
		checkpoints = append(checkpoints, swag.Checkpoint{Path: flags.RelativeTo(s.c.String("output"), m.Path), Given: m.Path, SHA256: sums[i]})
	}
	return checkpoints, nil
}

// release gives back the memory of all files.
func (s *fitSources) release() {
	for _, m := range s.models {
		m.Release()
	}
}

// iterates opens everything that is fitted.
func (s *fitSources) iterates(paths []string, opts *swag.FitOptions) (swag.Input, error) {
	if older := s.c.String("extend"); older != "" {
		n, err := s.OpenNetwork(s.c, older)
		if err != nil {
			return swag.Input{}, err
		}
		s.previous = n
		if n.Posterior.Continues() == nil {
			return s.continued(paths, opts)
		}
	}
	return s.anew(paths, opts)
}

// anew is what a posterior is fitted to from its first checkpoint on. Those of
// an older posterior that says too little to go on from are read again.
func (s *fitSources) anew(paths []string, opts *swag.FitOptions) (it swag.Input, err error) {
	theta0 := s.c.String("theta0")
	if theta0 != "" {
		paths = append([]string{theta0}, paths...)
	}
	if s.previous != nil {
		old, err := s.older(opts)
		if err != nil {
			return it, err
		}
		paths = append(old, paths...)
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
	set, err := checkpoints.New(s.models)
	if err != nil {
		return it, flags.BadInput(err)
	}
	if err := s.vectors(&it, set, set.Models[set.Reference], opts.Dropout); err != nil {
		return it, flags.BadInput(err)
	}
	if theta0 != "" || s.previous != nil && s.previous.Posterior.Theta0 != nil {
		it.Theta0, it.Checkpoints = &it.Checkpoints[0], it.Checkpoints[1:]
	}
	if len(it.Checkpoints) < 2 {
		return it, flags.Usagef("SWAG averages the iterates of SGD: export one checkpoint an epoch", "%d checkpoint: a covariance needs at least 2, and 20 or more are better", len(it.Checkpoints))
	}
	return it, nil
}

// older returns the files of the posterior that is extended, θ0 first, and
// takes its options.
func (s *fitSources) older(opts *swag.FitOptions) ([]string, error) {
	p := s.previous.Posterior
	s.Logf(s.c, "%v: all its checkpoints are read again", p.Continues())
	o := p.Options
	opts.Rank, opts.DiagOnly, opts.Deviations, opts.Reference = o.Rank, o.Rank == 0, o.Deviations, o.Compat != ""
	opts.ReferToCheckpoints, opts.Dropout = o.Referenced, o.Dropout
	var paths []string
	for _, c := range p.Models() {
		paths = append(paths, infer.CheckpointPath(p, c, ""))
	}
	return paths, nil
}

// checkOlder fails if a checkpoint of the older posterior has changed since.
func (s *fitSources) checkOlder(checkpoints []swag.Checkpoint) error {
	if s.previous == nil {
		return nil
	}
	for i, old := range s.previous.Posterior.Models() {
		if c := checkpoints[i]; c.SHA256 != old.SHA256 {
			return flags.BadInput(fmt.Errorf("%s: its content has the SHA-256 %s, but %s was fitted to %s", c, c.SHA256, s.previous.Posterior.Path, old.SHA256))
		}
	}
	return nil
}

// continued is what a posterior is extended with.
func (s *fitSources) continued(paths []string, opts *swag.FitOptions) (it swag.Input, err error) {
	p := s.previous.Posterior
	it.Previous, opts.Dropout = p, p.Options.Dropout
	if it.Checkpoints, err = s.open(paths); err != nil {
		return it, err
	}
	for _, old := range p.Checkpoints {
		for _, c := range it.Checkpoints {
			if c.SHA256 == old.SHA256 {
				return it, flags.BadInput(fmt.Errorf("%s: is in %s already, as %s", c, p.Path, old.Path), "give the checkpoints since then")
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
		return it, flags.BadInput(err)
	}
	it.Graph = p.Graph
	var graph *onnxio.Model
	if set.Reference >= 0 {
		graph = set.Models[set.Reference]
	}
	return it, flags.BadInput(s.vectors(&it, set, graph, opts.Dropout))
}

// sound refuses checkpoints that are given twice or are folded, and returns what
// a user of the posterior must know.
func (s *fitSources) sound(checkpoints []swag.Checkpoint) (warnings []string, err error) {
	var sums []string
	for _, c := range checkpoints {
		sums = append(sums, c.SHA256)
	}
	if twins := flags.Duplicates(s.models, sums); len(twins) > 0 {
		err := fmt.Errorf("%s: has the same content as %s", twins[0][1], twins[0][0])
		if twins[0][0] == twins[0][1] {
			err = fmt.Errorf("%s: is given twice", twins[0][0])
		}
		return nil, flags.BadInput(err, "give every checkpoint once")
	}
	return refuseFolded(s.c, s.models)
}

// vectors fills in what the models hold. graph, if not nil, is the one that
// stands for the network.
func (s *fitSources) vectors(it *swag.Input, set *checkpoints.Set, graph *onnxio.Model, dropout bool) (err error) {
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

// refuseFolded refuses checkpoints with batch norm folded in. With
// --allow-folded it returns a warning that stays with the posterior.
func refuseFolded(c *cli.Context, models []*onnxio.Model) (warnings []string, err error) {
	path, folding := folded(models)
	switch {
	case folding == nil:
		return nil, nil
	case c.Bool("allow-folded"):
		return []string{fmt.Sprintf("%s: %v; members predict worse than they could", path, folding)}, nil
	}
	return nil, flags.BadInput(fmt.Errorf("%s: %v", path, folding), append(foldingHints(folding), "--allow-folded continues anyway")...)
}

// describeFit says what was made.
func (a *app) describeFit(c *cli.Context, size int64) error {
	p, err := swag.Open(c.String("output"))
	if err != nil {
		return err
	}
	defer p.Close()
	o := p.Options
	what := fmt.Sprintf("rank %d", o.Columns)
	switch {
	case o.Rank == 0:
		what = "diagonal only"
	case o.Deviations == swag.Final:
		what += " of all deviations from the final mean"
	case o.Compat != "":
		what += ", as the authors' code"
	}
	if o.Theta0 {
		what += ", θ0 counted"
	}
	if o.Referenced {
		what += ", deviations left in the checkpoints"
	}
	n := len(p.Checkpoints)
	a.Logf(c, "%s: posterior over %s weights from %d checkpoints (%s), %s", p.Path, report.Thousands(int(p.Len())), n, what, report.Bytes(size))
	var paths []string
	for _, ck := range p.Checkpoints {
		paths = append(paths, ck.Path)
	}
	a.logOrder(c, paths)
	for _, w := range p.Warnings {
		a.Warnf(c, "%s", w)
	}
	health, err := healthReport(p)
	if err != nil {
		return flags.BadInput(err)
	}
	for _, line := range health {
		a.Logf(c, "%s", line)
	}
	network, err := infer.NewNetwork(p, infer.RecomputeTrained, "")
	if err != nil {
		return flags.BadInput(err)
	}
	if kept := len(network.Kept()); kept > 0 {
		a.Logf(c, "batch-norm layers with the same statistics in all checkpoints: %d. They were frozen in training, and are kept", kept)
	}
	if layers := network.Layers(); layers > 0 {
		a.Logf(c, "batch-norm layers: %d. Every member needs statistics of its own: --bn-data of sample, compare and export", layers)
		if p.Card.Augment == "" {
			a.Logf(c, "did training augment its images? fit --augment says how, or --bn-data takes what the training loader yields")
		}
	}
	return nil
}
