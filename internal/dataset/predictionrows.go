package dataset

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/swagwrap/swagwrap/internal/file"
	"github.com/swagwrap/swagwrap/internal/numpy"
)

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
	found := map[string]map[int]int{} // name, class, column
	label := -1
	for i, h := range header {
		h = strings.TrimSpace(h)
		if slices.Contains(numpy.Labels.Names, strings.ToLower(h)) {
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
	for _, name := range slices.Concat(logitNames, probabilityNames) {
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

func (c columns) from() string {
	return fmt.Sprintf("columns %s_0 to %s_%d", c.name, c.name, len(c.classes)-1)
}

// csvPredictions reads a table of text.
func csvPredictions(path string, comma rune) (table, error) {
	f, err := os.Open(path)
	if err != nil {
		return table{}, file.Cause(err)
	}
	defer f.Close()
	in := bufio.NewReaderSize(f, 1<<16)
	head, err := in.Peek(512)
	if err != nil && err != io.EOF {
		return table{}, file.Cause(err)
	}
	if !isText(head) {
		return table{}, errors.New("not a text file")
	}
	if bytes.HasPrefix(head, []byte("\xef\xbb\xbf")) { // a byte order mark, as spreadsheets write it
		in.Discard(3)
	}
	r := csv.NewReader(in)
	r.Comma, r.ReuseRecord = comma, true
	header, err := r.Read()
	if err == io.EOF {
		return table{}, errors.New("empty")
	}
	if err != nil {
		return table{}, err
	}
	c, err := findColumns(slices.Clone(header))
	if err != nil {
		return table{}, err
	}
	t := table{from: c.from(), named: meaning(c.name), classes: len(c.classes)}
	for row := 0; ; row++ {
		record, err := r.Read()
		if err == io.EOF {
			return t, nil
		}
		if err != nil {
			return table{}, err // names the line
		}
		for class, column := range c.classes {
			x, err := parseValue(record[column])
			if err != nil {
				return table{}, fmt.Errorf("row %d: class %d: %w", row, class, err)
			}
			t.values = append(t.values, x)
		}
		if c.label >= 0 {
			label, err := parseLabel(record[c.label])
			if err != nil {
				return table{}, fmt.Errorf("row %d: %w", row, err)
			}
			t.labels = append(t.labels, label)
		}
	}
}

// parseValue returns NaN for what is missing.
func parseValue(s string) (float64, error) {
	if s = strings.TrimSpace(s); s == "" {
		return math.NaN(), nil
	}
	x, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return 0, fmt.Errorf("%.40q, want a number", s)
	}
	return x, nil
}

// parseLabel returns −1 for what is missing. Programs that know one type of number
// write 3.0.
func parseLabel(s string) (int, error) {
	if s = strings.TrimSpace(s); s == "" {
		return -1, nil
	}
	x, err := strconv.ParseFloat(s, 64)
	if err != nil || x != math.Trunc(x) || !(0 <= x && x < 1<<31) {
		return 0, fmt.Errorf("label %.40q, want a class number from 0", s)
	}
	return int(x), nil
}

// jsonPredictions reads an object in each line.
func jsonPredictions(path string) (table, error) {
	f, err := os.Open(path)
	if err != nil {
		return table{}, file.Cause(err)
	}
	defer f.Close()
	var t table
	var c columns
	var list string // the name of a list, or empty for columns
	in := json.NewDecoder(bufio.NewReaderSize(f, 1<<16))
	held := 0 // rows without values before the first with some
	for row := 0; ; row++ {
		var object map[string]json.RawMessage
		if err := in.Decode(&object); err == io.EOF {
			break
		} else if err != nil {
			return table{}, fmt.Errorf("row %d: %w", row, err)
		}
		if t.classes == 0 {
			var err error
			if list, c, err = jsonColumns(object); err != nil {
				if _, failed := object["error"]; failed { // score could not read the example
					held++
					continue
				}
				return table{}, fmt.Errorf("row %d: %w", row, err)
			}
		}
		values, err := jsonValues(object, list, c, t.classes)
		if err != nil {
			return table{}, fmt.Errorf("row %d: %w", row, err)
		}
		if t.classes == 0 {
			t.begin(list, c, len(values), held)
		}
		t.values = append(t.values, values...)
		label, err := labelOf(object)
		if err != nil {
			return table{}, fmt.Errorf("row %d: %w", row, err)
		}
		t.labels = append(t.labels, label)
	}
	if t.classes == 0 {
		return table{}, errors.New("no row has predictions")
	}
	return t, nil
}

// begin sets what the first row with values tells, and adds the rows before.
func (t *table) begin(list string, c columns, classes, before int) {
	t.classes = classes
	t.from, t.named = c.from(), meaning(c.name)
	if list != "" {
		t.from, t.named = fmt.Sprintf("list %q", list), meaning(list)
	}
	for range before {
		t.values = append(t.values, missing(classes)...)
		t.labels = append(t.labels, -1)
	}
}

func missing(n int) []float64 { return slices.Repeat([]float64{math.NaN()}, n) }

// jsonColumns finds the list with the predictions, or else columns.
func jsonColumns(object map[string]json.RawMessage) (list string, c columns, err error) {
	var keys []string
	for k := range object {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	for _, name := range slices.Concat(logitNames, probabilityNames) {
		i := slices.IndexFunc(keys, func(k string) bool { return strings.EqualFold(k, name) })
		if i >= 0 && bytes.HasPrefix(object[keys[i]], []byte("[")) {
			return keys[i], columns{label: -1}, nil
		}
	}
	if c, err = findColumns(keys); err != nil {
		return "", c, errors.New("no list probs or logits, and no p_0, p_1 … (score writes probs with --probs)")
	}
	return "", c, nil
}

// jsonValues returns the numbers of a row, NaN for what is null. classes is 0 for
// the first row.
func jsonValues(object map[string]json.RawMessage, list string, c columns, classes int) ([]float64, error) {
	var values []*float64
	if list == "" {
		for class := range c.classes {
			var x *float64
			for _, key := range []string{fmt.Sprintf("%s_%d", c.name, class), fmt.Sprintf("%s%d", c.name, class)} {
				if raw, ok := object[key]; ok {
					if err := json.Unmarshal(raw, &x); err != nil {
						return nil, fmt.Errorf("%q: %.40s, want a number", key, raw)
					}
				}
			}
			values = append(values, x)
		}
	} else if raw := object[list]; raw != nil && string(raw) != "null" {
		if err := json.Unmarshal(raw, &values); err != nil {
			return nil, fmt.Errorf("%q: want a list of numbers", list)
		}
	} else {
		return missing(classes), nil
	}
	if classes > 0 && len(values) != classes {
		return nil, fmt.Errorf("%d predictions, want %d as in the rows before", len(values), classes)
	}
	out := missing(len(values))
	for i, x := range values {
		if x != nil {
			out[i] = *x
		}
	}
	return out, nil
}

func labelOf(object map[string]json.RawMessage) (int, error) {
	for _, name := range numpy.Labels.Names {
		if raw, ok := object[name]; ok && string(raw) != "null" {
			return parseLabel(string(raw))
		}
	}
	return -1, nil
}
