package predictions

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/swagwrap/swagwrap/calibrate"
	"github.com/swagwrap/swagwrap/internal/dataset/table"
	"github.com/swagwrap/swagwrap/internal/numpy"
	"github.com/swagwrap/swagwrap/internal/setting"
	"github.com/swagwrap/swagwrap/internal/target"
)

// Set holds predictions for labelled examples that some program saved. Each row has a probability or a logit for each
// class.
type Set struct {
	Path    string
	SHA256  string // hash of the file, in hex
	From    string // the arrays or columns of the values: `array "probs"`, `columns p_0 to p_9`
	Classes int    // at least 2

	// Values are n×Classes in row-major order. If Probabilities is true, the numbers of each row are from 0 to 1 and
	// add up to 1. Otherwise they are logits, finite or −Inf.
	Values        []float64
	Probabilities bool

	Labels []int // n classes, each in [0, Classes), −1 where unknown, or nil if there are none

	// Rows holds the index in the file, from 0, of each row in Values. Rows without values are left out. The command
	// score writes such rows for examples that it could not read.
	Rows    []int
	LeftOut int
	// Unlabelled counts the rows with predictions and without a label, if others have one. Their label is −1.
	Unlabelled int
	Unused     []string // names of arrays or columns that nothing uses
}

// Len returns the number of rows.
func (p *Set) Len() int { return len(p.Rows) }

// ReadOptions says how [Read] reads a file. The zero value finds arrays and columns by their names.
type ReadOptions struct {
	Labels string // path of a file with the labels, of any format that package dataset reads arrays from
	Key    string // name of the array in an .npz file, of the list, or of the columns without their numbers
	Axis   int    // axis of the classes in arrays of pixels or tokens: 1, or −1 for the last; 0 if nobody gave it
}

// readFormats lists the extensions of files that [Read] reads.
var readFormats = slices.Concat([]string{".npz", ".npy"}, table.Extensions)

var (
	// Names of arrays and columns. If a file has logits and probabilities, logits win, because they hold more
	// information.
	logitNames       = []string{"logits", "logit"}
	probabilityNames = []string{"probs", "probabilities", "probability", "prob", "p"}
	predictionNames  = slices.Concat(logitNames, probabilityNames)
)

// content is what a file of any format holds before it is checked.
type content struct {
	sum     string // SHA-256 of the file, in hex
	from    string
	named   string    // "logits", "probabilities", or "" if the name tells nothing
	values  []float64 // NaN for missing values
	classes int
	labels  []int // nil for none; −1 for a missing label
	unused  []string
	second  []float64 // what the file has in addition under the other name of predictions: probabilities beside logits
	other   string    // their name
}

// Read reads the predictions in the file at path, and their labels. The extension selects the format:
//
//   - .npz and .npy: an array of floats, of shape [n classes]. One of several arrays must be
//     called "probs", "probabilities" or "logits". Labels are in an integer array "labels", "y" or "targets".
//   - .csv, .tsv, .parquet: columns p_0, p_1 … or logit_0, logit_1 …, and label
//   - .jsonl and .parquet: the same, or one list probs or logits in each row
//
// These include the files that score writes with all probabilities. Rows of numbers from 0 to 1 that add up to 1 are
// probabilities, whatever their name. They may have been saved in 16 bits or with few decimals; then each row is divided by its
// sum. Other rows are logits, or an error if their name says that they are probabilities.
func Read(path string, opts ReadOptions) (*Set, error) {
	t, err := readFile(path, opts.Key)
	if err != nil {
		return nil, err
	}
	if opts.Labels != "" {
		if t.labels, _, err = numpy.OpenLabels(opts.Labels, "", len(t.values)/t.classes, path); err != nil {
			return nil, err
		}
	}
	if err := t.same(); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	p := &Set{Path: path, SHA256: t.sum, Unused: t.unused}
	if err := p.fill(t); err != nil {
		return nil, fmt.Errorf("%s: %s: %w", path, t.from, err)
	}
	return p, nil
}

// readFile reads the predictions and labels of a file in any format.
func readFile(path, key string) (content, error) {
	switch strings.ToLower(filepath.Ext(path)) {
	case ".npz", ".npy":
		return readArrays(path, key)
	}
	var t content
	rows, err := readTable(path, func(columns []savedColumn) ([]pick, error) { return t.pick(columns, key) })
	if err != nil {
		return t, err
	}
	t.sum, t.unused, t.second = rows.SHA256, rows.Unused, rows.Values[secondKey]
	t.values, t.classes = rows.Values[predictionsKey], rows.Width(predictionsKey)
	if t.classes == 0 {
		return t, fmt.Errorf("%s: %sno row has predictions", path, t.where())
	}
	if t.labels, err = classNumbers(rows.Values[labelKey]); err != nil {
		err = fmt.Errorf("%s: %w", path, err)
	}
	return t, err
}

// where returns the beginning of a message about the columns of t.
func (t *content) where() string {
	if t.from == "" {
		return ""
	}
	return t.from + ": "
}

// Keys of the columns that [content.pick] picks.
const (
	predictionsKey = "predictions"
	labelKey       = "label"
	secondKey      = "second"
)

// pick picks the list or the columns with the predictions, and the column with the label.
func (t *content) pick(columns []savedColumn, key string) ([]pick, error) {
	names := make([]string, len(columns))
	label := -1
	for i, c := range columns {
		names[i] = c.name
		switch {
		case c.list:
		case isLabelName(c.name) && label >= 0:
			return nil, fmt.Errorf("columns %q and %q could both be the label", names[label], c.name)
		case isLabelName(c.name):
			label = i
		}
	}
	if err := onlyClasses(names); err != nil {
		return nil, err
	}
	wanted := predictionNames
	if key != "" {
		wanted = []string{key}
	}
	from, named, at, err := scores(columns, wanted)
	if err != nil {
		return nil, err
	}
	t.from, t.named = from, named
	picks := []pick{{predictionsKey, at}}
	if label >= 0 {
		picks = append(picks, pick{labelKey, []int{label}})
	}
	if key == "" && named == "logits" {
		if from, _, other, err := scores(columns, probabilityNames); err == nil {
			t.other, picks = from, append(picks, pick{secondKey, other})
		}
	}
	return picks, nil
}

// scores finds the list, or the columns of classes, with the first of the names that has one. named is its meaning.
func scores(columns []savedColumn, names []string) (from, named string, at []int, err error) {
	for _, name := range names {
		i := slices.IndexFunc(columns, func(c savedColumn) bool { return c.list && strings.EqualFold(c.name, name) })
		if i >= 0 {
			return fmt.Sprintf("list %q", columns[i].name), meaning(columns[i].name), []int{i}, nil
		}
	}
	name, at, err := columnsOfClasses(columns, names)
	if err != nil {
		return "", "", nil, err
	}
	return fmt.Sprintf("columns %s_0 to %s_%d", name, name, len(at)-1), meaning(name), at, nil
}

// savedRounding is that of probabilities in 16 bits, or in a few digits.
const savedRounding = 0.02

// same fails if a file has logits and probabilities that are not their softmax. Then nobody knows which are the predictions.
func (t *content) same() error {
	if len(t.second) != len(t.values) || t.classes == 0 {
		return nil
	}
	probs := calibrate.Softmax(nil, t.values, t.classes, 1)
	for i, p := range probs {
		if d := math.Abs(p - t.second[i]); d > savedRounding {
			return &TwoError{t.from, t.other, i / t.classes}
		}
	}
	return nil
}

// A TwoError is the error for logits and probabilities in one file that are different predictions.
type TwoError struct {
	Logits, Probabilities string
	Row                   int
}

func (e *TwoError) Error() string {
	return fmt.Sprintf("row %d: %s are not the softmax of %s: which are the predictions?", e.Row, e.Probabilities, e.Logits)
}

// classNumbers converts labels to class numbers. A missing label is −1.
func classNumbers(values []float64) ([]int, error) {
	if values == nil {
		return nil, nil
	}
	var signs target.Signs
	labels := make([]int, len(values))
	for row, x := range values {
		switch {
		case math.IsNaN(x), target.NoClass(x):
			labels[row] = target.Unknown
		case x != math.Trunc(x) || x < 0 || x >= 1<<31:
			return nil, fmt.Errorf("row %d: label %v, want a class number from 0", row, x)
		default:
			labels[row] = int(x)
		}
		signs.Add(x)
	}
	return labels, signs.Err()
}

// fill checks the content of a file, and keeps the rows that have values.
func (p *Set) fill(t content) error {
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
			l := t.labels[i]
			switch {
			case l >= t.classes:
				return fmt.Errorf("row %d: label %d, want 0 to %d", i, l, t.classes-1)
			case l < 0:
				p.Unlabelled++
			}
			p.Labels = append(p.Labels, l)
		}
		p.Rows = append(p.Rows, i)
		// Rows that are left out make room, so values never move to a higher index.
		copy(t.values[(len(p.Rows)-1)*t.classes:], row)
	}
	p.Values = t.values[:len(p.Rows)*t.classes]
	if len(p.Rows) == 0 {
		return errors.New("no row has predictions")
	}
	return p.detect(t.named)
}

// detect distinguishes probabilities from logits by their values. Logits that happen to form a distribution in every
// row do not occur in practice.
func (p *Set) detect(named string) error {
	if p.percentages() {
		return errors.New("rows of percentages, which add up to 100: want probabilities, which add up to 1: divide them by 100")
	}
	for k, i := range p.Rows {
		row := p.Values[k*p.Classes : (k+1)*p.Classes]
		if c := slices.IndexFunc(row, func(x float64) bool { return !inUnit(x) }); c >= 0 && named == "probabilities" {
			return fmt.Errorf("row %d: class %d: probability %v, want 0 to 1", i, c, row[c])
		} else if c >= 0 {
			return nil // logits
		}
	}
	r := roundingOf(p.Values, p.Classes)
	if named == "logits" && len(p.Rows) < enoughRows {
		r = rounding{tolerance: sumTolerance}
	}
	rounded := false
	for k, i := range p.Rows {
		sum := 0.0
		for _, x := range p.Values[k*p.Classes : (k+1)*p.Classes] {
			sum += x
		}
		off := math.Abs(sum - 1)
		rounded = rounded || off > sumTolerance
		switch {
		case off <= r.tolerance:
		case named == "probabilities":
			return fmt.Errorf("row %d: probabilities sum to %v, want 1 within %.2g: save more digits, or logits", i, sum, r.tolerance)
		default:
			return nil // logits
		}
	}
	p.Probabilities = true
	for row := range slices.Chunk(p.Values, p.Classes) {
		normalize(row)
	}
	if rounded {
		p.From += ", " + cmp.Or(r.what, "rounded") + ", each row divided by its sum"
	}
	return nil
}

// meaning returns what the name of an array or of columns stands for. Only the part before the first "_" counts, so
// probs_swag stands for probabilities.
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

// columnsOfClasses returns the common name of the columns, such as p or logit, and the index of the column of each
// class. Lists do not count.
func columnsOfClasses(columns []savedColumn, names []string) (name string, at []int, err error) {
	for _, name := range names {
		pattern := regexp.MustCompile("(?i)^" + regexp.QuoteMeta(name) + `_?(\d{1,7})$`)
		at, err := elements(columns, name+"_…", func(column string) []string {
			if len(column) > len(name) && strings.EqualFold(column[:len(name)], name) {
				if m := pattern.FindStringSubmatch(column); m != nil {
					return m[1:]
				}
			}
			return nil
		})
		if at != nil || err != nil {
			return name, at, err
		}
	}
	if len(names) == 1 {
		return "", nil, fmt.Errorf("no list %s, and no columns %s_0, %s_1 …", names[0], names[0], names[0])
	}
	return "", nil, fmt.Errorf("no list probs or logits, and no columns p_0, p_1 … or logit_0, logit_1 … (%s writes them with %s)",
		setting.Score, setting.Probs)
}

// onlyClasses refuses predictions of independent labels, whose probabilities do not belong to classes, and of
// regressions. names are the names of arrays, lists or columns.
func onlyClasses(names []string) error {
	if of := taskOf(names); otherTasks[of] != "" {
		return &TaskError{of}
	}
	return nil
}

// isLabelName reports whether an array or a column with that name holds labels.
func isLabelName(name string) bool {
	return slices.Contains(numpy.Labels.Names, strings.ToLower(name))
}
