package scaling

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"

	"github.com/swagwrap/swagwrap/internal/predictions"
	"github.com/swagwrap/swagwrap/internal/report"
)

// Table shows the scores and the warnings.
func (k *Result) Table() *report.Table {
	t := report.NewTable(
		report.Column{Header: "rows"},
		report.Column{Header: "accuracy", Align: report.Decimal},
		report.Column{Header: "NLL", Align: report.Decimal},
		report.Column{Header: "ECE", Align: report.Decimal},
		report.Column{Header: "ECE, 15 equal width", Align: report.Decimal},
		report.Column{Header: "Brier", Align: report.Decimal},
		report.Column{Header: "classwise ECE", Align: report.Decimal},
		report.Column{Header: "AURC", Align: report.Decimal},
		report.Column{Header: "set of " + strconv.FormatFloat(100*k.rows[0].sets.Level, 'g', 4, 64) + " %", Align: report.Decimal},
		report.Column{Header: "NLL − NLL as saved  [95 %]", Align: report.Left, Empty: " "},
	)
	for _, r := range k.rows {
		m := r.metrics
		cells := []string{r.name, report.Percent(m.Accuracy, 1), report.Fixed(m.NLL, 4), report.Fixed(m.ECE, 4), report.Fixed(m.ECE15, 4),
			report.Fixed(m.Brier, 4), report.Fixed(m.ClasswiseECE, 4), report.Fixed(m.AURC, 4), ""}
		if !math.IsNaN(r.sets.Size) {
			cells[8] = report.Fixed(r.sets.Size, 2)
		}
		if d := r.difference; d != nil {
			cells = append(cells, report.Signed(d.Mean, 4)+"  "+report.Interval(d.Low, d.High, 4))
		}
		t.Row(cells...)
	}
	t.Note("ECE in 20 bins of equal mass; in 15 bins of equal width, as most papers quote it (Guo et al. 2017); mean number of classes in sets (APS) of a level above the accuracy")
	for _, w := range k.Warnings {
		t.Note("* " + w)
	}
	return t
}

// ClassTable shows the scores of two classes, or returns nil for other numbers of classes.
func (k *Result) ClassTable() *report.Table {
	if k.rows[0].two == nil {
		return nil
	}
	columns := []report.Column{{Header: "class 1"}}
	for _, header := range []string{"AUROC", "[95 %]", "AP", "ECE of class 1", "sensitivity", "specificity", "precision", "F1"} {
		columns = append(columns, report.Column{Header: header, Align: report.Decimal})
	}
	columns[2].Align = report.Left
	t := report.NewTable(columns...)
	for _, r := range k.rows {
		b := r.two
		cell := func(v *float64, show func(float64, int) string, digits int) string {
			if v == nil {
				return ""
			}
			return show(*v, digits)
		}
		interval := ""
		if b.AUROC != nil {
			interval = "[" + report.Fixed(*b.AUROCLow, 4) + ", " + report.Fixed(*b.AUROCHigh, 4) + "]"
		}
		t.Row(r.name, cell(b.AUROC, report.Fixed, 4), interval, cell(b.AveragePrecision, report.Fixed, 4), cell(b.ECEOfClass1, report.Fixed, 4),
			cell(b.Sensitivity, report.Percent, 1), cell(b.Specificity, report.Percent, 1), cell(b.Precision, report.Percent, 1), cell(b.F1, report.Fixed, 4))
	}
	if k.Threshold == nil {
		t.Note("class 1 is predicted where its probability is 0.5 or more (--threshold chooses another)")
	} else {
		t.Note(fmt.Sprintf("by the %s; predictions as saved, or at 0.5, by 0.5. Cross-fitted, each row is decided by a threshold that was chosen without it. Accuracy in the other table is that of the more probable class", k.Threshold.describe()))
	}
	return t
}

// WriteApplied writes calibrated probabilities with the row numbers of their file.
func (k *Result) WriteApplied(out io.Writer, l *Logits, npz bool) error {
	probs := k.apply(l)
	if npz {
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
			record = append(record, strconv.FormatFloat(p, 'g', 9, 64)) // the same precision as in score
		}
		if err := w.Write(record); err != nil {
			return err
		}
	}
	w.Flush()
	return w.Error()
}
