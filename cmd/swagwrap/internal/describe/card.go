package describe

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/swagwrap/swagwrap/internal/report"
	"github.com/swagwrap/swagwrap/internal/task"
	"github.com/swagwrap/swagwrap/swag"
)

// writeCard prints a model card. It prints the preprocessing in the form that --preprocess reads.
func writeCard(w io.Writer, js string) error {
	var card swag.Card
	if js == "" {
		return nil
	}
	if err := json.Unmarshal([]byte(js), &card); err != nil {
		return fmt.Errorf("model card: %w", err)
	}
	preprocess, names := string(card.Preprocess), ""
	if preprocess == "" {
		preprocess = "pixels are scaled to [0, 1]"
	}
	if n := len(card.ClassNames); n > 0 {
		names = fmt.Sprintf("%s: %s", report.Thousands(n), strings.Join(card.ClassNames[:min(n, 20)], ", "))
		if n > 20 {
			names += ", …"
		}
	}
	var inputs []string
	for name, columns := range card.Columns {
		inputs = append(inputs, fmt.Sprintf("%s: %s", name, strings.Join(columns, ", ")))
	}
	for name, v := range card.Pad {
		inputs = append(inputs, fmt.Sprintf("%s is padded with %v", name, v))
	}
	slices.Sort(inputs)
	var states []string
	for _, p := range card.State {
		states = append(states, p.In+"="+p.Out)
	}
	scores := ""
	if task.TraitsOf(card.Task).Form && !task.Scoreless(card.Task) {
		scores = cmp.Or(card.Scores, "what the values say, as a run looks at them (--scores)")
	}
	fmt.Fprintln(w, "\nmodel card")
	facts := []report.Fact{
		{Name: "output", Value: cmp.Or(card.Output, "the first")},
		{Name: "task", Value: cmp.Or(card.Task, "not told")},
		{Name: "scores", Value: scores},
		{Name: "states", Value: strings.Join(states, ", ")},
		{Name: "classes", Value: cmp.Or(names, "no names")},
		{Name: "targets", Value: describeCardTargets(card.Targets)},
		{Name: "preprocess", Value: preprocess},
		{Name: "augment", Value: cmp.Or(card.Augment, "not told")},
		{Name: "file order", Value: card.FileOrder},
	}
	for _, line := range inputs { // the columns of tables that feed the inputs
		facts = append(facts, report.Fact{Name: "table", Value: line})
	}
	report.WriteFacts(w, "  ", 10, facts...)
	return nil
}

// describeCardTargets describes a regression's targets in a model card. It returns "" for other tasks.
func describeCardTargets(t *swag.Targets) string {
	if t == nil {
		return ""
	}
	var parts []string
	for i, mean := range t.Mean {
		parts = append(parts, fmt.Sprintf("%g + %g·z", mean, t.Std[i]))
	}
	if parts == nil {
		parts = []string{"the network's numbers"}
	}
	switch {
	case t.VarianceHead != "":
		parts = append(parts, "variances by a head: "+t.VarianceHead)
	case t.NoiseStd != nil:
		parts = append(parts, fmt.Sprintf("noise %v", strings.Trim(fmt.Sprint(t.NoiseStd), "[]")))
	default:
		parts = append(parts, "noise is to be fitted: compare, calibrate")
	}
	return strings.Join(parts, "; ")
}
