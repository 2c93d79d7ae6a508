package main

import (
	"fmt"

	"github.com/urfave/cli/v2"

	"github.com/swagwrap/swagwrap/calibrate"
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
	graded       []calibrate.TopLabel // 16 bytes an example: all that grows with their number
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
	s.graded = append(s.graded, calibrate.TopLabel{Confidence: r.Confidence, Correct: r.Prediction == label})
}

// conclude says what was written, and how good it is where labels tell.
func (a *app) conclude(c *cli.Context, job *scoreJob) error {
	s := &job.summary
	a.logf(c, "%s: %s, %s", job.output, plural(s.rows, "example"), plural(job.ensemble.Members(), "member"))
	if n := float64(s.labelled); n > 0 {
		a.logf(c, "accuracy %s, NLL %s nats, ECE %s, Brier %s", report.Percent(float64(s.right)/n, 1), report.Fixed(s.loss/n, 4),
			report.Fixed(calibrate.TopLabelECE(s.graded, calibrate.ECEOptions{}), 4), report.Fixed(s.square/n, 4))
	}
	if err := a.showMontage(c, job); err != nil {
		return err
	}
	if s.failed > 0 {
		a.warnf(c, "the first error: %s", s.first)
		return incomplete(job.output, s.failed, s.rows)
	}
	return nil
}

// incomplete is the end of a run that could not read all.
func incomplete(path string, failed, rows int) error {
	return &failure{exitIncomplete, fmt.Errorf("%s: %s of %s rows have an error and no prediction", path, report.Thousands(failed), report.Thousands(rows)), nil}
}

// plural is a number with its noun: "1 member", "2,000 examples".
func plural(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return report.Thousands(n) + " " + noun
}
