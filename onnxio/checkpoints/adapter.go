package checkpoints

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/swagwrap/swagwrap/onnxio"
	"github.com/swagwrap/swagwrap/weights"
	"github.com/swagwrap/swagwrap/weights/statefile"
)

// An adapter of PEFT is a checkpoint with few tensors. The graph has the base network's tensors, which stay as they are.

// PEFT leaves the adapter's name out of a file: "lora_A.default.weight" is saved as "lora_A.weight".
var (
	ofAdapter = regexp.MustCompile(`^(.+\.(?:lora_A|lora_B|lora_embedding_A|lora_embedding_B|ia3_l))\.[^.]+(\.weight|\.bias)?$`)
	magnitude = regexp.MustCompile(`^(.+\.lora_magnitude_vector)\.[^.]+(?:\.weight)?$`)
	savedToo  = regexp.MustCompile(`^(.+)\.modules_to_save\.[^.]+\.(.+)$`)
)

// savedName returns the name that a tensor of a graph has in the file of an adapter.
func savedName(name string) string {
	name = ofAdapter.ReplaceAllString(name, "$1$2")
	name = magnitude.ReplaceAllString(name, "$1")
	return savedToo.ReplaceAllString(name, "$1.$2")
}

// isAdapter reports whether a tensor's name is one of an adapter.
func isAdapter(name string) bool {
	return strings.Contains(name, ".lora_") || strings.Contains(name, ".ia3_l")
}

const exportAdapter = "these are the weights of an adapter: export the network with its adapter, and not merged: " +
	"PeftModel.from_pretrained(base, folder).eval()"

// inGraph are the entries of adapter_config.json that the graph depends on. No weight shows them: an adapter's matrices
// are multiplied by lora_alpha / r, or by lora_alpha / √r with use_rslora.
var inGraph = []string{"peft_type", "r", "lora_alpha", "use_rslora", "use_dora", "rank_pattern", "alpha_pattern", "fan_in_fan_out",
	"layer_replication"}

// sameAdapters checks that adapters with an adapter_config.json next to their weights have the same settings.
func sameAdapters(states []*state) error {
	var first map[string]json.RawMessage
	var of string
	for _, s := range states {
		if !slices.ContainsFunc(s.dict.Tensors, func(x *statefile.Tensor) bool { return isAdapter(x.Name) }) {
			continue
		}
		folder := s.file.Path
		if !statefile.IsFolder(folder) {
			folder = filepath.Dir(folder)
		}
		path := filepath.Join(folder, "adapter_config.json")
		own, err := readConfig(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		} else if err != nil {
			return err
		}
		if first == nil {
			first, of = own, s.file.Path
		}
		for _, key := range inGraph {
			if a, b := plainJSON(own[key]), plainJSON(first[key]); a != b {
				return &onnxio.Error{
					Path: s.file.Path,
					What: fmt.Sprintf("adapter_config.json: %s is %s, want %s as in %s: the graph has one value for all adapters",
						key, a, b, of),
					Hint: "take adapters of one training run",
				}
			}
		}
	}
	return nil
}

func readConfig(path string) (config map[string]json.RawMessage, err error) {
	m, err := weights.Map(path)
	if err != nil {
		return nil, err
	}
	defer m.Close()
	if len(m.Data) > 1<<20 {
		return nil, &onnxio.Error{Path: path, What: fmt.Sprintf("%d bytes, want at most a MiB", len(m.Data))}
	}
	if err := json.Unmarshal(m.Data, &config); err != nil {
		return nil, &onnxio.Error{Path: path, What: "not the configuration of an adapter", Err: err}
	}
	return config, nil
}

// plainJSON returns a value without white space. For an unused setting, versions of PEFT write no entry, null or {}.
func plainJSON(v json.RawMessage) string {
	var b bytes.Buffer
	if json.Compact(&b, v) != nil || b.String() == "null" || b.String() == "{}" || b.String() == "false" {
		return "not set"
	}
	return b.String()
}
