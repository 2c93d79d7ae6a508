package main

import (
	"math"
	"slices"
	"strconv"

	"github.com/urfave/cli/v2"

	"github.com/swagwrap/swagwrap/bnupdate"
	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/ensemble"
	"github.com/swagwrap/swagwrap/internal/report"
)

// bnFlags say how batch-norm statistics are recomputed.
var bnFlags = []cli.Flag{
	&cli.StringFlag{Name: "bn-data", Usage: "recompute batch-norm statistics from the training images in `PATH`: a folder, list or tar of images, or an array (.npz .npy IDX)"},
	&cli.StringFlag{Name: "bn-samples", Usage: "use `N` of them, all, or with auto as many as it takes to know the statistics well", DefaultText: "auto, or all with --bn-order file"},
	&cli.Float64Flag{Name: "bn-fraction", Usage: "use the part `F` of them, above 0 and at most 1, rounded up to whole images"},
	&cli.StringFlag{Name: "bn-order", Usage: "visit them `shuffled` by the seed, or in file order: shuffled|file", Value: "shuffled"},
	&cli.StringFlag{Name: "bn-rule", Usage: "combine batches by `RULE`: reference|equal-batches|pooled", Value: bnupdate.Reference.String()},
}

// batchNormData opens what --bn-data names. A network without batch norm needs
// none.
func (a *app) batchNormData(c *cli.Context, n *ensemble.Network, p dataset.Preprocess) (ensemble.BatchNormData, error) {
	var b ensemble.BatchNormData
	var err error
	if b.Rule, err = bnupdate.ParseRule(c.String("bn-rule")); err != nil {
		return b, usagef("", "--bn-rule: %w", err)
	}
	switch order := c.String("bn-order"); order {
	case "shuffled":
		b.Order = dataset.Order{Shuffle: true, Seed: c.Uint64("seed")}
	case "file":
		b.Order = dataset.Order{Seed: c.Uint64("seed")}
	default:
		return b, usagef("", "--bn-order %q: want shuffled or file", order)
	}
	limit, err := bnLimit(c, &b)
	if err != nil {
		return b, err
	}
	path := c.String("bn-data")
	switch {
	case !n.HasBatchNorm():
		if path != "" {
			a.logf(c, "the network has no batch norm: --bn-data is not used")
		}
		return b, nil
	case path == "":
		return b, usagef("give training images: --bn-data PATH. Averaged or sampled weights do not go with any checkpoint's statistics",
			"%s: the network has batch norm, and there is no --bn-data", n.Posterior.Path)
	}
	if b.Data, err = openData([]string{path}, "", n, p); err != nil {
		return b, err
	}
	b.Order.Limit = limit(b.Data.Len())
	return b, nil
}

// bnLimit reads how many of the training images are used: it returns a function
// of how many there are, or sets the tolerance.
func bnLimit(c *cli.Context, b *ensemble.BatchNormData) (limit func(images int) int, err error) {
	all := func(images int) int { return images }
	if c.IsSet("bn-fraction") {
		f := c.Float64("bn-fraction")
		switch {
		case c.IsSet("bn-samples"):
			return nil, usagef("", "--bn-samples and --bn-fraction both say how many images to use: give one")
		case !(f > 0 && f <= 1):
			return nil, usagef("the paper's ImageNet experiments use --bn-fraction 0.1", "--bn-fraction %g: want a number above 0, at most 1", f)
		}
		return func(images int) int { return int(math.Ceil(f * float64(images))) }, nil
	}
	switch s := c.String("bn-samples"); {
	case s == "all", s == "" && !b.Order.Shuffle:
		return all, nil
	case s == "auto" && !b.Order.Shuffle:
		return nil, usagef("leave out --bn-order file, or say how many: --bn-samples N|all",
			"--bn-samples auto --bn-order file: the first images of a file say nothing about the others")
	case s == "auto", s == "":
		b.Tolerance = bnupdate.DefaultTolerance
		return all, nil
	default:
		n, err := strconv.Atoi(s)
		if err != nil || n < 1 {
			return nil, usagef("", "--bn-samples %q: want a number of images, all or auto", s)
		}
		return func(int) int { return n }, nil
	}
}

// describeBatchNorm tells of a recomputation, and warns where its batches
// differ by more than chance. What says whose it is: "batch norm".
func (a *app) describeBatchNorm(c *cli.Context, what string, data ensemble.BatchNormData, r bnupdate.Result) {
	if r.Images == 0 {
		return
	}
	all, used := data.Data.Len(), report.Thousands(r.Images)
	switch precision := report.Percent(r.StandardError, 1) + " of the standard deviation"; {
	case data.Tolerance > 0 && r.Images < data.Images():
		a.logf(c, "%s: %s of %s images are enough (standard error %s)", what, used, report.Thousands(all), precision)
	case math.IsInf(r.StandardError, 1):
		a.debugf(c, "%s: %s of %s images, in one batch", what, used, report.Thousands(all))
	default:
		a.debugf(c, "%s: %s of %s images (standard error %s)", what, used, report.Thousands(all), precision)
	}
	if room, ok := dataset.Room(data.Data); ok && room < r.Images {
		a.debugf(c, "%s: %s of these images fit in %d MiB, the others are decoded for every member anew", what, report.Thousands(room), cacheBytes>>20)
	}
	if h := r.Halves; h.Disagree() {
		a.warnf(c, "the first and the second half of the batch-norm images disagree: in layer %q their means are %s of a standard deviation apart, which chance makes as large in %s of random orders at most: are the images sorted (--bn-order)?",
			h.Layer, report.Percent(h.Difference, 0), report.Percent(h.PValue, 2))
	}
	worst := slices.Max(r.BetweenShare)
	a.debugf(c, "%s: at most %s of a layer's variance lies between batches", what, report.Percent(worst, 1))
	if worst > 0.2 {
		a.warnf(c, "%s of a batch-norm layer's variance lies between batches, which the running variance leaves out: are the images sorted (--bn-order), or the batches small (--batch-size)?", report.Percent(worst, 0))
	}
}
