package weights

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/swagwrap/swagwrap/internal/file"
)

// NewMetadata returns the metadata that identifies a file of ours. It holds the kind, the version of the format, the
// program that wrote it, and values in JSON.
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
		m[key] = string(file.NamedJSON(js))
	}
	return m, nil
}

// CheckKind checks that the file has the given kind, and at most the given version.
func (st *Safetensors) CheckKind(kind string, version int) error {
	if got := st.Metadata["kind"]; got != kind {
		return fmt.Errorf("kind is %q, want %q", got, kind)
	}
	got := st.Metadata["format_version"]
	if v, err := strconv.Atoi(got); err != nil || v < 1 || v > version || got != strconv.Itoa(v) {
		return fmt.Errorf("format version %s, want %d: written by another version of swagwrap (%s)", got, version, st.Metadata["producer"])
	}
	return nil
}

// FewMetadata fails if one of the metadata texts has more than most values. A decoded value can take a hundred times
// as much memory as its text. Call it before [Safetensors.DecodeMetadata] if the file may come from anywhere.
func (st *Safetensors) FewMetadata(most int) error {
	for key, js := range st.Metadata {
		if n := strings.Count(js, ","); n > most {
			return fmt.Errorf("metadata %q: %d values, want at most %d", key, n, most)
		}
	}
	return nil
}

// DecodeMetadata decodes values that NewMetadata wrote into the given pointers.
func (st *Safetensors) DecodeMetadata(values map[string]any) error {
	for key, v := range values {
		if err := json.Unmarshal([]byte(st.Metadata[key]), v); err != nil {
			return fmt.Errorf("metadata %q: %w", key, err)
		}
	}
	return nil
}
