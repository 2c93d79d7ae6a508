package main

import (
	"fmt"
	"io"
	"math"
	"os"

	"github.com/urfave/cli/v2"

	"github.com/swagwrap/swagwrap/calibrate"
	"github.com/swagwrap/swagwrap/internal/ensemble"
	"github.com/swagwrap/swagwrap/internal/report"
	"github.com/swagwrap/swagwrap/onnxio"
	"github.com/swagwrap/swagwrap/swag"
)

func (a *app) compareCommand() *cli.Command {
	return &cli.Command{
		Name:      "compare",
		Usage:     "show what SWAG buys against SGD, SWA and temperature scaling",
		ArgsUsage: "POSTERIOR TEST",
		Description: `Evaluates the last SGD iterate, the ensemble of all iterates, SWA (with stale and with recomputed batch-norm
statistics), SWA with temperature scaling, SWAG-Diagonal and SWAG on labelled test data, and prints a table.

   swagwrap compare --bn-data train.npz --val val.npz posterior.safetensors test.npz

The temperature is fitted on --val. NLL is the mean per image in nats. "at best T" is each method's NLL with a
temperature of its own, fitted on one half of the test data and applied to the other, so that the
comparison is fair. The last column is a paired bootstrap over the test images.`,
		Flags: flags([]cli.Flag{
			&cli.StringFlag{Name: "val", Usage: "fit the temperature on the labelled data in `FILE`"},
			&cli.StringFlag{Name: "labels", Usage: "read the test labels from `FILE`"},
			&cli.StringFlag{Name: "val-labels", Usage: "read the labels of --val from `FILE`"},
			&cli.StringFlag{Name: "checkpoints", Usage: "the posterior's checkpoints are now in `FOLDER`"},
			&cli.Float64Flag{Name: "scale", Usage: "multiply SWAG's covariance by `ALPHA`", Value: swag.LowRankPlusDiagonal.DefaultScale()},
			&cli.StringFlag{Name: "ece", Usage: "bins of the calibration error: equal-mass|equal-width|swag-reference", Value: calibrate.EqualMass.String()},
			&cli.BoolFlag{Name: "json", Usage: "print JSON instead of a table"},
		}, samplingFlags, bnFlags, preprocessFlags, runFlags),
		Action: a.compare,
	}
}

func (a *app) compare(c *cli.Context) error {
	if err := positionals(c); err != nil {
		return err
	}
	cmp := &ensemble.Comparison{Seed: c.Uint64("seed"), Scale: c.Float64("scale")}
	var err error
	if cmp.Members, err = members(c); err != nil {
		return err
	}
	if cmp.ECE.Binning, err = binning(c.String("ece")); err != nil {
		return err
	}
	if !(cmp.Scale >= 0) || math.IsInf(cmp.Scale, 0) {
		return usagef("", "--scale %g: want a finite number of at least 0", cmp.Scale)
	}
	if cmp.Network, err = a.openNetwork(c, c.Args().Get(0)); err != nil {
		return err
	}
	defer cmp.Network.Posterior.Close()
	pre, err := preprocessing(c)
	if err != nil {
		return err
	}
	if cmp.BatchNorm, err = a.batchNormData(c, cmp.Network, pre); err != nil {
		return err
	}
	if cmp.Test, err = openLabelled(c.Args().Get(1), c.String("labels"), cmp.Network, pre); err != nil {
		return err
	}
	if val := c.String("val"); val != "" {
		if cmp.Validation, err = openLabelled(val, c.String("val-labels"), cmp.Network, pre); err != nil {
			return err
		}
	} else {
		a.warnf(c, "without --val there is no temperature scaling to compare with")
	}
	if cmp.Iterates, err = a.findCheckpoints(c, cmp.Network.Posterior); err != nil {
		return err
	}
	defer closeModels(cmp.Iterates)

	engine, err := a.engine(c)
	if err != nil {
		return err
	}
	bar := a.progress(c, "compare", cmp.Images())
	engine.Progress = bar.add
	methods, err := cmp.Run(c.Context, engine)
	bar.done()
	if err != nil {
		return badInput(err)
	}
	if c.Bool("json") {
		return badOutput(writeJSON(a.stdout, cmp, methods))
	}
	return badOutput(writeTable(a.stdout, cmp, methods))
}

func binning(s string) (calibrate.Binning, error) {
	for _, b := range []calibrate.Binning{calibrate.EqualMass, calibrate.EqualWidth, calibrate.SwagReference} {
		if s == b.String() {
			return b, nil
		}
	}
	return 0, usagef("", "--ece %q: want equal-mass, equal-width or swag-reference", s)
}

// findCheckpoints opens the files that the posterior was fitted to. Where some
// cannot be found, it says so and returns none.
func (a *app) findCheckpoints(c *cli.Context, p *swag.Posterior) ([]*onnxio.Model, error) {
	var paths []string
	for _, ck := range p.Checkpoints {
		path := ensemble.CheckpointPath(p, ck, c.String("checkpoints"))
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

func writeTable(w io.Writer, cmp *ensemble.Comparison, methods []ensemble.Method) error {
	opts := cmp.Network.Posterior.Options
	fmt.Fprintf(w, "%s test images, %d members, scale %g, rank %d, seed %d", report.Thousands(cmp.Test.Len()), cmp.Members, cmp.Scale, opts.Columns, cmp.Seed)
	if cmp.Validation != nil {
		fmt.Fprintf(w, "; T fitted on %s validation images", report.Thousands(cmp.Validation.Len()))
	}
	fmt.Fprint(w, "\n\n")
	baseline := ""
	for _, m := range methods {
		if m.Baseline {
			baseline = "SWA"
			if m.Temperature != nil {
				baseline = "SWA-Temp"
			}
		}
	}
	t := report.NewTable(
		report.Column{Header: "method"},
		report.Column{Header: "accuracy", Align: report.Decimal},
		report.Column{Header: "NLL", Align: report.Decimal},
		report.Column{Header: "(at best T)", Align: report.Decimal},
		report.Column{Header: "ECE", Align: report.Decimal},
		report.Column{Header: "Brier", Align: report.Decimal},
		report.Column{Header: "NLL − NLL(" + baseline + ")", Align: report.Decimal},
		report.Column{Header: "[95 %]"},
		report.Column{Header: " ", Empty: " "},
	)
	for _, m := range methods {
		mark, diff, interval := "", "", ""
		if m.StaleBN {
			mark = "!"
		}
		if len(m.Metrics.Warnings) > 0 {
			mark += "*"
		}
		if !m.Baseline {
			diff = report.Signed(m.Difference.Mean, 4)
			interval = report.Interval(m.Difference.Low, m.Difference.High, 4)
		}
		t.Row(m.Name, report.Percent(m.Metrics.Accuracy, 1), report.Fixed(m.Metrics.NLL, 4), report.Fixed(m.NLLAtBestT, 4),
			report.Fixed(m.Metrics.ECE, 4), report.Fixed(m.Metrics.Brier, 4), diff, interval, mark)
	}
	for _, m := range methods {
		if m.StaleBN {
			t.Note("! batch-norm statistics do not belong to these weights: shown to tell what leaving out the BN update costs")
		}
	}
	for _, m := range methods {
		for _, warning := range m.Metrics.Warnings {
			t.Note(fmt.Sprintf("* %s: %v", m.Name, warning))
		}
	}
	return t.WriteText(w)
}

// writeJSON prints everything the table holds, unrounded. What is not a finite
// number is null.
func writeJSON(w io.Writer, cmp *ensemble.Comparison, methods []ensemble.Method) error {
	type row struct {
		Method      string      `json:"method"`
		Members     int         `json:"members"`
		Accuracy    *float64    `json:"accuracy"`
		NLL         *float64    `json:"nll"`
		NLLAtBestT  *float64    `json:"nll_at_best_t"`
		ECE         *float64    `json:"ece"`
		Brier       *float64    `json:"brier"`
		Temperature *float64    `json:"temperature"`
		Difference  *float64    `json:"nll_difference"`
		Interval    *[2]float64 `json:"nll_difference_95"`
		StaleBN     bool        `json:"stale_bn"`
		Baseline    bool        `json:"baseline"`
		Warnings    []string    `json:"warnings"`
	}
	out := struct {
		Images     int     `json:"images"`
		Members    int     `json:"members"`
		Scale      float64 `json:"scale"`
		Rank       int     `json:"rank"`
		Seed       uint64  `json:"seed"`
		ECE        string  `json:"ece_binning"`
		Validation int     `json:"validation_images"`
		Methods    []row   `json:"methods"`
	}{Images: cmp.Test.Len(), Members: cmp.Members, Scale: cmp.Scale, Rank: cmp.Network.Posterior.Options.Columns, Seed: cmp.Seed, ECE: cmp.ECE.Binning.String()}
	if cmp.Validation != nil {
		out.Validation = cmp.Validation.Len()
	}
	for _, m := range methods {
		r := row{Method: m.Name, Members: m.Members, Accuracy: finite(m.Metrics.Accuracy), NLL: finite(m.Metrics.NLL), NLLAtBestT: finite(m.NLLAtBestT),
			ECE: finite(m.Metrics.ECE), Brier: finite(m.Metrics.Brier), StaleBN: m.StaleBN, Baseline: m.Baseline, Warnings: []string{}}
		if m.Temperature != nil {
			r.Temperature = finite(m.Temperature.T)
		}
		if !m.Baseline {
			r.Difference = finite(m.Difference.Mean)
			if finite(m.Difference.Low) != nil && finite(m.Difference.High) != nil {
				r.Interval = &[2]float64{m.Difference.Low, m.Difference.High}
			}
		}
		for _, w := range m.Metrics.Warnings {
			r.Warnings = append(r.Warnings, w.Error())
		}
		out.Methods = append(out.Methods, r)
	}
	return indentJSON(w, out)
}

func finite(v float64) *float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	return &v
}
