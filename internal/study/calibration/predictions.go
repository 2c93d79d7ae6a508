package calibration

import (
	"encoding/binary"
	"fmt"
	"hash/maphash"
	"math"
	"path/filepath"
	"strings"

	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/predictions"
	"github.com/swagwrap/swagwrap/internal/task"
)

// Predictions are labelled predictions that a file holds.
type Predictions struct {
	Path, SHA256 string
	// From describes the source of the numbers, such as "probabilities (columns p_0 to p_9)". It is "" for tasks whose
	// columns have fixed names.
	From string
	*Saved

	stored *predictions.Positions // predictions of pixels or tokens, which Saved does not hold; nil for others
}

// Stored reports whether the predictions are of pixels or tokens.
func (p *Predictions) Stored() bool { return p.stored != nil }

// InCommon returns the number of rows that q has too, by their values. Of pixels and tokens it compares the whole files.
func (p *Predictions) InCommon(q *Predictions) int {
	switch {
	case p.SHA256 == q.SHA256:
		return p.Len()
	case p.Stored() || q.Stored():
		return 0
	}
	seed := maphash.MakeSeed()
	of := func(p *Predictions) []float64 { return p.Outcomes }
	if p.Logs != nil && q.Logs != nil { // probabilities of different rows may all be 0 and 1
		of = func(p *Predictions) []float64 { return p.Logs }
	}
	return dataset.InCommon(prints(of(p), p.Len(), seed), prints(of(q), q.Len(), seed), false).Examples
}

// prints returns a hash of each of n rows.
func prints(values []float64, n int, seed maphash.Seed) (out []uint64) {
	width := len(values) / max(1, n)
	var b []byte
	for i := range n {
		b = b[:0]
		for _, v := range values[i*width:][:width] {
			b = binary.LittleEndian.AppendUint64(b, math.Float64bits(v))
		}
		out = append(out, maphash.Bytes(seed, b))
	}
	return out
}

// Close closes the file of predictions that were not read.
func (p *Predictions) Close() {
	if p != nil && p.stored != nil {
		p.stored.Close()
	}
}

// restored has the tasks whose predictions are restored from columns with fixed names.
var restored = map[string]struct {
	// columns are the accepted names, in addition to those that score writes. The first has the targets.
	columns []predictions.Wanted
	restore func(*predictions.Rows) (*Saved, error)
}{
	"labels": {[]predictions.Wanted{
		{Names: []string{"labels", "label", "targets", "target", "y"}, Cells: []string{"label_%d", "target_%d"}},
		{Names: []string{"probabilities", "probs", "p"}, Cells: []string{"probability_%d", "prob_%d", "p_%d"}},
		{Names: []string{"logits", "logit"}, Cells: []string{"logit_%d"}},
	}, restoreLabels},
	"regression": {predictions.Regression(), restoreRegression},
}

// Keyed reports whether an .npz of the named task has one array of predictions, which the user may name.
func Keyed(of string) bool { return restored[of].columns == nil }

// Read reads predictions for the named task. opts.Labels is the path of a file with the targets of the examples, or "".
// Those of pixels and tokens stay in their file. Predictions without targets give an error that is [predictions.ErrNoTargets].
func Read(path, of string, opts predictions.ReadOptions) (*Predictions, error) {
	if ext := strings.ToLower(filepath.Ext(path)); (ext == ".npz" || ext == ".npy") && task.TraitsOf(of).Form { // pixels and tokens
		if p, err := openStored(path, of, opts); p != nil || err != nil {
			return p, err
		}
	}
	var labelled []int
	if opts.Labels != "" {
		var err error
		if labelled, err = labelRows(path, opts.Labels); err != nil {
			return nil, err
		}
	}
	if Keyed(of) {
		return readClasses(path, opts)
	}
	how := restored[of]
	rows, err := predictions.ReadRows(path, how.columns)
	if err != nil {
		return nil, err
	}
	if opts.Labels != "" {
		what := how.columns[:1]
		known, err := predictions.ReadRows(opts.Labels, what)
		if err != nil {
			return nil, err
		}
		name := what[0].Names[0]
		if labelled == nil && known.Len != rows.Len || known.Values[name] == nil {
			return nil, fmt.Errorf("%s: %s of %d examples, want %d as in %s", opts.Labels, name,
				len(known.Values[name])/max(1, known.Width(name)), rows.Len, path)
		}
		rows.Values[name] = picked(known.Values[name], labelled, known.Width(name))
	}
	saved, err := how.restore(rows)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	saved.Unused = rows.Unused
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
	values, labels, rows := labelledOnly(p)
	saved, err := restoreClasses(values, p.Classes, p.Probabilities, labels)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	saved.Rows, saved.LeftOut, saved.Unlabelled, saved.Unused = rows, p.LeftOut, p.Unlabelled, p.Unused
	return &Predictions{Path: path, SHA256: p.SHA256, From: fmt.Sprintf("%s (%s)", from, p.From), Saved: saved}, nil
}

// labelledOnly returns the predictions, labels and rows of the examples that have a label.
func labelledOnly(p *predictions.Set) (values []float64, labels, rows []int) {
	if p.Unlabelled == 0 {
		return p.Values, p.Labels, p.Rows
	}
	for k, l := range p.Labels {
		if l >= 0 {
			values, labels, rows = append(values, p.Values[k*p.Classes:][:p.Classes]...), append(labels, l), append(rows, p.Rows[k])
		}
	}
	return values, labels, rows
}
