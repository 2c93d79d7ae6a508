package scaling

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/swagwrap/swagwrap/calibrate"
	"github.com/swagwrap/swagwrap/internal/predictions"
	"github.com/swagwrap/swagwrap/internal/report"
	"github.com/swagwrap/swagwrap/internal/study"
	"github.com/swagwrap/swagwrap/internal/task"
)

// Repaired is the result of a [Repair].
type Repaired struct {
	Fitted
	repair   *Repair
	producer string
	columns  []task.Metric
	rows     []repairedRow
	warnings []string
	// The score that shows the effect of the fit: without it, cross-fitted, and on the fitting rows. The last is
	// always too optimistic.
	before, crossed, after float64
}

// repairedRow is a line of the table.
type repairedRow struct {
	name       string
	values     []float64 // by column; NaN if unknown
	losses     []float64 // of each example, or nil
	warnings   []error
	difference *calibrate.Interval // of the first loss, to the previous row
}

func (k *Repaired) warn(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !slices.Contains(k.warnings, text) {
		k.warnings = append(k.warnings, text)
	}
}

// worth returns the key of the column that shows the effect of the fit.
func (k *Repaired) worth() string {
	switch {
	case k.Maps != nil:
		return "mace"
	case k.Noise != nil && k.repair.Fit.Members > 0:
		return "nll_mixture"
	}
	return "nll"
}

// lacking reports whether the saved predictions lack noise.
func (k *Repaired) lacking() bool { return k.Noise != nil }

// compare adds two rows to the table: predictions as saved, and repaired.
func (k *Repaired) compare(what, how string, p *Predictions, after *repaired) error {
	was, err := k.repair.judge(p, k.repair.apply(Fitted{}, p.Saved), k.lacking())
	if err != nil {
		return err
	}
	is, err := k.repair.judge(p, after, false)
	if err != nil {
		return err
	}
	was.name, is.name = what+", as saved", what+", "+how
	if was.losses != nil && is.losses != nil {
		d := calibrate.PairedBootstrap(is.losses, was.losses, calibrate.BootstrapOptions{Seed: k.repair.Seed})
		if is.difference = &d; d.Low > 0 {
			k.warn("%s: calibration makes the NLL worse", what)
		}
	}
	for _, r := range []repairedRow{was, is} {
		for _, w := range r.warnings {
			k.warn("%s: %v", r.name, w)
		}
	}
	if i := slices.IndexFunc(k.columns, func(m task.Metric) bool { return m.Key == "width" }); i >= 0 && math.IsInf(is.values[i], 1) {
		k.warn("%s: some intervals have no end: true values were beyond all that the distributions allow", is.name)
	}
	k.rows = append(k.rows, was, is)
	return nil
}

// what describes the fitted parameters.
func (k *Repaired) what() string {
	several := func(name string, values []float64) string {
		if len(values) == 1 {
			return fmt.Sprintf("%s = %s", name, report.Fixed(values[0], 4))
		}
		return fmt.Sprintf("%s from %s to %s", name, report.Fixed(slices.Min(values), 4), report.Fixed(slices.Max(values), 4))
	}
	switch {
	case k.Noise != nil:
		return several("noise", k.Noise.Std)
	case k.Maps != nil:
		knots := 0
		for _, m := range k.Maps {
			knots += len(m.Knots)
		}
		return "map of " + report.Plural(knots, "knot")
	case k.Scaling.Vector == nil:
		return several(k.repair.Fit.Task.Calibrators()[0].Symbol, k.Scaling.Temperatures)
	case k.repair.Method == string(task.ByVariances):
		return several("s²", k.Scaling.Vector.Scale)
	case k.repair.Method == "temperatures":
		return several("T", k.temperatures())
	}
	return fmt.Sprintf("%s, %s", several("a", k.Scaling.Vector.Scale), several("b", k.Scaling.Vector.Bias))
}

// temperatures returns the temperature of each label.
func (k *Repaired) temperatures() (out []float64) {
	for _, a := range k.Scaling.Vector.Scale {
		out = append(out, 1/a)
	}
	return out
}

// Describe describes the fit and its effect on rows that it has not seen.
func (k *Repaired) Describe() string {
	known := "targets"
	if k.repair.Fit.Task.Name() == "labels" {
		known = "labels"
	}
	in := fmt.Sprintf("(%s in %d folds)", report.Plural(k.repair.Fit.Len(), "row"), k.repair.Folds)
	switch {
	case k.Noise != nil:
		of := ""
		if k.worth() == "nll_mixture" {
			of = " (of the mixture)"
		}
		return fmt.Sprintf("%s: NLL%s of %s that the fit has not seen is %s nats %s; of those it was fitted to it is %s", k.what(), of, known, report.Fixed(k.crossed, 4), in, report.Fixed(k.after, 4))
	case k.Maps != nil:
		coverage := func(r repairedRow) string { return report.Percent(r.values[1], 1) }
		return fmt.Sprintf("%s: the MACE of %s that the fit has not seen goes from %s to %s, the coverage of 95 %% intervals from %s to %s %s%s", k.what(), known,
			report.Fixed(k.before, 4), report.Fixed(k.crossed, 4), coverage(k.rows[0]), coverage(k.rows[1]), in, k.advice())
	}
	change := "falls"
	if k.crossed > k.before {
		change = "rises"
	}
	return fmt.Sprintf("%s: NLL of %s that the fit has not seen %s from %s to %s nats %s; of those it was fitted to it is %s%s", k.what(), known, change,
		report.Fixed(k.before, 4), report.Fixed(k.crossed, 4), in, report.Fixed(k.after, 4), k.advice())
}

func (k *Repaired) advice() string {
	if k.crossed > k.before {
		return ". It does not pay"
	}
	return ""
}

// Table shows the scores and the warnings.
func (k *Repaired) Table() *report.Table {
	columns := []report.Column{{Header: "rows"}}
	for _, m := range k.columns {
		columns = append(columns, report.Column{Header: m.Header, Align: report.Decimal})
	}
	differs := slices.ContainsFunc(k.rows, func(r repairedRow) bool { return r.difference != nil })
	if differs {
		columns = append(columns, report.Column{Header: "NLL − NLL as saved  [95 %]", Align: report.Left, Empty: " "})
	}
	t := report.NewTable(columns...)
	for _, r := range k.rows {
		cells := []string{r.name}
		for i, m := range k.columns {
			if v := r.values[i]; v == v {
				cells = append(cells, study.Cell(task.Score{Metric: m, Value: v}))
			} else {
				cells = append(cells, "")
			}
		}
		if d := r.difference; d != nil {
			cells = append(cells, report.Signed(d.Mean, 4)+"  "+report.Interval(d.Low, d.High, 4))
		}
		t.Row(cells...)
	}
	switch {
	case k.repair.Fit.Task.Name() == "labels":
		t.Note("mAP and AUROC: no temperature changes the order of examples, nor does an a above 0; cross-fitted they are of examples that different fits have scaled")
	case k.Noise != nil:
		t.Note("as saved there is no noise, and so no likelihood, interval or width")
	case k.Maps != nil:
		t.Note("MACE, the mean absolute calibration error: mean over 100 levels of |share of true values in central intervals − level|. coverage and width are of 95 % intervals. A map has no likelihood")
	}
	for _, w := range k.warnings {
		t.Note("* " + w)
	}
	return t
}

// JSON returns all numbers, unrounded. Numbers that are not finite become null.
func (k *Repaired) JSON() any {
	r, f := k.repair, k.repair.Fit
	out := study.Fields("kind", "swagwrap.calibration", "format_version", 1, "producer", k.producer, "task", f.Task.Name(), "method", r.Method)
	add := func(pairs ...any) { out = append(out, study.Fields(pairs...)...) }
	if f.Task.Name() == "labels" {
		add("labels", f.Known.Width)
	} else {
		add("targets", f.Known.Width)
	}
	switch {
	case k.Noise != nil:
		by := "moments"
		if f.Members > 0 {
			by = "members"
		}
		add("noise_std", k.Noise.Std, "fitted_by", by)
	case k.Maps != nil:
		maps := []study.Object{}
		for _, m := range k.Maps {
			maps = append(maps, study.Fields("knots", m.Knots, "levels", m.Levels))
		}
		add("maps", maps)
	case r.Method == ByVariance:
		add("factors", slices.Repeat(k.Scaling.Temperatures, f.Known.Width))
	case r.Method == string(task.ByVariances):
		add("factors", k.Scaling.Vector.Scale)
	case k.Scaling.Vector == nil:
		add("temperature", k.Scaling.Temperatures[0], "at_bound", k.Scaling.AtBound)
	default:
		add("scale", k.Scaling.Vector.Scale, "bias", k.Scaling.Vector.Bias, "at_bound", k.Scaling.AtBound)
	}
	worth := k.worth()
	add("rows", f.Len(), "predictions", study.Fields("path", f.Path, "sha256", f.SHA256, "rows", f.Len(), "left_out", f.LeftOut, "members", f.Members),
		worth+"_before", study.Finite(k.before), worth+"_cross_fitted", study.Finite(k.crossed), worth+"_after", study.Finite(k.after), "folds", r.Folds, "seed", r.Seed)
	lines := []study.Object{}
	for _, row := range k.rows {
		line := study.Fields("name", row.name)
		for i, m := range k.columns {
			line = append(line, study.Fields(m.Key, study.Finite(row.values[i]))...)
		}
		if d := row.difference; d != nil && study.Finite(d.Low) != nil && study.Finite(d.High) != nil {
			line = append(line, study.Fields("nll_difference_interval", [2]float64{d.Low, d.High})...)
		}
		lines = append(lines, line)
	}
	add("scores", lines, "warnings", append([]string{}, k.warnings...))
	return out
}

// applied is a column or array of numbers for each example, with the names that score uses.
type applied struct {
	array, cell string // cell begins the name of a column, before its index
	values      []float64
}

// applied returns the predictions after the fit. For labels they are probabilities. For a regression they are mean
// and standard deviation, or with maps mean and 95 % interval. The targets come first.
func (k *Repaired) applied(p *Predictions) []applied {
	a, width := k.repair.apply(k.Fitted, p.Saved), p.Known.Width
	if p.Task.Name() == "labels" {
		probs, _ := p.Task.Shown(a.outcomes)
		return []applied{{"labels", "label_", p.Known.Values}, {"probabilities", "probability_", probs}}
	}
	var means, stds []float64
	for i := range p.Known.Values {
		m := p.Moments(a.outcomes, i/width, i%width)
		means, stds = append(means, m.Mean), append(stds, m.Std())
	}
	out := []applied{{"target", "target", p.Known.Values}, {"mean", "mean", means}}
	if k.Maps != nil {
		out = append(out, applied{"low", "low", a.low}, applied{"high", "high", a.high})
	} else {
		out = append(out, applied{"std", "std", stds})
	}
	for i := range out {
		if width > 1 {
			out[i].cell += "_"
		}
	}
	return out
}

// WriteApplied writes predictions after the fit with the row numbers of their file.
func (k *Repaired) WriteApplied(out io.Writer, p *Predictions, npz bool) error {
	all, width := k.applied(p), p.Known.Width
	if npz {
		return writeArrays(out, p, all)
	}
	w := csv.NewWriter(out)
	record := []string{"row"}
	for _, part := range all {
		for i := range width {
			cell := part.cell
			if strings.HasSuffix(cell, "_") {
				cell += strconv.Itoa(i)
			}
			record = append(record, cell)
		}
	}
	if err := w.Write(record); err != nil {
		return err
	}
	for i, row := range p.Rows {
		record = append(record[:0], strconv.Itoa(row))
		for _, part := range all {
			for _, v := range part.values[i*width:][:width] {
				record = append(record, strconv.FormatFloat(v, 'g', 9, 64)) // the same precision as in score
			}
		}
		if err := w.Write(record); err != nil {
			return err
		}
	}
	w.Flush()
	return w.Error()
}

func writeArrays(out io.Writer, p *Predictions, all []applied) error {
	archive := predictions.NewArchive(out)
	err := archive.Ints("row", p.Rows, p.Len())
	for _, part := range all {
		shape := []int{p.Len(), p.Known.Width}
		if !strings.HasSuffix(part.cell, "_") {
			shape = shape[:1]
		}
		err = errors.Join(err, archive.Floats(part.array, part.values, shape...))
	}
	return errors.Join(err, archive.Close())
}

// Carried returns the reason why no ensemble can store the fit, or "".
func (k *Repaired) Carried() string {
	if k.Maps == nil {
		return ""
	}
	return fmt.Sprintf("an ensemble carries factors of variances, and no map of its distribution function: --method %s, or %s", ByVariance, task.ByVariances)
}
