package predictions

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/swagwrap/swagwrap/internal/file"
	"github.com/swagwrap/swagwrap/internal/numpy"
)

// Set is what some program saved about labelled examples: a probability
// or a logit for each class, in rows.
type Set struct {
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
func (p *Set) Len() int { return len(p.Rows) }

// ReadOptions says how [Read] reads a file. The zero value finds
// out by names.
type ReadOptions struct {
	Labels string // path of a file with the labels, of any format that package dataset reads arrays from
	Key    string // of the array in an .npz
}

// readFormats lists the extensions of files that [Read] reads.
var readFormats = []string{".npz", ".npy", ".csv", ".tsv", ".jsonl", ".parquet"}

const (
	// sumTolerance is how far a row of probabilities may sum from 1. A softmax in
	// float32 over 1,000 classes is off by about 1e-7.
	sumTolerance = 1e-6
	// maxPredictions is a limit on numbers from compressed files: 2 GiB as float64,
	// five times the validation set of ImageNet.
	maxPredictions = 1 << 28
)

var (
	// Names of arrays and columns. Where a file has both, logits win: they say more.
	logitNames       = []string{"logits", "logit"}
	probabilityNames = []string{"probs", "probabilities", "probability", "prob", "p"}
	predictionNames  = slices.Concat(logitNames, probabilityNames)
)

// table is what the formats have in common before it is checked.
type table struct {
	from    string
	named   string    // "logits", "probabilities" or "" for a name that tells nothing
	values  []float64 // NaN where there is nothing
	classes int
	labels  []int // nil for none; −1 where there is nothing
}

// Read reads the predictions in the file at path, and their labels. The
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
func Read(path string, opts ReadOptions) (*Set, error) {
	f, sum, err := open(path)
	if err != nil {
		return nil, file.Error(path, err)
	}
	defer f.Close()
	t, err := readFile(f, path, opts.Key)
	if err != nil {
		return nil, err
	}
	if opts.Labels != "" {
		if t.labels, _, err = numpy.OpenLabels(opts.Labels, "", "", len(t.values)/t.classes, path); err != nil {
			return nil, err
		}
	}
	p := &Set{Path: path, SHA256: sum}
	if err := p.fill(t); err != nil {
		return nil, fmt.Errorf("%s: %s: %w", path, t.from, err)
	}
	return p, nil
}

// open opens a file, which must be a regular one, and returns its SHA-256 too.
func open(path string) (*os.File, string, error) {
	f, _, err := file.Open(path, "one of "+strings.Join(readFormats, " "))
	if err != nil {
		return nil, "", err
	}
	h := sha256.New()
	if _, err = io.Copy(h, f); err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err != nil {
		f.Close()
	}
	return f, hex.EncodeToString(h.Sum(nil)), err
}

func readFile(f *os.File, path, key string) (t table, err error) {
	switch ext := strings.ToLower(filepath.Ext(path)); ext {
	case ".npz", ".npy":
		return readArrays(path, key)
	case ".csv":
		t, err = readCSV(f, ',')
	case ".tsv":
		t, err = readCSV(f, '\t')
	case ".jsonl":
		t, err = readJSONL(f)
	case ".parquet":
		var size int64
		if size, err = f.Seek(0, io.SeekEnd); err == nil {
			t, err = readParquet(f, size)
		}
	default:
		err = fmt.Errorf("unknown format %q of predictions, want one of %s", ext, strings.Join(readFormats, " "))
	}
	if err == nil && key != "" {
		err = fmt.Errorf("no arrays with names, want an .npz file for key %q", key)
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", path, err)
	}
	return t, err
}

// fill checks a table, and takes over the rows that have values.
func (p *Set) fill(t table) error {
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
func (p *Set) detect(named string) error {
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

// listTable begins a table whose rows have a list of that name.
func listTable(name string) table {
	return table{from: fmt.Sprintf("list %q", name), named: meaning(name)}
}

// columns says which columns of a table hold the classes and the label.
type columns struct {
	name    string // "p", "logit"
	classes []int  // the column of each class
	label   int    // −1 for none
}

// classColumn is the name of a class's column: p_0, logit_12.
var classColumn = regexp.MustCompile(`(?i)^(logits?|probs?|probabilit(?:y|ies)|p)_?(\d{1,7})$`)

// findColumns looks through the names of columns.
func findColumns(header []string) (columns, error) {
	if err := onlyClasses(header); err != nil {
		return columns{}, err
	}
	found := map[string]map[int]int{} // name, class, column
	label := -1
	for i, h := range header {
		h = strings.TrimSpace(h)
		if isLabelName(h) {
			if label >= 0 {
				return columns{}, fmt.Errorf("columns %q and %q could both be the label", header[label], h)
			}
			label = i
		}
		m := classColumn.FindStringSubmatch(h)
		if m == nil {
			continue
		}
		class, _ := strconv.Atoi(m[2])
		name := strings.ToLower(m[1])
		if found[name] == nil {
			found[name] = map[int]int{}
		}
		if _, twice := found[name][class]; twice {
			return columns{}, fmt.Errorf("two columns %q", h)
		}
		found[name][class] = i
	}
	for _, name := range predictionNames {
		at := found[name]
		if at == nil {
			continue
		}
		c := columns{name: name, label: label}
		for class := range len(at) {
			column, ok := at[class]
			if !ok {
				return columns{}, fmt.Errorf("%d columns %s_…, but none for class %d", len(at), name, class)
			}
			c.classes = append(c.classes, column)
		}
		return c, nil
	}
	return columns{}, errors.New("no columns p_0, p_1 … or logit_0, logit_1 … (score writes them with --probs)")
}

// table begins one of these columns.
func (c columns) table() table {
	n := len(c.classes)
	return table{from: fmt.Sprintf("columns %s_0 to %s_%d", c.name, c.name, n-1), named: meaning(c.name), classes: n}
}

// onlyClasses refuses what score writes of independent labels, whose probabilities are no
// classes', and of regressions. names are those of arrays, lists or columns.
func onlyClasses(names []string) error {
	if slices.Contains(names, "mutual_informations") || slices.Contains(names, "mutual_information_0") {
		return &TaskError{"labels"}
	}
	if slices.Contains(names, "epistemic_std") || slices.Contains(names, "epistemic_std_0") {
		return &TaskError{"regression"}
	}
	return nil
}

// isLabelName says that an array or a column of that name holds labels.
func isLabelName(name string) bool {
	return slices.Contains(numpy.Labels.Names, strings.ToLower(name))
}

// isLabel says that a number can be that of a class.
func isLabel(x float64) bool { return x == math.Trunc(x) && 0 <= x && x < 1<<31 }
