package weights

import (
	"encoding/json"
	"fmt"
)

// NewMetadata returns the metadata that says what a file of ours is: its kind,
// the version of its format, the program that wrote it, and values in JSON.
func NewMetadata(kind string, version int, producer string, values map[string]any) (map[string]string, error) {
	m := map[string]string{
		"kind":           kind,
		"format_version": fmt.Sprint(version),
		"producer":       producer,
	}
	for key, v := range values {
		js, err := json.Marshal(v)
		if err != nil {
			return nil, err
		}
		m[key] = string(js)
	}
	return m, nil
}

// CheckKind checks that the file says it is of the given kind and of a version
// that is understood.
func (st *Safetensors) CheckKind(kind string, version int) error {
	if got := st.Metadata["kind"]; got != kind {
		return fmt.Errorf("kind is %q, want %q", got, kind)
	}
	if got := st.Metadata["format_version"]; got != fmt.Sprint(version) {
		return fmt.Errorf("format version %s, want %d: written by another version of swagwrap (%s)", got, version, st.Metadata["producer"])
	}
	return nil
}

// DecodeMetadata reads values that NewMetadata wrote into the pointers given.
func (st *Safetensors) DecodeMetadata(values map[string]any) error {
	for key, v := range values {
		if err := json.Unmarshal([]byte(st.Metadata[key]), v); err != nil {
			return fmt.Errorf("metadata %q: %w", key, err)
		}
	}
	return nil
}
