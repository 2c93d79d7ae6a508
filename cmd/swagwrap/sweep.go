package main

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/flags"
	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/infer/batchnorm"
	"github.com/swagwrap/swagwrap/internal/preprocess"
	"github.com/swagwrap/swagwrap/internal/study/sweep"
	"github.com/swagwrap/swagwrap/swag"
)

func (a *app) sweepCommand() *cli.Command {
	return &cli.Command{
		Name:      "sweep",
		Usage:     "show what the number of members, scale, rank and the BN update do, and choose",
		ArgsUsage: "POSTERIOR TEST",
		Description: `Scores SWAG on labelled test data with other numbers of members, scales and ranks than the paper's, and without
recomputed batch-norm statistics, one of them at a time. All settings share their random numbers, so that they differ by
what they are.

   swagwrap sweep --bn-data train.npz --val val.npz posterior.safetensors test.npz

The setting with the lowest NLL on --val is compared with the paper's on the test data. Without --val each half of the
test data chooses for the other. NLL is the mean per image in nats; differences have paired bootstrap intervals. Of the test
scores only those of the paper's setting and of what was chosen are shown: to look at the others is to choose on test data.

--members auto draws members until more would no longer matter: until the root mean square of what infinitely many would
change is within --tolerance, or else within a quarter of the standard error that the number of test images leaves.`,
		Flags: flags.Join([]cli.Flag{
			&cli.StringFlag{Name: "val", Usage: "choose on the labelled data in `FILE`"},
			&cli.StringFlag{Name: "labels", Usage: "read the test labels from `FILE`"},
			&cli.StringFlag{Name: "val-labels", Usage: "read the labels of --val from `FILE`"},
			&cli.StringFlag{Name: "members", Aliases: []string{"n"}, Usage: "draw `S` members, or with auto as many as make a difference", Value: "30"},
			&cli.Float64Flag{Name: "tolerance", Usage: "for --members auto, as `NATS` of the NLL", DefaultText: "by the number of images"},
			&cli.StringFlag{Name: "scales", Usage: "try the factors `ALPHA,...` of the covariance; 0 is SWA", Value: strings.ReplaceAll(strings.Trim(fmt.Sprint(sweep.UsualScales), "[]"), " ", ",")},
			&cli.StringFlag{Name: "ranks", Usage: "try the numbers `K,...` of columns; 0 is the diagonal alone", DefaultText: "0,2,5,10,20, as far as the posterior goes"},
			&cli.BoolFlag{Name: "grid", Usage: "try every scale with every rank, with and without recomputed statistics"},
			&cli.BoolFlag{Name: "all-test", Usage: "show the test scores of every setting: whoever looks at them chooses on test data"},
			&cli.IntFlag{Name: "samples", Usage: "score `N` test images, chosen by the seed", DefaultText: "all"},
			&cli.Uint64Flag{Name: "seed", Usage: "`SEED` of the draws and of the order of the training images", Value: 1},
			eceFlag,
			&cli.BoolFlag{Name: "json", Usage: "print JSON instead of a table"},
		}, flags.ReportFlags, storeFlags, flags.BatchNormFlags, flags.DataFlags, flags.RunFlags),
		Action: a.sweep,
	}
}

func (a *app) sweep(c *cli.Context) error {
	if err := flags.Positionals(c); err != nil {
		return err
	}
	s := &sweep.Sweep{Seed: c.Uint64("seed"), Grid: c.Bool("grid"), AllTest: c.Bool("all-test")}
	if err := sweepFlags(c, s); err != nil {
		return err
	}
	pages, err := a.OpenPages(c)
	if err != nil {
		return err
	}
	defer pages.Abort()
	if s.Network, err = a.OpenNetwork(c, c.Args().Get(0)); err != nil {
		return err
	}
	defer s.Network.Posterior.Close()
	if err := sweepRanks(c, s); err != nil {
		return err
	}
	pre, err := flags.Preprocessing(c, s.Network.Posterior.Card)
	if err != nil {
		return err
	}
	bn, err := a.OpenBatchNorm(c, []*infer.Network{s.Network}, pre)
	if err != nil {
		return err
	}
	if s.Test, err = openScored(c, c.Args().Get(1), c.String("labels"), s.Network, pre); err != nil {
		return err
	}
	if val := c.String("val"); val != "" {
		if s.Validation, err = flags.OpenLabelled(c, val, c.String("val-labels"), s.Network, pre); err != nil {
			return err
		}
	}
	engine, err := a.Engine(c)
	if err != nil {
		return err
	}
	if err := a.openStore(c, engine, []*infer.Network{s.Network}); err != nil {
		return err
	}
	if engine.Share != nil && s.Members == 0 {
		return flags.Usagef("say how many: --members 30", "--members auto is not for a part: it goes by the results of all")
	}
	if err := a.CheckStudy(c, engine, bn, s.Validation, s.Test, c.Args().Get(1)); err != nil {
		return err
	}
	if err := a.ChooseSampleSize(c, engine, bn, s.Sampling()); err != nil {
		return err
	}
	s.BatchNorm = bn.Training
	if engine.Share != nil {
		return a.fill(c, engine, s.Images(s.Members), s.Fill)
	}
	estimate := s.Members
	if estimate == 0 {
		estimate = defaultMembers
	}
	if err := a.DrawnPrecision(c, engine, batchnorm.Draws{Network: s.Network, BatchNorm: s.BatchNorm, How: s.Sampling(), Count: estimate}, s.Test); err != nil {
		return err
	}
	bar := a.Progress(c, "sweep", s.Images(estimate))
	engine.Progress, s.Resize = bar.Add, bar.Resize
	found, err := s.Run(c.Context, engine)
	bar.Done()
	if err != nil {
		return flags.BadInput(err)
	}
	a.tellStore(c, engine)
	found.Statistics = bn.BatchNorm
	return a.Show(c, pages, &bn.BatchNorm, found)
}

// defaultMembers is the paper's S.
const defaultMembers = 30

// sweepFlags reads the flags that do not depend on the posterior.
func sweepFlags(c *cli.Context, s *sweep.Sweep) (err error) {
	if n := c.String("members"); n != "auto" {
		if s.Members, err = strconv.Atoi(n); err != nil || s.Members < 1 || s.Members >= swag.MaxMembers {
			return flags.Usagef("", "--members %q: want auto, or 1 to %d", n, swag.MaxMembers-1)
		}
	}
	if s.Tolerance = c.Float64("tolerance"); c.IsSet("tolerance") && (!(s.Tolerance > 0) || math.IsInf(s.Tolerance, 0)) {
		return flags.Usagef("", "--tolerance %g: want a positive number", s.Tolerance)
	}
	if s.Scales, err = flags.Numbers(c, "scales", "give numbers with commas between: --scales 0.25,0.5,1"); err != nil {
		return err
	}
	if slices.ContainsFunc(s.Scales, func(v float64) bool { return v < 0 }) {
		return flags.Usagef("", "--scales %q: want numbers of at least 0", c.String("scales"))
	}
	if c.Int("samples") < 0 {
		return flags.Usagef("", "--samples %d: want a positive number", c.Int("samples"))
	}
	s.ECE, err = binning(c.String("ece"))
	return err
}

// sweepRanks reads --ranks. The default is the usual ranks that the posterior allows.
func sweepRanks(c *cli.Context, s *sweep.Sweep) error {
	columns := s.Network.Posterior.Options.Columns
	given, err := flags.Numbers(c, "ranks", "give numbers of columns with commas between: --ranks 0,5,20")
	if err != nil {
		return err
	}
	if given == nil {
		s.Ranks = sweep.UsualRanks(columns)
		return nil
	}
	for _, k := range given {
		if k != math.Trunc(k) || k < 0 || k == 1 || k > float64(columns) {
			return flags.Usagef("", "--ranks: %g: want 0 for the diagonal, or 2 to %d, the columns of %s", k, columns, s.Network.Posterior.Path)
		}
		s.Ranks = append(s.Ranks, int(k))
	}
	return nil
}

// openScored opens labelled data that many networks read. --samples limits it.
func openScored(c *cli.Context, path, labels string, n *infer.Network, pre preprocess.Settings) (dataset.Dataset, error) {
	d, err := flags.OpenLabelled(c, path, labels, n, pre)
	if err != nil {
		return nil, err
	}
	if c.Int("samples") > 0 && c.Int("samples") < d.Len() {
		d = dataset.Subset(d, dataset.Order{Shuffle: true, Seed: c.Uint64("seed"), Limit: c.Int("samples")})
	}
	return d, nil
}
