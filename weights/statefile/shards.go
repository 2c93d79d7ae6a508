package statefile

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/swagwrap/swagwrap/weights"
)

const (
	indexSuffix = ".index.json"
	maxIndex    = 8 << 20 // bytes of an index, or of a trainer's state
)

// wholes are the files that hold a network's weights in a folder of Hugging Face. The first one that exists is used.
var wholes = []string{"model.safetensors", "model.safetensors" + indexSuffix, "pytorch_model.bin", "pytorch_model.bin" + indexSuffix,
	"diffusion_pytorch_model.safetensors", "diffusion_pytorch_model.safetensors" + indexSuffix, "adapter_model.safetensors",
	"adapter_model.bin"}

var _ = register(format{begins: func(path string, _ []byte) bool { return strings.HasSuffix(path, indexSuffix) }, read: (*File).readIndex})

// IsFolder reports whether the folder is one checkpoint, as Hugging Face's Trainer writes them, rather than a folder
// of several checkpoints.
func IsFolder(dir string) bool {
	_, _, err := whole(dir)
	return err == nil
}

// whole returns the file in dir that holds the weights or lists their files, and its format if no content tells it.
func whole(dir string) (string, *format, error) {
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
	ending := func(suffix string) (names []string) {
		for _, e := range entries {
			if strings.HasSuffix(e.Name(), suffix) {
				names = append(names, e.Name())
			}
		}
		return names
	}
	if found := ending("mp_rank_00_model_states.pt"); len(found) == 1 && len(ending("_model_states.pt")) == 1 &&
		found[0] == "mp_rank_00_model_states.pt" {
		return filepath.Join(dir, found[0]), nil, nil // of DeepSpeed up to stage 2, without parallel parts of the network
	}
	if found := ending(indexSuffix); len(found) == 1 {
		return filepath.Join(dir, found[0]), nil, nil
	}
	e := &Error{
		Path: dir,
		What: "a folder without model.safetensors, adapter_model.safetensors, pytorch_model.bin or an *" +
			indexSuffix + ", want a checkpoint",
	}
	if len(ending(".distcp")) > 0 {
		e.What = "a distributed checkpoint without .metadata: PyTorch writes that file last, so the checkpoint is not complete"
		e.Hint = "take another checkpoint, or copy the whole folder again: names that begin with a point are easily left out"
	} else if parts := ending("_model_states.pt"); slices.Contains(ending(".py"), "zero_to_fp32.py") || len(parts) > 0 {
		e.What = "a checkpoint of DeepSpeed's ZeRO, or of one split among GPUs: in parts, want one file"
		e.Hint = zeroHint
	}
	return "", nil, e
}

// zeroHint says how to make one file of DeepSpeed's parts. DeepSpeed writes the script beside its checkpoints.
const zeroHint = "DeepSpeed writes the script zero_to_fp32.py beside the folders global_stepN. There, python zero_to_fp32.py . NEW " +
	"makes one checkpoint, the folder NEW, of the step that the file latest names"

func (f *File) openFolder(dir string) error {
	path, of, err := whole(dir)
	if err != nil {
		return err
	}
	if err := f.openFile(path, of); err != nil {
		return err
	}
	return f.readTrainer(filepath.Join(dir, "trainer_state.json"))
}

// readTrainer reads epoch and step from the file that Hugging Face's Trainer writes with its checkpoints, if it
// exists.
func (f *File) readTrainer(path string) error {
	m, err := weights.Map(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	defer m.Close()
	if len(m.Data) > maxIndex {
		return nil // too large: the checkpoints are then ordered by their names
	}
	var state struct {
		Epoch *float64 `json:"epoch"`
		Step  *int64   `json:"global_step"`
	}
	if err := json.Unmarshal(m.Data, &state); err != nil {
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

// readIndex opens the shards that an index names, all in the folder of the index, and joins them to one state_dict.
func (f *File) readIndex(path string, data []byte) error {
	if len(data) > maxIndex {
		return &Error{Path: path, What: fmt.Sprintf("an index of %d bytes, want at most %d", len(data), maxIndex)}
	}
	var index struct {
		Map map[string]string `json:"weight_map"`
	}
	if err := json.Unmarshal(data, &index); err != nil {
		return &Error{Path: path, What: "not an index of shards", Err: err}
	}
	var names []string
	for _, shard := range index.Map {
		names = append(names, shard)
	}
	slices.Sort(names)
	all := &StateDict{}
	for _, name := range slices.Compact(names) {
		if name != filepath.Base(name) || !filepath.IsLocal(name) || name == "." {
			return &Error{Path: path, What: fmt.Sprintf("shard %q, want a file in the same folder", shorten(name))}
		}
		sd, err := f.openShard(filepath.Join(filepath.Dir(path), name))
		if err != nil {
			return err
		}
		if all.err == nil {
			all.err = sd.err
		}
		for _, t := range sd.Tensors {
			all.take(index.Map, name, t)
		}
		for _, g := range sd.Ignored {
			if g.Tensor == nil {
				all.Ignored = append(all.Ignored, g)
				continue
			}
			all.take(index.Map, name, g.Tensor)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(index.Map)) {
		return &Error{Path: path, Tensor: name, What: fmt.Sprintf("not in %s, where the index has it", shorten(index.Map[name]))}
	}
	f.dicts = all.orNone(path)
	return nil
}

// take adds a shard's tensor and removes it from the index.
func (sd *StateDict) take(left map[string]string, shard string, t *Tensor) {
	t.Short = t.Name
	if left[t.Name] != shard {
		sd.Ignored = append(sd.Ignored, Ignored{t.Name, "in " + shorten(shard) + ", but not in the index", t})
		return
	}
	delete(left, t.Name)
	sd.place(t)
}

// openShard opens one file of several.
func (f *File) openShard(path string) (*StateDict, error) {
	m, err := weights.Map(path)
	if err != nil {
		return nil, err
	}
	f.mappings = append(f.mappings, m)
	part := &File{Path: path, part: true}
	if err := part.done(part.parse(path, m.Data)); err != nil {
		return nil, err
	}
	if part.metadata != nil {
		if f.metadata == nil {
			f.metadata = make(map[string]map[string]string)
		}
		f.metadata[path] = part.metadata[path]
	}
	f.Origin = part.Origin
	i := slices.IndexFunc(part.dicts, func(sd *StateDict) bool { return sd.Key == "" })
	if i < 0 {
		return nil, &Error{Path: path, What: "holds no state_dict at its top, want a shard of one"}
	}
	return part.dicts[i], nil
}
