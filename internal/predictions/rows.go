package predictions

import (
	"bufio"
	"encoding/csv"
	"encoding/json"
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

	"github.com/parquet-go/parquet-go"

	"github.com/swagwrap/swagwrap/internal/cell"
	"github.com/swagwrap/swagwrap/internal/file"
	"github.com/swagwrap/swagwrap/internal/numpy"
)

// Wanted is numbers that rows may have: an array of an .npz, a list of JSON or of Parquet, or
// columns, one for each element.
type Wanted struct {
	Names []string // of arrays, lists and columns of one number, the likeliest first
	// Cells name the columns of elements, with %d for each index, as "member_%d_mean".
	Cells []string
}

// Rows are numbers that some program saved of examples, by the first name of what was
// wanted. Each row has as many of one kind as the others, in row-major order; NaN stands for
// what is missing.
type Rows struct {
	Path   string
	SHA256 string // of the file, in hex
	Len    int
	Values map[string][]float64
}

// Width is how many numbers of that name each row has; 0 where there are none.
func (r *Rows) Width(name string) int {
	if r.Len == 0 {
		return 0
	}
	return len(r.Values[name]) / r.Len
}

// ReadRows reads what is wanted and there of the file at path, whose extension tells the
// format, as in [Read].
func ReadRows(path string, wanted []Wanted) (*Rows, error) {
	f, sum, err := open(path)
	if err != nil {
		return nil, file.Error(path, err)
	}
	defer f.Close()
	r := &rowReader{Rows: Rows{Path: path, SHA256: sum, Values: map[string][]float64{}}, wanted: wanted}
	switch ext := strings.ToLower(filepath.Ext(path)); ext {
	case ".npz":
		return &r.Rows, r.arrays() // names the file
	case ".csv":
		err = r.text(f, ',')
	case ".tsv":
		err = r.text(f, '\t')
	case ".jsonl":
		err = r.objects(f)
	case ".parquet":
		err = r.parquet(f)
	default:
		err = fmt.Errorf("unknown format %q of predictions, want one of .npz .csv .tsv .jsonl .parquet", ext)
	}
	if err == nil && r.Len == 0 {
		err = errors.New("no rows")
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return &r.Rows, nil
}

type rowReader struct {
	Rows
	wanted []Wanted
}

// grown refuses more numbers than any results have.
func (r *rowReader) grown(name string) error {
	if len(r.Values[name]) > maxPredictions {
		return fmt.Errorf("%q: more than %d numbers", name, maxPredictions)
	}
	return nil
}

// arrays reads an .npz.
func (r *rowReader) arrays() error {
	f, err := numpy.Open(r.Path)
	if err != nil {
		return err
	}
	defer f.Close()
	for _, w := range r.wanted {
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
		return fmt.Errorf("%s: none of the arrays %s among %s", r.Path, numpy.Quote(r.firsts()), numpy.Quote(f.Keys))
	}
	return nil
}

// firsts are the names that are told to users.
func (r *rowReader) firsts() (names []string) {
	for _, w := range r.wanted {
		names = append(names, w.Names[0])
	}
	return names
}

// cells says in which columns the elements of what is wanted stand.
func (r *rowReader) cells(header []string) (at map[string][]int, err error) {
	at = map[string][]int{}
	for _, w := range r.wanted {
		for _, name := range w.Names {
			if i := slices.Index(header, name); i >= 0 {
				at[w.Names[0]] = []int{i}
				break
			}
		}
		for _, format := range w.Cells {
			if at[w.Names[0]] != nil {
				break
			}
			if at[w.Names[0]], err = elements(header, format); err != nil {
				return nil, err
			}
		}
	}
	return at, nil
}

// elements finds columns whose names are that of a format, with all indices from 0 on, in
// row-major order.
func elements(header []string, format string) ([]int, error) {
	pattern := regexp.MustCompile("^" + strings.ReplaceAll(regexp.QuoteMeta(format), "%d", `(\d{1,7})`) + "$")
	found, size := map[string]int{}, make([]int, strings.Count(format, "%d"))
	for i, name := range header {
		m := pattern.FindStringSubmatch(name)
		if m == nil {
			continue
		}
		index := make([]string, len(size))
		for d, digits := range m[1:] {
			n, _ := strconv.Atoi(digits)
			size[d], index[d] = max(size[d], n+1), strconv.Itoa(n)
		}
		key := strings.Join(index, " ")
		if _, twice := found[key]; twice {
			return nil, fmt.Errorf("two columns %q", name)
		}
		found[key] = i
	}
	total := 1
	for _, n := range size {
		total *= n
	}
	if len(found) == 0 {
		return nil, nil
	}
	if len(found) != total {
		return nil, fmt.Errorf("%d columns %s, want %d: one for each index", len(found), strings.ReplaceAll(format, "%d", "…"), total)
	}
	columns := make([]int, total)
	for i := range columns {
		index, rest := make([]string, len(size)), i
		for d := len(size) - 1; d >= 0; d-- {
			index[d], rest = strconv.Itoa(rest%size[d]), rest/size[d]
		}
		columns[i] = found[strings.Join(index, " ")] // there are as many as indices, and none twice
	}
	return columns, nil
}

// text reads a table with commas or tabs between cells.
func (r *rowReader) text(f io.Reader, comma rune) error {
	in := csv.NewReader(bufio.NewReaderSize(f, 1<<16))
	in.Comma, in.ReuseRecord = comma, true
	header, err := in.Read()
	if err == io.EOF {
		return errors.New("empty")
	}
	if err != nil {
		return err
	}
	names := make([]string, len(header))
	for i, name := range header {
		names[i] = strings.TrimSpace(cell.Bare(strings.TrimPrefix(name, "\ufeff")))
	}
	at, err := r.cells(names)
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
		for _, w := range r.wanted {
			name := w.Names[0]
			for _, i := range at[name] {
				x, err := parseValue(record[i])
				if err != nil {
					return fmt.Errorf("row %d: column %q: %w", r.Len, names[i], err)
				}
				r.Values[name] = append(r.Values[name], x)
			}
			if err := r.grown(name); err != nil {
				return err
			}
		}
	}
}

// objects reads an object in each line: of lists, as score writes them, or of columns.
func (r *rowReader) objects(f io.Reader) error {
	in := json.NewDecoder(bufio.NewReaderSize(f, 1<<16))
	for ; ; r.Len++ {
		var object map[string]json.RawMessage
		err := in.Decode(&object)
		if err == io.EOF {
			return nil
		}
		if err == nil {
			err = r.object(object)
		}
		if err != nil {
			return fmt.Errorf("row %d: %w", r.Len, err)
		}
	}
}

func (r *rowReader) object(object map[string]json.RawMessage) error {
	var header []string
	for key := range object {
		header = append(header, key)
	}
	slices.Sort(header)
	at, err := r.cells(header)
	if err != nil {
		return err
	}
	for _, w := range r.wanted {
		name := w.Names[0]
		var values []float64
		for _, i := range at[name] {
			var v any
			if err := json.Unmarshal(object[header[i]], &v); err != nil {
				return err
			}
			if values, err = flatten(values, v); err != nil {
				return fmt.Errorf("%q: %w", header[i], err)
			}
		}
		if err := r.take(name, r.Len, values); err != nil {
			return err
		}
	}
	return nil
}

// flatten appends the numbers of lists of lists. What is null in place of a number is NaN.
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

// take adds the numbers of one row, the rows-th. Nothing, or a single null, is a row without.
func (r *rowReader) take(name string, rows int, values []float64) error {
	width := 0
	if all := r.Values[name]; rows > 0 && all != nil {
		width = len(all) / rows
	}
	none := len(values) == 0 || len(values) == 1 && math.IsNaN(values[0])
	switch {
	case none && width == 0:
		return nil // until there are some
	case none:
		values = missing(width)
	case width == 0:
		r.Values[name] = missing(rows * len(values))
	case len(values) != width:
		return fmt.Errorf("%q: %d numbers, want %d as in the rows before", name, len(values), width)
	}
	r.Values[name] = append(r.Values[name], values...)
	return r.grown(name)
}

// parquet reads whole columns.
func (r *rowReader) parquet(f *os.File) (err error) {
	defer func() {
		if p := recover(); p != nil { // the library's, on some damaged files
			err = fmt.Errorf("damaged: %v", p)
		}
	}()
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	if err := checkFooter(f, size); err != nil {
		return err
	}
	of, err := parquet.OpenFile(io.NewSectionReader(f, 0, size), size)
	if err != nil {
		return err
	}
	in := parquetReader{file: of, leaves: of.Schema().Columns()}
	r.Len = int(of.NumRows())
	at, err := r.cells(in.names())
	if err != nil {
		return err
	}
	for _, w := range r.wanted {
		name := w.Names[0]
		var each [][]float64
		for _, column := range at[name] {
			values, lengths, err := in.read(column)
			if err == nil && len(lengths) != r.Len {
				err = fmt.Errorf("damaged: %d rows of %d", len(lengths), r.Len)
			}
			if err != nil {
				return fmt.Errorf("column %q: %w", in.names()[column], err)
			}
			if len(in.leaves[column]) > 1 { // a list in each row
				if err := r.lists(name, values, lengths); err != nil {
					return err
				}
				continue
			}
			each = append(each, values)
		}
		if each == nil {
			continue
		}
		all := make([]float64, 0, r.Len*len(each))
		for row := range r.Len {
			for _, values := range each {
				all = append(all, values[row])
			}
		}
		r.Values[name] = all
		if err := r.grown(name); err != nil {
			return err
		}
	}
	return nil
}

// lists takes rows of lists.
func (r *rowReader) lists(name string, values []float64, lengths []int) error {
	for row, n := range lengths {
		if err := r.take(name, row, values[:n]); err != nil {
			return fmt.Errorf("row %d: %w", row, err)
		}
		values = values[n:]
	}
	return nil
}

// TaskOf tells whose predictions the file at path holds by the names that score writes:
// "labels", "regression", or else "classes".
func TaskOf(path string) string {
	rows, err := ReadRows(path, []Wanted{
		{Names: []string{"mutual_informations"}, Cells: []string{"mutual_information_%d"}},
		{Names: []string{"epistemic_std"}, Cells: []string{"epistemic_std_%d"}},
	})
	switch {
	case err != nil:
		return "classes" // whose reader says what is wrong
	case rows.Values["mutual_informations"] != nil:
		return "labels"
	case rows.Values["epistemic_std"] != nil:
		return "regression"
	}
	return "classes"
}

// A TaskError says that predictions are of another task than of classes that exclude each
// other.
type TaskError struct{ Task string }

func (e *TaskError) Error() string {
	if e.Task == "labels" {
		return "predictions of independent labels, want those of classes that exclude each other"
	}
	return "predictions of a regression, want those of classes"
}
