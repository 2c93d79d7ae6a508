package open

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/swagwrap/swagwrap/internal/file"
	"github.com/swagwrap/swagwrap/internal/kind"
	"github.com/swagwrap/swagwrap/internal/programs"
	"github.com/swagwrap/swagwrap/internal/progress"
	"github.com/swagwrap/swagwrap/internal/setting"
	"github.com/swagwrap/swagwrap/onnxio"
	"github.com/swagwrap/swagwrap/onnxio/checkpoints"
	"github.com/swagwrap/swagwrap/weights/statefile"
)

// Ordered are the checkpoints of a fit in training order.
type Ordered struct {
	Paths  []string
	Others []string      // further checkpoints in their folders
	Source SourceOptions // the template and the key, also if they were found
	// opened are the files that were opened for the order, by path. [Opener.OpenFit] takes them, so that no file is opened
	// twice.
	opened  map[string]*statefile.File
	moments map[string]string // the stored steps or epochs, by path, if they differ
	named   bool              // the order is that of the names
	near    *programs.Run     // what lies near them
}

// Close closes the files that no fit took.
func (o *Ordered) Close() {
	for _, f := range o.opened {
		f.Close()
	}
}

// Models returns the arguments, and replaces each folder by its checkpoints, in the order of training. graph is the exported graph that
// PyTorch's checkpoints are read against, or "".
func (a *Opener) Models(args []string, graph string) ([]string, error) {
	r, err := find(args, graph)
	if err != nil {
		return nil, err
	}
	defer r.close()
	for _, note := range r.notes {
		a.Logf("%s", note)
	}
	return r.paths, nil
}

// A run is what the arguments of a command hold.
type run struct {
	paths  []string // the checkpoints
	notes  []string // what was left out
	others []string // further files with weights
	graphs []string // in the folders among the arguments
	opened map[string]*statefile.File
}

func (r *run) close() {
	for _, f := range r.opened {
		f.Close()
	}
}

// find returns the checkpoints of the arguments. Folders are searched.
func find(args []string, graph string) (r *run, err error) {
	r = &run{opened: map[string]*statefile.File{}}
	for _, arg := range args {
		if info, err := os.Stat(arg); err != nil || !info.IsDir() {
			r.paths = append(r.paths, arg) // opening the path reports the error
		} else if err := r.search(arg, graph); err != nil {
			r.close()
			return nil, err
		}
	}
	return r, nil
}

// search adds the set of checkpoints in a folder.
func (r *run) search(dir, graph string) error {
	folder, err := programs.List(dir, nil)
	if err != nil {
		return BadInput(file.Error(dir, err))
	}
	defer folder.Close()
	chosen, err := folder.Choose(fits(append(folder.Graphs, graph)))
	if several := (*programs.SeveralError)(nil); errors.As(err, &several) {
		return askSets(several)
	}
	if err != nil {
		return BadInput(err)
	}
	if len(chosen.Paths) == 0 {
		return noCheckpoints(folder)
	}
	if len(chosen.Paths) == 1 && slices.Contains(folder.Graphs, chosen.Paths[0]) && folder.Cut {
		return Usagef("give the folder with the checkpoints. If the graph is your one checkpoint, give the file",
			"%s: has the graph %s, and not all folders below were searched: they are too many or too deep", dir, chosen.Paths[0])
	}
	r.notes = append(r.notes, folder.Notes(chosen)...)
	r.paths, r.graphs = append(r.paths, chosen.Paths...), append(r.graphs, folder.Graphs...)
	for _, path := range folder.States {
		if !slices.Contains(chosen.Paths, path) && !slices.Contains(chosen.Empty, path) {
			r.others = append(r.others, path)
		}
	}
	maps.Copy(r.opened, folder.Take())
	return nil
}

// fits returns whether a file may fill one of the graphs, or nil if there is none.
func fits(graphs []string) func(*statefile.File) bool {
	if graphs = slices.DeleteFunc(slices.Clone(graphs), func(path string) bool { return path == "" }); len(graphs) == 0 {
		return nil
	}
	return func(f *statefile.File) bool {
		return slices.ContainsFunc(graphs, func(path string) bool {
			m, err := onnxio.Peek(path)
			if err != nil {
				return true // reading it reports the error
			}
			defer m.Close()
			return checkpoints.NewTemplate(m, nil).Fits(f)
		})
	}
}

// askSets asks which set of checkpoints is meant.
func askSets(e *programs.SeveralError) error {
	const most = 6
	var hints []string
	for _, s := range e.Sets[:min(len(e.Sets), most)] {
		hint := fmt.Sprintf("%s: 1 file", s.Paths[0])
		if n := len(s.Paths); n > 1 {
			hint = fmt.Sprintf("%s: %d checkpoints, %s to %s", s.Place, n, filepath.Base(s.Paths[0]), filepath.Base(s.Paths[n-1]))
		}
		hints = append(hints, hint)
	}
	if more := len(e.Sets) - most; more > 0 {
		hints = append(hints, fmt.Sprintf("and %d more", more))
	}
	hints = append(hints, "give the one folder, or its files. Checkpoints of different runs or networks have no average")
	return Usagef(strings.Join(hints, "\n"), "%w", e)
}

func noCheckpoints(folder *programs.Folder) error {
	dir := folder.Dir
	var refused *statefile.Error
	if _, err := statefile.Open(dir); errors.As(err, &refused) && refused.Hint != "" {
		return BadInput(err)
	}
	if f, ok := kind.ForeignOf(dir); ok {
		return BadInput(fmt.Errorf("%s: a folder without checkpoints that can be read: it has %s", dir, f.Name), f.Export)
	}
	return BadInput(fmt.Errorf("%s: a folder without checkpoints", dir), "it and the folders below have "+folder.String()+
		". Name the files, or the folder that holds them")
}

// CheckpointOrder returns the checkpoints of a fit. The caller closes them after the fit.
func (a *Opener) CheckpointOrder(o FitOptions) (*Ordered, error) {
	r, err := find(o.Checkpoints, Graph(o.Source.Template))
	if err != nil {
		return nil, err
	}
	for _, note := range r.notes {
		a.Logf("%s", note)
	}
	given := r.paths
	named := progress.Sort(given)
	asGiven := slices.Equal(given, named.Paths)
	of := &Ordered{Paths: named.Paths, Source: o.Source, opened: r.opened, moments: map[string]string{}}
	if o.Source.Template == "" && o.Extend == "" && !o.NoGraph {
		if of.Source.Template = r.template(o.Source, r.graphs); of.Source.Template != "" {
			a.Logf("the checkpoints are read against the exported graph %s (%s)", of.Source.Template, setting.Template)
		}
	}
	if o.AsGiven {
		of.Paths = given
		if !asGiven {
			a.Warnf("the checkpoints are taken as given, which is not the order of the numbers in their names: D keeps the last ones")
		}
	} else if stored, by := of.byProgress(of.Source.Template != "" || o.Extend != "" || o.NoGraph); by != "" {
		if !slices.Equal(stored, of.Paths) {
			a.Warnf("the checkpoints are taken in the order of the %s stored in them, which is not that of the numbers in their names "+
				"(%s takes them as given)", by, setting.Order.With("given"))
		}
		of.Paths = stored
	} else if of.named = true; named.By == "" && named.Doubt == "" && !asGiven && !slices.IsSorted(given) {
		a.Logf("the checkpoints are taken in the order of the numbers in their names, not as given (%s)", setting.Order.With("given"))
	}
	if of.Others = inTheirFolders(Graph(of.Source.Template), of.Paths); of.Source.Template != "" {
		of.Others = append(of.Others, r.others...)
	}
	if err := of.chooseKey(a, o.Extend != "", o.NoGraph); err != nil {
		of.Close()
		return nil, err
	}
	of.near = of.nearby(o.Checkpoints)
	if p := of.near.Program; p != nil {
		a.Logf("the files are those of %s", p.Name)
	}
	if measured := of.near.Measured(); measured != "" {
		a.Logf("%s", measured)
	}
	return of, nil
}

// nearby returns what lies near the checkpoints that the arguments hold.
func (o *Ordered) nearby(args []string) *programs.Run {
	top := o.last()
	for _, arg := range args {
		if info, err := os.Stat(arg); err == nil && info.IsDir() {
			top = arg
		}
	}
	return programs.Near(o.Paths, top, Graph(o.Source.Template), o.open(o.last()))
}

// last returns the path of the last checkpoint, or "".
func (o *Ordered) last() string {
	if len(o.Paths) == 0 {
		return ""
	}
	return o.Paths[len(o.Paths)-1]
}

// chooseKey finds the key of the weights that SGD moved, if the checkpoints hold several networks and the user named none.
func (of *Ordered) chooseKey(a *Opener, extends, noGraph bool) error {
	if of.Source.StateDict.Set || of.Source.Template == "" && !noGraph || extends {
		return nil
	}
	keys, iterate := of.keys()
	if iterate != "" {
		of.Source.StateDict.Value = iterate
		a.Logf("the weights that SGD moved are under %q (%s takes others): %s", iterate, setting.StateDict, programs.Describe(keys))
		return nil
	}
	if len(keys) < 2 {
		return nil
	}
	var hints []string
	for _, k := range keys {
		hints = append(hints, setting.StateDict.With(k.Name)+" takes "+k.String())
	}
	hints = append(hints, "SWAG is about the weights that SGD moved, not about their moving average (EMA). "+
		setting.Fit.With(setting.Mean.With("FILE"))+" takes the average as the mean of SWA")
	return BadInput(fmt.Errorf("%s: %d state_dicts, want the key of one", of.Paths[0], len(keys)), hints...)
}

// keys returns what the checkpoints hold, if all are PyTorch files.
func (o *Ordered) keys() (keys []programs.Key, iterate string) {
	var files []*statefile.File
	for _, path := range o.Paths {
		if f := o.open(path); f == nil {
			return nil, ""
		} else {
			files = append(files, f)
		}
	}
	keys, iterate = programs.Keys(files)
	for _, f := range files {
		f.Release()
	}
	return keys, iterate
}

// open opens a PyTorch file once. It returns nil for a model, and for a file that reading reports an error about.
func (o *Ordered) open(path string) *statefile.File {
	if o.opened[path] == nil {
		if strings.EqualFold(filepath.Ext(path), ".onnx") { // is not opened for nothing: the fit opens it
			return nil
		}
		f, err := statefile.Open(path)
		if err != nil {
			return nil
		}
		f.Release()
		o.opened[path] = f
	}
	return o.opened[path]
}

// inTheirFolders returns further PyTorch checkpoints in the folders of the checkpoints and of the template. One of them may have
// the weights that the template was exported with.
func inTheirFolders(template string, paths []string) (others []string) {
	if template == "" {
		return nil
	}
	known := append([]string{template}, paths...)
	for _, dir := range around(known) {
		folder, err := programs.ListFlat(dir, known)
		if err != nil {
			continue
		}
		for _, path := range folder.States {
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
		f := o.open(path)
		if f == nil {
			return paths, ""
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
	prefix, suffix = programs.Common(parts)
	for i, name := range parts {
		parts[i] = name[len(prefix) : len(name)-len(suffix)]
	}
	return prefix, parts, suffix
}
