package calibration

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/swagwrap/swagwrap/internal/predictions"
	"github.com/swagwrap/swagwrap/internal/task"
)

// Predictions are labelled predictions that a file holds.
type Predictions struct {
	Path, SHA256 string
	// From describes the source of the numbers, such as "probabilities (columns p_0 to p_9)". It is "" for tasks whose
	// columns have fixed names.
	From string
	*task.Saved

	stored *predictions.Positions // predictions of pixels or tokens, which Saved does not hold; nil for others
}

// Stored reports whether the predictions are of pixels or tokens.
func (p *Predictions) Stored() bool { return p.stored != nil }

// Close closes the file of predictions that were not read.
func (p *Predictions) Close() {
	if p != nil && p.stored != nil {
		p.stored.Close()
	}
}

// wanted lists the accepted names of columns in files, in addition to those that score writes. The first has the
// targets.
var wanted = map[string][]predictions.Wanted{
	"labels": {
		{Names: []string{"labels", "label", "targets", "target", "y"}, Cells: []string{"label_%d", "target_%d"}},
		{Names: []string{"probabilities", "probs", "p"}, Cells: []string{"probability_%d", "prob_%d", "p_%d"}},
		{Names: []string{"logits", "logit"}, Cells: []string{"logit_%d"}},
	},
	"regression": {
		{Names: []string{"target", "targets", "labels", "label", "y"}, Cells: []string{"target_%d", "label_%d"}},
		{Names: []string{"mean"}, Cells: []string{"mean_%d"}},
		{Names: []string{"std"}, Cells: []string{"std_%d"}},
		{Names: []string{"aleatoric_std"}, Cells: []string{"aleatoric_std_%d"}},
		{Names: []string{"epistemic_std"}, Cells: []string{"epistemic_std_%d"}},
		{Names: []string{"member_mean"}, Cells: []string{"member_%d_mean", "member_%d_mean_%d"}},
		{Names: []string{"member_std"}, Cells: []string{"member_%d_std", "member_%d_std_%d"}},
	},
}

// scaled has the tasks with a temperature. Files of pixels or tokens are read for these.
var scaled = map[string]bool{"classes": true, task.NextToken: true, "labels": true}

// Keyed reports whether an .npz of the named task has one array of predictions, which the user may name.
func Keyed(of string) bool { return wanted[of] == nil }

// Read reads predictions for the named task. opts.Labels is the path of a file with the targets of the examples, or "".
// Those of pixels and tokens stay in their file. Predictions without targets give an error that [task.IsNoTruth] accepts.
func Read(path, of string, opts predictions.ReadOptions) (*Predictions, error) {
	if ext := strings.ToLower(filepath.Ext(path)); (ext == ".npz" || ext == ".npy") && scaled[of] {
		if p, err := openStored(path, of, opts); p != nil || err != nil {
			return p, err
		}
	}
	if Keyed(of) {
		return readClasses(path, opts)
	}
	rows, err := predictions.ReadRows(path, wanted[of])
	if err != nil {
		return nil, err
	}
	if opts.Labels != "" {
		what := wanted[of][:1]
		known, err := predictions.ReadRows(opts.Labels, what)
		if err != nil {
			return nil, err
		}
		name := what[0].Names[0]
		if known.Len != rows.Len || known.Values[name] == nil {
			return nil, fmt.Errorf("%s: %s of %d examples, want %d as in %s", opts.Labels, name, len(known.Values[name])/max(1, known.Width(name)), rows.Len, path)
		}
		rows.Values[name] = known.Values[name]
	}
	saved, err := task.Restore(of, task.Columns{Len: rows.Len, Values: rows.Values})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return &Predictions{Path: path, SHA256: rows.SHA256, Saved: saved}, nil
}

func readClasses(path string, opts predictions.ReadOptions) (*Predictions, error) {
	p, err := predictions.Read(path, opts)
	if err != nil {
		return nil, err
	}
	from := "logits"
	if p.Probabilities {
		from = "probabilities"
	}
	saved, err := task.RestoreClasses(p.Values, p.Classes, p.Probabilities, p.Labels)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	saved.Rows, saved.LeftOut = p.Rows, p.LeftOut
	return &Predictions{Path: path, SHA256: p.SHA256, From: fmt.Sprintf("%s (%s)", from, p.From), Saved: saved}, nil
}
