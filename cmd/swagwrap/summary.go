package main

import (
	"github.com/urfave/cli/v2"

	"github.com/swagwrap/swagwrap/calibrate"
	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/flags"
	"github.com/swagwrap/swagwrap/internal/ensemble"
	"github.com/swagwrap/swagwrap/internal/report"
)

// note adds a row to what is said at the end.
func (job *scoreJob) note(r *ensemble.Row) {
	label := job.table.Label(r.Index)
	job.summary.add(r, label)
	if job.montage == nil || r.Error != "" {
		return
	}
	e := report.Example{Index: r.Index, Label: label, Entropy: r.PredictiveEntropy, MutualInformation: r.MutualInformation}
	for _, t := range r.Top {
		e.Top = append(e.Top, report.Score{Class: t.Class, Probability: t.Probability})
	}
	job.montage.Add(e)
}

// summary adds up how good the predictions are.
type summary struct {
	rows, failed int
	first        string // error
	labelled     int
	right        int
	loss, square float64
	graded       []calibrate.Graded // 16 bytes an example: all that grows with their number
}

func (s *summary) add(r *ensemble.Row, label int) {
	s.rows++
	if r.Error != "" {
		if s.failed++; s.failed == 1 {
			s.first = r.Error
		}
		return
	}
	if label < 0 {
		return
	}
	s.labelled++
	s.loss += r.Loss
	s.square += r.Square
	if r.Prediction == label {
		s.right++
	}
	s.graded = append(s.graded, calibrate.Graded{Confidence: r.Confidence, Right: r.Prediction == label})
}

// conclude says what was written, and how good it is where labels tell.
func (a *app) conclude(c *cli.Context, job *scoreJob) error {
	s := &job.summary
	a.Logf(c, "%s: %s, %s", job.output, report.Plural(s.rows, "example"), report.Plural(job.ensemble.Members(), "member"))
	if n := float64(s.labelled); n > 0 {
		a.Logf(c, "accuracy %s, NLL %s nats, ECE %s, Brier %s", report.Percent(float64(s.right)/n, 1), report.Fixed(s.loss/n, 4),
			report.Fixed(calibrate.GradedECE(s.graded, calibrate.ECEOptions{}), 4), report.Fixed(s.square/n, 4))
	}
	if err := a.showMontage(c, job); err != nil {
		return err
	}
	if s.failed > 0 {
		a.Warnf(c, "the first error: %s", s.first)
		return incomplete(job.output, s.failed, s.rows)
	}
	return nil
}

// incomplete is the end of a run that could not read all.
func incomplete(path string, failed, rows int) error {
	return flags.Incomplete("%s: %s of %s rows have an error and no prediction", path, report.Thousands(failed), report.Thousands(rows))
}
