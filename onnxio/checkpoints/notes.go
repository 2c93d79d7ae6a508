package checkpoints

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Notes says, in sentences, what of the state_dicts is not in the graph.
func (r *Recipe) Notes() (notes []string) {
	if len(r.Aliases) > 0 {
		notes = append(notes, "tied to tensors of the graph: "+list(slices.Collect(maps.Keys(r.Aliases))))
	}
	if len(r.Fixed) > 0 {
		notes = append(notes, "not in the graph, and the same in all checkpoints: "+list(slices.Collect(maps.Keys(r.Fixed))))
	}
	if len(r.Unused) > 0 {
		notes = append(notes, "not in the graph, so without a part in its scores: "+list(slices.Clone(r.Unused)))
	}
	return notes
}

// Warnings says what a user of the result must know.
func (r *Recipe) Warnings() (warnings []string) {
	if len(r.Kept) > 0 {
		warnings = append(warnings, fmt.Sprintf("not in the checkpoints, and kept as %s has them: %s", r.Template, list(slices.Clone(r.Kept))))
	}
	if len(r.Mixed) > 0 {
		warnings = append(warnings, "of the checkpoints some store their weights in another type, which rounds them: "+strings.Join(r.Mixed, ", "))
	}
	if len(r.plain) > 0 {
		warnings = append(warnings, fmt.Sprintf("themselves a state_dict, with nothing under %q, and taken as they are: %s", r.StateDict, list(slices.Clone(r.plain))))
	}
	return warnings
}

// list names the first few.
func list(names []string) string {
	slices.Sort(names)
	more := ""
	if n := len(names) - maxDifferences; n > 0 {
		names, more = names[:maxDifferences], fmt.Sprintf(" and %d more", n)
	}
	return strings.Join(names, ", ") + more
}
