package open

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/swagwrap/swagwrap/internal/kind"
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

// Models returns the arguments, and replaces each folder by its checkpoints, in the order of training. These are ONNX files.
// They are PyTorch files with a template, or if there are no ONNX files. Hidden files, and subfolders that are not
// checkpoints, are left out.
func (a *Opener) Models(args []string, template bool) ([]string, error) {
	var paths []string
	for _, arg := range args {
		if info, err := os.Stat(arg); err != nil || !info.IsDir() {
			paths = append(paths, arg) // opening the path reports the error
			continue
		}
		found, over, err := inFolder(arg, template, nil)
		if err != nil {
			return nil, err
		}
		if len(over) > 0 {
			a.Logf("%s: passed over, since others have a number in their names and these have none: %s", arg, strings.Join(over, ", "))
		}
		paths = append(paths, found...)
	}
	return paths, nil
}

// besides are prefixes of the files that trainers save together with a checkpoint's weights.
var besides = []string{"optimizer", "scheduler", "rng_state", "training_args", "scaler", "random_states"}

// inFolder returns the checkpoints in a folder, and the similar files that were left out. A trainer's folder holds
// checkpoints as subfolders. It may also hold the weights of the last one directly. It does not look into known files, which the
// command opens anyway.
func inFolder(dir string, template bool, known []string) (found, over []string, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, nil, BadInput(err)
	}
	var onnx, files, folders []string
	for _, e := range entries {
		name := e.Name()
		path := filepath.Join(dir, name)
		suffix := strings.ToLower(filepath.Ext(name))
		switch {
		case name[0] == '.':
		case e.IsDir():
			if statefile.IsFolder(path) {
				folders = append(folders, path)
			}
		case suffix == ".onnx" && !slices.Contains(known, path) && kind.Exported(path): // made of checkpoints
		case suffix == ".onnx":
			onnx = append(onnx, path)
		case slices.ContainsFunc(besides, func(s string) bool {
			return strings.HasPrefix(name, s)
		}) || !slices.Contains(known, path) && kind.IsTensors(path):
		case statefile.Named(name):
			files = append(files, path)
		}
	}
	switch {
	case len(folders) > 0:
		files = folders
	case statefile.IsFolder(dir):
		files = []string{dir}
	}
	var deeper []string
	if len(files) == 0 && len(onnx) < 2 {
		deeper = deeperFolders(dir)
	}
	found = onnx
	if len(onnx) == 0 || template && len(files) > 0 || len(onnx) == 1 && len(files) > 1 { // one graph is what they are read against
		found, over = numbered(files)
	}
	if len(deeper) > 0 {
		found = nil // the one graph is what the checkpoints in the subfolders are read against
	}
	if len(found) == 0 {
		var refused *statefile.Error
		if _, err := statefile.Open(dir); errors.As(err, &refused) && refused.Hint != "" {
			return nil, nil, BadInput(err)
		}
		if f, ok := kind.ForeignOf(dir); ok {
			return nil, nil, BadInput(fmt.Errorf("%s: a folder without checkpoints that can be read: it has %s", dir, f.Name), f.Export)
		}
		hint := "its subfolders are not searched: name the files, or the folder that holds them"
		if len(deeper) > 0 {
			hint = "its subfolders are not searched. Checkpoints are in: " + strings.Join(deeper, ", ")
		}
		return nil, nil, BadInput(fmt.Errorf("%s: a folder without checkpoints", dir), hint)
	}
	return progress.Sort(found).Paths, over, nil
}

// deeperFolders returns the folders below dir that hold several PyTorch checkpoints, as engines leave them. It looks a few levels
// down, and at a limited number of names.
func deeperFolders(dir string) (folders []string) {
	const levels, names, most = 4, 5000, 3
	seen := 0
	held := map[string]int{}
	filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		below, _ := filepath.Rel(dir, path)
		seen++
		switch {
		case err != nil || seen > names:
			return fs.SkipAll
		case path == dir:
		case e.Name()[0] == '.', e.IsDir() && strings.Count(below, string(filepath.Separator)) >= levels:
			if e.IsDir() {
				return fs.SkipDir
			}
		case e.IsDir() && statefile.IsFolder(path):
			held[filepath.Dir(path)]++
			return fs.SkipDir
		case !e.IsDir() && filepath.Dir(path) != dir && statefile.Named(path) &&
			!slices.ContainsFunc(besides, func(s string) bool { return strings.HasPrefix(e.Name(), s) }) && statefile.Is(path):
			held[filepath.Dir(path)]++
		}
		return nil
	})
	for folder, n := range held {
		if n > 1 && folder != filepath.Clean(dir) {
			folders = append(folders, folder)
		}
	}
	slices.Sort(folders)
	return folders[:min(len(folders), most)]
}

// numbered splits the files by whether the distinguishing part of their names contains a number. It does so only if
// several have one. Training scripts save the last or best checkpoint a second time under a name without a number.
func numbered(paths []string) (with, without []string) {
	names := make([]string, len(paths))
	for i, path := range paths {
		names[i] = filepath.Base(path)
	}
	prefix, suffix := common(names)
	for i, path := range paths {
		if strings.ContainsAny(names[i][len(prefix):len(names[i])-len(suffix)], "0123456789") {
			with = append(with, path)
		} else {
			without = append(without, names[i])
		}
	}
	if len(with) < 2 {
		return paths, nil
	}
	return with, without
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

// CommonAffixes returns what the names of checkpoints have in common, and between the two the parts that differ. Files of
// several folders have their paths as names.
func CommonAffixes(paths []string) (prefix string, parts []string, suffix string) {
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
