package main

import (
	"cmp"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/flags"
	"github.com/swagwrap/swagwrap/internal/report"
	"github.com/swagwrap/swagwrap/internal/study/scaling"
	"github.com/swagwrap/swagwrap/internal/task"
)

// readTask reads predictions of labels or of a regression.
func (a *app) readTask(c *cli.Context, job *calibrationJob, of string) (err error) {
	if c.IsSet("key") {
		return flags.Usagef("", "--key is for predictions of classes: those of %s have arrays of several names", map[string]string{"labels": "labels", "regression": "a regression"}[of])
	}
	job.repair = &scaling.Repair{Folds: job.Folds, Seed: job.Seed}
	r := job.repair
	if r.Fit, err = a.openSaved(c, job.of, of, c.String("labels"), "--labels"); err != nil {
		return err
	}
	r.Method = cmp.Or(string(job.Method), r.Fit.Methods()[0])
	if err := r.CheckMethod(); err != nil {
		return flags.Usagef("", "--%w", err)
	}
	if path := c.String("test"); path != "" {
		if r.Test, err = a.openSaved(c, path, of, c.String("test-labels"), "--test-labels"); err != nil {
			return err
		}
		if r.Test.SHA256 == r.Fit.SHA256 {
			a.Warnf(c, "%s: is the file that is fitted on: its scores are too optimistic", path)
		}
	}
	return nil
}

func (a *app) openSaved(c *cli.Context, path, of, known, flag string) (*scaling.Predictions, error) {
	p, err := scaling.Read(path, of, known)
	if task.IsNoTruth(err) {
		return nil, flags.BadInput(err, flag+" FILE reads them from a file of their own")
	}
	if err != nil {
		return nil, flags.WrongKind(c, err, path, flags.Predictions)
	}
	with := ""
	if p.Members > 0 {
		with = ", " + report.Plural(p.Members, "member")
	}
	a.Logf(c, "%s: %s, %s%s", path, report.Plural(p.Len(), "row"), p.Task.Size(), with)
	if p.LeftOut > 0 {
		a.Warnf(c, "%s: %s without predictions left out", path, report.Plural(p.LeftOut, "row"))
	}
	return p, nil
}

// calibrateTask fits the calibration of labels or of a regression.
func (a *app) calibrateTask(c *cli.Context, job *calibrationJob) error {
	r := job.repair
	if e := job.ensemble; e != nil {
		if e.Card.Task != r.Fit.Task.Name() {
			return flags.BadInput(fmt.Errorf("%s: its task is %s, and that of %s %s", c.String("ensemble"), e.Card.Task, job.of, r.Fit.Task.Name()))
		}
		if r.Fit.Members > 0 {
			r.Weights = e.Weights()
		}
	}
	if err := r.Check(); err != nil {
		return flags.BadInput(err)
	}
	found, err := r.Run(flags.Producer())
	if err != nil {
		var hints []string
		if r.Fit.Task.Name() == "labels" {
			hints = append(hints, "probabilities of 0 and 1 may have been rounded: an .npz has more digits than text, and logits have all")
		}
		return flags.BadInput(fmt.Errorf("%s: %w", job.of, err), hints...)
	}
	if e := job.ensemble; e != nil {
		if why := found.Carried(); why != "" {
			return flags.Usagef("", "--ensemble: %s", why)
		}
		if found.Noise != nil {
			if err := e.SetNoise(found.Noise.Std); err != nil {
				return flags.BadInput(fmt.Errorf("%s: %w", c.String("ensemble"), err))
			}
		} else {
			carry(e, found.Scaling)
		}
	}
	a.Logf(c, "%s", found.Describe())
	apply := func(out *flags.Output) error {
		p := r.Test
		if p == nil {
			p = r.Fit
		}
		return found.WriteApplied(out, p, strings.ToLower(filepath.Ext(out.Path)) == ".npz")
	}
	return job.write(c, found.JSON(), apply, func() error { return a.showScaling(c, found.Table()) })
}
