package summary

import (
	"fmt"
	"maps"
	"slices"

	"github.com/swagwrap/swagwrap/calibrate/expect"
	"github.com/swagwrap/swagwrap/internal/predictions"
	"github.com/swagwrap/swagwrap/internal/report"
	"github.com/swagwrap/swagwrap/internal/task"
)

// Expected is the accuracy to expect on data of which some or all have no label.
type Expected struct {
	Validation *expect.Reference `json:"validation"`
	// All and Groups are missing before the end, and if all examples have labels.
	All    *expect.Estimate `json:"all,omitempty"`
	Groups []ExpectedGroup  `json:"groups,omitempty"`
	// Next are the rows to label next, in their order: see [Expected.Choose].
	Next []NextRow `json:"next_labels,omitempty"`

	watch   task.Watched
	sums    *counted
	by      map[string]*counted
	g       task.Grouping
	numbers []float64
	next    *expect.Next // nil if none are wanted
}

// NextRow is a row to label next.
type NextRow struct {
	Row        int     `json:"row"` // from 0
	Path       string  `json:"path"`
	Prediction int     `json:"prediction"`
	Confidence float64 `json:"confidence"`
}

// ExpectedGroup is the accuracy to expect on a group of examples.
type ExpectedGroup struct {
	Name string `json:"name"`
	expect.Estimate
}

// counted has the sums of examples, and their units of chance.
type counted struct {
	expect.Sums
	units    units
	labelled int
}

// NewExpected returns nil for an ensemble that knows nothing of validation data.
func NewExpected(r *expect.Reference) *Expected {
	if r == nil {
		return nil
	}
	return &Expected{Validation: r}
}

// Choose makes the summary choose n rows to label next. It reports whether the ensemble knows enough for that.
func (s *Summary) Choose(n int) bool {
	if s.expected == nil {
		return false
	}
	s.expected.next = expect.NewNext(n)
	return true
}

// begin prepares for rows of these columns. It returns nil for nil, and if the columns lack what is needed.
func (e *Expected) begin(t task.Task, columns []task.Column, g task.Grouping) *Expected {
	if e == nil || e.Validation == nil || e.Validation.Sound() != nil {
		return nil
	}
	w, ok := task.Watch(t, columns).Only([]string{"confidence", "mutual_information"})
	if !ok || w.Classes != len(e.Validation.Predicted) {
		return nil
	}
	e.watch, e.g, e.sums, e.by = w, g, &counted{units: units{of: g.Unit}}, map[string]*counted{}
	return e
}

func (e *Expected) add(r *predictions.Row) {
	var class int
	e.numbers, class = e.watch.Of(e.numbers, r.Values)
	known := expect.Unlabelled
	switch {
	case r.Label == class:
		known = expect.Right
	case r.Label >= 0:
		known = expect.Wrong
	}
	if e.next != nil && known == expect.Unlabelled {
		e.next.Add(e.Validation, expect.Candidate{Index: r.Index, Name: r.Path, Predicted: class, Confidence: e.numbers[0]})
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
		s.Add(e.Validation, e.numbers[0], e.numbers[1], class, known)
		s.units.add(r)
		if known != expect.Unlabelled {
			s.labelled++
		}
	}
}

// Expected returns the accuracy to expect, or nil if it is not known, or if all examples have labels.
func (s *Summary) Expected() *Expected {
	e := s.expected
	if e == nil || e.sums.labelled == e.sums.Examples {
		return nil
	}
	if e.All == nil {
		all := e.estimate(e.sums)
		e.All = &all
		for _, name := range slices.Sorted(maps.Keys(e.by)) {
			e.Groups = append(e.Groups, ExpectedGroup{name, e.estimate(e.by[name])})
		}
		if e.next != nil {
			for _, c := range e.next.List(e.Validation, &e.sums.Sums) {
				e.Next = append(e.Next, NextRow{c.Index, c.Name, c.Predicted, c.Confidence})
			}
		}
	}
	return e
}

func (e *Expected) estimate(s *counted) expect.Estimate {
	return e.Validation.Estimate(&s.Sums, s.units.number())
}

// Lines says what accuracy to expect, in a sentence for all examples, one for the labels, and one for each group.
func (e *Expected) Lines() []string {
	out := []string{"accuracy to expect: " + Expect(e.All)}
	if l := e.All.Labels; l != nil {
		out = append(out, labelled(e.All, l))
	}
	for _, g := range e.Groups {
		name := g.Name
		if name == "" {
			name = "no group"
		}
		line := fmt.Sprintf("  %s, %s: %s", name, report.Plural(g.Examples, "example"), Expect(&g.Estimate))
		if l := g.Labels; l != nil {
			line += fmt.Sprintf("; with %s %s", report.Plural(l.Examples, "label"), interval(l.Combined, l.Low, l.High))
		}
		out = append(out, line)
	}
	if e.Next != nil {
		out = append(out, fmt.Sprintf("label next these %s. Uncertain rows are chosen more often, and the estimate allows for that:", report.Plural(len(e.Next), "row")))
	}
	for _, r := range e.Next {
		out = append(out, "  "+r.Path)
	}
	return out
}

// Expect says an estimate in words.
func Expect(e *expect.Estimate) string {
	was := report.Percent(e.Validation, 1)
	switch e.Bound {
	case expect.Large:
		return fmt.Sprintf("at most %s, which is at least %s points lower than on the validation data (%s). The estimated drop is too large for a number", report.Percent(e.High, 1), report.Fixed(100*(e.Validation-e.High), 1), was)
	case expect.Shares:
		return fmt.Sprintf("no number, at most %s. Classes are predicted in other shares than on the validation data (%s of the examples). Either the data have other classes, or the network confuses them. Label some examples", report.Percent(e.High, 1), report.Percent(e.Moved, 1))
	}
	return fmt.Sprintf("%s (%s on the validation data)", interval(e.Accuracy, e.Low, e.High), was)
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
	text := fmt.Sprintf("with %s: %s by %s, if the labelled examples of each confidence were drawn at random", report.Plural(l.Examples, "label"), interval(l.Combined, l.Low, l.High), how)
	if l.Halve > 0 {
		text += fmt.Sprintf(". About %s would halve the interval", report.Plural(l.Halve, "more label"))
	}
	return text
}

func interval(v, low, high float64) string {
	return fmt.Sprintf("%s [%s, %s]", report.Percent(v, 1), report.Percent(low, 1), report.Percent(high, 1))
}
