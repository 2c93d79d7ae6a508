package open

import (
	"cmp"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/swagwrap/swagwrap/internal/progress"
	"github.com/swagwrap/swagwrap/internal/setting"
	"github.com/swagwrap/swagwrap/weights/statefile"
)

// Ordered are the checkpoints of a fit in training order.
type Ordered struct {
	Paths  []string
	Others []string // further checkpoints in their folders
	// opened are the files that were opened for the order, by path. [Opener.OpenFit] takes them, so that no file is opened
	// twice.
	opened  map[string]*statefile.File
	moments map[string]string // the stored steps or epochs, by path, if they differ
	named   bool              // the order is that of the names
}

// Close closes the files that no fit took.
func (o *Ordered) Close() {
	for _, f := range o.opened {
		f.Close()
	}
}

// CheckpointOrder returns the checkpoints of a fit. The caller closes them after the fit.
func (a *Opener) CheckpointOrder(o FitOptions) (*Ordered, error) {
	given, err := a.Models(o.Checkpoints, o.Source.Template != "")
	if err != nil {
		return nil, err
	}
	named := progress.Sort(given)
	asGiven := slices.Equal(given, named.Paths)
	of := &Ordered{Paths: named.Paths, opened: map[string]*statefile.File{}, moments: map[string]string{}}
	if o.AsGiven {
		of.Paths = given
		if !asGiven {
			a.Warnf("the checkpoints are taken as given, which is not the order of the numbers in their names: D keeps the last ones")
		}
	} else if stored, by := of.byProgress(o.Source.Template != "" || o.Extend != ""); by != "" {
		if !slices.Equal(stored, of.Paths) {
			a.Warnf("the checkpoints are taken in the order of the %s stored in them, which is not that of the numbers in their names "+
				"(%s takes them as given)", by, setting.Order.With("given"))
		}
		of.Paths = stored
	} else if of.named = true; named.By == "" && named.Doubt == "" && !asGiven && !slices.IsSorted(given) {
		a.Logf("the checkpoints are taken in the order of the numbers in their names, not as given (%s)", setting.Order.With("given"))
	}
	of.Others = inTheirFolders(Graph(o.Source.Template), of.Paths)
	return of, nil
}

// inTheirFolders returns further PyTorch checkpoints in the folders of the checkpoints and of the template. One of them may have
// the weights that the template was exported with.
func inTheirFolders(template string, paths []string) (others []string) {
	if template == "" {
		return nil
	}
	known := append([]string{template}, paths...)
	for _, dir := range around(known) {
		found, _, err := inFolder(dir, true, known)
		if err != nil {
			continue
		}
		for _, path := range found {
			if !slices.Contains(known, path) && statefile.Is(path) {
				others = append(others, path)
			}
		}
	}
	return others
}

// byProgress sorts PyTorch checkpoints by their stored steps, or else by their stored epochs. of says which of the two.
// If some checkpoints have neither, byProgress returns the paths unchanged. Without a template all are models, which store
// neither.
func (o *Ordered) byProgress(template bool) (ordered []string, of string) {
	paths, steps, epochs := o.Paths, map[string]int64{}, map[string]int64{}
	for _, path := range paths {
		if !template {
			return paths, ""
		}
		f := o.opened[path]
		if f == nil {
			var err error
			if f, err = statefile.Open(path); err != nil {
				return paths, "" // a model, or reading the checkpoint reports the error
			}
			f.Release()
			o.opened[path] = f
		}
		steps[path], epochs[path] = f.Step, f.Epoch
	}
	for i, at := range []map[string]int64{steps, epochs} {
		values := slices.Sorted(maps.Values(at))
		if len(values) == 0 || values[0] < 0 || values[0] == values[len(values)-1] {
			continue
		}
		for path, value := range at {
			o.moments[path] = fmt.Sprint(value)
		}
		return slices.SortedStableFunc(slices.Values(paths), func(a, b string) int {
			return cmp.Compare(at[a], at[b])
		}), []string{"steps", "epochs"}[i]
	}
	return paths, ""
}

// TellApart returns what the names of checkpoints have in common, and between the two the parts that differ. Files of
// several folders have their paths as names.
func TellApart(paths []string) (prefix string, parts []string, suffix string) {
	for _, path := range paths {
		parts = append(parts, filepath.Base(path))
	}
	if len(slices.Compact(slices.Sorted(slices.Values(parts)))) < len(parts) { // files in several folders have the same name
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
