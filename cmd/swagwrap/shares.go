package main

import (
	"fmt"

	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/console"
	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/flags"
	"github.com/swagwrap/swagwrap/internal/ensemble"
	"github.com/swagwrap/swagwrap/internal/open"
	"github.com/swagwrap/swagwrap/internal/study/summary"
)

func sharesRow(r flags.Row, shares *string) *flags.Row {
	r.Name = "shares"
	return flags.Text(r, shares)
}

// openShares makes the ensemble correct class shares of a file, or makes rows have what an estimate needs.
func (job *scoreJob) openShares() error {
	switch e := job.Ensemble; job.shares {
	case "":
		return nil
	case open.EstimatedShares:
		if err := open.RefuseShares(e, job.threshold > 0); err != nil {
			return err
		}
		if e.Labelled == nil {
			return console.BadInput(fmt.Errorf("%s: --shares estimate: has no labelled predictions, which say what shares training had",
				e.Path), open.LabelledHint())
		}
		job.EstimateShares, job.Want.Outcomes = true, true
		return nil
	default:
		return open.CorrectShares(job.shares, e, job.threshold > 0)
	}
}

// corrects says for which class shares the rows are corrected. It is nil without --shares.
func (job *scoreJob) corrects() *summary.Shares {
	return summary.NewShares(job.Ensemble, job.EstimateShares, job.examples)
}

// openEnsemble opens the ensemble, whose calibration also corrects class shares with --shares.
func (o *exportOptions) openEnsemble() (*ensemble.Ensemble, error) {
	e, err := o.OpenEnsemble(o.of)
	if err == nil && o.shares == open.EstimatedShares {
		err = console.Usagef("swagwrap score --shares estimate finds them, and its FILE.meta.json is such a file",
			"--shares estimate: want a file, because a model is exported without data")
	}
	if err == nil && o.shares != "" {
		err = open.CorrectShares(o.shares, e, false)
	}
	return e, err
}
