package main

import (
	"encoding/csv"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/flags"
	"github.com/swagwrap/swagwrap/internal/ensemble"
	"github.com/swagwrap/swagwrap/internal/predictions"
	"github.com/swagwrap/swagwrap/internal/report"
)

// writeTable prints the scores and the warnings.
func (job *calibrationJob) writeTable(a *app) error {
	t := report.NewTable(
		report.Column{Header: "rows"},
		report.Column{Header: "accuracy", Align: report.Decimal},
		report.Column{Header: "NLL", Align: report.Decimal},
		report.Column{Header: "ECE", Align: report.Decimal},
		report.Column{Header: "Brier", Align: report.Decimal},
		report.Column{Header: "classwise ECE", Align: report.Decimal},
		report.Column{Header: "AURC", Align: report.Decimal},
		report.Column{Header: "set of 90 %", Align: report.Decimal},
		report.Column{Header: "NLL − NLL as saved  [95 %]", Align: report.Left, Empty: " "},
	)
	for _, row := range job.rows {
		m := row.metrics
		cells := []string{row.name, report.Percent(m.Accuracy, 1), report.Fixed(m.NLL, 4), report.Fixed(m.ECE, 4), report.Fixed(m.Brier, 4),
			report.Fixed(m.ClasswiseECE, 4), report.Fixed(m.AURC, 4), ""}
		if !math.IsNaN(m.SetSize) {
			cells[7] = report.Fixed(m.SetSize, 2)
		}
		if d := row.difference; d != nil {
			cells = append(cells, report.Signed(d.Mean, 4)+"  "+report.Interval(d.Low, d.High, 4))
		}
		t.Row(cells...)
	}
	for _, w := range job.result.Warnings {
		t.Note("* " + w)
	}
	return t.WriteText(a.Stdout)
}

// write writes the outputs, and puts them in their places.
func (job *calibrationJob) write(c *cli.Context) error {
	var err error
	if out := job.outputs[0]; job.ensemble != nil {
		err = job.writeEnsemble(out, c.String("ensemble"))
	} else {
		err = flags.WriteJSON(out, job.result)
	}
	if err != nil {
		return flags.BadOutput(err)
	}
	if len(job.outputs) > 1 {
		if err := job.writeApplied(job.outputs[1]); err != nil {
			return flags.BadOutput(err)
		}
	}
	for _, out := range job.outputs {
		if err := out.Commit(); err != nil {
			return err
		}
	}
	return nil
}

// writeEnsemble writes the ensemble with what was fitted. The paths of its
// posteriors are seen from another folder now.
func (job *calibrationJob) writeEnsemble(out *flags.Output, from string) error {
	e := job.ensemble
	if v := job.scaling.Vector; v != nil {
		e.Vector = &ensemble.VectorScaling{Scale: v.Scale, Bias: v.Bias}
	} else {
		e.Temperature = job.scaling.Temperatures[0]
	}
	for i := range e.Components {
		p := &e.Components[i].Posterior
		if !filepath.IsAbs(p.Path) {
			p.Path = flags.RelativeTo(out.Path, filepath.Join(filepath.Dir(from), filepath.FromSlash(p.Path)))
		}
	}
	return e.Write(out, flags.Producer())
}

// writeApplied writes calibrated probabilities, with the numbers of the rows in the
// file that they are of.
func (job *calibrationJob) writeApplied(out *flags.Output) error {
	l := job.test
	if l == nil {
		l = job.fit
	}
	probs := job.scaling.Apply(nil, l.z, l.Classes)
	if strings.ToLower(filepath.Ext(out.Path)) == ".npz" {
		archive := predictions.NewArchive(out)
		return errors.Join(archive.Ints("row", l.Rows, l.Len()), archive.Ints("labels", l.Labels, l.Len()),
			archive.Floats("probs", probs, l.Len(), l.Classes), archive.Close())
	}
	w := csv.NewWriter(out)
	record := []string{"row", "label"}
	for class := range l.Classes {
		record = append(record, fmt.Sprintf("p_%d", class))
	}
	if err := w.Write(record); err != nil {
		return err
	}
	for i, row := range l.Rows {
		record = append(record[:0], strconv.Itoa(row), strconv.Itoa(l.Labels[i]))
		for _, p := range probs[i*l.Classes : (i+1)*l.Classes] {
			record = append(record, strconv.FormatFloat(p, 'g', 9, 64)) // as score has them
		}
		if err := w.Write(record); err != nil {
			return err
		}
	}
	w.Flush()
	return w.Error()
}
