package main

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/ensemble"
	"github.com/swagwrap/swagwrap/internal/preprocess"
	"github.com/swagwrap/swagwrap/internal/report"
	"github.com/swagwrap/swagwrap/onnxio"
	"github.com/swagwrap/swagwrap/swag"
)

// lineupFlags say which methods run, and how.
var lineupFlags = flags([]cli.Flag{
	&cli.StringFlag{Name: "methods", Usage: "run the `LIST` of methods, separated by commas, or all: " + strings.Join(ensemble.Methods, ","), DefaultText: "those that the inputs allow, without isotropic"},
	&cli.StringSliceFlag{Name: "iterates", Usage: "run an ensemble of other checkpoints too, such as SGLD's: `NAME=FILES`, where FILES is a pattern such as 'sgld/*.onnx'; may be repeated"},
	&cli.BoolFlag{Name: "recompute-iterates", Usage: "show those with recomputed batch-norm statistics too; they must be of the posterior's network"},
	&cli.StringFlag{Name: "val", Usage: "fit temperatures and the like on the labelled data in `FILE`"},
	&cli.StringFlag{Name: "val-labels", Usage: "read the labels of --val from `FILE`"},
	&cli.StringSliceFlag{Name: "checkpoints", Usage: "the posterior's checkpoints are now in `FOLDER`; with several posteriors, once for each"},
	&cli.Float64Flag{Name: "scale", Usage: "multiply SWAG's covariance by `ALPHA`", Value: swag.LowRankPlusDiagonal.DefaultScale()},
}, samplingFlags, bnFlags, preprocessFlags, runFlags)

// lineup is what compare and ood have in common: an ensemble.Lineup with its
// files open.
type lineup struct {
	ensemble.Lineup
	pre        preprocess.Settings
	validation dataset.Dataset // nil without --val
	batchNorm  *batchNorm
}

// openLineup opens the posteriors and all that goes with them but for the data to
// predict. The caller closes it, also after an error.
func (a *app) openLineup(c *cli.Context, posteriors []string) (*lineup, error) {
	l := &lineup{Lineup: ensemble.Lineup{Seed: c.Uint64("seed"), Scale: c.Float64("scale")}, batchNorm: &batchNorm{}}
	var err error
	if l.Members, err = members(c); err != nil {
		return l, err
	}
	if !(l.Scale >= 0) || math.IsInf(l.Scale, 0) {
		return l, usagef("", "--scale %g: want a finite number of at least 0", l.Scale)
	}
	if list := c.String("methods"); list != "" {
		if l.Methods, err = ensemble.ParseMethods(list); err != nil {
			return l, usagef("", "--methods: %w", err)
		}
	}
	if l.pre, err = preprocessing(c); err != nil {
		return l, err
	}
	if err := a.openRuns(c, l, posteriors); err != nil {
		return l, err
	}
	if l.Sequences, err = openSequences(c); err != nil {
		return l, err
	}
	if err := a.openTraining(c, l); err != nil {
		return l, err
	}
	if val := c.String("val"); val != "" {
		if l.validation, err = l.openLabelled(val, c.String("val-labels")); err != nil {
			return l, err
		}
	}
	for _, m := range l.Methods {
		if what := l.Missing(m); what != "" && c.String("methods") != "all" {
			a.warnf(c, "--methods %s: left out, it needs %s", m, what)
		}
	}
	return l, nil
}

// openRuns opens the posteriors, and their checkpoints where they can be found.
func (a *app) openRuns(c *cli.Context, l *lineup, posteriors []string) error {
	folders := c.StringSlice("checkpoints")
	if len(folders) > 0 && len(folders) != len(posteriors) {
		return usagef("give --checkpoints once for each posterior, in their order", "%d folders of checkpoints for %s", len(folders), plural(len(posteriors), "posterior"))
	}
	var networks []*ensemble.Network
	for i, path := range posteriors {
		n, err := a.openNetwork(c, path)
		if err != nil {
			return err
		}
		l.Runs = append(l.Runs, ensemble.Run{Network: n})
		networks = append(networks, n)
		if n.Posterior.Options.Dropout {
			a.warnf(c, "%s: dropout stays on, so that numbers differ from run to run", path)
		}
		folder := ""
		if len(folders) > 0 {
			folder = folders[i]
		}
		if l.Runs[i].Iterates, err = a.findCheckpoints(c, n.Posterior, folder); err != nil {
			return err
		}
	}
	return badInput(ensemble.Align(networks))
}

// close closes posteriors and checkpoints.
func (l *lineup) close() {
	for _, r := range l.Runs {
		r.Network.Posterior.Close()
		closeModels(r.Iterates)
	}
	for _, s := range l.Sequences {
		closeModels(s.Models)
	}
}

// findCheckpoints opens the files that the posterior was fitted to, in the given
// folder or where they were. Where some cannot be found, it says so and returns
// none.
func (a *app) findCheckpoints(c *cli.Context, p *swag.Posterior, folder string) ([]*onnxio.Model, error) {
	var paths []string
	for _, ck := range p.Checkpoints {
		path := ensemble.CheckpointPath(p, ck, folder)
		if _, err := os.Stat(path); err != nil {
			a.warnf(c, "%s: not found, so the SGD rows are left out (--checkpoints FOLDER)", path)
			return nil, nil
		}
		paths = append(paths, path)
	}
	models, err := openModels(paths)
	if err != nil {
		return nil, err
	}
	sums, err := contentSums(c.Context, models, nil)
	if err != nil {
		closeModels(models)
		return nil, err
	}
	for i, sum := range sums {
		if sum != p.Checkpoints[i].SHA256 {
			closeModels(models)
			return nil, badInput(fmt.Errorf("%s: is not the file that %s was fitted to", paths[i], p.Path),
				"fit again, or name the folder with the right checkpoints: --checkpoints FOLDER")
		}
	}
	return models, nil
}

// openSequences opens what --iterates names.
func openSequences(c *cli.Context) (sequences []ensemble.Sequence, err error) {
	for _, spec := range c.StringSlice("iterates") {
		name, pattern, ok := strings.Cut(spec, "=")
		if !ok || name == "" || pattern == "" {
			return sequences, usagef("give a name and the files: --iterates 'SGLD=sgld/*.onnx'", "--iterates %q: want NAME=FILES", spec)
		}
		if slices.ContainsFunc(sequences, func(s ensemble.Sequence) bool { return s.Name == name }) {
			return sequences, usagef("", "--iterates: two are called %q", name)
		}
		paths, err := filepath.Glob(pattern)
		if err != nil {
			return sequences, usagef("", "--iterates %q: %w", spec, err)
		}
		if len(paths) == 0 {
			return sequences, badInput(fmt.Errorf("%s: no such file", pattern))
		}
		slices.Sort(paths)
		models, err := openModels(paths)
		if err != nil {
			return sequences, err
		}
		sequences = append(sequences, ensemble.Sequence{Name: fmt.Sprintf("%s, %s", name, plural(len(models), "iterate")), Models: models, Recompute: c.Bool("recompute-iterates")})
	}
	return sequences, nil
}

// openTraining opens --bn-data. Where there are no statistics to recompute, the
// Laplace approximation has use for it.
func (a *app) openTraining(c *cli.Context, l *lineup) (err error) {
	var networks []*ensemble.Network
	for _, r := range l.Runs {
		networks = append(networks, r.Network)
	}
	if !slices.ContainsFunc(networks, (*ensemble.Network).Recomputes) {
		l.batchNorm.networks = networks
		if c.String("bn-data") == "" {
			return nil
		}
		err = a.openBatchNorm(c, l.batchNorm, networks[0], l.pre)
	} else {
		l.batchNorm, err = a.batchNormData(c, networks, l.pre)
	}
	l.BatchNorm = l.batchNorm.BatchNormData
	return err
}

// settle settles the batch-norm data of all methods.
func (a *app) settleLineup(c *cli.Context, l *lineup, of *ensemble.Lineup, e *ensemble.Engine) error {
	err := a.settle(c, e, l.batchNorm, swag.SampleOptions{Seed: l.Seed, Scale: l.Scale, Covariance: swag.LowRankPlusDiagonal})
	of.BatchNorm = l.batchNorm.BatchNormData
	return err
}

// openLabelled opens examples with labels, to be decoded once.
func (l *lineup) openLabelled(path, labels string) (dataset.Dataset, error) {
	return openLabelled(path, labels, l.Runs[0].Network, l.pre)
}

// lineupProvenance says which posteriors and data, but for those to predict, the
// numbers are of.
func lineupProvenance(l *lineup, runtime string) []report.Fact {
	facts := []report.Fact{{Name: "ONNX Runtime", Value: runtime}}
	for _, r := range l.Runs {
		p := r.Network.Posterior
		facts = append(facts, report.Fact{Name: "posterior " + p.Path, Value: p.ID})
		for _, ck := range p.Checkpoints {
			facts = append(facts, report.Fact{Name: "checkpoint " + ck.Path, Value: ck.SHA256})
		}
	}
	facts = append(facts, sourceFacts("validation", l.validation)...)
	return append(facts, sourceFacts("training", l.BatchNorm.Data)...)
}
