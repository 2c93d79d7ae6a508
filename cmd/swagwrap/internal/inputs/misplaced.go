package inputs

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/flags"
	"github.com/swagwrap/swagwrap/internal/ensemble"
	"github.com/swagwrap/swagwrap/internal/records"
	"github.com/swagwrap/swagwrap/onnxio"
)

// madeBy has the command that writes files of a kind.
var madeBy = map[Kind]string{
	Posterior:    "swagwrap fit",
	Ensemble:     "swagwrap sample",
	EnsemblePart: "swagwrap sample --part",
	ScorePart:    "swagwrap score --part",
	Settings:     "swagwrap compare --tune",
	Predictions:  "swagwrap score",
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
		if by := madeBy[want]; by != "" {
			hints = append(hints, fmt.Sprintf("want %s, which %s writes", want, by))
		}
		return flags.BadInput(err, hints...)
	}
	wanted := string(want)
	switch by := madeBy[want]; {
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
	whole := path
	if index, of, ok := records.ParsePartName(path); ok {
		whole = strings.TrimSuffix(path, records.PartName("", index, of))
	}
	usage := fmt.Sprintf("the order is: swagwrap %s %s", c.Command.Name, c.Command.ArgsUsage)
	switch is {
	case EnsemblePart, ScorePart:
		return []string{"make the whole of the parts first: swagwrap merge -o " + whole}
	case WorkFile:
		return []string{"finish it first: the same swagwrap score command with --resume"}
	case Sidecar:
		return []string{"it describes " + strings.TrimSuffix(path, sidecarSuffix)}
	case StoreEntry:
		return []string{"--store FOLDER takes the folder that it is in"}
	case Settings:
		return []string{"swagwrap sample --settings " + path + " takes it"}
	}
	switch {
	case want == Data && is == Predictions:
		return []string{"give what was predicted: predictions hold no images and no other inputs"}
	case want == Data:
		return []string{usage}
	case want == ScorePart || want == EnsemblePart:
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
	case is == Model && exported(path):
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

// exported reports whether this program wrote the model at path.
func exported(path string) bool {
	m, err := onnxio.Open(path)
	if err != nil {
		return false
	}
	defer m.Close()
	return m.ProducerName == "swagwrap"
}
