package statefile

import (
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/swagwrap/swagwrap/weights"
)

const (
	indexSuffix = ".index.json"
	maxIndex    = 8 << 20 // bytes of an index, or of a trainer's state
)

var _ = register(format{begins: func(path string, _ []byte) bool { return strings.HasSuffix(path, indexSuffix) }, read: (*File).readIndex})

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
