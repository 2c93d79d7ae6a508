package inputs

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/flags"
	"github.com/swagwrap/swagwrap/internal/dataset/listing"
	"github.com/swagwrap/swagwrap/internal/ensemble"
	"github.com/swagwrap/swagwrap/internal/file"
	"github.com/swagwrap/swagwrap/internal/infer/store"
	"github.com/swagwrap/swagwrap/internal/records"
	"github.com/swagwrap/swagwrap/internal/study"
	"github.com/swagwrap/swagwrap/internal/study/summary"
	"github.com/swagwrap/swagwrap/onnxio"
	"github.com/swagwrap/swagwrap/swag"
	"github.com/swagwrap/swagwrap/weights/torch"
)

// A Kind is the kind of a file's content. Its text is the name of the kind in messages.
type Kind string

// The kinds that commands read or write.
const (
	Unknown     Kind = "a file of an unknown kind"
	Posterior   Kind = "a posterior"
	Ensemble    Kind = "an ensemble"
	Store       Kind = "a folder of --store"
	StoreEntry  Kind = "an entry of a --store"
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

// known has what messages say about the files of a kind. madeBy is the command that writes them. next has the commands
// that read them, in which PATH stands for the file. hint is for a user who gave such a file to a command that wants
// another kind.
var known = map[Kind]struct {
	madeBy string
	next   []string
	hint   string // before the first command of next
}{
	Posterior:   {"swagwrap fit", []string{"compare --bn-data TRAIN --val VAL PATH TEST", "sample -o ensemble.safetensors --bn-data TRAIN PATH"}, ""},
	Ensemble:    {"swagwrap sample", []string{"score -o predictions.csv PATH IMAGES", "export -o ensemble.onnx PATH"}, ""},
	ScorePart:   {"swagwrap score --part", []string{"merge -o PATH"}, "make the whole of the parts first: "},
	WorkFile:    {"swagwrap score", []string{"score --resume -o PATH ENSEMBLE DATA"}, "finish it first, with the same arguments: "},
	Predictions: {"swagwrap score", []string{"calibrate -o calibrated.safetensors --ensemble ENSEMBLE PATH"}, ""},
	Sidecar:     {"swagwrap score", []string{"inspect PATH"}, "it describes predictions: "},
	Store:       {"swagwrap compare --store", []string{"compare --store PATH --bn-data TRAIN POSTERIOR TEST"}, "a study takes it: "},
	StoreEntry:  {"swagwrap compare --store", []string{"compare --store PATH --bn-data TRAIN POSTERIOR TEST"}, "a study takes the whole folder: "},
	Settings:    {"swagwrap compare --tune", []string{"sample --settings PATH -o ensemble.safetensors --bn-data TRAIN POSTERIOR"}, "sample takes it: "},
	Calibration: {"swagwrap calibrate", []string{"calibrate -o calibrated.safetensors --ensemble ENSEMBLE PREDICTIONS"}, "an ensemble carries it if calibrate writes the ensemble: "},
	Model:       {"", []string{"fit -o posterior.safetensors PATH"}, ""},
	Checkpoint:  {"", []string{"fit --template model.onnx -o posterior.safetensors PATH"}, ""},
	Data:        {"", []string{"score -o predictions.csv ENSEMBLE PATH"}, ""},
}

// Next returns the commands that read the file at path, which has the given kind.
func Next(path string, kind Kind) (commands []string) {
	next := known[kind].next
	switch index, of, isPart := records.ParsePartName(strings.TrimSuffix(path, WorkSuffix)); kind {
	case Posterior:
		if isSingle(path) {
			return []string{singleCommand(path)}
		}
	case ScorePart, WorkFile:
		path = strings.TrimSuffix(path, WorkSuffix)
		if isPart {
			path = strings.TrimSuffix(path, records.PartName("", index, of))
		}
		if isPart && kind == WorkFile {
			next = []string{fmt.Sprintf("score --part %d/%d -o PATH ENSEMBLE DATA", index, of)}
		}
	case Sidecar:
		path = strings.TrimSuffix(path, summary.Suffix)
	case StoreEntry:
		path = filepath.Dir(filepath.Dir(path))
	}
	for _, command := range next {
		words := strings.Fields("swagwrap " + command)
		if i := slices.Index(words, "PATH"); i >= 0 {
			words[i] = path
		}
		commands = append(commands, study.Shell(words...))
	}
	return commands
}

// WorkSuffix ends the names of unfinished files.
const WorkSuffix = ".partial"

// ours maps the kinds of files from this program: of safetensors and JSON files, and of package records.
var (
	ours = map[string]Kind{swag.PosteriorKind: Posterior, ensemble.Kind: Ensemble, ensemble.SettingsKind: Settings, ensemble.CalibrationKind: Calibration}
	rows = map[records.Kind]Kind{records.Unfinished: WorkFile, records.ScorePart: ScorePart, records.Stored: StoreEntry}
)

// KindOf returns the kind of the file at path. It reads only the beginning, except that it opens a possible ONNX model
// completely.
func KindOf(path string) Kind {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		if torch.IsFolder(path) {
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
	switch {
	case err == nil && (data != listing.KindArray || !torch.Is(path)), isNPZ(head):
		return Data
	case torch.Is(path):
		return Checkpoint
	}
	if m, err := onnxio.Open(path); err == nil {
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

// WrongKind marks err, the error of a file that was opened as kind want. If the file has another kind, the error names
// that kind. The hints then say what to do with the file. hints are for files of the wanted or of an unknown kind.
func WrongKind(c *cli.Context, err error, path string, want Kind, hints ...string) error {
	if err == nil || errors.Is(err, fs.ErrNotExist) || errors.As(err, new(*flags.Failure)) {
		return flags.BadInput(err, hints...)
	}
	is := KindOf(path)
	switch {
	case is == want, want == Checkpoint && is == Model, is == Data && (want == Predictions || want == Settings):
		return flags.BadInput(err, hints...) // probably such a file, but with a fault
	case is == Unknown:
		if by := known[want].madeBy; by != "" {
			hints = append(hints, fmt.Sprintf("want %s, which %s writes", want, by))
		}
		return flags.BadInput(err, hints...)
	}
	wanted := string(want)
	switch by := known[want].madeBy; {
	case by != "":
		wanted += ", which " + by + " writes"
	case want == Checkpoint:
		wanted = "a checkpoint: an ONNX model or a file of PyTorch"
	case want == Data:
		wanted = "data: images, arrays or a table"
	}
	return flags.BadInput(fmt.Errorf("%s: %s, want %s", path, is, wanted), advice(c, path, is, want)...)
}

// WrongData is like [WrongKind], for inputs that were opened as data.
func WrongData(c *cli.Context, err error, paths ...string) error {
	for _, path := range paths {
		if kind := KindOf(path); err != nil && kind != Data && kind != Folder && kind != Unknown {
			return WrongKind(c, err, path, Data)
		}
	}
	return flags.BadInput(err, DataHints(err)...)
}

// WrongCheckpoint is like [WrongKind], for files that were opened as checkpoints.
func WrongCheckpoint(c *cli.Context, err error) error {
	var where *onnxio.Error
	if errors.As(err, &where) {
		return WrongKind(c, err, where.Path, Checkpoint)
	}
	return flags.BadInput(err)
}

const (
	toFit    = "make a posterior of checkpoints first: swagwrap fit --task classes -o posterior.safetensors CKPT.onnx..."
	toFitPT  = "make a posterior of checkpoints first: swagwrap fit --template model.onnx --task classes -o posterior.safetensors CKPT.pt..."
	toSample = "then draw an ensemble from it: swagwrap sample -o ensemble.safetensors --bn-data TRAIN posterior.safetensors"
)

// advice returns hints for a file of kind is if the command wants kind want.
func advice(c *cli.Context, path string, is, want Kind) []string {
	usage := fmt.Sprintf("the order is: swagwrap %s %s", c.Command.Name, c.Command.ArgsUsage)
	if hint := known[is].hint; hint != "" {
		return []string{hint + Next(path, is)[0]}
	}
	switch {
	case want == Data && is == Predictions:
		return []string{"give what was predicted: predictions hold no images and no other inputs"}
	case want == Data:
		return []string{usage}
	case want == ScorePart:
		return []string{"merge takes what jobs with --part I/N wrote; a file that one job wrote is whole already"}
	case want == Settings:
		return nil
	case want == Predictions && is == Ensemble:
		return []string{"predict labelled data first: swagwrap score -o val.npz " + path + " VAL"}
	case want == Predictions:
		return []string{"predict labelled data with an ensemble first: swagwrap score -o val.npz ENSEMBLE VAL"}
	case want == Model:
		return []string{"--template takes the graph, exported once: docs/exporting.md shows the call. Checkpoints are arguments"}
	case is == Data || is == Folder:
		return []string{usage}
	case is == Predictions:
		return []string{"swagwrap calibrate and swagwrap ood read predictions", usage}
	case want == Ensemble && is == Posterior && isSingle(path):
		return []string{"make an ensemble of its network first: " + singleCommand(path)}
	case want == Ensemble && is == Posterior:
		return []string{"draw an ensemble from it first: swagwrap sample -o ensemble.safetensors --bn-data TRAIN " + path}
	case want == Posterior && is == Ensemble:
		return []string{"give the posterior that it was drawn from" + drawnFrom(path)}
	case want == Checkpoint:
		return []string{"give what training saved: ONNX models, or PyTorch's files with --template model.onnx"}
	case is == Model && Exported(path):
		return []string{"swagwrap export wrote it: give the ensemble or posterior that it was made of", "any ONNX Runtime runs it: docs/deploy.md"}
	case is == Checkpoint && want == Ensemble:
		return []string{toFitPT, toSample}
	case is == Checkpoint:
		return []string{toFitPT}
	case want == Ensemble:
		return []string{toFit, toSample}
	}
	return []string{toFit}
}

// drawnFrom returns the posteriors of the ensemble at path.
func drawnFrom(path string) string {
	e, err := ensemble.Open(path)
	if err != nil {
		return ""
	}
	var names []string
	for i := range e.Components {
		names = append(names, e.PosteriorPath(i))
	}
	return ": " + strings.Join(names, " ")
}

// Exported reports whether export made the model at path from a posterior or an ensemble.
func Exported(path string) bool {
	m, err := onnxio.Open(path)
	if err != nil {
		return false
	}
	defer m.Close()
	return m.Metadata[ensemble.KeyKind] != ""
}
