package flags

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/maruel/natural"
	"github.com/urfave/cli/v2"

	"github.com/swagwrap/swagwrap/onnxio"
	"github.com/swagwrap/swagwrap/onnxio/checkpoints"
	"github.com/swagwrap/swagwrap/weights/torch"
)

// TemplateFlags say how PyTorch's checkpoint files are read.
var TemplateFlags = []cli.Flag{
	&cli.StringFlag{Name: "template", Usage: "read PyTorch's checkpoints (.pt, .pth, .ckpt, .safetensors, ...) against the exported graph in `FILE`"},
	&cli.StringFlag{Name: "state-dict", Usage: "take the state_dict under `KEY` of their files, such as ema", DefaultText: "the only one"},
	&cli.StringFlag{Name: "template-checkpoint", Usage: "the graph was exported with the weights in `FILE`, which is none of the checkpoints"},
}

// A Source opens checkpoints. It holds the template that PyTorch's are read against,
// if there is one.
type Source struct {
	Template *checkpoints.Template
	graph    *onnxio.Model // to be closed, or nil
}

// OpenSource opens the template that the flags name. Without --template it is that
// of a posterior, which may be nil.
func OpenSource(c *cli.Context, posterior *checkpoints.Template) (*Source, error) {
	path := c.String("template")
	if path == "" {
		for _, flag := range []string{"state-dict", "template-checkpoint"} {
			if c.IsSet(flag) && (flag != "state-dict" || posterior == nil) {
				return nil, Usagef("it goes with --template, the exported graph", "--%s without --template", flag)
			}
		}
		if c.IsSet("state-dict") {
			posterior = posterior.Under(c.String("state-dict"))
		}
		return &Source{Template: posterior}, nil
	}
	m, err := onnxio.Open(path)
	if err != nil {
		return nil, BadInput(err)
	}
	t := checkpoints.NewTemplate(m, nil)
	t.StateDict, t.Proof = c.String("state-dict"), c.String("template-checkpoint")
	return &Source{t, m}, nil
}

// Open opens checkpoints; the caller closes them, and then the source.
func (s *Source) Open(paths []string) ([]*onnxio.Model, error) {
	models, err := checkpoints.Open(paths, s.Template)
	return models, BadInput(err)
}

// recipe returns how checkpoints were read against the template, in JSON; nil where
// none was.
func (s *Source) recipe() (json.RawMessage, error) {
	if s.Template == nil || s.Template.Recipe() == nil {
		return nil, nil
	}
	return json.Marshal(s.Template.Recipe())
}

// Notes says, in sentences, what of the checkpoints is not in the template.
func (s *Source) Notes() []string {
	if s.Template == nil || s.Template.Recipe() == nil {
		return nil
	}
	return s.Template.Recipe().Notes()
}

// LogNotes prints them, and what must be known beside.
func (a *Env) LogNotes(c *cli.Context, s *Source) {
	for _, note := range s.Notes() {
		a.Logf(c, "%s", note)
	}
	for _, w := range s.warnings() {
		a.Warnf(c, "%s", w)
	}
}

// warnings says what a user of the checkpoints must know.
func (s *Source) warnings() []string {
	if s.Template == nil || s.Template.Recipe() == nil {
		return nil
	}
	return s.Template.Recipe().Warnings()
}

// key returns the key under which a checkpoint's file has its weights, if there is one.
func (s *Source) key(m *onnxio.Model) string {
	if s.Template == nil || !torch.Is(m.Path) {
		return ""
	}
	return s.Template.StateDict
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

// inputCheckpoint opens and closes the files of a checkpoint, so that they are known
// as inputs.
func inputCheckpoint(path string) error {
	if torch.Is(path) {
		f, err := torch.Open(path)
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

// maxHeader is more than the header of a posterior or ensemble takes.
const maxHeader = 16 << 20

// IsOurs tells a posterior or ensemble from models and checkpoints. It looks at the
// header alone, and does not make the file an input.
func IsOurs(path string) bool {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // opening a named pipe must not wait for a writer
	if err != nil {
		return false // the reader that expects a model says why
	}
	defer f.Close()
	var length [8]byte
	if _, err := io.ReadFull(f, length[:]); err != nil {
		return false
	}
	n := binary.LittleEndian.Uint64(length[:])
	if n > maxHeader {
		return false
	}
	header, err := io.ReadAll(io.LimitReader(f, int64(n)))
	return err == nil && bytes.Contains(header, []byte(`"kind":"swagwrap.`))
}

// Models returns the arguments, and in place of a folder the checkpoints in it, in
// natural order: ONNX files, or PyTorch's with a template or where there are no
// others. Hidden files are left out, and subfolders that are no checkpoints.
func (a *Env) Models(c *cli.Context, args []string) ([]string, error) {
	var paths []string
	for _, arg := range args {
		if info, err := os.Stat(arg); err != nil || !info.IsDir() {
			paths = append(paths, arg) // what cannot be read is said where it is opened
			continue
		}
		found, over, err := inFolder(arg, c.IsSet("template"))
		if err != nil {
			return nil, err
		}
		if len(over) > 0 {
			a.Logf(c, "%s: passed over, since others have a number in their names and these have none: %s", arg, strings.Join(over, ", "))
		}
		paths = append(paths, found...)
	}
	return paths, nil
}

// besides are what trainers save beside the weights of a checkpoint, by what the
// names begin with.
var besides = []string{"optimizer", "scheduler", "rng_state", "training_args", "scaler", "random_states"}

// inFolder returns the checkpoints in a folder, and the files that were passed over
// though they look like some. One of a trainer's holds them as subfolders, and may hold
// the last one's weights itself.
func inFolder(dir string, template bool) (found, over []string, err error) {
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
			if torch.IsFolder(path) {
				folders = append(folders, path)
			}
		case suffix == ".onnx":
			onnx = append(onnx, path)
		case slices.ContainsFunc(besides, func(s string) bool { return strings.HasPrefix(name, s) }) || IsOurs(path):
		case slices.Contains(checkpoints.Suffixes, suffix):
			files = append(files, path)
		}
	}
	switch {
	case len(folders) > 0:
		files = folders
	case torch.IsFolder(dir):
		files = []string{dir}
	}
	found = onnx
	if template && len(files) > 0 || len(onnx) == 0 {
		found, over = numbered(files)
	}
	if len(found) == 0 {
		var refused *torch.Error
		if _, err := torch.Open(dir); errors.As(err, &refused) && refused.Hint != "" {
			return nil, nil, BadInput(err)
		}
		return nil, nil, BadInput(fmt.Errorf("%s: a folder without checkpoints", dir), "its subfolders are not searched: name the files, or the folder that holds them")
	}
	slices.SortFunc(found, natural.Compare)
	return found, over, nil
}

// numbered returns the files with a number in what tells their names apart, and the
// others, where there are several with one: training scripts save the last or best
// checkpoint under such a name once more.
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
