package calibration

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/gonum/floats"

	"github.com/swagwrap/swagwrap/calibrate/chance"
	"github.com/swagwrap/swagwrap/internal/ensemble"
	"github.com/swagwrap/swagwrap/internal/guarantee"
	"github.com/swagwrap/swagwrap/internal/predictions"
	"github.com/swagwrap/swagwrap/internal/report"
	"github.com/swagwrap/swagwrap/internal/setting"
	"github.com/swagwrap/swagwrap/internal/study"
	"github.com/swagwrap/swagwrap/internal/task"
)

// mixtureNLL is the key of the NLL of the mixture of saved members.
const mixtureNLL = "nll_mixture"

var nan = math.NaN()

// Result is the outcome of a [Study].
type Result struct {
	Fitted    *task.Calibration // nil with [None]
	Threshold *Threshold        // nil if none was asked for
	Chosen    bool              // set it if a comparison chose the method on test data: then nothing here advises against it

	// Coverage is what was chosen for [Study.Guarantee], or nil.
	Coverage *guarantee.Coverage

	realised *guarantee.Realised // on the test predictions; nil without them
	study    *Study
	producer string
	answers  *answers // instead of all below, for a guaranteed risk
	rows     []row
	warnings []string
	// The score that shows the effect of the fit: without it, cross-fitted, and on the fitting rows. The last is
	// always too optimistic.
	before, crossed, after float64
}

// row is a line of the table.
type row struct {
	name       string
	values     map[string]float64 // by the key of the metric; NaN if unknown
	evaluation *task.Evaluation   // nil if there is none
	losses     []float64          // loss of each example, or nil
	warnings   []error
	difference *chance.Interval // the first loss minus that of the previous row
}

// worth returns the key of the metric that shows the effect of the fit.
func (k *Result) worth() string {
	switch by := k.study.by(); {
	case by.Intervals:
		return "mace"
	case by.Completes && k.study.Fit.Members > 0:
		return mixtureNLL
	}
	return "nll"
}

// marked returns the name of a row with calibrated predictions, with a mark if the fit is not determined.
func (k *Result) marked(name string) string {
	if k.Undetermined() == "" {
		return name
	}
	return name + " *"
}

// add adds the rows with their names, the warnings about them, and the interval of their difference.
func (k *Result) add(saved, calibrated string, was, is row) {
	was.name, is.name = saved, calibrated
	switch {
	case was.losses == nil || is.losses == nil || k.study.Method == None:
	case max(k.errors(was), k.errors(is)) < chance.FewErrors:
		k.warn("%s: fewer than %d errors: the difference in NLL has no interval, since it would not hold", calibrated, chance.FewErrors)
	default:
		d := chance.NewDifference(floats.SubTo(make([]float64, len(is.losses)), is.losses, was.losses), 0).Interval
		if is.difference = &d; d.Low > 0 {
			k.warn("%s: calibration makes the NLL worse", calibrated)
		}
	}
	for _, r := range []row{was, is} {
		for _, w := range r.warnings {
			k.warn("%s: %v", r.name, w)
		}
	}
	if math.IsInf(is.values["width"], 1) {
		k.warn("%s: some intervals have no end: true values were beyond all that the distributions allow", is.name)
	}
	k.rows = append(k.rows, was, is)
}

// errors returns the number of wrong examples of a row. Tasks that do not count wrong examples have more than enough.
func (k *Result) errors(r row) int {
	accuracy, ok := r.values["accuracy"]
	if !ok || task.LossesOfUnits(k.study.Fit.Task) {
		return chance.FewErrors
	}
	return int(math.Round((1 - accuracy) * float64(len(r.losses))))
}

// align makes the metrics comparable that depend on the best row.
func (k *Result) align() {
	var all []*task.Evaluation
	for _, r := range k.rows {
		if r.evaluation != nil {
			all = append(all, r.evaluation)
		}
	}
	task.Align(all...)
	for _, r := range k.rows {
		if r.evaluation == nil {
			continue
		}
		for _, s := range r.evaluation.Scores {
			if s.Set {
				r.values[s.Key] = s.Value
			}
		}
	}
}

// known is the word for the targets in sentences.
func (k *Result) known() string {
	if k.study.Fit.Task.About().Classes > 0 {
		return "labels"
	}
	return "targets"
}

// Pays reports whether the rows determine the fit, and whether it does not make the score worse on rows that it has not seen.
func (k *Result) Pays() bool { return k.Undetermined() == "" && !(k.crossed > k.before) }

// Undetermined returns the reason why the rows do not determine the fit, or "": see [task.Calibration].
func (k *Result) Undetermined() string {
	if k.Fitted == nil {
		return ""
	}
	return k.Fitted.Undetermined
}

// Describe describes the fit and its effect on rows that it has not seen.
func (k *Result) Describe() string {
	if k.Coverage != nil {
		own := *k
		own.Coverage = nil
		if k.Fitted == nil && k.answers == nil {
			return k.describeCoverage()
		}
		return own.Describe() + "; " + k.describeCoverage()
	}
	if k.answers != nil {
		return k.answers.String()
	}
	if k.Fitted == nil {
		return k.Threshold.String()
	}
	in := fmt.Sprintf("(%s in %d folds)", report.Plural(k.study.Fit.Len(), "row"), k.study.Folds)
	advice := ""
	switch why := k.Undetermined(); {
	case why != "":
		return fmt.Sprintf("%s is not determined: %s. It may make predictions of other rows worse: use the predictions without it. Give "+
			"more labelled predictions", k.Fitted, why)
	case !k.Pays() && k.Chosen:
		advice = ". On these rows alone it does not pay, but the comparison chose it on the test data"
	case !k.Pays():
		advice = ". It does not pay: use the predictions without it"
	}
	if k.Threshold != nil {
		advice += "; " + k.Threshold.String()
	}
	before, crossed := report.Distinguish(k.before, k.crossed, report.Fixed, 4)
	after := report.Fixed(k.after, 4)
	switch key := k.worth(); {
	case key == "mace":
		coverage := func(r row) string { return report.Percent(r.values["coverage"], 1) }
		return fmt.Sprintf("%s: the MACE of %s that the fit has not seen goes from %s to %s, the coverage of 95 %% intervals from %s to "+
			"%s %s%s", k.Fitted, k.known(),
			before, crossed, coverage(k.rows[0]), coverage(k.rows[1]), in, advice)
	case k.study.by().Completes:
		of := map[string]string{mixtureNLL: " (of the mixture)"}[key]
		return fmt.Sprintf("%s: NLL%s of %s that the fit has not seen is %s nats %s; of those it was fitted to it is %s", k.Fitted, of,
			k.known(), crossed, in, after)
	}
	change := "falls"
	if k.crossed > k.before {
		change = "rises"
	}
	return fmt.Sprintf("%s: NLL of %s that the fit has not seen %s from %s to %s nats %s; of those it was fitted to it is %s%s", k.Fitted,
		k.known(), change, before, crossed, in, after, advice)
}

// columns returns the metrics of the main table, and those of the table of decisions, which may be empty.
func (k *Result) columns() (main, decisions []task.Metric) {
	s := k.study
	if by := s.by(); by.Intervals {
		for _, c := range by.Columns {
			main = append(main, metric(s.Fit.Task, c.Key))
		}
		return main, nil
	}
	further := []string{"ece_equal_width_15", "ece_classwise", "aurc", "set_level", "set_size"}
	ranking := []string{"auroc", "auroc_low", "auroc_high", "average_precision"}
	_, decided := s.Fit.Task.(task.Decided)
	for _, key := range ranking {
		if decided {
			decisions = append(decisions, metric(s.Fit.Task, key))
		}
	}
	for _, m := range metrics(s.Fit.Task) {
		switch {
		case decided && slices.Contains(ranking, m.Key): // above
		case decided && m.Decision:
			decisions = append(decisions, m)
		case !m.Further || slices.Contains(further, m.Key):
			main = append(main, m)
		}
		if m.Key == "nll" && s.Fit.Members > 0 {
			main = append(main, task.Metric{Key: mixtureNLL, Header: "of the mixture", Digits: 4})
		}
	}
	return main, decisions
}

func metrics(t task.Task) []task.Metric { return t.NewReducer(task.EvaluateOptions{}).Metrics() }

func metric(t task.Task, key string) task.Metric {
	all := metrics(t)
	return all[slices.IndexFunc(all, func(m task.Metric) bool { return m.Key == key })]
}

// Show returns the figures for tables, and all of them, unrounded, for JSON.
func (k *Result) Show() *study.Document {
	d := &study.Document{JSON: k.all()}
	if k.answers != nil {
		d.Sections = append(d.Sections, study.Section{Rows: study.Rows(k.answers.rows, answered.row), Notes: []string{
			"the guarantee is for new rows like these, drawn independently (Geifman & El-Yaniv 2017)",
		}})
	} else if k.Fitted != nil || k.Coverage == nil {
		d.Sections = append(d.Sections, k.scores(), k.decisions())
	}
	if k.Coverage != nil {
		d.Sections = append(d.Sections, k.guaranteed())
	}
	return d
}

func (k *Result) scores() study.Section {
	main, _ := k.columns()
	s := study.Section{Columns: append(columnsOf(main), study.Column{Key: differenceKey}), Rows: study.Rows(k.rows, k.row)}
	s.Note(k.study.by().Note)
	for _, m := range main {
		switch m.Key {
		case "ece_equal_width_15":
			s.Note("ECE in 20 bins of equal mass; in 15 bins of equal width, as most papers quote it (Guo et al. 2017)")
		case "set_size":
			s.Note("set size: mean number of classes in sets (APS) of a level above the accuracy")
		case "map":
			s.Note("mAP and AUROC: no temperature changes the order of examples, nor does an a above 0; cross-fitted they are of " +
				"examples that different fits have scaled")
		}
	}
	for _, w := range k.warnings {
		s.Warn("* " + w)
	}
	return s
}

// decisions shows the decisions of two classes.
func (k *Result) decisions() (s study.Section) {
	_, decisions := k.columns()
	if len(decisions) == 0 {
		return s
	}
	s = study.Section{First: "class 1", Columns: columnsOf(decisions), Rows: study.Rows(k.rows, k.row)}
	if k.Threshold == nil {
		s.Note("class 1 is predicted where its probability is 0.5 or more (" + setting.Threshold.String() + " chooses another)")
	} else {
		s.Note(fmt.Sprintf("by the %s; predictions as saved, or at 0.5, by 0.5. Cross-fitted, each row is decided by a threshold that "+
			"was chosen without it", k.Threshold))
	}
	return s
}

func columnsOf(metrics []task.Metric) []study.Column {
	columns := study.Keys("name")
	for i, m := range metrics {
		c := study.Column{Key: m.Key}
		switch {
		case m.Further:
			c.Optional = 2 + i
		case i > 2 && !m.Decision:
			c.Optional = 1
		}
		columns = append(columns, c)
	}
	return columns
}

const differenceKey = "nll_difference_interval"

// row returns the figures of predictions.
func (k *Result) row(r row) study.Row {
	out := study.Row{study.Name("name", "rows", r.name)}
	for _, m := range slices.Concat(k.columns()) {
		v, ok := r.values[m.Key]
		cell := study.Number(m.Key, m.Header, v, study.Format(task.Score{Metric: m, Value: v}))
		if !ok || v != v {
			cell.Text = ""
		}
		out = append(out, cell)
	}
	if d := r.difference; d != nil {
		cell := study.Difference(differenceKey, "NLL − NLL as saved [95 %]", [2]float64{d.Low, d.High}, *d).Blank()
		cell.Hidden = study.Finite(d.Low) == nil || study.Finite(d.High) == nil
		out = append(out, cell)
	}
	return out
}

// all returns all figures. Numbers that are not finite become null.
func (k *Result) all() study.Row {
	s, f := k.study, k.study.Fit
	out := study.Fields("kind", ensemble.CalibrationKind, "format_version", 1, "producer", k.producer, "task", f.Task.About().Name,
		"method", s.Method)
	add := func(pairs ...any) { out = append(out, study.Fields(pairs...)...) }
	from := study.Fields("path", f.Path, "sha256", f.SHA256, "from", f.From, "rows", f.Len(), "left_out", f.LeftOut)
	if a := k.answers; a != nil && k.Coverage == nil {
		add("threshold", &Threshold{a.Threshold, s.Criterion.String()}, "rows", f.Len(), "answers", study.Rows(a.rows, answered.row),
			"predictions", from)
		return out
	}
	add("size", f.Task.About().Size)
	if k.Fitted != nil {
		out = append(out, fields(k.Fitted)[1:]...) // the method stands above
	}
	warnings := append([]string{}, k.warnings...)
	if k.Coverage != nil {
		add("guarantee", k.Guarantee(), "realised", k.realised.Finish(false), "warnings", warnings)
		return out
	}
	if s.by().Completes {
		add("fitted_by", map[bool]string{true: "members", false: "moments"}[f.Members > 0])
	}
	if k.Threshold != nil {
		add("threshold", k.Threshold)
	}
	worth := k.worth()
	add("rows", f.Len(), "predictions", append(from, study.Fields("members", f.Members)...),
		worth+"_before", k.before, worth+"_cross_fitted", k.crossed, worth+"_after", k.after,
		"folds", s.Folds, "seed", s.Seed)
	if of := task.ECEOf(f.Task); of != "" {
		add("ece_of", of)
	}
	add("scores", study.Rows(k.rows, k.row), "warnings", warnings)
	return out
}

// fields returns the fields of a calibration that its method uses, in their order.
func fields(c *task.Calibration) (out study.Row) {
	v := reflect.ValueOf(*c)
	for i := range v.NumField() {
		if key, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ","); key != "-" && !v.Field(i).IsZero() {
			out = append(out, study.Cell{Key: key, Value: v.Field(i).Interface()})
		}
	}
	return out
}

// WriteApplied writes the calibrated predictions of the test rows, or of the fitting rows without a test, with the row
// numbers of their file.
func (k *Result) WriteApplied(out io.Writer, npz bool) error {
	p := k.study.Test
	if p == nil {
		p = k.study.Fit
	}
	a := k.study.apply(k.Fitted, p.Saved)
	all := p.Written(a.outcomes, a.low, a.high)
	if npz {
		archive := predictions.NewArchive(out)
		err := archive.Ints("row", p.Rows, p.Len())
		for _, c := range all {
			shape := []int{p.Len()}
			if c.Cell != "" {
				shape = append(shape, c.Width)
			}
			if c.Ints != nil {
				err = errors.Join(err, archive.Ints(c.Name, c.Ints, shape...))
			} else {
				err = errors.Join(err, archive.Floats(c.Name, c.Values, shape...))
			}
		}
		return errors.Join(err, archive.Close())
	}
	w := csv.NewWriter(out)
	record := []string{"row"}
	for _, c := range all {
		if c.Cell == "" {
			record = append(record, c.Column)
			continue
		}
		for i := range c.Width {
			record = append(record, fmt.Sprintf(c.Cell, i))
		}
	}
	if err := w.Write(record); err != nil {
		return err
	}
	for i, row := range p.Rows {
		record = append(record[:0], strconv.Itoa(row))
		for _, c := range all {
			if c.Ints != nil {
				record = append(record, strconv.Itoa(c.Ints[i]))
				continue
			}
			for _, v := range c.Values[i*c.Width:][:c.Width] {
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

// Transferred returns the reason why no ensemble can store the fit, or "".
func (k *Result) Transferred() string {
	if !k.study.by().Intervals {
		return ""
	}
	var others []string
	for _, c := range k.study.Fit.Task.Calibrators() {
		if !c.Intervals {
			others = append(others, string(c.Method))
		}
	}
	others[0] = setting.Method.With(others[0])
	return "an ensemble carries factors of variances, and no map of its distribution function: " + strings.Join(others, ", or ")
}

// Threshold is the chosen threshold, in the form of its JSON.
type Threshold struct {
	Value     float64 `json:"value"`
	Criterion string  `json:"criterion,omitempty"` // empty if the user gave the value
}

// String names the threshold.
func (t *Threshold) String() string {
	if t.Criterion == "" {
		return "threshold " + report.Fixed(t.Value, 4)
	}
	return fmt.Sprintf("threshold %s by %s", report.Fixed(t.Value, 4), t.Criterion)
}

// threshold returns the chosen threshold, or 0 for the default.
func (k *Result) threshold() float64 {
	if k.Threshold == nil {
		return 0
	}
	return k.Threshold.Value
}

// NoThreshold is the error for a threshold on predictions of another task than two classes.
type NoThreshold struct{ Size string }

func (e *NoThreshold) Error() string {
	return fmt.Sprintf("a threshold is on the probability of class 1 of two, and there are %s", e.Size)
}
