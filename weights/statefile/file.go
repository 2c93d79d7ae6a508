package statefile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/swagwrap/swagwrap/internal/file"
	"github.com/swagwrap/swagwrap/weights"
)

// A File is an open checkpoint: one file, or one of several shards.
type File struct {
	Path string
	// Epoch and Step are the counts that a training script has stored with the weights. They are -1 if there are
	// none.
	Epoch, Step int64
	// Timm is the network that timm's train.py names in the file, or nil.
	Timm *TimmModel
	// Values are the texts, numbers, lists and dicts that a file of torch.save has at its top, such as the arguments of training.
	Values map[string]any
	// Ignored lists what the file holds besides its state_dicts.
	Ignored []Ignored
	// Legacy says that PyTorch before 1.6 wrote the file, or a later version on request. Such files have no
	// checksums, so damage to their weights cannot be found.
	Legacy bool
	// Distributed says that the folder is a distributed checkpoint (DCP).
	Distributed bool
	// ScheduleFree is the mode of the schedule-free optimizer that moved the weights, or "".
	ScheduleFree ScheduleFree
	// Origin is what swagwrap says of a file that it wrote, as JSON. It is "" for files of other programs.
	Origin string

	metadata map[string]map[string]string // of safetensors files, by their paths
	dicts    []*StateDict
	mappings []*weights.Mapping
	part     bool // one of several shards
}

// Open opens the checkpoint at path. It may be a file that torch.save wrote, whatever its extension, or a safetensors
// file. It may also be an index of shards (*.index.json), or a folder in which Hugging Face keeps one of these.
// Errors are of type [*Error], or come from the system or package weights.
//
// Open succeeds even if a part of the file is not readable. [File.StateDict] returns the error of a single
// state_dict.
func Open(path string) (*File, error) {
	fi, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	f := &File{Path: path, Epoch: -1, Step: -1}
	if fi.IsDir() {
		err = f.openFolder(path)
	} else {
		err = f.openFile(path, nil)
	}
	return f.opened(err)
}

// Begins reports whether a mapped file begins like one that [OpenMapped] reads.
func Begins(m *weights.Mapping) bool { return formatOf(m.Path, m.Data) != nil }

// OpenMapped is [Open] for a file that is mapped already. Close unmaps it, and so does OpenMapped if it fails.
func OpenMapped(m *weights.Mapping) (*File, error) {
	f := &File{Path: m.Path, Epoch: -1, Step: -1, mappings: []*weights.Mapping{m}}
	return f.opened(f.parse(m.Path, m.Data))
}

// wholes are the files that hold a network's weights in a folder of Hugging Face. The first one that exists is used.
var wholes = []string{"model.safetensors", "model.safetensors" + indexSuffix, "pytorch_model.bin", "pytorch_model.bin" + indexSuffix,
	"diffusion_pytorch_model.safetensors", "diffusion_pytorch_model.safetensors" + indexSuffix, "adapter_model.safetensors",
	"adapter_model.bin"}

// IsFolder reports whether the folder is one checkpoint, as Hugging Face's Trainer writes them, rather than a folder
// of several checkpoints.
func IsFolder(dir string) bool {
	_, _, err := weightsFile(dir)
	return err == nil
}

// weightsFile returns the file in dir that holds the weights or lists their files, and its format if no content tells it.
func weightsFile(dir string) (string, *format, error) {
	for _, of := range formats {
		if of.in != nil && of.in(dir) != "" {
			return of.in(dir), of, nil
		}
	}
	for _, name := range wholes {
		path := filepath.Join(dir, name)
		if _, err := os.Stat(path); err == nil {
			return path, nil, nil
		} else if !errors.Is(err, fs.ErrNotExist) {
			return "", nil, err
		}
	}
	entries, _ := os.ReadDir(dir)
	suffix := func(suffix string) (names []string) {
		for _, e := range entries {
			if strings.HasSuffix(e.Name(), suffix) {
				names = append(names, e.Name())
			}
		}
		return names
	}
	if found := suffix("mp_rank_00_model_states.pt"); len(found) == 1 && len(suffix("_model_states.pt")) == 1 &&
		found[0] == "mp_rank_00_model_states.pt" {
		return filepath.Join(dir, found[0]), nil, nil // of DeepSpeed up to stage 2, without parallel parts of the network
	}
	if found := suffix(indexSuffix); len(found) == 1 {
		return filepath.Join(dir, found[0]), nil, nil
	}
	e := &Error{
		Path: dir,
		What: "a folder without model.safetensors, adapter_model.safetensors, pytorch_model.bin or an *" +
			indexSuffix + ", want a checkpoint",
	}
	if len(suffix(".distcp")) > 0 {
		e.What = "a distributed checkpoint without .metadata: PyTorch writes that file last, so the checkpoint is not complete"
		e.Hint = "take another checkpoint, or copy the whole folder again: names that begin with a point are easily left out"
	} else if parts := suffix("_model_states.pt"); slices.Contains(suffix(".py"), "zero_to_fp32.py") || len(parts) > 0 {
		e.What = "a checkpoint of DeepSpeed's ZeRO, or of one split among GPUs: in parts, want one file"
		e.Hint = zeroHint
	}
	return "", nil, e
}

// zeroHint says how to make one file of DeepSpeed's parts. DeepSpeed writes the script beside its checkpoints.
const zeroHint = "DeepSpeed writes the script zero_to_fp32.py beside the folders global_stepN. There, python zero_to_fp32.py . NEW " +
	"makes one checkpoint, the folder NEW, of the step that the file latest names"

func (f *File) openFolder(dir string) error {
	path, of, err := weightsFile(dir)
	if err != nil {
		return err
	}
	if err := f.openFile(path, of); err != nil {
		return err
	}
	var average struct {
		Decay *float64 `json:"decay"`
		Step  *int64   `json:"optimization_step"`
	}
	if err := readBeside(filepath.Join(dir, "config.json"), &average); err == nil && average.Decay != nil && average.Step != nil {
		for _, sd := range f.dicts {
			sd.average.Mark = "its config.json is of the EMAModel of diffusers"
		}
	}
	return f.readTrainer(filepath.Join(dir, "trainer_state.json"))
}

// readBeside reads a JSON file from the folder of the weights. It does not change v if there is none, or if the file is too large.
func readBeside(path string, v any) error {
	m, err := weights.Map(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	defer m.Close()
	if len(m.Data) > maxIndex {
		return nil
	}
	return json.Unmarshal(m.Data, v)
}

// readTrainer reads epoch and step from the file that Hugging Face's Trainer writes with its checkpoints, if it exists and is not too
// large. Otherwise the checkpoints are ordered by their names.
func (f *File) readTrainer(path string) error {
	var state struct {
		Epoch *float64 `json:"epoch"`
		Step  *int64   `json:"global_step"`
	}
	var unreadable *fs.PathError
	if err := readBeside(path, &state); errors.As(err, &unreadable) {
		return err
	} else if err != nil {
		return &Error{Path: path, What: "not a trainer's state", Err: err}
	}
	if state.Step != nil && *state.Step >= 0 {
		f.Step = *state.Step
	}
	if e := state.Epoch; e != nil && *e >= 0 && *e < 1<<53 && *e == float64(int64(*e)) {
		f.Epoch = int64(*e)
	}
	return nil
}

// A format is a kind of file that holds tensors by name. A new one is one file of this package, which registers it. Only that file
// knows how the tensors are stored.
type format struct {
	suffixes []string // usual ends of the names of its files
	// begins reports whether a file has this format, by its name and its first [headBytes] bytes. No file has two formats.
	begins func(path string, head []byte) bool
	// in returns the file that stands for a folder in this format, or "" for other folders. It is nil if a checkpoint is one file.
	in func(dir string) string
	// read sets the state_dicts of f, and what else the file says.
	read func(f *File, path string, data []byte) error
	// origin returns what swagwrap says in a file that it wrote: see [OriginOf]. It is nil if it writes no such files.
	origin func(m *weights.Mapping) string
}

const headBytes = 513

var formats []*format

// register adds a format when the program starts.
func register(f format) *format {
	formats = append(formats, &f)
	return &f
}

func formatOf(path string, head []byte) *format {
	for _, f := range formats {
		if f.begins != nil && f.begins(path, head) {
			return f
		}
	}
	return nil
}

// Named reports whether a name ends as those of checkpoints usually do.
func Named(path string) bool {
	suffix := strings.ToLower(filepath.Ext(path))
	return slices.ContainsFunc(formats, func(f *format) bool { return slices.Contains(f.suffixes, suffix) })
}

// Several reports whether [Open] reads several files for path, which is a folder or an index of shards.
func Several(path string) bool { return IsFolder(path) || strings.HasSuffix(path, indexSuffix) }

// Is reports whether the file or folder at path is of a kind that [Open] reads, or refuses with a reason. It looks at
// the first bytes only.
func Is(path string) bool {
	if Several(path) {
		return true
	}
	f, _, err := file.Regular(path)
	if err != nil {
		return false
	}
	defer f.Close()
	var head [headBytes]byte
	n, err := io.ReadFull(f, head[:])
	return (err == nil || errors.Is(err, io.ErrUnexpectedEOF)) && formatOf(path, head[:n]) != nil
}

// OriginOf returns [File.Origin] of the file at path. It reads the directory of the file only, and the file does not count
// as an input: see [weights.Peek]. It returns "" for files of other programs, and for files that it cannot read.
func OriginOf(path string) (origin string) {
	m, err := weights.Peek(path)
	if err != nil {
		return ""
	}
	defer m.Close()
	weights.Guarded(func() error { // another program may cut the file short: then nothing is known of it
		if f := formatOf(path, m.Data); f != nil && f.origin != nil {
			origin = f.origin(m)
		}
		return nil
	})()
	return origin
}

// opened returns what opening f gave: f, or the completed error.
func (f *File) opened(err error) (*File, error) {
	if err := f.done(err); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// done completes the error of opening f.
func (f *File) done(err error) error {
	if err == nil && len(f.dicts) == 0 && !f.part {
		err = f.nothing()
	}
	var e *Error
	if errors.As(err, &e) && e.Path == "" {
		e.Path = f.Path
	}
	return err
}

// StateDicts lists the state_dicts in the order of the file. There is at least
// one; its Err may say that it cannot be used.
func (f *File) StateDicts() []*StateDict { return f.dicts }

// StateDict returns the state_dict with the given key. The key "" also means the only one, if the file has just one. A key may go on
// with the beginning of the names of tensors, where a state_dict holds several networks.
func (f *File) StateDict(key string) (*StateDict, error) {
	i := slices.IndexFunc(f.dicts, func(sd *StateDict) bool { return sd.Key == key })
	if i < 0 && key == "" && len(f.dicts) == 1 {
		i = 0
	}
	var found *StateDict
	if i >= 0 {
		found = f.dicts[i]
	} else if key != "" {
		found = f.under(key)
	}
	if found != nil && found.err != nil {
		return nil, found.err
	} else if found != nil {
		return found, nil
	}
	var names []string
	for _, sd := range f.dicts {
		names = append(names, sd.String())
	}
	what := fmt.Sprintf("%d state_dicts, want the key of one", len(f.dicts))
	if key != "" {
		what = fmt.Sprintf("no state_dict under %q", key)
	}
	return nil, &Error{Path: f.Path, What: what, Hint: "it has " + strings.Join(names, ", ")}
}

// Mappings returns the mapped files in the order of their paths. Close unmaps them.
func (f *File) Mappings() []*weights.Mapping {
	return slices.SortedFunc(slices.Values(f.mappings), func(a, b *weights.Mapping) int { return strings.Compare(a.Path, b.Path) })
}

// Metadata returns the texts that the safetensors file at path holds besides its tensors. path is that of f, or of one of its
// shards. It is nil for files in other formats.
func (f *File) Metadata(path string) map[string]string { return f.metadata[path] }

// Release gives the memory taken by reads back to the system: see [weights.Mapping.Release].
func (f *File) Release() {
	for _, m := range f.mappings {
		m.Release()
	}
}

// Close unmaps the file. Results of [weights.Piece.Stretch] and [Tensor.Bytes] are invalid afterwards.
func (f *File) Close() error {
	var errs []error
	for _, m := range f.mappings {
		errs = append(errs, m.Close())
	}
	return errors.Join(errs...)
}

// nothing returns the error for a file without a state_dict.
func (f *File) nothing() error {
	const most = 8
	var found []string
	for _, g := range f.Ignored[:min(len(f.Ignored), most)] {
		found = append(found, fmt.Sprintf("%q (%s)", shorten(g.Name), g.Why))
	}
	what := holdsNothing
	if len(found) > 0 {
		what += ", but " + strings.Join(found, ", ")
	}
	if more := len(f.Ignored) - most; more > 0 {
		what += fmt.Sprintf(" and %d more", more)
	}
	return &Error{Path: f.Path, What: what, Hint: saveAgain}
}

func (f *File) openFile(path string, of *format) error {
	m, err := weights.Map(path)
	if err != nil {
		return err
	}
	f.mappings = append(f.mappings, m)
	if of != nil {
		return of.read(f, path, m.Data)
	}
	return f.parse(path, m.Data)
}

func (f *File) parse(path string, data []byte) error {
	name := path
	if f.part {
		name = "" // no shard is an index of further ones
	}
	if of := formatOf(name, data); of != nil {
		return of.read(f, path, data)
	}
	return &Error{What: other(data) + ", want a checkpoint of PyTorch (.pt, .pth, .ckpt, .bin) or safetensors"}
}

// other describes a file of a kind that is not supported.
func other(data []byte) string {
	for magic, what := range map[string]string{
		"\x1f\x8b":                         "a gzip file",
		"version https://git-lfs":          "a pointer of Git LFS, whose file was not fetched (git lfs pull)",
		"\x89HDF\r\n":                      "an HDF5 file",
		"\x93NUMPY":                        "a NumPy array",
		"GGUF":                             "a GGUF file",
		"{":                                "a JSON file",
		"<":                                "a page of the web, or XML",
		"(":                                "a pickle of protocol 0",
		"\x00\x00\x00\x00\x00\x00\x00\x00": "zeros",
	} {
		if bytes.HasPrefix(data, []byte(magic)) {
			return what
		}
	}
	if len(data) == 0 {
		return "empty"
	}
	return "a file of an unknown kind"
}

// An Error describes a fault of a file: see [weights.Error].
type Error = weights.Error

// Hints that several refusals share.
const (
	saveAgain = "in Python: torch.save(torch.load(FILE, map_location=\"cpu\", weights_only=False)[\"state_dict\"], NEW), " +
		"with the key that holds the weights; load only files that you trust so"
	saveDense = "in Python: save the state_dict of the float model, with dense tensors of float32, float16, bfloat16 or float64"
)

// refuse says why a tensor cannot be read.
func refuse(format string, args ...any) error {
	return &Error{What: fmt.Sprintf(format, args...), Hint: saveDense}
}
