// Package kind finds out what a file holds, by its content, and whether this program wrote it.
package kind

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/swagwrap/swagwrap/internal/dataset/listing"
	"github.com/swagwrap/swagwrap/internal/ensemble"
	"github.com/swagwrap/swagwrap/internal/file"
	"github.com/swagwrap/swagwrap/internal/infer/store"
	"github.com/swagwrap/swagwrap/internal/records"
	"github.com/swagwrap/swagwrap/internal/setting"
	"github.com/swagwrap/swagwrap/internal/study/summary"
	"github.com/swagwrap/swagwrap/onnxio"
	"github.com/swagwrap/swagwrap/swag"
	"github.com/swagwrap/swagwrap/weights/statefile"
)

// A Kind is the kind of a file's content. [Kind.String] is its name in messages.
type Kind string

// The kinds that commands read or write.
const (
	Unknown     Kind = "a file of an unknown kind"
	Posterior   Kind = "a posterior"
	Ensemble    Kind = "an ensemble"
	Average     Kind = "an average of weights without the network's graph"
	Store       Kind = "a folder of a store"
	StoreEntry  Kind = "an entry of a store"
	Settings    Kind = "a file of settings"
	Calibration Kind = "a calibration"
	ScorePart   Kind = "a part of predictions"
	WorkFile    Kind = "an unfinished file"
	Predictions Kind = "predictions"
	Sidecar     Kind = "the description of predictions"
	Model       Kind = "an ONNX model"
	Checkpoint  Kind = "a checkpoint of PyTorch"
	Data        Kind = "data"
	Page        Kind = "a page for a browser"
	Folder      Kind = "a folder"
)

// String returns the name of the kind in messages.
func (k Kind) String() string {
	switch k {
	case Store:
		return "a folder of " + setting.Store.String()
	case StoreEntry:
		return "an entry of a " + setting.Store.String()
	}
	return string(k)
}

// MarshalText returns the name of the kind in messages.
func (k Kind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// AverageKind is the kind that an average of weights without a graph has in its metadata. It can be read as a checkpoint, unlike the
// files whose kinds begin with swagwrap.
const AverageKind = "average of checkpoints"

// WorkSuffix ends the names of unfinished files.
const WorkSuffix = ".partial"

// ours maps the kinds of files from this program: of safetensors and JSON files, and of package records.
var (
	ours = map[string]Kind{
		swag.PosteriorKind:       Posterior,
		ensemble.Kind:            Ensemble,
		ensemble.SettingsKind:    Settings,
		ensemble.CalibrationKind: Calibration,
		AverageKind:              Average,
	}
	rows = map[records.Kind]Kind{records.Unfinished: WorkFile, records.ScorePart: ScorePart, records.Stored: StoreEntry}
)

// Detect returns the kind of the file at path. It reads only the beginning, except that it opens a possible ONNX model
// completely.
func Detect(path string) Kind {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		if statefile.IsFolder(path) {
			return Checkpoint
		}
		if len(store.Entries(path)) > 0 {
			return Store
		}
		return Folder
	}
	head, metadata := begin(path)
	if len(head) == 0 {
		return Unknown
	}
	if kind, ok := ours[metadata["kind"]]; ok {
		return kind
	}
	if kind, ok := rows[records.KindOf(head)]; ok {
		if strings.HasSuffix(path, WorkSuffix) {
			return WorkFile
		}
		return kind
	}
	switch {
	case metadata != nil:
		return Checkpoint
	case head[0] == '{' && strings.HasSuffix(path, summary.Suffix):
		return Sidecar
	case head[0] == '{':
		return kindOfJSON(head)
	case isPredictionsTable(head):
		return Predictions
	case bytes.HasPrefix(head, []byte("<!doctype html>")):
		return Page
	}
	if _, err := os.Stat(path + summary.Suffix); err == nil {
		return Predictions
	}
	data, err := listing.KindOf(path)
	// a name such as checkpoint.pth.tar is no tar file
	named := data == listing.KindArray || data == listing.KindTar && (len(head) < 262 || string(head[257:262]) != "ustar")
	switch {
	case err == nil && (!named || !statefile.Is(path)), isNPZ(head):
		return Data
	case statefile.Is(path):
		return Checkpoint
	}
	if m, err := onnxio.Peek(path); err == nil {
		defer m.Close()
		if len(m.Graph.Nodes) > 0 {
			return Model
		}
	}
	return Unknown
}

// enough is the number of bytes that are read of files other than safetensors.
const enough = 64 << 10

// begin returns the first bytes of a file. For a safetensors file it also returns the metadata, which are then not nil.
func begin(path string) (head []byte, metadata map[string]string) {
	f, _, err := file.Regular(path)
	if err != nil {
		return nil, nil
	}
	defer f.Close()
	if head, err = io.ReadAll(io.LimitReader(f, enough)); err != nil || len(head) < 9 || head[8] != '{' {
		return head, nil
	}
	n := binary.LittleEndian.Uint64(head)
	if n > maxHeader {
		return head, nil
	}
	all, err := io.ReadAll(io.LimitReader(io.MultiReader(bytes.NewReader(head[8:]), f), int64(n)))
	if err != nil {
		return head, nil
	}
	header := struct {
		Metadata map[string]string `json:"__metadata__"`
	}{map[string]string{}}
	if json.Unmarshal(all, &header) != nil {
		return head, nil
	}
	return head, header.Metadata
}

// maxHeader is more than the size of the header of any posterior or ensemble.
const maxHeader = 16 << 20

// isNPZ distinguishes an .npz file from other zip archives by the name of its first file. This name begins at byte 30.
func isNPZ(head []byte) bool {
	const length, name = 26, 30
	if !bytes.HasPrefix(head, []byte("PK\x03\x04")) || len(head) < name {
		return false
	}
	end := name + int(binary.LittleEndian.Uint16(head[length:]))
	return end <= len(head) && bytes.HasSuffix(head[name:end], []byte(".npy"))
}

// kindOfJSON finds the kind of a JSON file by its keys. Predictions have an object in each line.
func kindOfJSON(head []byte) Kind {
	var keys map[string]json.RawMessage
	d := json.NewDecoder(bytes.NewReader(head))
	if d.Decode(&keys) != nil {
		return Unknown
	}
	has := func(key string) bool { return keys[key] != nil }
	var kind string
	json.Unmarshal(keys["kind"], &kind)
	switch {
	case ours[kind] != "":
		return ours[kind]
	case has("path") && slices.ContainsFunc(predicted, has):
		return Predictions
	}
	return Data
}

// predicted are columns that score writes. Each task has one of them.
var predicted = []string{"prediction", "predictive_entropy", "mean", "std"}

// isPredictionsTable reports whether a text begins like a CSV file that score writes.
func isPredictionsTable(head []byte) bool {
	line, _, _ := strings.Cut(string(head), "\n")
	columns := strings.Split(strings.TrimSpace(line), ",")
	return columns[0] == "path" && slices.ContainsFunc(columns, func(c string) bool {
		return slices.Contains(predicted, c) || strings.HasPrefix(c, "mean_")
	})
}

// Exported reports whether export made the model or the weights at path from a posterior or an ensemble.
func Exported(path string) bool {
	m, err := onnxio.Peek(path)
	if err != nil {
		return statefile.OriginOf(path) != ""
	}
	defer m.Close()
	return exported(m)
}

func exported(m *onnxio.Model) bool { return m.Metadata[ensemble.KeyKind] != "" }
