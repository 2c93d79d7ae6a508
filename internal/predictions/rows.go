package predictions

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/swagwrap/swagwrap/internal/csvsafe"
	"github.com/swagwrap/swagwrap/internal/file"
	"github.com/swagwrap/swagwrap/internal/numpy"
	"github.com/swagwrap/swagwrap/internal/word"
)

// Wanted describes numbers that rows may have: an array of an .npz file, a list of JSON or Parquet, or one column per
// element.
type Wanted struct {
	Names []string // of arrays, lists and columns of one number, the most likely first
	// Cells are the names of columns of elements, with %d for each index, such as "member_%d_mean".
	Cells []string
}

// Rows holds numbers of examples that some program saved. The keys of Values are the first names in [Wanted]. All rows
// have the same number of values of a kind, in row-major order. Missing values are NaN.
type Rows struct {
	Path   string
	SHA256 string // of the file, in hex
	Len    int
	Values map[string][]float64
}

// Width returns the number of values with that name in each row, or 0 if there are none.
func (r *Rows) Width(name string) int {
	if r.Len == 0 {
		return 0
	}
	return len(r.Values[name]) / r.Len
}

// ReadRows reads the wanted numbers of the file at path. The extension selects the format, as in [Read].
func ReadRows(path string, wanted []Wanted) (*Rows, error) {
	if strings.EqualFold(filepath.Ext(path), ".npz") {
		f, sum, err := open(path)
		if err != nil {
			return nil, file.Error(path, err)
		}
		defer f.Close()
		r := &Rows{Path: path, SHA256: sum, Values: map[string][]float64{}}
		return r, r.arrays(wanted) // its errors have the path
	}
	r, err := readTable(path, func(columns []savedColumn) ([]pick, error) { return pickWanted(columns, wanted) })
	if err == nil && r.Len == 0 {
		err = fmt.Errorf("%s: no rows", path)
	}
	if err != nil {
		return nil, err
	}
	return r, nil
}

// arrays reads an .npz file.
func (r *Rows) arrays(wanted []Wanted) error {
	f, err := numpy.Open(r.Path)
	if err != nil {
		return err
	}
	defer f.Close()
	for _, w := range wanted {
		i := slices.IndexFunc(w.Names, func(name string) bool { return slices.Contains(f.Keys, name) })
		if i < 0 {
			continue
		}
		a, err := f.Read(w.Names[i], numpy.Values)
		if err != nil {
			return err
		}
		if len(a.Shape) == 0 || slices.Contains(a.Shape, 0) {
			return fmt.Errorf("%s: shape %d, want a row for each example", f.Where(w.Names[i]), a.Shape)
		}
		if r.Len == 0 {
			r.Len = a.Shape[0]
		}
		if a.Shape[0] != r.Len {
			return fmt.Errorf("%s: %d rows, want %d as in others", f.Where(w.Names[i]), a.Shape[0], r.Len)
		}
		r.Values[w.Names[0]] = a.Float64s()
	}
	if r.Len == 0 {
		return fmt.Errorf("%s: none of the arrays %s among %s", r.Path, numpy.Quote(firsts(wanted)), numpy.Quote(f.Keys))
	}
	return nil
}

// firsts returns the first name of each, for messages.
func firsts(wanted []Wanted) (names []string) {
	for _, w := range wanted {
		names = append(names, w.Names[0])
	}
	return names
}

// savedColumn is a column of a table, or a key of a JSON object.
type savedColumn struct {
	name string
	list bool // a cell holds a list of numbers
}

// A pick names the columns whose numbers belong together under one key: a column of lists, or
// a column for each number of a row.
type pick struct {
	key     string
	columns []int
}

// A picker chooses columns. It fails if required columns are missing.
type picker func([]savedColumn) ([]pick, error)

// pickWanted picks the columns whose names are in wanted.
func pickWanted(columns []savedColumn, wanted []Wanted) (picks []pick, err error) {
	at := map[string]int{}
	for i, c := range columns {
		if _, twice := at[c.name]; !twice {
			at[c.name] = i
		}
	}
	for _, w := range wanted {
		p := pick{key: w.Names[0]}
		for _, name := range w.Names {
			if i, ok := at[name]; ok {
				p.columns = []int{i}
				break
			}
		}
		for _, format := range w.Cells {
			if p.columns != nil {
				break
			}
			if p.columns, err = elements(columns, strings.ReplaceAll(format, "%d", "…"), formatted(format)); err != nil {
				return nil, err
			}
		}
		if p.columns != nil {
			picks = append(picks, p)
		}
	}
	return picks, nil
}

// elements returns the columns whose names have indices, in row-major order. The indices must be complete from 0 on.
// indices returns the indices in a name, or nil. Messages show the format of the names as shown.
func elements(columns []savedColumn, shown string, indices func(name string) []string) ([]int, error) {
	found, size := map[string]int{}, []int(nil)
	for i, c := range columns {
		index := indices(c.name)
		if index == nil {
			continue
		}
		if size == nil {
			size = make([]int, len(index))
		}
		for d, digits := range index {
			n, _ := strconv.Atoi(digits)
			size[d], index[d] = max(size[d], n+1), strconv.Itoa(n)
		}
		key := strings.Join(index, " ")
		if _, twice := found[key]; twice {
			return nil, fmt.Errorf("two columns %q", c.name)
		}
		found[key] = i
	}
	if size == nil {
		return nil, nil
	}
	total := 1
	for _, n := range size {
		total *= n
	}
	if len(found) != total {
		return nil, fmt.Errorf("%d columns %s, want %d: one for each index", len(found), shown, total)
	}
	at := make([]int, total)
	for i := range at {
		key := strings.Trim(fmt.Sprint(place(i, size)), "[]")
		at[i] = found[key] // the number of columns is right, and none occurs twice
	}
	return at, nil
}

// formatted returns a function that finds the indices in names of a format, such as "member_%d_mean".
func formatted(format string) func(name string) []string {
	pattern := regexp.MustCompile("^" + strings.ReplaceAll(regexp.QuoteMeta(format), "%d", `(\d{1,7})`) + "$")
	return func(name string) []string {
		if m := pattern.FindStringSubmatch(name); m != nil {
			return m[1:]
		}
		return nil
	}
}

// rowReader reads the picked columns of a table.
type rowReader struct {
	Rows
	pick picker
}

// readTable reads the picked columns of the CSV, TSV, JSON lines or Parquet file at path.
func readTable(path string, choose picker) (*Rows, error) {
	f, sum, err := open(path)
	if err != nil {
		return nil, file.Error(path, err)
	}
	defer f.Close()
	r := &rowReader{Rows{Path: path, SHA256: sum, Values: map[string][]float64{}}, choose}
	switch ext := strings.ToLower(filepath.Ext(path)); ext {
	case ".csv":
		err = r.text(f, ',')
	case ".tsv":
		err = r.text(f, '\t')
	case ".jsonl":
		err = r.objects(f)
	case ".parquet":
		var size int64
		if size, err = f.Seek(0, io.SeekEnd); err == nil {
			err = r.parquet(f, size)
		}
	default:
		err = fmt.Errorf("format of predictions %w", &word.Unknown{Word: ext, Want: readFormats})
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return &r.Rows, nil
}

// grown refuses more numbers than any result can have.
func (r *rowReader) grown(key string) error {
	if len(r.Values[key]) > maxPredictions {
		return fmt.Errorf("%q: more than %d numbers", key, maxPredictions)
	}
	return nil
}

// text reads a table whose cells are separated by commas or tabs.
func (r *rowReader) text(f io.Reader, comma rune) error {
	in, columns, err := openText(f, comma)
	if err != nil {
		return err
	}
	picks, err := r.pick(columns)
	if err != nil {
		return err
	}
	for ; ; r.Len++ {
		record, err := in.Read()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err // names the line
		}
		for _, p := range picks {
			for _, i := range p.columns {
				x, err := parseValue(record[i])
				if err != nil {
					return fmt.Errorf("row %d: column %q: %w", r.Len, columns[i].name, err)
				}
				r.Values[p.key] = append(r.Values[p.key], x)
			}
			if err := r.grown(p.key); err != nil {
				return err
			}
		}
	}
}

// openText reads the header of a table.
func openText(f io.Reader, comma rune) (*csv.Reader, []savedColumn, error) {
	text := bufio.NewReaderSize(f, 1<<16)
	head, err := text.Peek(512)
	if err != nil && err != io.EOF {
		return nil, nil, file.Cause(err)
	}
	if numpy.Known(head) || bytes.HasPrefix(head, []byte("PAR1")) || bytes.IndexByte(head, 0) >= 0 {
		return nil, nil, errors.New("not a text file")
	}
	if mark := []byte("\xef\xbb\xbf"); bytes.HasPrefix(head, mark) { // spreadsheets write this byte order mark
		text.Discard(len(mark))
	}
	in := csv.NewReader(text)
	in.Comma, in.ReuseRecord = comma, true
	header, err := in.Read()
	if err == io.EOF {
		return nil, nil, errors.New("empty")
	}
	if err != nil {
		return nil, nil, err
	}
	columns := make([]savedColumn, len(header))
	for i, name := range header {
		columns[i].name = strings.TrimSpace(csvsafe.Bare(name))
	}
	return in, columns, nil
}

// parseValue returns NaN for an empty cell.
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

// objects reads one JSON object per row. Rows may have different keys.
func (r *rowReader) objects(f io.Reader) error {
	in := json.NewDecoder(bufio.NewReaderSize(f, 1<<16))
	var known []savedColumn // columns of the last row that had picks
	var picks []pick
	for ; ; r.Len++ {
		var object map[string]json.RawMessage
		err := in.Decode(&object)
		if err == io.EOF {
			return nil
		}
		if err == nil {
			if columns := keysOf(object); known == nil || !slices.Equal(columns, known) {
				known = columns
				picks, err = r.pick(columns)
			}
			_, failed := object["error"]
			if err != nil && (failed || len(r.Values) > 0) { // score could not read the example
				known, picks, err = nil, nil, nil
			}
		}
		if err == nil {
			err = r.object(object, known, picks)
		}
		if err != nil {
			return fmt.Errorf("row %d: %w", r.Len, err)
		}
	}
}

// keysOf lists the keys of an object in order.
func keysOf(object map[string]json.RawMessage) []savedColumn {
	columns := make([]savedColumn, 0, len(object))
	for key, raw := range object {
		columns = append(columns, savedColumn{key, bytes.HasPrefix(raw, []byte("["))})
	}
	slices.SortFunc(columns, func(a, b savedColumn) int { return strings.Compare(a.name, b.name) })
	return columns
}

// object adds the numbers of one row. Keys of earlier rows that are not in object are missing values.
func (r *rowReader) object(object map[string]json.RawMessage, columns []savedColumn, picks []pick) error {
	for key := range r.Values {
		if !slices.ContainsFunc(picks, func(p pick) bool { return p.key == key }) {
			if err := r.take(key, r.Len, nil); err != nil {
				return err
			}
		}
	}
	for _, p := range picks {
		var values []float64
		for _, i := range p.columns {
			var v any
			err := json.Unmarshal(object[columns[i].name], &v)
			if err == nil {
				values, err = flatten(values, v)
			}
			if err != nil {
				return fmt.Errorf("%q: %w", columns[i].name, err)
			}
		}
		if err := r.take(p.key, r.Len, values); err != nil {
			return err
		}
	}
	return nil
}

// flatten appends the numbers of nested lists. A null is NaN.
func flatten(dst []float64, v any) ([]float64, error) {
	switch v := v.(type) {
	case nil:
		return append(dst, math.NaN()), nil
	case float64:
		return append(dst, v), nil
	case []any:
		for _, e := range v {
			var err error
			if dst, err = flatten(dst, e); err != nil {
				return nil, err
			}
		}
		return dst, nil
	}
	return nil, fmt.Errorf("%.40v, want a number or a list", v)
}

// take adds the numbers of a row that follows the given number of rows. A row without numbers, or with a single null,
// is a row of missing values.
func (r *rowReader) take(key string, rows int, values []float64) error {
	width := 0
	if all := r.Values[key]; rows > 0 && all != nil {
		width = len(all) / rows
	}
	none := len(values) == 0 || len(values) == 1 && math.IsNaN(values[0])
	switch {
	case none && width == 0:
		return nil // the width is unknown until a row has numbers
	case none:
		values = missing(width)
	case width == 0:
		r.Values[key] = missing(rows * len(values))
	case len(values) != width:
		return fmt.Errorf("%q: %d numbers, want %d as in the rows before", key, len(values), width)
	}
	r.Values[key] = append(r.Values[key], values...)
	return r.grown(key)
}

func missing(n int) []float64 { return slices.Repeat([]float64{math.NaN()}, n) }

// TaskOf returns the task of the predictions in the file at path, by the names that score writes. It is "labels",
// "regression", or otherwise "classes".
func TaskOf(path string) string {
	rows, err := ReadRows(path, []Wanted{
		{Names: []string{"mutual_informations"}, Cells: []string{"mutual_information_%d"}},
		{Names: []string{"epistemic_std"}, Cells: []string{"epistemic_std_%d"}},
	})
	switch {
	case err != nil:
		return "classes" // the reader of classes reports the error
	case rows.Values["mutual_informations"] != nil:
		return "labels"
	case rows.Values["epistemic_std"] != nil:
		return "regression"
	}
	return "classes"
}

// A TaskError says that predictions belong to another task than classification with mutually exclusive classes.
type TaskError struct{ Task string }

func (e *TaskError) Error() string {
	if e.Task == "labels" {
		return "predictions of independent labels, want those of classes that exclude each other"
	}
	return "predictions of a regression, want those of classes"
}
