package checkpoints

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/swagwrap/swagwrap/internal/setting"
)

// Notes says, in sentences, which tensors of the state_dicts are not in the graph, and which files have no checksums.
func (r *Recipe) Notes() (notes []string) {
	if len(r.Aliases) > 0 {
		notes = append(notes, "tied to tensors of the graph: "+list(slices.Collect(maps.Keys(r.Aliases))))
	}
	if len(r.Fixed) > 0 {
		notes = append(notes, "not in the graph, and the same in all checkpoints: "+list(slices.Collect(maps.Keys(r.Fixed))))
	}
	if len(r.Unused) > 0 {
		notes = append(notes, fmt.Sprintf("not in the graph, and not used by the network, as %s says: %s", setting.Unused,
			list(slices.Clone(r.Unused))))
	}
	if len(r.Copies) > 0 {
		notes = append(notes, "not in the graph, and of a second network with the same tensors: "+list(slices.Clone(r.Copies)))
	}
	if len(r.Kept) > 0 && r.adapters() {
		notes = append(notes, fmt.Sprintf("the checkpoints are adapters: %d tensors of the network stay as %s has them",
			len(r.Kept), r.Template))
	}
	if len(r.legacy) > 0 {
		notes = append(notes, Legacy(r.legacy))
	}
	return notes
}

// Legacy says, in a sentence, what a user of files in PyTorch's legacy format must know.
func Legacy(paths []string) string {
	return "in PyTorch's format from before 1.6, which has no checksums, so damage to the weights cannot be found (torch.load and " +
		"torch.save write the new one): " + list(slices.Clone(paths))
}

// Warnings returns the warnings that a user of the result must know.
func (r *Recipe) Warnings() (warnings []string) {
	if r.Named {
		warnings = append(warnings, fmt.Sprintf("the names of tensors alone say where the checkpoints' weights go in %s: %s names the "+
			"graph itself as its checkpoint. The file of PyTorch that it was exported from would prove it", r.Template, setting.Template))
	}
	if len(r.Kept) > 0 && !r.adapters() {
		warnings = append(warnings, fmt.Sprintf("not in the checkpoints, and kept as %s has them: %s", r.Template,
			list(slices.Clone(r.Kept))))
	}
	if len(r.Mixed) > 0 {
		warnings = append(warnings, "of the checkpoints some store their weights in another type, which rounds them: "+
			strings.Join(r.Mixed, ", "))
	}
	if len(r.plain) > 0 {
		warnings = append(warnings, fmt.Sprintf("themselves a state_dict, with nothing under %q, and taken as they are: %s", r.StateDict,
			list(slices.Clone(r.plain))))
	}
	return warnings
}

func (r *Recipe) adapters() bool {
	return slices.ContainsFunc(r.Tensors, func(s Source) bool { return isAdapter(s.from()) })
}

// list returns the first names, and the number of the others.
func list(names []string) string {
	slices.Sort(names)
	more := ""
	if n := len(names) - maxDifferences; n > 0 {
		names, more = names[:maxDifferences], fmt.Sprintf(" and %d more", n)
	}
	return strings.Join(names, ", ") + more
}
