package console

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/swagwrap/swagwrap/internal/ensemble"
	"github.com/swagwrap/swagwrap/internal/kind"
	"github.com/swagwrap/swagwrap/internal/open"
	"github.com/swagwrap/swagwrap/internal/records"
	"github.com/swagwrap/swagwrap/internal/study/summary"
	"github.com/swagwrap/swagwrap/internal/task"
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
	kind.Posterior: {"swagwrap fit", []string{"compare --bn-data TRAIN --val VAL PATH TEST",
		"sample -o ensemble.safetensors --bn-data TRAIN PATH"}, ""},
	kind.Ensemble:    {"swagwrap sample", []string{"score -o predictions.csv PATH NEW-DATA", "export -o ensemble.onnx PATH"}, ""},
	kind.ScorePart:   {"swagwrap score --part", []string{"merge -o PATH"}, "make the whole of the parts first: "},
	kind.WorkFile:    {"swagwrap score", []string{"score --resume -o PATH ENSEMBLE DATA"}, "finish it first, with the same arguments: "},
	kind.Predictions: {"swagwrap score", []string{"calibrate -o calibrated.safetensors --ensemble ENSEMBLE PATH"}, ""},
	kind.Sidecar:     {"swagwrap score", []string{"inspect PATH"}, "it describes predictions: "},
	kind.Store:       {"swagwrap compare --store", []string{"compare --store PATH --bn-data TRAIN POSTERIOR TEST"}, "a study takes it: "},
	kind.StoreEntry: {"swagwrap compare --store", []string{"compare --store PATH --bn-data TRAIN POSTERIOR TEST"},
		"a study takes the whole folder: "},
	kind.Settings: {"swagwrap compare --tune", []string{"sample --settings PATH -o ensemble.safetensors --bn-data TRAIN POSTERIOR"},
		"sample takes it: "},
	kind.Calibration: {"swagwrap calibrate", []string{"calibrate -o calibrated.safetensors --ensemble ENSEMBLE PREDICTIONS"},
		"an ensemble carries it if calibrate writes the ensemble: "},
	kind.Average: {"swagwrap fit --no-graph", []string{"fit --template model.onnx -o posterior.safetensors CHECKPOINTS"},
		"the graph of the network is missing. A posterior has it: "},
	kind.Model:      {"", []string{"fit -o posterior.safetensors PATH"}, ""},
	kind.Checkpoint: {"", []string{"fit --template model.onnx -o posterior.safetensors PATH"}, ""},
	kind.Data:       {"", []string{"score -o predictions.csv ENSEMBLE PATH"}, ""},
}

// NextOf returns the commands that read a posterior.
func NextOf(p *swag.Posterior) []string {
	next := nextOf(p)
	if len(p.Statistics) == 0 { // there is no batch norm
		for i, command := range next {
			next[i] = strings.Replace(command, " --bn-data TRAIN", "", 1)
		}
	}
	return next
}

func nextOf(p *swag.Posterior) []string {
	switch {
	case task.Scoreless(p.Card.Task) && p.Single():
		return filled([]string{"export -o swa.onnx PATH"}, p.Path)
	case task.Scoreless(p.Card.Task):
		return filled([]string{"export -o swa.onnx --bn-data TRAIN PATH", "sample -o ensemble.safetensors --bn-data TRAIN PATH"}, p.Path)
	case p.Single():
		return []string{singleCommand(p.Path)}
	}
	return filled(known[kind.Posterior].next, p.Path)
}

// NextOfEnsemble returns the commands that read an ensemble.
func NextOfEnsemble(e *ensemble.Ensemble) []string {
	if task.Scoreless(e.Card.Task) {
		return filled([]string{"score -o outputs.npz PATH DATA", "export -o member-0.onnx --member 0 PATH"}, e.Path)
	}
	next := known[kind.Ensemble].next
	if e.Guarantee.Exportable() != nil {
		next = next[:1]
	}
	return filled(next, e.Path)
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
	case kind.Ensemble:
		if e, err := ensemble.Open(path); err == nil {
			return NextOfEnsemble(e)
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
		commands = append(commands, Shell(words...))
	}
	return commands
}

// wrongKind words the error of a file that was opened as another kind. The hints say what to do with the file.
func (a *Env) wrongKind(e *open.KindError) (text string, hints []string) {
	is, differs := e.Found()
	by := known[e.Want].madeBy
	switch {
	case !differs && is == kind.Unknown && by != "":
		return e.Error(), []string{fmt.Sprintf("want %s, which %s writes", e.Want, by)}
	case !differs && e.Want == kind.Data:
		return e.Error(), dataHints(e.Err)
	case !differs:
		return e.Error(), nil
	}
	wanted := open.Wanted(e.Want)
	if by != "" {
		wanted += ", which " + by + " writes"
	}
	return fmt.Sprintf("%s: %s, want %s", e.Path, is, wanted), a.advice(e.Path, is, e.Want)

}

const (
	toFit   = "make a posterior of checkpoints first: swagwrap fit --task classes -o posterior.safetensors CKPT.onnx..."
	toFitPT = "make a posterior of checkpoints first: swagwrap fit --template model.onnx --task classes -o posterior.safetensors " +
		"CKPT.pt..."
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
		return []string{"merge takes what score with --part I/N wrote; a file that one job wrote is whole already"}
	case want == kind.Settings:
		return nil
	case want == kind.Predictions && is == kind.Ensemble:
		return []string{"predict labelled data first: swagwrap score -o val.npz " + path + " VAL"}
	case want == kind.Predictions:
		return []string{"predict labelled data with an ensemble first: swagwrap score -o val.npz ENSEMBLE VAL"}
	case want == kind.Model && (is == kind.Posterior || is == kind.Ensemble) && strings.HasPrefix(a.Usage, "prepare "):
		return []string{"export it first: " + Shell("swagwrap", "export", "-o", "model.onnx", path)}
	case want == kind.Model:
		return []string{"--template takes the graph, exported once: docs/exporting.md shows the call. Checkpoints are arguments"}
	case is == kind.Data || is == kind.Folder:
		return []string{usage}
	case is == kind.Predictions:
		return []string{"swagwrap calibrate and swagwrap ood read predictions", usage}
	case want == kind.Ensemble && is == kind.Posterior && single(path):
		return []string{"make an ensemble of its network first: " + singleCommand(path)}
	case want == kind.Ensemble && is == kind.Posterior:
		return []string{"draw an ensemble from it first: swagwrap sample -o ensemble.safetensors --bn-data TRAIN " + path}
	case want == kind.Posterior && is == kind.Ensemble:
		return []string{"give the posterior that it was drawn from" + drawnFrom(path)}
	case want == kind.Checkpoint:
		return []string{"give what training saved: ONNX models, or PyTorch's files with --template model.onnx"}
	case is == kind.Model && kind.Exported(path):
		return []string{"swagwrap export wrote it: give the ensemble or posterior that it was made of",
			"any ONNX Runtime runs it: docs/deploy.md"}
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

// singleCommand is the command that makes an ensemble of the network in a posterior of one checkpoint.
func singleCommand(path string) string {
	return Shell("swagwrap", "sample", "--method", "swa", "-o", "ensemble.safetensors", path)
}

// single reports whether the file is a posterior of one checkpoint.
func single(path string) bool {
	p, err := swag.Open(path)
	if err != nil {
		return false
	}
	defer p.Close()
	return p.Single()
}
