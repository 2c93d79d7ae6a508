package main

import (
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/swagwrap/swagwrap/calibrate/regression"
	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/flags"
	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/inputs"
	"github.com/swagwrap/swagwrap/internal/ensemble"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/infer/batchnorm"
	"github.com/swagwrap/swagwrap/internal/infer/rounding"
	"github.com/swagwrap/swagwrap/internal/kind"
	"github.com/swagwrap/swagwrap/internal/report"
	"github.com/swagwrap/swagwrap/internal/study"
	"github.com/swagwrap/swagwrap/internal/task"
	"github.com/swagwrap/swagwrap/swag"
	"github.com/swagwrap/swagwrap/weights"
)

func (a *app) sampleCommand() *cli.Command {
	return &cli.Command{
		Name:      "sample",
		Usage:     "draw members and recompute their batch-norm statistics",
		ArgsUsage: "POSTERIOR...",
		Description: `Draws members from the posterior, and recomputes the batch-norm statistics of each on training data. Writes the ensemble, a
small file. Scoring needs only this file and the posterior.

   swagwrap sample -o ensemble.safetensors --bn-data train.npz posterior.safetensors

--method says what the members are: draws of SWAG or of SWAG-Diag, SWA alone, which is one network, or the checkpoints
themselves with their own batch-norm statistics (iterates). The checkpoints must then stay where they are. compare shows which
method is worth its cost. --settings FILE takes what compare --tune has chosen.

   swagwrap sample -o swa.safetensors --method swa --bn-data train.npz posterior.safetensors
   swagwrap sample -o iterates.safetensors --method iterates posterior.safetensors

The ensemble keeps the model card with preprocessing and class names, and score uses it.

Several posteriors, such as those of runs with different seeds, make a mixture (MultiSWAG). Each gives about as many members as
the others, and has the same weight, or that of --weights. The networks must have the same input and classes.

   swagwrap sample -o ensemble.safetensors --bn-data train.npz seed-1.safetensors seed-2.safetensors seed-3.safetensors

Several jobs can share the work in a folder. The same command without --part then writes the ensemble.

   swagwrap sample --store kept --part 3/10 -o ensemble.safetensors --bn-data train.npz posterior.safetensors`,
		Flags: flags.Join(flags.OutputFlags, []cli.Flag{
			&cli.StringFlag{Name: "method", Usage: "make the members by `M`: " + strings.Join(ensemble.Methods, "|"), Value: ensemble.SWAG},
			&cli.StringFlag{Name: "settings", Usage: "take the method, the scale and so on from `FILE`, which compare --tune wrote"},
			flags.Real(regression.MinFactor, regression.MaxFactor, &cli.Float64Flag{Name: "temperature", Usage: "divide the logarithms of the averaged probabilities by `T`, as calibrate would", DefaultText: "1"}),
			flags.NoiseFlag("of a regression, if fit did not say it: the standard deviation `STD` of targets about their means; once for each target, or once for all", ""),
			thresholdFlag("0.5"),
			&cli.StringSliceFlag{Name: "checkpoints", Usage: "with --method iterates: the posterior's checkpoints are now in `FOLDER`; with several posteriors, once for each"},
		}, storeFlags, flags.SamplingFlags, flags.CovarianceFlags, []cli.Flag{
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
	paths, part := c.Args().Slice(), c.IsSet("part")
	if settings.Method == ensemble.Iterates {
		if err := flags.Refuse(c, "nothing is computed for checkpoints", "--* is not for --method iterates", "part", "store"); err != nil {
			return err
		}
	}
	out, err := a.CreateResult(e.Path, c.Bool("force") || part, false)
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
	if err := setTemperature(c, e, settings.Temperature); err != nil {
		return err
	}
	if err := setNoise(e, networks[0], settings.NoiseStd); err != nil {
		return err
	}
	if err := thresholdFits(c, e.Card.Task); err != nil {
		return err
	}
	if settings.Method == ensemble.Iterates {
		err = a.addCheckpoints(c, networks, e)
	} else {
		err = a.draw(c, networks, e)
	}
	if err != nil || part {
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
	next := inputs.Next(e.Path, kind.Ensemble)
	if networks[0].Axis() == 0 { // for pixels and tokens there is no warning
		next = append(next, study.Shell("swagwrap", "calibrate", "-o", "calibrated.safetensors", "--ensemble", e.Path, "val.csv")+
			"  # val.csv: score --probs of validation data. After that score warns if other data differ")
	}
	a.Next(c, next...)
	return nil
}

// Weights of posteriors are relative to each other.
const leastWeight, mostWeight = 1e-6, 1e6

// plan returns the ensemble to make, without its members.
func plan(c *cli.Context, s *ensemble.Settings) (*ensemble.Ensemble, error) {
	ratio, err := flags.Numbers(c, "weights", "give one number for each posterior: --weights 0.5,0.3,0.2", leastWeight, mostWeight)
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

// setTemperature stores the temperature in the ensemble, if there is one. It refuses one at the bounds of a fit, which only shows
// a direction.
func setTemperature(c *cli.Context, e *ensemble.Ensemble, t float64) error {
	if t == 0 {
		return nil
	}
	e.Calibration = task.WithNumber(e.Card.Task, t)
	why := e.Calibration.Outside()
	switch {
	case why == "":
		return nil
	case c.IsSet("settings"):
		return flags.BadInput(fmt.Errorf("%s: temperature: %s", c.String("settings"), why), "choose anew, on more labelled examples: swagwrap compare --tune")
	}
	return flags.Usagef("fit it on more labelled examples: swagwrap compare --val FILE", "--temperature: %s", why)
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
	if c.String("bn-data") != "" {
		a.Logf(c, "checkpoints have batch-norm statistics of their own: --bn-data tells only what inputs training had")
		if _, _, err := a.openTraining(c, networks, e, false); err != nil {
			return err
		}
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

// openTraining opens the training data, and checks it. The ensemble keeps the findings, and score compares other data with
// them. recompute is as for [inputs.Env.OpenBatchNorm].
func (a *app) openTraining(c *cli.Context, networks []*infer.Network, e *ensemble.Ensemble, recompute bool) (*inputs.BatchNorm, *infer.Engine, error) {
	bn, err := a.OpenBatchNorm(c, networks, recompute)
	if err != nil {
		return nil, nil, err
	}
	engine, err := a.Engine(c)
	if err != nil {
		return nil, nil, err
	}
	if err := a.openStore(c, engine); err != nil {
		return nil, nil, err
	}
	err = a.CheckStudy(c, engine, bn, nil, nil, "")
	for i, r := range bn.Intake {
		e.Components[i].Intake = r
	}
	return bn, engine, err
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

// draw computes the batch-norm statistics of all members. With --part it computes those of some members, for the store.
func (a *app) draw(c *cli.Context, networks []*infer.Network, e *ensemble.Ensemble) error {
	bn, engine, err := a.openTraining(c, networks, e, true)
	if err != nil {
		return err
	}
	how, err := e.Sampling.Options()
	if err != nil {
		return err
	}
	// As in compare, members of SWAG decide how many images all methods need, so that both commands have the same
	// statistics. The flags --scale and --rank override this.
	deciding := swag.SampleOptions{Seed: e.Sampling.Seed, Scale: swag.LowRankPlusDiagonal.DefaultScale()}
	if c.IsSet("scale") || c.IsSet("rank") {
		deciding = how
	}
	if err := a.ChooseSampleSize(c, engine, bn, deciding); err != nil {
		return err
	}
	images := 0
	for i, n := range bn.Networks {
		of := &e.Components[i]
		of.BatchNorm = bn.Records[i]
		change, err := a.checkPasses(c, batchnorm.Draws{Engine: engine, Network: n, BatchNorm: bn.Training, How: how, Count: of.Members})
		if err != nil {
			return err
		}
		if change != nil {
			of.BatchNorm.Rounding = change
		}
		for range of.Members {
			of.Statistics = append(of.Statistics, make([]float32, n.Posterior.Layout.Len(weights.Statistic)))
		}
		if n.Recomputes() {
			images += of.Members * bn.Images()
		}
	}
	bar := a.studyBar(c, engine, int64(images))
	engine.Progress = bar.Add
	err = e.EachMember(c.Context, bn.Networks, c.Int("threads"), func(m ensemble.Member) error {
		if !engine.Shard.Mine() {
			return nil
		}
		fresh, err := batchnorm.Recompute(c.Context, engine, m.Network, m.Parameters, bn.Training)
		if err != nil {
			return fmt.Errorf("member %d: %w", m.Number, err)
		}
		i, place := e.Find(m.Number)
		e.Components[i].Statistics[place] = fresh.Statistics
		return nil
	})
	bar.Done()
	if err != nil {
		return flags.BadInput(err)
	}
	a.tellStore(c, engine)
	return nil
}

// checkPasses measures and prints the effect of a GPU, or of a precision below float32, on batch-norm passes. It returns
// nil if there is none. All jobs measure the same. A GPU that disagrees with the CPU is an error, also with --provider
// auto: it chose how many examples the passes see.
func (a *app) checkPasses(c *cli.Context, d batchnorm.Draws) (*rounding.Change, error) {
	r, err := d.MeasurePasses(c.Context)
	if err != nil || r == nil {
		return nil, flags.BadInput(err)
	}
	if r.Objection() == "" && a.OnCPU(c, d.Engine, r) {
		return nil, nil
	}
	return r, a.Rounding(c, r)
}
