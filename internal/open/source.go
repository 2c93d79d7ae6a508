package open

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/swagwrap/swagwrap/internal/kind"
	"github.com/swagwrap/swagwrap/internal/progress"

	"github.com/swagwrap/swagwrap/internal/setting"
	"github.com/swagwrap/swagwrap/onnxio"
	"github.com/swagwrap/swagwrap/onnxio/checkpoints"
	"github.com/swagwrap/swagwrap/weights/statefile"
)

// A Source opens checkpoints. It holds the template for PyTorch checkpoints, if there is one.
type Source struct {
	Template *checkpoints.Template
	graph    *onnxio.Model // the graph that must be closed, or nil
}

// OpenSource opens the template of the options. Without one it uses the template of a posterior, which may
// be nil.
func (a *Opener) OpenSource(o SourceOptions, posterior *checkpoints.Template) (*Source, error) {
	path, proof, err := graphAndProof(o.Template)
	if err != nil {
		return nil, err
	}
	if path == "" {
		if o.StateDict.Set && posterior == nil {
			return nil, Usagef("it goes with "+setting.Template.String()+", the exported graph", "%s without %s", setting.StateDict,
				setting.Template)
		}
		if len(o.Unused) > 0 && posterior == nil {
			return nil, Usagef("it goes with "+setting.Template.String()+", the exported graph", "%s without %s", setting.Unused,
				setting.Template)
		}
		if o.StateDict.Set {
			posterior = posterior.Under(o.StateDict.Value)
		}
		if len(o.Unused) > 0 {
			posterior = posterior.Without(o.Unused)
		}
		return &Source{Template: posterior}, nil
	}
	m, err := onnxio.Open(path)
	if err != nil {
		return nil, WrongKind(err, path, kind.Model)
	}
	t := checkpoints.NewTemplate(m, nil)
	t.StateDict, t.Proof, t.Unused = o.StateDict.Value, proof, o.Unused
	if posterior != nil {
		t.Inherit(posterior.Recipe())
	}
	return &Source{t, m}, nil
}

// graphAndProof splits GRAPH=CHECKPOINT. Both names may contain the sign, so the files that exist decide.
func graphAndProof(template string) (graph, proof string, err error) {
	exists := func(path string) bool {
		_, err := os.Stat(path)
		return err == nil
	}
	if !strings.Contains(template, "=") || exists(template) {
		return template, "", nil
	}
	found := false
	for at, c := range template {
		if before, behind := template[:at], template[at+1:]; c == '=' && exists(before) {
			if exists(behind) {
				return before, behind, nil
			}
			if !found {
				graph, proof, found = before, behind, true // opening the checkpoint reports the error
			}
		}
	}
	if !found {
		return "", "", BadInput(fmt.Errorf("%s: no file has this name, and none has the part before a =", template),
			setting.Template.String()+" takes the exported graph, or GRAPH=CHECKPOINT")
	}
	return graph, proof, nil
}

// Graph returns the graph of GRAPH or GRAPH=CHECKPOINT.
func Graph(template string) string {
	if graph, _, err := graphAndProof(template); err == nil {
		return graph
	}
	return template
}

// Open opens checkpoints; the caller closes them, and then the source.
func (s *Source) Open(paths []string) ([]*onnxio.Model, error) {
	models, err := checkpoints.Open(paths, s.Template)
	return models, WrongCheckpoint(err)
}

// recipe says how checkpoints were read with the template. It is nil if none was.
func (s *Source) recipe() *checkpoints.Recipe {
	if s.Template == nil {
		return nil
	}
	return s.Template.Recipe()
}

// Remarks returns notes about parts of the checkpoints that are not in the template, and warnings for users of the
// checkpoints.
func (s *Source) Remarks() (notes, warnings []string) {
	if r := s.recipe(); r != nil {
		return r.Notes(), r.Warnings()
	}
	return nil, nil
}

// forget makes the remarks say nothing of a file that is left out.
func (s *Source) forget(path string) {
	if s.recipe() != nil {
		s.Template.Leave(path)
	}
}

// key returns the key of the weights in a checkpoint's file, or "".
func (s *Source) key(m *onnxio.Model) string {
	if s.Template == nil {
		return ""
	}
	if _, ok := s.Template.Counts(m.Path); !ok {
		return ""
	}
	return s.Template.StateDict
}

// counts returns what the state_dict of a PyTorch checkpoint has counted. Its batches are −1 for a model.
func (s *Source) counts(m *onnxio.Model) checkpoints.Counts {
	if s.Template != nil {
		if c, ok := s.Template.Counts(m.Path); ok {
			return c
		}
	}
	return checkpoints.Counts{Batches: -1}
}

// Close closes the template.
func (s *Source) Close() error {
	if s == nil || s.graph == nil {
		return nil
	}
	return s.graph.Close()
}

// CloseModels closes checkpoints.
func CloseModels(models []*onnxio.Model) {
	for _, m := range models {
		m.Close()
	}
}

// inputCheckpoint registers the files of a checkpoint as inputs. It opens and closes them.
func inputCheckpoint(path string) error {
	if statefile.Is(path) {
		f, err := statefile.Open(path)
		if err == nil {
			f.Close()
		}
		return err
	}
	m, err := onnxio.Open(path)
	if err == nil {
		m.Close()
	}
	return err
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
		case slices.Contains(checkpoints.Suffixes, suffix):
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
		case !e.IsDir() && filepath.Dir(path) != dir && slices.Contains(checkpoints.Suffixes, strings.ToLower(filepath.Ext(path))) &&
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
