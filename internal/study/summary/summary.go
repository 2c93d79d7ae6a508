// Package summary says what predictions are as a whole: their scores, those of groups, and how far they drift from those of
// validation data. It knows FILE.meta.json, which stands next to a file of predictions.
package summary

import (
	"fmt"
	"strings"

	"github.com/swagwrap/swagwrap/internal/guarantee"
	"github.com/swagwrap/swagwrap/internal/predictions"
	"github.com/swagwrap/swagwrap/internal/study"
	"github.com/swagwrap/swagwrap/internal/task"
)

// Summary adds up the rows of predictions.
type Summary struct {
	Rows, Failed int
	First        string       // the first error
	Labelled     int          // rows that have a label
	Groups       *task.Groups // of --groups, or nil
	// Settled says that the last column is the number of members that ran. Ran is their sum.
	Settled bool
	Ran     float64

	// Realised counts how often guarantees held. It is nil without any.
	Realised *guarantee.Realised

	own        int // numbers of a row that the task itself gives
	scores     *task.Evaluator
	evaluated  *task.Evaluation // of all rows
	drift      *Drift           // nil for an ensemble that has seen no validation data
	expected   *Expected        // nil for an ensemble that has seen no labelled predictions
	blocks     *Blocks          // nil unless statistics were adapted to blocks
	shares     *Shares          // nil unless predictions are corrected for class shares, or were to be
	units      units            // of all rows
	classNames []string
	confusion  *confusion
}

// New prepares for rows of a task. d and e come from the ensemble, b says to which blocks statistics were adapted, and g has the
// groups.
func New(t task.Task, schema *predictions.Schema, d *Drift, e *Expected, b *Blocks, g task.Grouping) *Summary {
	s := &Summary{
		scores:     task.NewEvaluator(t, task.EvaluateOptions{MainOnly: true, NoLosses: true}),
		drift:      d.begin(t, schema.Columns),
		expected:   e.begin(t, schema, g),
		blocks:     b.begin(t, schema.Columns, d),
		units:      units{of: g.Unit},
		classNames: schema.ClassNames,
	}
	columns := t.Columns(schema.Want)
	for _, c := range columns {
		s.own += c.Len()
	}
	s.confusion = newConfusion(columns)
	if g.Unit != nil || g.Report != nil {
		s.Groups = task.NewGroups(t, g, task.EvaluateOptions{})
	}
	return s
}

// Own returns the numbers of a row that the task gives, without those of guarantees and of members.
func (s *Summary) Own(r *predictions.Row) []float64 { return r.Values[:s.own:s.own] }

// Names returns the names of the classes, or nil.
func (s *Summary) Names() []string { return s.classNames }

// Add adds a row.
func (s *Summary) Add(r *predictions.Row) {
	s.Rows++
	if r.Error != "" {
		if s.Failed++; s.Failed == 1 {
			s.First = r.Error
		}
		return
	}
	if s.Settled {
		s.Ran += r.Values[len(r.Values)-1]
	}
	s.units.add(r)
	s.confusion.add(r)
	s.blocks.add(r)
	if s.drift != nil {
		s.drift.add(r)
	}
	if s.expected != nil {
		s.expected.add(r)
	}
	if s.Groups != nil {
		for _, e := range s.Groups.At(r.Index, r.Path) {
			e.AddRow(s.Own(r), r.Label, r.Sums)
		}
	}
	s.Realised.Add(r.Index, r.Path, r.Values, r.Label)
	if s.scores.AddRow(s.Own(r), r.Label, r.Sums) {
		s.Labelled++
	}
}

// Evaluation scores all rows, once.
func (s *Summary) Evaluation() *task.Evaluation {
	if s.evaluated == nil {
		s.evaluated = s.scores.Evaluation()
	}
	return s.evaluated
}

// OneClass returns a warning if blocks to which statistics were adapted have mostly one class, or "".
func (s *Summary) OneClass() string { return s.blocks.warning(s.classNames) }

// Drifted returns a warning if the predictions are unlike those of validation data, or "".
func (s *Summary) Drifted() string {
	if s.drift == nil {
		return ""
	}
	return s.drift.finish(s.units.number()).warning(s.classNames)
}

// Sentence returns the main scores as text, with their intervals if they have one.
func Sentence(e *task.Evaluation) string {
	var list []string
	for _, x := range e.Scores {
		if x.Value != x.Value || x.Further && !x.Brief || strings.HasSuffix(x.Key, "_low") || strings.HasSuffix(x.Key, "_high") {
			continue
		}
		text := strings.TrimSpace(x.Header + " " + study.Format(x) + " " + x.Unit)
		if low := x.Key + "_low"; e.Has(low) && e.Value(low) == e.Value(low) {
			text += fmt.Sprintf(" [%s, %s]", study.Format(e.Score(low)), study.Format(e.Score(x.Key+"_high")))
		}
		list = append(list, text)
	}
	return strings.Join(list, ", ")
}

// units counts units of chance.
type units struct {
	of    func(i int, name string) string // of --groups, or nil
	each  map[string]float64              // examples of each
	alone float64                         // examples without a unit
}

func (u *units) add(r *predictions.Row) {
	name := ""
	if u.of != nil {
		name = u.of(r.Index, r.Path)
	}
	if name == "" {
		u.alone++
		return
	}
	if u.each == nil {
		u.each = map[string]float64{}
	}
	u.each[name]++
}

// number returns the number of independent examples. Units of unequal size count as (Σn)²/Σn² units of equal size (Kish 1965).
func (u *units) number() int {
	sum, squares := u.alone, u.alone
	for _, n := range u.each {
		sum, squares = sum+n, squares+n*n
	}
	if sum == 0 {
		return 0
	}
	return int(sum * sum / squares)
}
