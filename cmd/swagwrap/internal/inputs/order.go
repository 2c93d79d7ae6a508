package inputs

import (
	"cmp"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/maruel/natural"

	"github.com/swagwrap/swagwrap/internal/report/text"
	"github.com/swagwrap/swagwrap/weights/torch"
)

// Ordered are the checkpoints of a fit in training order.
type Ordered struct {
	Paths  []string
	Others []string // further checkpoints in their folders
	// opened are the files that were opened for the order, by path. [Env.OpenFit] takes them, so that no file is opened
	// twice.
	opened map[string]*torch.File
}

// Close closes the files that no fit took.
func (o *Ordered) Close() {
	for _, f := range o.opened {
		f.Close()
	}
}

// CheckpointOrder returns the checkpoints of a fit. The caller closes them after the fit.
func (a *Env) CheckpointOrder(o FitOptions) (*Ordered, error) {
	given, err := a.Models(o.Checkpoints, o.Source.Template != "")
	if err != nil {
		return nil, err
	}
	of := &Ordered{opened: map[string]*torch.File{}}
	sorted := slices.Clone(given)
	slices.SortStableFunc(sorted, natural.Compare)
	asGiven := slices.Equal(given, sorted)
	of.Paths = sorted
	if o.AsGiven {
		of.Paths = given
		if !asGiven {
			a.Warnf("the checkpoints are taken as given, which is not the order of the numbers in their names: D keeps the last ones")
		}
	} else if stored, by := of.byProgress(o.Source.Template != "" || o.Extend != ""); !slices.Equal(stored, sorted) {
		a.Warnf("the checkpoints are taken in the order of the %s stored in them, which is not that of the numbers in their names (--order given takes them as given)", by)
		of.Paths = stored
	} else if !asGiven && !slices.IsSorted(given) {
		a.Logf("the checkpoints are taken in the order of the numbers in their names, not as given (--order given)")
	}
	of.Others = inTheirFolders(o.Source.Template, of.Paths)
	return of, nil
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
			if f, err = torch.Open(path); err != nil {
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
		return slices.SortedStableFunc(slices.Values(paths), func(a, b string) int { return cmp.Compare(at[a], at[b]) }), []string{"steps", "epochs"}[i]
	}
	return paths, ""
}

// listed is the largest number of checkpoints that are named one by one.
const listed = 40

// LogOrder prints the order of the checkpoints. It prints the common part of their names once, and then the parts that
// differ.
func (a *Env) LogOrder(paths []string) {
	var names []string
	for _, path := range paths {
		names = append(names, filepath.Base(path))
	}
	if len(slices.Compact(slices.Sorted(slices.Values(names)))) < len(names) { // of several folders
		names = slices.Clone(paths)
	}
	prefix, suffix := common(names)
	for i, name := range names {
		names[i] = name[len(prefix) : len(name)-len(suffix)]
	}
	if len(names) > listed && !a.Verbose {
		names = slices.Concat(names[:listed/2], []string{"…"}, names[len(names)-listed/2:])
	}
	for _, line := range text.Hang("order: ", prefix+"{"+strings.Join(names, " ")+"}"+suffix) {
		a.Logf("%s", line)
	}
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
