package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/swagwrap/swagwrap/internal/report"
	"github.com/swagwrap/swagwrap/onnxio"
	"github.com/swagwrap/swagwrap/swag"
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

The file holds the network's graph too: nothing else is needed to draw members from it.`,
		Flags: flags(outputFlags, []cli.Flag{
			&cli.IntFlag{Name: "rank", Usage: "keep the deviations of the last `K` checkpoints", Value: swag.DefaultRank},
			&cli.BoolFlag{Name: "diag-only", Usage: "keep no deviations (SWAG-Diagonal)"},
			&cli.StringFlag{Name: "theta0", Usage: "count the pre-trained network in `FILE` as one model, as the paper's Algorithm 1 does"},
			&cli.StringFlag{Name: "order", Usage: "take checkpoints in `natural` order of their names (9 before 10), or as given: natural|given", Value: "natural"},
			&cli.BoolFlag{Name: "dropout", Usage: "keep the Dropout of a training-mode export on in predictions (never while batch norm is recomputed)"},
			&cli.BoolFlag{Name: "allow-folded", Usage: "go on although batch norm was folded into the weights"},
		}),
		Action: a.fit,
	}
}

func (a *app) fit(c *cli.Context) error {
	if err := positionals(c); err != nil {
		return err
	}
	paths, err := checkpointOrder(c)
	if err != nil {
		return err
	}
	opts := swag.FitOptions{Rank: c.Int("rank"), DiagOnly: c.Bool("diag-only"), Dropout: c.Bool("dropout"), Producer: producer()}
	if !opts.DiagOnly && opts.Rank < 2 {
		return usagef("--diag-only keeps no deviations at all", "--rank %d: want at least 2", opts.Rank)
	}
	if theta0 := c.String("theta0"); theta0 != "" {
		paths = append([]string{theta0}, paths...)
	}
	out, err := createOutput(c.String("output"), c.Bool("force"), paths...)
	if err != nil {
		return err
	}
	defer out.abort()

	models, err := openModels(paths)
	if err != nil {
		return err
	}
	defer closeModels(models)
	warnings, err := refuseFolded(c, models)
	if err != nil {
		return err
	}
	it, byPlace, err := iterates(c.Context, models, opts.Dropout)
	if err != nil {
		return badInput(err)
	}
	it.Warnings = warnings
	if byPlace {
		a.logf(c, "tensors have other names in other files, and were matched by their place in the graph")
	}
	if c.String("theta0") != "" {
		it.Theta0, it.Checkpoints = &it.Checkpoints[0], it.Checkpoints[1:]
	}

	bar := a.progress(c, "fit", it.Layout.Len(weights.Parameter))
	last := int64(0)
	opts.Progress = func(done, _ int64) {
		bar.add(int(done - last))
		last = done
	}
	err = swag.Fit(c.Context, out, it, opts)
	bar.done()
	if err != nil {
		return badInput(err)
	}
	size, _ := out.Seek(0, 2)
	if err := out.commit(); err != nil {
		return err
	}
	a.describeFit(c, it, opts, size)
	return nil
}

// checkpointOrder returns the checkpoints in training order.
func checkpointOrder(c *cli.Context) ([]string, error) {
	paths := c.Args().Slice()
	switch order := c.String("order"); order {
	case "given":
	case "natural":
		slices.SortStableFunc(paths, naturalCompare)
	default:
		return nil, usagef("", "--order %q: want natural or given", order)
	}
	if len(paths) < 2 {
		return nil, usagef("SWAG averages the iterates of SGD: export one checkpoint an epoch", "%d checkpoint: a covariance needs at least 2, and 20 or more are better", len(paths))
	}
	return paths, nil
}

// naturalCompare orders names with the numbers in them as numbers.
func naturalCompare(a, b string) int {
	for a != "" && b != "" {
		da, db := digits(a), digits(b)
		if da > 0 && db > 0 {
			x, y := strings.TrimLeft(a[:da], "0"), strings.TrimLeft(b[:db], "0")
			if c := cmp.Or(cmp.Compare(len(x), len(y)), cmp.Compare(x, y)); c != 0 {
				return c
			}
			a, b = a[da:], b[db:]
			continue
		}
		if a[0] != b[0] {
			return cmp.Compare(a[0], b[0])
		}
		a, b = a[1:], b[1:]
	}
	return cmp.Compare(len(a), len(b))
}

// digits returns how many digits s begins with.
func digits(s string) int { return len(s) - len(strings.TrimLeft(s, "0123456789")) }

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
	return nil, badInput(fmt.Errorf("%s: %v", path, folding), append(foldingHints(folding), "--allow-folded goes on all the same")...)
}

// iterates lays the models out and names them by their content. byPlace says
// that their tensors have different names.
func iterates(ctx context.Context, models []*onnxio.Model, dropout bool) (it swag.Iterates, byPlace bool, err error) {
	sums, err := contentSums(ctx, models)
	if err != nil {
		return it, false, err
	}
	for i, m := range models {
		it.Checkpoints = append(it.Checkpoints, swag.Checkpoint{Path: m.Path, SHA256: sums[i]})
	}
	if twins := duplicates(models, sums); len(twins) > 0 {
		err := fmt.Errorf("%s: has the same content as %s", twins[0][1], twins[0][0])
		if twins[0][0] == twins[0][1] {
			err = fmt.Errorf("%s: is given twice", twins[0][0])
		}
		return it, false, badInput(err, "give every checkpoint once")
	}
	set, err := onnxio.NewSet(models)
	if err != nil {
		return it, false, err
	}
	it.Layout = set.Layout
	for i, m := range set.Models {
		if it.Checkpoints[i].Theta, err = m.Vector(it.Layout, weights.Parameter); err != nil {
			return it, false, err
		}
	}
	last := set.Models[len(models)-1]
	if it.Statistics, err = last.Vector(it.Layout, weights.Statistic); err != nil {
		return it, false, err
	}
	ref := set.Models[set.Reference]
	if dropout {
		ref = ref.WithDropout()
	}
	graph, err := onnxio.NewTemplate(ref, it.Layout)
	if err != nil {
		return it, false, err
	}
	it.Graph, err = graph.MarshalBinary()
	return it, set.ByPlace, err
}

func (a *app) describeFit(c *cli.Context, it swag.Iterates, opts swag.FitOptions, size int64) {
	n := len(it.Checkpoints)
	what := fmt.Sprintf("rank %d", min(opts.Rank, n))
	if opts.DiagOnly {
		what = "diagonal only"
	}
	if it.Theta0 != nil {
		what += ", θ0 counted"
	}
	a.logf(c, "%s: posterior over %s weights from %d checkpoints (%s), %s", c.String("output"),
		report.Thousands(int(it.Layout.Len(weights.Parameter))), n, what, report.Bytes(size))
	a.logf(c, "order: %s … %s", it.Checkpoints[0].Path, it.Checkpoints[n-1].Path)
	for _, ck := range it.Checkpoints {
		a.debugf(c, "  %s", ck.Path)
	}
	for _, w := range it.Warnings {
		a.warnf(c, "%s", w)
	}
	if !opts.DiagOnly && n < opts.Rank {
		a.warnf(c, "%d checkpoints are fewer than rank %d: the low-rank part underestimates the variance", n, opts.Rank)
	}
	if s := it.Layout.Role(weights.Statistic); len(s) > 0 {
		a.logf(c, "batch-norm layers: %d. Every member needs statistics of its own: --bn-data of sample, compare and export", len(s)/2)
	}
}
