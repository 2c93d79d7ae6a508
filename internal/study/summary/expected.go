package summary

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/swagwrap/swagwrap/calibrate/expect"
	"github.com/swagwrap/swagwrap/internal/predictions"
	"github.com/swagwrap/swagwrap/internal/report"
	"github.com/swagwrap/swagwrap/internal/task"
)

// Expected is the accuracy, or the error, to expect on data where some or all examples have no label.
type Expected struct {
	Validation *expect.Validation `json:"validation"`
	// All and the lists are missing before the end, and if all examples have labels.
	All *expect.Estimate `json:"all,omitempty"`
	// Parts are the labels of several, or the targets.
	Parts  []ExpectedPart `json:"parts,omitempty"`
	Groups []ExpectedPart `json:"groups,omitempty"`
	// Examples are pictures or texts with several predictions and without labels: those with the lowest estimates, in this order.
	Examples []ExpectedExample `json:"examples,omitempty"`
	// Next are the rows to label next, in their order: see [Summary.Choose].
	Next []NextRow `json:"next_labels,omitempty"`

	signs      task.Signs
	each       bool // there are estimates of examples
	sums       *counted
	by         map[string]*counted
	g          task.Grouping
	next       *expect.Next // nil if none are wanted
	classNames []string
}

// NextRow is a row to label next.
type NextRow struct {
	Row        int     `json:"row"` // from 0
	Path       string  `json:"path"`
	Confidence float64 `json:"confidence,omitempty"` // the mean over several predictions
	Std        float64 `json:"std,omitempty"`        // the geometric mean of several targets
}

// ExpectedPart is an estimate of a part of the predictions: of a label, of a target, or of a group of examples.
type ExpectedPart struct {
	Name string `json:"name"`
	expect.Estimate
}

// ExpectedExample is the estimate of an example.
type ExpectedExample struct {
	Row  int    `json:"row"` // from 0
	Path string `json:"path"`
	expect.Estimate
}

// mostExamples bounds the estimates of examples that are kept, and fewLines those on a terminal.
const mostExamples, fewLines = 1000, 10

// counted has the sums of examples, and their units of chance.
type counted struct {
	expect.Tally
	units              units
	examples, labelled int
}

// NewExpected returns nil for an ensemble that knows nothing of validation data.
func NewExpected(v *expect.Validation) *Expected {
	if v == nil {
		return nil
	}
	return &Expected{Validation: v}
}

// Choose makes the summary choose n rows to label next. It reports whether the ensemble knows enough for that.
func (s *Summary) Choose(n int) bool {
	if s.expected == nil {
		return false
	}
	s.expected.next = expect.NewNext(n)
	return true
}

// begin prepares for rows with the columns of a schema. It returns nil if e is nil, or if columns are missing.
func (e *Expected) begin(t task.Task, schema *predictions.Schema, g task.Grouping) *Expected {
	if e == nil || e.Validation == nil || e.Validation.Sound() != nil {
		return nil
	}
	signs := task.SignsOf(t, schema.Columns)
	if signs == nil || !signs.Fits(e.Validation) {
		return nil
	}
	e.signs, e.each, e.g, e.classNames = signs, task.Large(t), g, schema.ClassNames
	e.sums, e.by = &counted{units: units{of: g.Unit}}, map[string]*counted{}
	return e
}

func (e *Expected) add(r *predictions.Row) {
	seen := task.ReadSigns(e.signs, e.Validation, r.Values, r.Label)
	known := seen.Labelled()
	if !known && e.next != nil {
		e.next.Add(e.Validation, seen, r.Index, r.Path)
	}
	if !known && e.each {
		e.addExample(seen, r)
	}
	to := []*counted{e.sums}
	if e.g.Report != nil {
		name := e.g.Report(r.Index, r.Path)
		if e.by[name] == nil {
			e.by[name] = &counted{units: units{of: e.g.Unit}}
		}
		to = append(to, e.by[name])
	}
	for _, s := range to {
		s.Add(e.Validation, seen)
		s.units.add(r)
		if s.examples++; known {
			s.labelled++
		}
	}
}

// addExample keeps the estimate of an example, if it is among the lowest.
func (e *Expected) addExample(seen *expect.Seen, r *predictions.Row) {
	var one expect.Tally
	one.Add(e.Validation, seen)
	all, _ := e.Validation.Estimate(&one, 1)
	if e.Examples = append(e.Examples, ExpectedExample{r.Index, r.Path, all}); len(e.Examples) >= 2*mostExamples {
		e.sortExamples()
	}
}

func (e *Expected) sortExamples() {
	slices.SortFunc(e.Examples, func(a, b ExpectedExample) int {
		return cmp.Or(cmp.Compare(a.Confidence+a.Disagreement, b.Confidence+b.Disagreement), cmp.Compare(a.Row, b.Row))
	})
	e.Examples = e.Examples[:min(len(e.Examples), mostExamples)]
}

// Expected returns the figures to expect, or nil if they are not known, or if all examples have labels.
func (s *Summary) Expected() *Expected {
	e := s.expected
	if e == nil || e.sums.labelled == e.sums.examples {
		return nil
	}
	if e.All == nil {
		e.finish()
	}
	return e
}

func (e *Expected) finish() {
	all, parts := e.Validation.Estimate(&e.sums.Tally, e.sums.units.number())
	e.All = &all
	for k, p := range parts {
		if len(parts) > 1 && p.Examples > 0 {
			e.Parts = append(e.Parts, ExpectedPart{e.partName(k), p})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(e.by)) {
		of := e.by[name]
		group, _ := e.Validation.Estimate(&of.Tally, of.units.number())
		e.Groups = append(e.Groups, ExpectedPart{name, group})
	}
	e.sortExamples()
	if e.next == nil {
		return
	}
	for _, c := range e.next.List(e.Validation, &e.sums.Tally) {
		row := NextRow{Row: c.Index, Path: c.Name}
		if all.Figure == expect.RMSE {
			row.Std = math.Exp(c.Uncertainty / float64(len(parts)))
		} else {
			row.Confidence = -c.Uncertainty
		}
		e.Next = append(e.Next, row)
	}
}

// partName names a label or a target.
func (e *Expected) partName(k int) string {
	switch {
	case e.Validation.Figure() == expect.RMSE:
		return fmt.Sprintf("target %d", k)
	case k < len(e.classNames):
		return e.classNames[k]
	}
	return fmt.Sprintf("label %d", k)
}

// Lines says what to expect, in a sentence for all examples, one for the labels, and one for each part, group and low example.
func (e *Expected) Lines() []string {
	out := []string{e.Title() + ": " + Expect(e.All)}
	if l := e.All.Labels; l != nil {
		out = append(out, labelled(e.All, l))
	}
	for _, p := range fewest(e.Parts) {
		out = append(out, "  "+p.Name+": "+Expect(&p.Estimate))
	}
	out = append(out, e.GroupLines()...)
	if len(e.Examples) > 0 {
		out = append(out, "the lowest estimates of single examples, which are rough:")
	}
	for _, x := range e.Examples[:min(len(e.Examples), fewLines/2)] {
		out = append(out, "  "+x.Path+": "+Expect(&x.Estimate))
	}
	if e.Next != nil {
		out = append(out, fmt.Sprintf("label next these %s. Uncertain rows are chosen more often, and the estimate allows for that:",
			report.Plural(len(e.Next), "row")))
	}
	for _, r := range e.Next {
		out = append(out, "  "+r.Path)
	}
	return out
}

// fewest returns the parts, or the worst of many.
func fewest(parts []ExpectedPart) []ExpectedPart {
	if len(parts) <= fewLines {
		return parts
	}
	parts = slices.Clone(parts)
	slices.SortStableFunc(parts, func(a, b ExpectedPart) int {
		return cmp.Compare(a.Confidence+a.Disagreement-2*a.Validation, b.Confidence+b.Disagreement-2*b.Validation)
	})
	return parts[:fewLines]
}

// GroupLines has a sentence for each group.
func (e *Expected) GroupLines() (out []string) {
	for _, g := range e.Groups {
		line := fmt.Sprintf("  %s, %s: %s", cmp.Or(g.Name, "no group"), report.Plural(g.Examples, "example"), Expect(&g.Estimate))
		if l := g.Labels; l != nil {
			line += fmt.Sprintf("; with %s %s", report.Plural(l.Examples, "label"), interval(g.Figure, l.Combined, l.Low, l.High))
		}
		out = append(out, line)
	}
	return out
}

// Title says what the estimate is of.
func (e *Expected) Title() string {
	v := e.Validation
	switch {
	case v.Figure() == expect.RMSE && len(v.Parts) > 1:
		return "RMSE to expect, mean over targets"
	case v.Figure() == expect.RMSE:
		return "RMSE to expect"
	case v.Parts != nil:
		return "accuracy to expect, of all labels at probability 0.5"
	case e.each:
		return "accuracy to expect, of all positions"
	}
	return "accuracy to expect"
}

// Expect says an estimate in words.
func Expect(e *expect.Estimate) string {
	number, was := numberOf(e.Figure), numberOf(e.Figure)(e.Validation)
	switch {
	case e.Bound == expect.Large && e.Figure == expect.RMSE:
		return fmt.Sprintf("no number: the estimated rise is too large. At least %s, if errors grow with the predicted variance: %s times "+
			"that on the validation data (%s)", number(e.Low), report.Fixed(e.Low/e.Validation, 2), was)
	case e.Bound == expect.Large:
		return fmt.Sprintf("no number: the estimated drop is too large. At most %s (%s on the validation data), if the network errs "+
			"where it has become unsure. It may not, such as on brighter pictures", number(e.High), was)
	case e.Bound == expect.Shares && e.Figure == expect.RMSE:
		return fmt.Sprintf("no number: the predictions lie in other ranges (%s of the examples). At least %s, if errors grow with the "+
			"predicted variance (%s on the validation data). Label some examples", report.Percent(e.Moved, 1), number(e.Low), was)
	case e.Bound == expect.Shares:
		return fmt.Sprintf("no number and no bound. Classes are predicted in other shares than on the validation data (%s of the "+
			"examples, %s there). Either the data have other classes, or the network confuses them. Label some examples",
			report.Percent(e.Moved, 1), was)
	}
	return fmt.Sprintf("%s (%s on the validation data)", interval(e.Figure, e.Value(), e.Low, e.High), was)
}

// labelled says what labels of some examples change.
func labelled(e *expect.Estimate, l *expect.Labels) string {
	how := "the labels and the estimate"
	if l.Alone {
		how = "the labels alone"
		if e.Bound == "" {
			how += ", which contradict the estimate"
		}
	}
	text := fmt.Sprintf("with %s: %s by %s, if the labelled examples of each confidence were drawn at random",
		report.Plural(l.Examples, "label"), interval(e.Figure, l.Combined, l.Low, l.High), how)
	if l.Halve > 0 {
		text += fmt.Sprintf(". About %s would halve the interval", report.Plural(l.Halve, "more label"))
	}
	return text
}

func numberOf(f expect.Figure) func(v float64) string {
	if f == expect.RMSE {
		return func(v float64) string { return report.Significant(v, 3) }
	}
	return func(v float64) string { return report.Percent(v, 1) }
}

func interval(f expect.Figure, v, low, high float64) string {
	number := numberOf(f)
	return fmt.Sprintf("%s [%s, %s]", number(v), number(low), number(high))
}
