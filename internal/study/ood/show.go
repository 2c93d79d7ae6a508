package ood

import (
	"fmt"
	"slices"
	"strings"

	"github.com/swagwrap/swagwrap/calibrate/detect"
	"github.com/swagwrap/swagwrap/internal/baseline"
	"github.com/swagwrap/swagwrap/internal/report"
	"github.com/swagwrap/swagwrap/internal/report/plot"
	"github.com/swagwrap/swagwrap/internal/study"
	"github.com/swagwrap/swagwrap/internal/task"
)

// Show declares what a detection says.
func (r *Result) Show() *study.Document {
	s := shown{r}
	rows := study.Rows(r.Methods, s.row)
	var values []string
	for _, f := range s.Settings {
		values = append(values, f.Value)
	}
	return &study.Document{
		Title:      "Out of the domain",
		Heading:    strings.Join(values, ", "),
		Settings:   r.Settings,
		BatchNorm:  &r.BatchNorm,
		Notes:      r.Notes,
		Verdict:    s.verdict(),
		Next:       r.next,
		Sections:   append([]study.Section{s.first(rows)}, s.others(rows)...),
		Figures:    s.figures,
		Provenance: r.Provenance,
		JSON:       s.all(rows),
	}
}

// shown says what a detection found. It computes no scores.
type shown struct{ *Result }

// row returns the scores of a method, with the histograms.
func (r shown) row(x Detected) study.Row {
	histogram := func(h detect.Histogram) study.Row {
		return study.Fields("edges", h.Edges, "counts", h.Counts, "below", h.Below, "above", h.Above)
	}
	row := study.Row{study.Number("method", "method", x.Name, x.marked()).Aligned(report.Left)}
	add := func(pairs ...any) { row = append(row, study.Fields(pairs...)...) }
	if x.Key != "" {
		add("key", x.Key, "members", x.Members)
	}
	if x.undetermined != "" {
		add("undetermined", x.undetermined)
	}
	add("stale_bn", x.StaleBN)
	row = append(row, study.Number("mean_"+r.main().Key+"_in", "mean in", x.InMean, report.Fixed(x.InMean, 4)).Droppable(3),
		study.Number("mean_"+r.main().Key+"_out", "mean out", x.OutMean, report.Fixed(x.OutMean, 4)).Droppable(3))
	if r.binned() {
		row = append(row, study.Number("symmetrised_kl", "sym. KL", x.Distance, report.Fixed(x.Distance, 3)).Droppable(4))
		add("in", histogram(x.In), "out", histogram(x.Out))
	}
	if x.SCOD != nil {
		row = append(row, study.Number("scod", "SCOD", *x.SCOD, report.Fixed(*x.SCOD, 4)).Droppable(3))
	}
	for i, u := range r.measures {
		d, texts := x.Scores[i], [3]string{}
		if d != nil {
			texts = [3]string{area(d), report.Fixed(d.AUPR, 4), report.Percent(d.FPR95, 1)}
		}
		row = append(row, study.Number(u.Key, u.Name+": AUROC [95 %]", d, texts[0]),
			study.Shown("AUPR", texts[1]).Renamed(u.Key+" AUPR").Droppable(2),
			study.Shown("FPR@95", texts[2]).Renamed(u.Key+" FPR").Droppable(1))
	}
	best := study.Difference("auroc_minus_best", "minus the best [95 %]", study.Interval("value", x.Difference), x.Difference)
	if x.Baseline {
		best.Value, best.Text = nil, ""
	}
	row = append(row, best)
	add("baseline", x.Baseline, "warnings", study.Texts(x.Notes))
	return row
}

// first shows the scores by the main measure.
func (r shown) first(rows []study.Row) study.Section {
	u := r.main()
	columns := []study.Column{{Key: "method"}, {Key: u.Key, Header: "AUROC [95 %]"}}
	if len(r.Methods) > 1 {
		columns = append(columns, study.Column{Key: "auroc_minus_best"})
	}
	s := study.Section{
		Title: "By " + u.Name,
		Explanation: fmt.Sprintf("How well the %s of the averaged predictions separates the %ss of the two domains. An AUROC of 1 is "+
			"perfect, 0.5 is guessing.", u.Name, r.Unit),
		First: "by " + u.Name,
		Columns: append(columns, study.Keys(u.Key+" FPR", u.Key+" AUPR", "symmetrised_kl", "mean_"+u.Key+"_in", "mean_"+u.Key+"_out",
			"scod")...),
		Rows: rows,
	}
	note := fmt.Sprintf("detection looks for OUT, %s of the %ss",
		report.Percent(float64(r.Sizes[1])/float64(r.Sizes[0]+r.Sizes[1]), 0), r.Unit)
	if r.binned() {
		note += fmt.Sprintf("; sym. KL: %s, counts raised by %g, nats", r.bins(), detect.DefaultSmoothing)
	}
	s.Notes = []string{note}
	if slices.ContainsFunc(r.Methods, func(x Detected) bool { return x.SCOD != nil }) {
		s.Notes = append(s.Notes, "SCOD: mean cost of the accepted, the certain first; an error costs ½, and so does an example of OUT. "+
			"Lower is better")
	}
	if u.Label != "" {
		s.Notes = append(s.Notes, "mean in, mean out: "+u.Label)
	}
	if task.Missing(r.task) != nil {
		s.Warnings = append(s.Warnings, lackingNote)
	}
	for _, x := range r.Methods {
		if x.Key == baseline.Laplace {
			s.Notes = append(s.Notes, baseline.TauNote)
		}
		if n := x.outside(); n != "" {
			s.Notes = append(s.Notes, fmt.Sprintf("%s: outside the bins, and so of sym. KL: %s", x.Name, n))
		}
		for _, note := range x.Notes {
			s.Warnings = append(s.Warnings, fmt.Sprintf("%s: %v", x.marked(), note))
		}
	}
	return s
}

// lackingNote is the note for a task whose networks predict no noise.
const lackingNote = "the noise about the means is unknown. It is left out, because it is the same for all examples and does not change " +
	"their order. A single network cannot find OUT"

// bins describes the bins of the histograms.
func (r shown) bins() string {
	n := len(r.Methods[0].In.Counts)
	if u := r.main(); u.Bins != nil {
		return fmt.Sprintf("%ss in %d bins between the least above 0 and the largest of this table, which no other table has", u.Name, n)
	}
	return fmt.Sprintf("entropies in %d bins of the paper", n)
}

// area returns an AUROC with its interval.
func area(d *detect.Detection) string {
	return fmt.Sprintf("%s [%s, %s]", report.Fixed(d.AUROC, 4), report.Fixed(d.Low, 4), report.Fixed(d.High, 4))
}

// outside describes the number of values outside all bins.
func (x *Detected) outside() string {
	var parts []string
	for _, h := range []struct {
		where string
		of    detect.Histogram
	}{{"in", x.In}, {"out", x.Out}} {
		if h.of.Below > 0 {
			parts = append(parts, fmt.Sprintf("%s below %.0e %s", report.Thousands(h.of.Below), h.of.Edges[0], h.where))
		}
		if h.of.Above > 0 {
			parts = append(parts, fmt.Sprintf("%s above %.2f %s", report.Thousands(h.of.Above), h.of.Edges[len(h.of.Edges)-1], h.where))
		}
	}
	return strings.Join(parts, ", ")
}

// widest is the largest number of measures of logits or features in one table.
const widest = 2

// others show the scores by the other measures of the task, and by those of logits and features.
func (r shown) others(rows []study.Row) (list []study.Section) {
	own := len(r.measures)
	if r.task != nil {
		own = len(r.task.Uncertainties())
	}
	var add func(title string, from, to int)
	add = func(title string, from, to int) {
		if to > from+widest && from >= own { // a table with more columns is wider than a terminal
			add(title, from, from+widest)
			add(strings.TrimSuffix(title, ", continued")+", continued", from+widest, to)
			return
		}
		if from >= to {
			return
		}
		s := study.Section{Title: strings.ToUpper(title[:1]) + title[1:], First: title, Columns: study.Keys("method")}
		for _, u := range r.measures[from:to] {
			s.Columns = append(s.Columns, study.Keys(u.Key, u.Key+" AUPR", u.Key+" FPR")...)
		}
		for k, x := range r.Methods {
			if from < own || slices.ContainsFunc(x.Scores[from:to], func(d *detect.Detection) bool { return d != nil }) {
				s.Rows = append(s.Rows, rows[k])
			}
		}
		switch r.measures[from].Key {
		case logitMeasures[0].Key:
			s.Notes = []string{"energy: −log Σ exp z; max logit: −max z of the logits z; for ensembles the mean over members"}
		case "gen":
			s.Notes = []string{"GEN: mean of p^0.1·(1 − p)^0.1 of the averaged probabilities"}
		case featureMeasures[0].Key:
			s.Notes = []string{r.known}
		}
		list = append(list, s)
	}
	add("by other measures", 1, own)
	features := own + slices.IndexFunc(append(r.measures[own:len(r.measures):len(r.measures)], featureMeasures[0]),
		func(u task.Uncertainty) bool {
			return u.Key == featureMeasures[0].Key
		})
	add("by logits", own, features)
	add("by features", features, len(r.measures))
	return list
}

// counted returns the methods that the verdict counts, the best first: those whose fit is determined, or else the first.
func (r shown) counted() []Detected {
	i := slices.IndexFunc(r.Methods, func(x Detected) bool { return x.undetermined != "" })
	if i < 0 {
		return r.Methods
	}
	return r.Methods[:max(1, i)]
}

// marked returns the name of a method, with a mark if the verdict does not count it.
func (x *Detected) marked() string {
	if x.undetermined == "" {
		return x.Name
	}
	return x.Name + " *"
}

// beyond names the best score by another measure, if it is above the best by the main measure.
func (r shown) beyond() []string {
	best, name := r.Methods[0].Scores[0], ""
	for i, u := range r.measures {
		for _, x := range r.counted() {
			if i > 0 && i < len(x.Scores) && x.Scores[i] != nil && x.Scores[i].AUROC > best.AUROC {
				best, name = x.Scores[i], fmt.Sprintf("%s by %s", x.Name, u.Name)
			}
		}
	}
	if name == "" || r.task == nil {
		return nil
	}
	return []string{fmt.Sprintf("%s has the highest AUROC of all: %s.", name, area(best))}
}

// verdict returns the result in plain words: the best method, and which others this data cannot distinguish from it.
func (r shown) verdict() []string {
	best := &r.Methods[0]
	d := best.Scores[0]
	interval := "AUROC " + area(d)
	if len(r.Methods) == 1 {
		return append([]string{fmt.Sprintf("A random OUT %s is less certain than a random IN %[1]s in %s of pairs: %s.", r.Unit,
			report.Percent(d.AUROC, 1), interval)}, slices.Concat(r.beyond(), r.reversed(), r.BatchNorm.Twice)...)
	}
	var lines []string
	switch {
	case d.AUROC < guessing:
		lines = append(lines, fmt.Sprintf("No method finds the OUT %ss by %s. The best is %s: %s.", r.Unit, r.main().Name,
			best.Name, interval))
	case !best.finds():
		lines = append(lines, fmt.Sprintf("No method clearly finds the OUT %ss by %s: the interval of the best, %s, includes guessing. "+
			"%s.", r.Unit, r.main().Name, best.Name, interval))
	default:
		lines = append(lines, fmt.Sprintf("%s finds the OUT %ss best, by %s: %s.", best.Name, r.Unit, r.main().Name, interval))
	}
	var alike []string
	worse := 0
	for _, x := range r.counted()[1:] {
		if !(x.Difference.High < 0) {
			alike = append(alike, x.Name)
		} else {
			worse++
		}
	}
	if n := len(alike) - mostNamed; n > 1 {
		alike = append(alike[:mostNamed:mostNamed], fmt.Sprintf("and %d more", n))
	}
	if alike != nil {
		lines = append(lines, fmt.Sprintf("These %ss do not distinguish it from %s.", r.Unit, strings.Join(alike, ", ")))
	}
	if worse > 0 {
		others := "method is worse, by its 95 % interval."
		if worse > 1 {
			others = fmt.Sprintf("%d methods are worse, by a 95 %% interval for each.", worse)
		}
		lines = append(lines, "The other "+others)
	}
	if r.next != nil && r.made > 0 {
		made := &r.Methods[r.made]
		lines[0] += fmt.Sprintf(" It cannot be saved: the commands make %s (%s).", made.Name, report.Fixed(made.Scores[0].AUROC, 4))
	}
	lines = slices.Concat(lines, r.beyond(), r.reversed(), r.BatchNorm.Twice)
	return append(lines, fmt.Sprintf("The best is chosen on these %ss, so on new ones expect a smaller lead.", r.Unit))
}

// mostNamed is the largest number of methods that the verdict names in addition to the best.
const mostNamed = 4

// guessing is the AUROC of a random score.
const guessing = 0.5

// reversed names the measures by which examples of OUT are clearly the more certain ones.
func (r shown) reversed() (lines []string) {
	for i, u := range r.measures {
		var who []string
		for _, x := range r.counted() {
			if i < len(x.Scores) && x.Scores[i] != nil && x.Scores[i].Reversed() {
				who = append(who, fmt.Sprintf("%s (AUROC %s)", x.Name, area(x.Scores[i])))
			}
		}
		if who != nil {
			lines = append(lines, fmt.Sprintf("Reversed: by %s the %ss of OUT are the more certain ones with %s.", u.Name, r.Unit,
				strings.Join(who, ", ")))
		}
	}
	if lines != nil {
		lines = append(lines, "Are IN and OUT the right way round? If so, this uncertainty does not find OUT.")
	}
	return lines
}

func (r shown) figures(page *report.Report) {
	values := plot.Differences{
		Title: "AUROC by " + r.main().Name,
		Plain: true,
		Label: "AUROC: 0.5 is guessing, 1 is perfect",
		Note:  fmt.Sprintf("The bars are 95 %% intervals over the %ss.", r.Unit),
	}
	for i, x := range r.Methods {
		values.Rows = append(values.Rows, plot.Difference{
			Name:  x.Name,
			Value: x.Scores[0].AUROC,
			Lower: x.Scores[0].Low,
			Upper: x.Scores[0].High,
		})
		if !r.binned() {
			continue
		}
		page.Entropies = append(page.Entropies, plot.HistogramPair{
			Name:  x.Name,
			Minor: i >= mostHistograms,
			In:    x.In,
			Out:   x.Out,
			Label: r.main().Label,
			Note:  fmt.Sprintf("AUROC %s, symmetrised KL %s nats", report.Fixed(x.Scores[0].AUROC, 3), report.Fixed(x.Distance, 2)),
		})
	}
	page.Differences = []plot.Differences{values}
	page.Promote()
}

// mostHistograms is the largest number of methods with histograms that are not folded.
const mostHistograms = 4

// all returns all numbers, unrounded.
func (r shown) all(methods []study.Row) study.Row {
	out := study.Fields("examples_in", r.Sizes[0], "examples_out", r.Sizes[1], "smoothing", detect.DefaultSmoothing, "methods", methods,
		"warnings", r.BatchNorm.Warnings(), "data_notes", r.BatchNorm.Notes())
	if len(r.BatchNorm.Records) > 0 {
		out = append(out, study.Fields("batch_norm", r.BatchNorm.Records)...)
	}
	return append(out, study.Fields("verdict", r.verdict())...)
}
