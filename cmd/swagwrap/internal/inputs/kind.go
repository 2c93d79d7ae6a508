package inputs

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/console"
	"github.com/swagwrap/swagwrap/internal/ensemble"
	"github.com/swagwrap/swagwrap/internal/kind"
	"github.com/swagwrap/swagwrap/internal/records"
	"github.com/swagwrap/swagwrap/internal/study"
	"github.com/swagwrap/swagwrap/internal/study/summary"
	"github.com/swagwrap/swagwrap/onnxio"
	"github.com/swagwrap/swagwrap/swag"
)

// known has what messages say about the files of a kind. madeBy is the command that writes them. next has the commands
// that read them, in which PATH stands for the file. hint is for a user who gave such a file to a command that wants
// another kind.
var known = map[kind.Kind]struct {
	madeBy string
	next   []string
	hint   string // before the first command of next
}{
	kind.Posterior:   {"swagwrap fit", []string{"compare --bn-data TRAIN --val VAL PATH TEST", "sample -o ensemble.safetensors --bn-data TRAIN PATH"}, ""},
	kind.Ensemble:    {"swagwrap sample", []string{"score -o predictions.csv PATH IMAGES", "export -o ensemble.onnx PATH"}, ""},
	kind.ScorePart:   {"swagwrap score --part", []string{"merge -o PATH"}, "make the whole of the parts first: "},
	kind.WorkFile:    {"swagwrap score", []string{"score --resume -o PATH ENSEMBLE DATA"}, "finish it first, with the same arguments: "},
	kind.Predictions: {"swagwrap score", []string{"calibrate -o calibrated.safetensors --ensemble ENSEMBLE PATH"}, ""},
	kind.Sidecar:     {"swagwrap score", []string{"inspect PATH"}, "it describes predictions: "},
	kind.Store:       {"swagwrap compare --store", []string{"compare --store PATH --bn-data TRAIN POSTERIOR TEST"}, "a study takes it: "},
	kind.StoreEntry:  {"swagwrap compare --store", []string{"compare --store PATH --bn-data TRAIN POSTERIOR TEST"}, "a study takes the whole folder: "},
	kind.Settings:    {"swagwrap compare --tune", []string{"sample --settings PATH -o ensemble.safetensors --bn-data TRAIN POSTERIOR"}, "sample takes it: "},
	kind.Calibration: {"swagwrap calibrate", []string{"calibrate -o calibrated.safetensors --ensemble ENSEMBLE PREDICTIONS"}, "an ensemble carries it if calibrate writes the ensemble: "},
	kind.Model:       {"", []string{"fit -o posterior.safetensors PATH"}, ""},
	kind.Checkpoint:  {"", []string{"fit --template model.onnx -o posterior.safetensors PATH"}, ""},
	kind.Data:        {"", []string{"score -o predictions.csv ENSEMBLE PATH"}, ""},
}

// NextOf returns the commands that read a posterior.
func NextOf(p *swag.Posterior) []string {
	if p.Single() {
		return []string{singleCommand(p.Path)}
	}
	return filled(known[kind.Posterior].next, p.Path)
}

// Next returns the commands that read the file at path, which has the given kind.
func Next(path string, of kind.Kind) (commands []string) {
	next := known[of].next
	switch index, parts, isPart := records.ParsePartName(strings.TrimSuffix(path, kind.WorkSuffix)); of {
	case kind.Posterior:
		if p, err := swag.Open(path); err == nil {
			defer p.Close()
			return NextOf(p)
		}
	case kind.ScorePart, kind.WorkFile:
		path = strings.TrimSuffix(path, kind.WorkSuffix)
		if isPart {
			path = strings.TrimSuffix(path, records.PartName("", index, parts))
		}
		if isPart && of == kind.WorkFile {
			next = []string{fmt.Sprintf("score --part %d/%d -o PATH ENSEMBLE DATA", index, parts)}
		}
	case kind.Sidecar:
		path = strings.TrimSuffix(path, summary.Suffix)
	case kind.StoreEntry:
		path = filepath.Dir(filepath.Dir(path))
	}
	return filled(next, path)
}

// filled returns commands with a path instead of the word PATH.
func filled(next []string, path string) (commands []string) {
	for _, command := range next {
		words := strings.Fields("swagwrap " + command)
		if i := slices.Index(words, "PATH"); i >= 0 {
			words[i] = path
		}
		commands = append(commands, study.Shell(words...))
	}
	return commands
}

// WrongKind marks err, the error of a file that was opened as kind want. If the file has another kind, the error names
// that kind. The hints then say what to do with the file. hints are for files of the wanted or of an unknown kind.
func (a *Env) WrongKind(err error, path string, want kind.Kind, hints ...string) error {
	if err == nil || errors.Is(err, fs.ErrNotExist) || errors.As(err, new(*console.Failure)) {
		return console.BadInput(err, hints...)
	}
	is := kind.Of(path)
	switch {
	case is == want, want == kind.Checkpoint && is == kind.Model, is == kind.Data && (want == kind.Predictions || want == kind.Settings):
		return console.BadInput(err, hints...) // probably such a file, but with a fault
	case is == kind.Unknown:
		if by := known[want].madeBy; by != "" {
			hints = append(hints, fmt.Sprintf("want %s, which %s writes", want, by))
		}
		return console.BadInput(err, hints...)
	}
	wanted := string(want)
	switch by := known[want].madeBy; {
	case by != "":
		wanted += ", which " + by + " writes"
	case want == kind.Checkpoint:
		wanted = "a checkpoint: an ONNX model or a file of PyTorch"
	case want == kind.Data:
		wanted = "data: images, arrays or a table"
	}
	return console.BadInput(fmt.Errorf("%s: %s, want %s", path, is, wanted), a.advice(path, is, want)...)
}

// WrongData is like [WrongKind], for inputs that were opened as data.
func (a *Env) WrongData(err error, paths ...string) error {
	if err == nil {
		return nil
	}
	for _, path := range paths {
		if is := kind.Of(path); is != kind.Data && is != kind.Folder && is != kind.Unknown {
			return a.WrongKind(err, path, kind.Data)
		}
	}
	return console.BadInput(err, DataHints(err)...)
}

// WrongCheckpoint is like [WrongKind], for files that were opened as checkpoints.
func (a *Env) WrongCheckpoint(err error) error {
	var where *onnxio.Error
	if errors.As(err, &where) {
		return a.WrongKind(err, where.Path, kind.Checkpoint)
	}
	return console.BadInput(err)
}

const (
	toFit    = "make a posterior of checkpoints first: swagwrap fit --task classes -o posterior.safetensors CKPT.onnx..."
	toFitPT  = "make a posterior of checkpoints first: swagwrap fit --template model.onnx --task classes -o posterior.safetensors CKPT.pt..."
	toSample = "then draw an ensemble from it: swagwrap sample -o ensemble.safetensors --bn-data TRAIN posterior.safetensors"
)

// advice returns hints for a file of kind is if the command wants kind want.
func (a *Env) advice(path string, is, want kind.Kind) []string {
	usage := "the order is: swagwrap " + a.Usage
	if hint := known[is].hint; hint != "" {
		return []string{hint + Next(path, is)[0]}
	}
	switch {
	case want == kind.Data && is == kind.Predictions:
		return []string{"give what was predicted: predictions hold no images and no other inputs"}
	case want == kind.Data:
		return []string{usage}
	case want == kind.ScorePart:
		return []string{"merge takes what jobs with --part I/N wrote; a file that one job wrote is whole already"}
	case want == kind.Settings:
		return nil
	case want == kind.Predictions && is == kind.Ensemble:
		return []string{"predict labelled data first: swagwrap score -o val.npz " + path + " VAL"}
	case want == kind.Predictions:
		return []string{"predict labelled data with an ensemble first: swagwrap score -o val.npz ENSEMBLE VAL"}
	case want == kind.Model:
		return []string{"--template takes the graph, exported once: docs/exporting.md shows the call. Checkpoints are arguments"}
	case is == kind.Data || is == kind.Folder:
		return []string{usage}
	case is == kind.Predictions:
		return []string{"swagwrap calibrate and swagwrap ood read predictions", usage}
	case want == kind.Ensemble && is == kind.Posterior && isSingle(path):
		return []string{"make an ensemble of its network first: " + singleCommand(path)}
	case want == kind.Ensemble && is == kind.Posterior:
		return []string{"draw an ensemble from it first: swagwrap sample -o ensemble.safetensors --bn-data TRAIN " + path}
	case want == kind.Posterior && is == kind.Ensemble:
		return []string{"give the posterior that it was drawn from" + drawnFrom(path)}
	case want == kind.Checkpoint:
		return []string{"give what training saved: ONNX models, or PyTorch's files with --template model.onnx"}
	case is == kind.Model && kind.Exported(path):
		return []string{"swagwrap export wrote it: give the ensemble or posterior that it was made of", "any ONNX Runtime runs it: docs/deploy.md"}
	case is == kind.Checkpoint && want == kind.Ensemble:
		return []string{toFitPT, toSample}
	case is == kind.Checkpoint:
		return []string{toFitPT}
	case want == kind.Ensemble:
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
