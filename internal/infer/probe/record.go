package probe

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/target"
	"github.com/swagwrap/swagwrap/internal/task"
)

// A Record holds the scores of a network for the examples of a sample, and the facts that decide their meaning. The tables of faults
// test it.
type Record struct {
	Task             string    // the name of the task
	Count            int       // scores of an example
	Scores           []float32 // n×Count
	Batch            int       // examples of each batch that was run
	Labels           target.Target
	Holds            Property // with [Foreign], targets tell nothing
	OutputProperties infer.OutputProperties
	// Known is the form that the graph proves or the model card names, or "".
	Known task.Form
	// Proven says that Known comes from the graph.
	Proven bool

	sample *Sample
	idx    []int       // of the examples in the sample
	rows   [][]float32 // see usable
}

// A Decision says whether scores are logits, probabilities or log-probabilities, and why.
type Decision struct {
	Form task.Form `json:"form"`
	// By names the source of the decision: "graph", "card", "values" or "labels". "default" stands for logits, because
	// no check found anything else.
	By string `json:"by"`
	// Why is the reason in words.
	Why string `json:"why"`
}

// String describes the decision in one line.
func (d *Decision) String() string {
	return fmt.Sprintf("the scores are taken for %s: %s", d.Form, strings.TrimSuffix(d.Why, "."))
}

// usable returns the rows without NaN or +∞.
func (r *Record) usable() [][]float32 {
	if r.rows == nil {
		for row := range slices.Chunk(r.Scores, r.Count) {
			if !slices.ContainsFunc(row, func(v float32) bool { return v != v || math.IsInf(float64(v), 1) }) {
				r.rows = append(r.rows, row)
			}
		}
	}
	return r.rows
}

// each reports whether scores stand for themselves, and not for classes that exclude each other.
func (r *Record) each() bool { return r.Count == 1 || task.TraitsOf(r.Task).Alone }

// Few is the number of examples that show the form of most networks' scores.
const Few = 16

// plain reports whether few rows decide as more rows would. Sums of rows, labels and the steps of an ordinal scale show in
// more rows only.
func (r *Record) plain(d *Decision) bool {
	if d.By == "values" || d.By == "labels" {
		return false
	}
	rows := r.usable()
	if len(rows)*r.Count < len(r.Scores) {
		return false
	}
	if r.each() {
		return r.Count < fewestSteps || !ascendOrFall(rows)
	}
	one := func(row []float32) bool {
		return slices.Min(row) >= 0 && math.Abs(total(row, itself)-1) <= task.SumTolerance
	}
	return d.Form == task.Probabilities || !slices.ContainsFunc(rows, one)
}

// ascendOrFall reports whether the scores of every row rise, or whether they fall in every row.
func ascendOrFall(rows [][]float32) bool {
	rises, falls := true, true
	for _, row := range rows {
		back := slices.Clone(row)
		slices.Reverse(back)
		rises, falls = rises && slices.IsSorted(row), falls && slices.IsSorted(back)
	}
	return rises || falls
}
