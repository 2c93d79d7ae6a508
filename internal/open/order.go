package open

import (
	"cmp"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/swagwrap/swagwrap/internal/progress"
	"github.com/swagwrap/swagwrap/internal/setting"
	"github.com/swagwrap/swagwrap/weights/torch"
)

// CheckpointOrder returns the checkpoints of a fit in training order, and the others in their folders.
func (a *Opener) CheckpointOrder(o FitOptions) (chosen, others []string, err error) {
	given, err := a.Models(o.Checkpoints, o.Source.Template != "")
	if err != nil {
		return nil, nil, err
	}
	named := progress.Sort(given)
	asGiven := slices.Equal(given, named.Paths)
	paths := named.Paths
	if o.AsGiven {
		paths = given
		if !asGiven {
			a.Warnf("the checkpoints are taken as given, which is not the order of the numbers in their names: D keeps the last ones")
		}
	} else if stored, of := byProgress(paths, o.Source.Template); of != "" {
		if !slices.Equal(stored, paths) {
			a.Warnf("the checkpoints are taken in the order of the %s stored in them, which is not that of the numbers in their names (%s takes them as given)", of, setting.Order.With("given"))
		}
		paths = stored
	} else if named.Doubt != "" {
		a.Warnf("the order of the checkpoints may not be that of training: %s (%s takes them as given)", named.Doubt, setting.Order.With("given"))
	} else if named.By != "" {
		a.Logf("the checkpoints are taken in the order of the numbers behind %s in their names (%s takes them as given)", named.By, setting.Order.With("given"))
	} else if !asGiven && !slices.IsSorted(given) {
		a.Logf("the checkpoints are taken in the order of the numbers in their names, not as given (%s)", setting.Order.With("given"))
	}
	return paths, inTheirFolders(o.Source.Template, paths), nil
}

// inTheirFolders returns further PyTorch checkpoints in the folders of the checkpoints and of the template. One of them may have
// the weights that the template was exported with.
func inTheirFolders(template string, paths []string) (others []string) {
	if template == "" {
		return nil
	}
	for _, dir := range around(append([]string{template}, paths...)) {
		found, _, err := inFolder(dir, true, paths)
		if err != nil {
			continue
		}
		for _, path := range found {
			if !slices.Contains(paths, path) && torch.Is(path) {
				others = append(others, path)
			}
		}
	}
	return others
}

// byProgress sorts PyTorch checkpoints by their stored steps, or else by their stored epochs. of says which of the two.
// If some checkpoints have neither, byProgress returns paths unchanged.
func byProgress(paths []string, template string) (ordered []string, of string) {
	if template == "" { // then all are models, which store neither
		return paths, ""
	}
	steps, epochs := map[string]int64{}, map[string]int64{}
	for _, path := range paths {
		f, err := torch.Open(path)
		if err != nil {
			return paths, "" // a model, or reading the checkpoint reports the error
		}
		steps[path], epochs[path] = f.Step, f.Epoch
		f.Close()
	}
	for i, at := range []map[string]int64{steps, epochs} {
		values := slices.Sorted(maps.Values(at))
		if len(values) == 0 || values[0] < 0 || values[0] == values[len(values)-1] {
			continue
		}
		return slices.SortedStableFunc(slices.Values(paths), func(a, b string) int { return cmp.Compare(at[a], at[b]) }), []string{"steps", "epochs"}[i]
	}
	return paths, ""
}

// TellApart returns what the names of checkpoints have in common, and between the two the parts that differ. Files of
// several folders have their paths as names.
func TellApart(paths []string) (prefix string, parts []string, suffix string) {
	for _, path := range paths {
		parts = append(parts, filepath.Base(path))
	}
	if len(slices.Compact(slices.Sorted(slices.Values(parts)))) < len(parts) { // of several folders
		parts = slices.Clone(paths)
	}
	prefix, suffix = common(parts)
	for i, name := range parts {
		parts[i] = name[len(prefix) : len(name)-len(suffix)]
	}
	return prefix, parts, suffix
}

// common returns the common beginning of all names, and the common end of the rest. It never cuts a number.
func common(names []string) (prefix, suffix string) {
	if len(names) < 2 {
		return "", ""
	}
	const digits = "0123456789"
	prefix = names[0]
	for _, name := range names {
		for !strings.HasPrefix(name, prefix) {
			prefix = prefix[:len(prefix)-1]
		}
	}
	prefix = strings.TrimRight(prefix, digits)
	suffix = names[0][len(prefix):]
	for _, name := range names {
		for !strings.HasSuffix(name[len(prefix):], suffix) {
			suffix = suffix[1:]
		}
	}
	return prefix, strings.TrimLeft(suffix, digits)
}
