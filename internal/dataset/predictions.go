package dataset

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/swagwrap/swagwrap/internal/file"
	"github.com/swagwrap/swagwrap/internal/numpy"
)

// Predictions are what some program saved about labelled examples: a probability
// or a logit for each class, in rows.
type Predictions struct {
	Path    string
	SHA256  string // of the file, in hex
	From    string // where in the file the values were: `array "probs"`, `columns p_0 to p_9`
	Classes int    // at least 2

	// Values are n×Classes in row-major order. Probabilities says that every row
	// consists of numbers from 0 to 1 that add up to 1; otherwise they are logits,
	// finite or −Inf.
	Values        []float64
	Probabilities bool

	Labels []int // n classes, each in [0, Classes), or nil if there are none

	// Rows holds the number in the file, from 0, of each row that is here: rows
	// without values, as score writes them for examples that it could not read, are
	// left out.
	Rows    []int
	LeftOut int
}

// Len returns the number of rows.
func (p *Predictions) Len() int { return len(p.Rows) }

// PredictionOptions says how [OpenPredictions] reads a file. The zero value finds
// out by names.
type PredictionOptions struct {
	Labels string // path of a file with the labels, of any array format that Open reads
	Key    string // of the array in an .npz
}

// PredictionFormats lists the extensions of files that [OpenPredictions] reads.
var PredictionFormats = []string{".npz", ".npy", ".csv", ".tsv", ".jsonl", ".parquet"}

const (
	// sumTolerance is how far a row of probabilities may sum from 1. A softmax in
	// float32 over 1,000 classes is off by about 1e-7.
	sumTolerance = 1e-6
	// maxPredictions is a limit on numbers from compressed files: 2 GiB as float64,
	// five times the validation set of ImageNet.
	maxPredictions = 1 << 28
)

var (
	predictionRole = numpy.Role{
		What: "predictions",
		Want: "float32 or float64",
		OK:   func(t numpy.Type) bool { return t.Kind == 'f' },
	}
	// Names of arrays and columns. Where a file has both, logits win: they say more.
	logitNames       = []string{"logits", "logit"}
	probabilityNames = []string{"probs", "probabilities", "probability", "prob", "p"}
)

// table is what the formats have in common before it is checked.
type table struct {
	from    string
	named   string    // "logits", "probabilities" or "" for a name that tells nothing
	values  []float64 // NaN where there is nothing
	classes int
	labels  []int // nil for none; −1 where there is nothing
}

// OpenPredictions reads the predictions in the file at path, and their labels. The
// extension tells the format:
//
//   - .npz and .npy: a float32 or float64 array of shape [n classes], called
//     "probs", "probabilities" or "logits" where there are several, and labels in an
//     integer array "labels", "y" or "targets"
//   - .csv, .tsv, .parquet: columns p_0, p_1 … or logit_0, logit_1 …, and label
//   - .jsonl and .parquet: the same, or one list probs or logits in each row
//
// These include the files that score writes with all probabilities. Rows of
// numbers from 0 to 1 that add up to 1 are probabilities, whatever they are called;
// others are logits, unless their name says that they should be probabilities.
func OpenPredictions(path string, opts PredictionOptions) (*Predictions, error) {
	sum, err := fileSum(path)
	if err != nil {
		return nil, err
	}
	t, err := readPredictions(path, opts.Key)
	if err != nil {
		return nil, err
	}
	if opts.Labels != "" {
		if t.labels, _, err = numpy.OpenLabels(opts.Labels, "", "", len(t.values)/t.classes, path); err != nil {
			return nil, err
		}
	}
	p := &Predictions{Path: path, SHA256: sum}
	if err := p.fill(t); err != nil {
		return nil, fmt.Errorf("%s: %s: %w", path, t.from, err)
	}
	return p, nil
}

func readPredictions(path, key string) (t table, err error) {
	ext := strings.ToLower(filepath.Ext(path))
	switch ext {
	case ".npz", ".npy":
		return arrayPredictions(path, key)
	case ".csv":
		t, err = csvPredictions(path, ',')
	case ".tsv":
		t, err = csvPredictions(path, '\t')
	case ".jsonl":
		t, err = jsonPredictions(path)
	case ".parquet":
		t, err = parquetPredictions(path)
	default:
		err = fmt.Errorf("unknown format %q of predictions, want one of %s", ext, strings.Join(PredictionFormats, " "))
	}
	if err == nil && key != "" {
		err = fmt.Errorf("no arrays with names, want an .npz file for key %q", key)
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", path, err)
	}
	return t, err
}

// fileSum returns the SHA-256 of a file, which must be a regular one.
func fileSum(path string) (string, error) {
	info, err := os.Stat(path) // first: opening a FIFO would block
	if err != nil {
		return "", file.Error(path, err)
	}
	if !info.Mode().IsRegular() {
		return "", fmt.Errorf("%s: not a regular file, want one of %s", path, strings.Join(PredictionFormats, " "))
	}
	f, err := os.Open(path)
	if err != nil {
		return "", file.Error(path, err)
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", file.Error(path, err)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// fill checks a table, and takes over the rows that have values.
func (p *Predictions) fill(t table) error {
	p.From, p.Classes = t.from, t.classes
	if t.classes < 2 {
		return fmt.Errorf("%d class, want at least 2: give both classes a column", t.classes)
	}
	labelled := slices.ContainsFunc(t.labels, func(l int) bool { return l >= 0 })
	for i := range len(t.values) / t.classes {
		row := t.values[i*t.classes : (i+1)*t.classes]
		if !slices.ContainsFunc(row, func(x float64) bool { return !math.IsNaN(x) }) {
			p.LeftOut++
			continue
		}
		for c, x := range row {
			if math.IsNaN(x) || math.IsInf(x, 1) {
				return fmt.Errorf("row %d: class %d: %v, want a finite number", i, c, x)
			}
		}
		if labelled {
			if l := t.labels[i]; l < 0 || l >= t.classes {
				return fmt.Errorf("row %d: label %s, want 0 to %d", i, labelText(l), t.classes-1)
			}
			p.Labels = append(p.Labels, t.labels[i])
		}
		p.Rows = append(p.Rows, i)
		// What is left out makes room, so that values never move up.
		copy(t.values[(len(p.Rows)-1)*t.classes:], row)
	}
	p.Values = t.values[:len(p.Rows)*t.classes]
	if len(p.Rows) == 0 {
		return errors.New("no row has predictions")
	}
	return p.detect(t.named)
}

func labelText(l int) string {
	if l < 0 {
		return "is missing"
	}
	return fmt.Sprint(l)
}

// detect tells probabilities from logits by their values. Logits that happen to
// be a distribution in every row do not occur.
func (p *Predictions) detect(named string) error {
	for k, i := range p.Rows {
		row := p.Values[k*p.Classes : (k+1)*p.Classes]
		var sum float64
		reason := ""
		for c, x := range row {
			if sum += x; !(0 <= x && x <= 1) {
				reason = fmt.Sprintf("class %d: probability %v, want 0 to 1", c, x)
				break
			}
		}
		if reason == "" && math.Abs(sum-1) > sumTolerance {
			reason = fmt.Sprintf("probabilities sum to %v, want 1 within %v: save more digits, or logits", sum, sumTolerance)
		}
		switch {
		case reason == "":
		case named == "probabilities":
			return fmt.Errorf("row %d: %s", i, reason)
		default:
			return nil // logits
		}
	}
	p.Probabilities = true
	return nil
}

// arrayPredictions reads NumPy arrays.
func arrayPredictions(path, key string) (table, error) {
	c, err := numpy.Open(path)
	if err != nil {
		return table{}, err
	}
	defer c.Close()
	if key, err = pickPredictions(c, key); err != nil {
		return table{}, fmt.Errorf("%s: %w", path, err)
	}
	x, err := c.Read(key, predictionRole)
	if err != nil {
		return table{}, err
	}
	if len(x.Shape) != 2 {
		return table{}, fmt.Errorf("%s: shape %d, want [n classes]", c.Where(key), x.Shape)
	}
	t := table{from: "the array", named: meaning(key), classes: x.Shape[1], values: x.Float64s()}
	if key != "" {
		t.from = fmt.Sprintf("array %q", key)
	}
	labels, err := c.Pick("", numpy.Labels, key)
	if err == nil && labels != "" {
		t.labels, err = c.ReadLabels(labels, x.Shape[0], path)
	}
	return t, err
}

// pickPredictions chooses an array by name, or the only one there is.
func pickPredictions(c *numpy.File, wanted string) (string, error) {
	switch {
	case c.Keys == nil && wanted == "" || slices.Contains(c.Keys, wanted):
		return wanted, nil
	case c.Keys == nil:
		return "", fmt.Errorf("no arrays with names, want an .npz file for key %q", wanted)
	case wanted != "":
		return "", fmt.Errorf("no array %q, want one of %s", wanted, numpy.Quote(c.Keys))
	}
	for _, name := range slices.Concat(logitNames, probabilityNames) {
		if i := slices.IndexFunc(c.Keys, func(k string) bool { return strings.EqualFold(k, name) }); i >= 0 {
			return c.Keys[i], nil
		}
	}
	others := slices.DeleteFunc(slices.Clone(c.Keys), func(k string) bool { return slices.Contains(numpy.Labels.Names, strings.ToLower(k)) })
	if len(others) == 1 {
		return others[0], nil
	}
	return "", fmt.Errorf("cannot tell which array holds the predictions, want \"probs\" or \"logits\", or a key that names one of %s", numpy.Quote(c.Keys))
}

// meaning is what the name of an array or of columns says: that of probs_swag too.
func meaning(name string) string {
	name, _, _ = strings.Cut(strings.ToLower(name), "_")
	switch {
	case slices.Contains(logitNames, name):
		return "logits"
	case slices.Contains(probabilityNames, name):
		return "probabilities"
	}
	return ""
}

// isText says that a file begins like text, and not like one of another format.
func isText(head []byte) bool {
	return !numpy.Known(head) && !bytes.HasPrefix(head, []byte("PAR1")) && bytes.IndexByte(head, 0) < 0
}
