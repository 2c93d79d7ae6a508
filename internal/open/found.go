package open

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/dataset/listing"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/kind"
	"github.com/swagwrap/swagwrap/internal/names"
	"github.com/swagwrap/swagwrap/internal/picture"
	"github.com/swagwrap/swagwrap/internal/preprocess"
	"github.com/swagwrap/swagwrap/internal/programs"
	"github.com/swagwrap/swagwrap/internal/reference"
	"github.com/swagwrap/swagwrap/internal/report"
	"github.com/swagwrap/swagwrap/internal/setting"
	"github.com/swagwrap/swagwrap/internal/target"
	"github.com/swagwrap/swagwrap/internal/task"
	"github.com/swagwrap/swagwrap/onnxio"
	"github.com/swagwrap/swagwrap/onnxio/checkpoints"
	"github.com/swagwrap/swagwrap/swag"
	"github.com/swagwrap/swagwrap/weights/statefile"
)

// FindOptions are the files that a user names, and the options that answer what [Find] looks for. Empty texts were not given.
type FindOptions struct {
	Checkpoints                    []string // files and folders
	Training, Validation, Test     string
	Template, Task, Card           string
	Unused                         []string // see [SourceOptions]
	Targets                        bool     // something is known about targets
	LabelsAs                       names.As
	Named                          listing.Columns
	ClassNames, Preprocess, Output string              // Output names that of the scores
	Columns                        map[string][]string // of tables, by input
	Labels                         string              // the file with those of Test, or ""
}

// Found is what follows from the files, with the reasons. Empty texts were not found.
type Found struct {
	Training, Template, Card           string
	ClassNames, Task, Head, Preprocess string              // Head is that of [TargetOptions], or "none"
	Columns                            map[string][]string // of tables, by input
	Output                             string              // the name of that with the scores
	Reasons                            []string            // for the user
	Unclear                            *dataset.Undecided  // what the table with test data does not tell, or nil
	Unreadable                         error               // why the test data cannot be read, or not as training read it
}

// found sets one of the results.
func (f *Found) found(reason string, of *string, value string) {
	*of, f.Reasons = value, append(f.Reasons, reason)
}

// Find looks for what the user did not give: the template, the training batches, the task, the names of the classes and
// the preprocessing. What it cannot find or read is left to the commands, whose errors say what to do.
func Find(g FindOptions) *Found {
	f := &Found{}
	r, err := find(g.Checkpoints, g.Template)
	if err != nil {
		r = &run{} // fit tells
	}
	defer r.close()
	folders := around(append(slices.Clone(g.Checkpoints), g.Template))
	if g.Template == "" {
		if g.Template = r.template(SourceOptions{Unused: g.Unused}, graphsIn(folders, r.graphs)); g.Template != "" {
			f.found("the exported graph: "+g.Template, &f.Template, g.Template)
		}
	}
	if g.Training == "" {
		if g.Training = programs.First(folders, "batches.npz", "batches.npy", "train.npz"); g.Training != "" {
			f.found("the training batches: "+g.Training, &f.Training, g.Training)
		}
	}
	if g.Card == "" && g.Task == "" && g.Preprocess == "" {
		if g.Card = programs.First(folders, "card.json"); g.Card != "" {
			f.found("the model card: "+g.Card, &f.Card, g.Card)
		}
	}
	if g.Card != "" {
		return f // it says the rest
	}
	m := graph(g, r.paths)
	if m == nil {
		return f
	}
	defer m.Close()
	folded := g.classFolders(func(int) bool { return true })
	network, err := infer.ReadGraph(m, f.output(m, g, classFolders(folded)), swag.Card{})
	if err != nil || network.Fits(nil) != nil {
		return f // fit tells
	}
	opts := dataset.Options{Fields: network.Fields(), Target: target.Numbers, Labels: g.Labels, Named: g.Named, Columns: g.Columns}
	if f.Unclear = dataset.Unclear(g.Test, opts); f.Unclear != nil && !f.identifiers(network) {
		return f
	}
	f.columns(g, opts, folders, m)
	known := 0
	if path := g.classFolders(func(n int) bool { return network.Layout().Count < 2 || network.Layout().Count == n }); path != "" {
		known = classFolders(path)
		f.found(fmt.Sprintf("%d classes: the folders in %s", known, path), &f.ClassNames, path)
	}
	of := &Ordered{Paths: r.paths, Source: SourceOptions{Template: g.Template}, opened: r.opened}
	near := of.nearby(g.Checkpoints)
	near.WithGraph(m.Metadata)
	names, _ := classesNear(near)
	if known == 0 && network.Layout().Count == len(names) {
		known = len(names) // fit reads them
	}
	if g.Task == "" && g.ClassNames == "" && !(known > 1 && known == len(names)) {
		f.task(network, g, known)
	}
	if g.Preprocess == "" && network.TakesPictures() && !proved(folders, m, network) {
		f.preprocessing(g, network, near)
	}
	return f
}

// identifiers leaves out the columns that only tell one row from another, if that decides which columns feed the network.
func (f *Found) identifiers(n *infer.Graph) bool {
	names := f.Unclear.Identifiers()
	rest := slices.DeleteFunc(slices.Clone(f.Unclear.Columns), func(name string) bool { return slices.Contains(names, name) })
	if f.Unclear.Labels || names == nil || len(rest) != f.Unclear.Takes {
		return false
	}
	f.Columns = map[string][]string{n.Input.Name: rest}
	f.Reasons = append(f.Reasons, fmt.Sprintf("%s of %s left out, whose values all differ: the network has no place for it",
		report.Plural(len(names), "column"), f.Unclear.Path)+": "+strings.Join(names, ", "))
	f.Unclear = nil
	return true
}

// columns finds the names of the columns that feed the network, in the test data. Later tables are then matched by name. It leaves them to
// fit where reference outputs or the targets of training tell them.
func (f *Found) columns(g FindOptions, opts dataset.Options, folders []string, m *onnxio.Model) {
	if g.Columns != nil || g.Targets && f.Columns == nil {
		return
	}
	if r, err := reference.Open(programs.First(folders, reference.Name)); err == nil {
		if known, _ := r.Columns(m, m.FeedInputs()[0].Name); known != nil {
			f.Columns = nil
			return
		}
	}
	if f.Columns == nil {
		f.Columns = dataset.ColumnsOf(g.Test, opts)
	}
	for input, names := range f.Columns {
		if len(names) < 2 || strings.Contains(strings.Join(names, ""), "*") {
			delete(f.Columns, input)
			continue
		}
		const most = 6
		f.Reasons = append(f.Reasons, fmt.Sprintf("%d columns, in the order of %s: %s", len(names), g.Test, report.Some(names, most)))
	}
}

// around returns the folders of the paths, the folders that the paths are, and their parents.
func around(paths []string) (folders []string) {
	add := func(dir string) {
		if !slices.Contains(folders, dir) {
			folders = append(folders, dir)
		}
	}
	for _, path := range paths {
		if path == "" {
			continue
		}
		if info, err := os.Stat(path); err == nil && info.IsDir() {
			add(filepath.Clean(path))
		}
		add(filepath.Dir(filepath.Clean(path)))
	}
	return folders
}

// graphsIn returns the graphs in the folders, and then those of the run.
func graphsIn(folders, of []string) (graphs []string) {
	for _, dir := range folders {
		all, _ := filepath.Glob(filepath.Join(dir, "*.onnx")) // the pattern is valid
		graphs = append(graphs, slices.DeleteFunc(all, kind.Exported)...)
	}
	return append(graphs, slices.DeleteFunc(slices.Clone(of), func(path string) bool { return slices.Contains(graphs, path) })...)
}

// template returns the exported graph for PyTorch's checkpoints. It returns "" if the checkpoints are ONNX files, or if
// there is no graph. Of several graphs it takes the first that fits the checkpoints.
func (r *run) template(o SourceOptions, graphs []string) string {
	if len(graphs) == 0 || !slices.ContainsFunc(r.paths, statefile.Is) {
		return ""
	}
	if len(graphs) == 1 {
		return graphs[0]
	}
	_, key := (&Ordered{Paths: r.paths, opened: r.opened}).keys()
	if o.StateDict.Set {
		key = o.StateDict.Value
	}
	for _, path := range graphs {
		m, err := onnxio.Open(path)
		if err != nil {
			continue
		}
		t := checkpoints.NewTemplate(m, nil)
		t.Unused, t.StateDict, t.Others = o.Unused, key, r.others
		models, err := checkpoints.Open(r.paths, t)
		CloseModels(models)
		m.Close()
		if err == nil {
			return path
		}
	}
	return graphs[0]
}

// graph opens the template, or the last checkpoint. It returns nil if that fails.
func graph(g FindOptions, paths []string) *onnxio.Model {
	path := g.Template
	if path == "" && len(paths) > 0 {
		path = paths[len(paths)-1]
	}
	m, err := onnxio.Open(path)
	if err != nil {
		return nil
	}
	return m
}

// output finds the output with the scores. Of several, the labels of the test data may tell which one it is.
func (f *Found) output(m *onnxio.Model, g FindOptions, count int) string {
	if given, err := listing.ReadClassNames(g.ClassNames); g.ClassNames != "" && err == nil {
		count = len(given)
	}
	chosen, err := infer.ChooseOutput(m, swag.Card{Output: g.Output, ClassNames: make([]string, count)})
	if err == nil {
		return chosen.Output
	}
	labels, _ := dataset.ReadTargets(g.Test, g.Named)
	if n := task.ClassCount(labels); n > 1 {
		if chosen, err = infer.ChooseOutput(m, swag.Card{ClassNames: make([]string, n)}); err == nil {
			f.found(fmt.Sprintf("the output %s: labels of %s are %d classes", chosen.Output, g.Test, n), &f.Output, chosen.Output)
		}
	}
	return chosen.Output
}

// classFolders returns the first of the data whose class folders are so many that fits accepts them, or "".
func (g FindOptions) classFolders(fits func(n int) bool) string {
	if g.ClassNames != "" || g.LabelsAs == names.Numbers {
		return ""
	}
	for _, path := range []string{g.Training, g.Validation, g.Test} {
		if n := classFolders(path); n > 1 && fits(n) {
			return path
		}
	}
	return ""
}

// classFolders returns the number of class folders at path, or 0.
func classFolders(path string) int {
	if info, err := os.Stat(path); err != nil || !info.IsDir() {
		return 0
	}
	names, _ := listing.ReadClassNames(path)
	return len(names)
}

// task finds the task in the labels, if neither the graph nor the number of class names tells it.
func (f *Found) task(network *infer.Graph, g FindOptions, known int) {
	_, err := network.InferTask(known)
	open := new(task.AmbiguousTask)
	if !errors.As(err, &open) {
		return
	}
	path := cmp.Or(g.Labels, g.Test)
	if all := dataset.ReadClassNames(path, g.Named); len(all) == 2 && open.Count == 1 || len(all) > 1 && len(all) == open.Count {
		name := map[bool]string{true: "binary", false: "classes"}[open.Count == 1]
		f.found(fmt.Sprintf("the task %s: the labels of %s, in the order of the alphabet: %s. Another order is %s", name, path,
			strings.Join(all, ", "), setting.ClassNames.With("FILE")), &f.Task, name)
		return
	}
	labels, err := dataset.ReadTargets(path, g.Named)
	switch {
	case err != nil:
		f.Unreadable = cmp.Or(WrongData(dataset.CheckReadable(path), path), g.unlabelled(network))
		return
	case labels.None():
		f.Unreadable = g.unlabelled(network)
		return
	case task.FromOne(labels, open.Count):
		f.Unreadable = fromOne(path, open.Count)
		return
	}
	if name, head, ok := task.FromLabels(open.OutputSpec, labels); ok {
		f.found(fmt.Sprintf("the task %s: the labels of %s", name, path), &f.Task, name)
		if head != "" && !g.Targets {
			f.Head = head
		}
	}
}

// unlabelled returns the error for test data without labels, or nil. Without labels no task can be compared, so this comes before the
// question about the task.
func (g FindOptions) unlabelled(network *infer.Graph) error {
	opts := dataset.Options{
		Shape:    network.Input.Shape[1:],
		Fields:   network.Fields(),
		Uint8:    network.Input.ElemType == onnxio.Uint8,
		Target:   target.Numbers,
		Labels:   g.Labels,
		LabelsAs: g.LabelsAs,
		Named:    g.Named,
		Columns:  g.Columns,
	}
	d, err := dataset.Open([]string{g.Test}, opts)
	switch {
	case errors.Is(err, fs.ErrPermission):
		return WrongData(err, g.Test)
	case err == nil && d.Labels().None():
		return noLabels(g.Test)
	}
	return nil
}

// HasCheckpoints reports whether a path is a checkpoint, or a folder with some and without pictures.
func HasCheckpoints(path string) bool {
	f, err := programs.List(path, nil)
	if err != nil { // no folder
		return kind.Detect(path) == kind.Checkpoint
	}
	pictures := slices.ContainsFunc(f.Others, func(path string) bool {
		return slices.Contains(picture.Extensions(), strings.ToLower(filepath.Ext(path)))
	})
	return len(f.States)+len(f.Graphs) > 0 && !pictures
}

// preprocessing finds the normalisation of pictures in what the network saw in training. What lies near the checkpoints, which fit finds,
// stands if nothing contradicts it.
func (f *Found) preprocessing(g FindOptions, network *infer.Graph, run *programs.Run) {
	opts := dataset.Options{
		Shape:      network.Input.Shape[1:],
		Fields:     network.Fields(),
		Uint8:      network.Input.ElemType == onnxio.Uint8,
		Unlabelled: true,
	}
	if d, err := dataset.Open([]string{g.Test}, opts); opts.Uint8 || err == nil && dataset.AsSeen(d) {
		return // nothing is preprocessed
	}
	opts.Arrays = dataset.Auto
	near := run.Preprocess()
	if u := run.Unsaid(); u != nil {
		if d, err := dataset.Open([]string{g.Test}, opts); err == nil && !dataset.AsSeen(d) {
			f.Unreadable = BadInput(u, u.Hints()...) // how the values were scaled tells nothing of how pictures were cropped
			return
		}
	}
	d, err := dataset.Open([]string{g.Training}, opts)
	if err != nil || !dataset.AsSeen(d) {
		return
	}
	words := normalization(d, network)
	if near != nil {
		if words == "" {
			return
		}
		seen, err := near.With(words)
		if err != nil || near.SameNormalization(seen) {
			return
		}
		f.found(fmt.Sprintf("the normalisation %q, and not that of %s: the values in %s are 8-bit pixels that were normalised so", words,
			near.From, g.Training), &f.Preprocess, near.Spec+" "+words)
		return
	}
	if words != "" {
		f.found(fmt.Sprintf("the normalisation %q: the values in %s are 8-bit pixels that were normalised so", words, g.Training),
			&f.Preprocess, words)
	}
}

// normalization returns the words of preprocessing that describe how the examples were normalised, or "" if they show no
// normalisation. It reads up to 10 million values.
func normalization(d dataset.Dataset, network *infer.Graph) string {
	s, err := preprocess.Settings{}.Resolve(network.Input.Shape[1:])
	if err != nil && !errors.Is(err, preprocess.ErrNoSize) {
		return ""
	}
	const most = 10_000_000
	planes := make([][]float32, s.Planes())
	size, err := dataset.SizeOf(d)
	if err != nil || size.Ints > 0 || size.Floats == 0 || size.Floats%len(planes) != 0 {
		return ""
	}
	dst := size.Make(1)
	for i := range min(d.Len(), 1+most/size.Floats) {
		if d.Read(dst, i) != nil {
			return ""
		}
		for k, v := range dst.Floats {
			c := k / (size.Floats / len(planes))
			if s.Layout == "nhwc" {
				c = k % len(planes)
			}
			planes[c] = append(planes[c], v)
		}
	}
	var means, stds []string
	plain := true
	for _, values := range planes {
		mean, std, ok := preprocess.Normalized(values)
		if !ok {
			return ""
		}
		plain = plain && mean == 0 && std == 1
		means, stds = append(means, fmt.Sprint(mean)), append(stds, fmt.Sprint(std))
	}
	if plain {
		return ""
	}
	return "mean=" + strings.Join(means, ",") + " std=" + strings.Join(stds, ",")
}
