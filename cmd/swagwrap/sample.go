package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/flags"
	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/inputs"
	"github.com/swagwrap/swagwrap/internal/ensemble"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/infer/batchnorm"
	"github.com/swagwrap/swagwrap/internal/records"
	"github.com/swagwrap/swagwrap/internal/report"
	"github.com/swagwrap/swagwrap/internal/task"
	"github.com/swagwrap/swagwrap/swag"
	"github.com/swagwrap/swagwrap/weights"
)

func (a *app) sampleCommand() *cli.Command {
	return &cli.Command{
		Name:      "sample",
		Usage:     "draw members and recompute their batch-norm statistics",
		ArgsUsage: "POSTERIOR...",
		Description: `Draws members from the posterior, recomputes each one's batch-norm statistics on training data, and writes the
ensemble: a small file that, with the posterior, is all that scoring needs.

   swagwrap sample -o ensemble.safetensors --bn-data train.npz posterior.safetensors

--method says what the members are: draws of SWAG or of SWAG-Diag, SWA alone, which is one network, or the checkpoints
themselves, each with the batch-norm statistics in it; these must then stay where they are. compare shows which of them is
worth its cost. --settings FILE takes what compare --tune has chosen.

   swagwrap sample -o swa.safetensors --method swa --bn-data train.npz posterior.safetensors
   swagwrap sample -o iterates.safetensors --method iterates posterior.safetensors

The model card, with preprocessing and class names, is kept in the ensemble, and score goes by it.

From several posteriors, such as those of runs with different seeds, comes a mixture (MultiSWAG): each gives as many of
the members as the others, as far as that goes, and counts as much, or as --weights say. The networks may differ in all
but their input and their classes.

   swagwrap sample -o ensemble.safetensors --bn-data train.npz seed-1.safetensors seed-2.safetensors seed-3.safetensors`,
		Flags: flags.Join(flags.OutputFlags, []cli.Flag{
			&cli.StringFlag{Name: "method", Usage: "make the members by `M`: " + strings.Join(ensemble.Methods, "|"), Value: ensemble.SWAG},
			&cli.StringFlag{Name: "settings", Usage: "take the method, the scale and so on from `FILE`, which compare --tune wrote"},
			flags.Positive(&cli.Float64Flag{Name: "temperature", Usage: "divide the logarithms of the averaged probabilities by `T`, as calibrate would", DefaultText: "1"}),
			&cli.Float64SliceFlag{Name: "noise-std", Usage: "of a regression of which fit was not told: targets are `STD` about their means; once for each target, or for all"},
			thresholdFlag("0.5"),
			&cli.StringSliceFlag{Name: "checkpoints", Usage: "with --method iterates: the posterior's checkpoints are now in `FOLDER`; with several posteriors, once for each"},
			partFlag("draw of the members"),
		}, flags.SamplingFlags, flags.CovarianceFlags, []cli.Flag{
			&cli.StringFlag{Name: "weights", Usage: "weigh the posteriors by `W`, one number for each, separated by commas", DefaultText: "equal"},
		}, flags.BatchNormFlags, flags.DataFlags, flags.RunFlags),
		Action: a.sample,
	}
}

func (a *app) sample(c *cli.Context) error {
	settings, err := readSettings(c)
	if err != nil {
		return err
	}
	e, err := plan(c, &settings.Settings)
	if err != nil {
		return err
	}
	part, path, done, err := a.samplePart(c, e)
	if done || err != nil {
		return err
	}
	paths := c.Args().Slice()
	out, err := a.CreateResult(path, c.Bool("force") || c.IsSet("part"), false)
	if err != nil {
		return err
	}
	defer out.Abort()
	networks, err := a.openNetworks(c, e, paths)
	defer closeNetworks(networks)
	if err != nil {
		return err
	}
	if err := settings.fits(c, networks); err != nil {
		return err
	}
	e.Card = networks[0].Posterior.Card
	if settings.Temperature > 0 {
		e.Calibration = task.WithNumber(e.Card.Task, settings.Temperature)
	}
	if err := setNoise(e, networks[0], settings.NoiseStd); err != nil {
		return err
	}
	if err := thresholdFits(c, e.Card.Task); err != nil {
		return err
	}
	switch {
	case settings.Method == ensemble.Iterates:
		err = a.addCheckpoints(c, networks, e)
	case c.IsSet("part"):
		return a.drawPart(c, networks, e, part, path)
	default:
		err = a.drawAll(c, networks, e)
	}
	if err != nil {
		return err
	}
	noteScores(e, networks)
	if err := e.Write(out, flags.Producer()); err != nil {
		return flags.BadOutput(err)
	}
	if err := out.Commit(); err != nil {
		return err
	}
	for i, part := range e.Components {
		share := ""
		if len(e.Components) > 1 {
			share = fmt.Sprintf(" with weight %.3g", part.Weight)
		}
		a.Logf(c, "%s: %s of %s%s (%s)", e.Path, report.Plural(part.Members, "member"), paths[i], share, settings.describe(e))
	}
	a.Next(c, inputs.Next(e.Path, inputs.Ensemble)...)
	return nil
}

// plan returns the ensemble to make, without its members.
func plan(c *cli.Context, s *ensemble.Settings) (*ensemble.Ensemble, error) {
	ratio, err := flags.Numbers(c, "weights", "give one number for each posterior: --weights 0.5,0.3,0.2")
	if err != nil {
		return nil, err
	}
	count := s.Members
	if count == 0 {
		count = c.NArg()
	}
	e := &ensemble.Ensemble{Path: c.String("output"), Sampling: s.Sampling(), Threshold: s.Threshold}
	if e.Components, err = ensemble.Mix(c.NArg(), count, ratio, s.Antithetic); err != nil {
		return nil, flags.Usagef("", "%w", err)
	}
	if s.Method == ensemble.Iterates && s.Members == 0 {
		for i := range e.Components {
			e.Components[i].Members = 0 // all; their number is not known yet
		}
	}
	return e, nil
}

// openNetworks opens the posteriors of the ensemble's members. It checks that members can be drawn from them, and that
// the networks match.
func (a *app) openNetworks(c *cli.Context, e *ensemble.Ensemble, paths []string) ([]*infer.Network, error) {
	var networks []*infer.Network
	for i, path := range paths {
		n, err := a.OpenNetwork(c, path)
		if err != nil {
			return networks, err
		}
		networks = append(networks, n)
		if e.Sampling.Covariance != ensemble.Iterates {
			opts, err := e.Sampling.Options()
			if err == nil && opts.Scale > 0 {
				if err := inputs.RefuseSingle(n.Posterior); err != nil {
					return networks, err
				}
			}
			if err == nil {
				_, err = swag.NewSampler(n.Posterior, opts)
			}
			if err != nil {
				return networks, flags.Usagef("", "%w", err)
			}
		}
		e.Components[i].Posterior = ensemble.Reference{Path: flags.RelativeTo(e.Path, path), ID: n.Posterior.ID}
	}
	return networks, flags.BadInput(infer.Align(networks))
}

// setNoise stores the noise in the ensemble, if it was given.
func setNoise(e *ensemble.Ensemble, n *infer.Network, std []float64) error {
	if std == nil {
		return nil
	}
	err := e.SetNoise(std)
	if err == nil {
		err = n.Accepts(e.Card)
	}
	if err != nil {
		return flags.Usagef("", "--noise-std: %w", err)
	}
	return nil
}

// addCheckpoints makes the checkpoints the members.
func (a *app) addCheckpoints(c *cli.Context, networks []*infer.Network, e *ensemble.Ensemble) error {
	folders := c.StringSlice("checkpoints")
	if len(folders) == 0 {
		folders = make([]string, len(networks))
	}
	if err := a.noteTraining(c, networks, e); err != nil {
		return err
	}
	record := func(path string) string { return flags.RelativeTo(e.Path, path) }
	for i, n := range networks {
		at := func(ck swag.Checkpoint) string { return infer.CheckpointPath(n.Posterior, ck, folders[i]) }
		if err := e.AddCheckpoints(c.Context, i, n, at, record); err != nil {
			return flags.BadInput(err, inputs.CheckpointHint(err)...)
		}
	}
	return nil
}

// noteTraining stores statistics of the training inputs in an ensemble of checkpoints. These have their own batch-norm
// statistics.
func (a *app) noteTraining(c *cli.Context, networks []*infer.Network, e *ensemble.Ensemble) error {
	if c.String("bn-data") == "" {
		return nil
	}
	a.Logf(c, "checkpoints have batch-norm statistics of their own: --bn-data tells only what inputs training had")
	pre, err := flags.Preprocessing(c, e.Card)
	if err != nil {
		return err
	}
	bn, err := a.OpenBatchNorm(c, networks, pre, false)
	if err != nil {
		return err
	}
	engine, err := a.Engine(c)
	if err == nil {
		err = a.checkTraining(c, engine, bn, e)
	}
	return err
}

// checkTraining checks the training data. The ensemble keeps the findings, and score compares other data with them.
func (a *app) checkTraining(c *cli.Context, engine *infer.Engine, bn *inputs.BatchNorm, e *ensemble.Ensemble) error {
	err := a.CheckStudy(c, engine, bn, nil, nil, "")
	for i, r := range bn.Intake {
		e.Components[i].Intake = r
	}
	return err
}

// noteScores stores the known meaning of the networks' scores in the ensemble.
func noteScores(e *ensemble.Ensemble, networks []*infer.Network) {
	for i, n := range networks {
		e.Components[i].Scores = string(n.Form())
		if r := e.Components[i].Intake; r != nil && r.Scores != nil {
			e.Components[i].Scores = string(r.Scores.Form)
		}
	}
}

// drawAll computes the statistics of all members.
func (a *app) drawAll(c *cli.Context, networks []*infer.Network, e *ensemble.Ensemble) error {
	draw, err := a.newDrawing(c, networks, e)
	if err != nil {
		return err
	}
	return draw(e.PartOf(0, 1), func(k int, statistics []float32) error {
		i, place := e.Find(k)
		e.Components[i].Statistics[place] = statistics
		return nil
	})
}

// drawPart computes the statistics of the members of a part, and writes them to its file.
func (a *app) drawPart(c *cli.Context, networks []*infer.Network, e *ensemble.Ensemble, p records.Part, path string) error {
	draw, err := a.newDrawing(c, networks, e)
	if err != nil {
		return err
	}
	noteScores(e, networks)
	head, err := e.PartHead(p, flags.Producer(), asked(c))
	if err != nil {
		return err
	}
	rows, err := sharedSample.run(a, c, path, head, 1, func(rows *records.File) error {
		left := p
		left.First += rows.Rows()
		return draw(left, func(k int, statistics []float32) error {
			if err := weights.Changed(); err != nil {
				return err
			}
			one := []*records.Row{ensemble.StatisticsRow(statistics)}
			return flags.BadOutput(rows.Append(k-p.First, slices.Values(one)))
		})
	})
	if rows == nil {
		return err
	}
	a.Logf(c, "%s: %s from %d of %d", path, report.Plural(p.Rows(), "member"), p.First, p.All)
	return nil
}

// newDrawing chooses the images of the batch-norm passes. The ensemble then has everything but the statistics. It returns
// a function that draws the members of a part, and calls f with the number and the statistics of each in turn.
func (a *app) newDrawing(c *cli.Context, networks []*infer.Network, e *ensemble.Ensemble) (func(p records.Part, f func(k int, statistics []float32) error) error, error) {
	pre, err := flags.Preprocessing(c, e.Card)
	if err != nil {
		return nil, err
	}
	bn, err := a.OpenBatchNorm(c, networks, pre, true)
	if err != nil {
		return nil, err
	}
	engine, err := a.Engine(c)
	if err != nil {
		return nil, err
	}
	// As in compare, members of SWAG decide how many images all methods need, so that both commands have the same
	// statistics. The flags --scale and --rank override this.
	how := swag.SampleOptions{Seed: e.Sampling.Seed, Scale: swag.LowRankPlusDiagonal.DefaultScale()}
	if c.IsSet("scale") || c.IsSet("rank") {
		if how, err = e.Sampling.Options(); err != nil {
			return nil, err
		}
	}
	if err := a.checkTraining(c, engine, bn, e); err != nil {
		return nil, err
	}
	if err := a.ChooseSampleSize(c, engine, bn, how); err != nil {
		return nil, err
	}
	for i, n := range bn.Networks {
		of := &e.Components[i]
		of.BatchNorm = bn.Records[i]
		if err := a.batchNormPrecision(c, e, i, batchnorm.Draws{Engine: engine, Network: n, BatchNorm: bn.Training}); err != nil {
			return nil, err
		}
		for range of.Members {
			of.Statistics = append(of.Statistics, make([]float32, n.Posterior.Layout.Len(weights.Statistic)))
		}
	}
	return func(p records.Part, f func(k int, statistics []float32) error) error {
		images := 0
		for i, n := range bn.Networks {
			if n.Recomputes() {
				images += e.Components[i].Members * bn.Images() * p.Rows() / p.All
			}
		}
		bar := a.Progress(c, "members", int64(images))
		engine.Progress = bar.Add
		err := e.EachMemberOf(c.Context, bn.Networks, c.Int("threads"), p, func(m ensemble.Member) error {
			fresh, err := batchnorm.Recompute(c.Context, engine, m.Network, m.Parameters, bn.Training)
			if err != nil {
				return fmt.Errorf("member %d: %w", m.Number, err)
			}
			return f(m.Number, fresh.Statistics)
		})
		bar.Done()
		return blame(err)
	}, nil
}

// batchNormPrecision measures, prints and stores the effect of a precision below float32 on a component's batch-norm
// passes. All parts measure the same.
func (a *app) batchNormPrecision(c *cli.Context, e *ensemble.Ensemble, i int, d batchnorm.Draws) (err error) {
	if d.How, err = e.Sampling.Options(); err != nil {
		return err
	}
	d.Count = e.Components[i].Members
	r, err := d.MeasurePasses(c.Context)
	if err != nil || r == nil {
		return flags.BadInput(err)
	}
	e.Components[i].BatchNorm.Rounding = r
	a.Rounding(c, r)
	return nil
}

// samplePart returns the members to draw, and the path of the output. done reports whether the output already exists,
// is complete, and was made with the same arguments.
func (a *app) samplePart(c *cli.Context, e *ensemble.Ensemble) (p records.Part, path string, done bool, err error) {
	i, n, err := partOf(c)
	switch {
	case err != nil:
		return p, "", false, err
	case n == 0:
		return e.PartOf(0, 1), e.Path, false, nil
	case e.Sampling.Covariance == ensemble.Iterates:
		return p, "", false, flags.Usagef("nothing is computed for checkpoints", "--part is not for --method iterates")
	}
	p, path = e.PartOf(i, n), records.PartName(e.Path, i, n)
	head, err := ensemble.Asked(p, asked(c))
	if err == nil {
		done, err = sharedSample.complete(a, c, path, head)
	}
	return p, path, done, err
}

// asked returns the arguments and flags that the result depends on.
func asked(c *cli.Context) []string {
	all := c.Args().Slice()
	for _, f := range c.Command.Flags {
		switch name := f.Names()[0]; name {
		case "part", "output", "force", "quiet", "verbose", "threads", "memory", "ort-lib":
		default:
			if c.IsSet(name) {
				all = append(all, fmt.Sprintf("--%s=%v", name, c.Value(name)))
			}
		}
	}
	return all
}
