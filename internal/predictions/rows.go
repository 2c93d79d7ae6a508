package predictions

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/swagwrap/swagwrap/internal/dataset/table"
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
	SHA256 string // hash of the file, in hex
	Len    int
	Values map[string][]float64
	// Unused are the names of arrays or columns that were not wanted, and that score does not write.
	Unused []string
}

// Width returns the number of values with that name in each row, or 0 if there are none.
func (r *Rows) Width(name string) int {
	if r.Len == 0 {
		return 0
	}
	return len(r.Values[name]) / r.Len
}

// Row returns the values with that name in row i.
func (r *Rows) Row(name string, i int) []float64 {
	w := r.Width(name)
	return r.Values[name][i*w:][:w]
}

// ErrNoTargets is the error of predictions without true values.
var ErrNoTargets = errors.New("no labels")

// ReadRows reads the wanted numbers of the file at path. The extension selects the format, as in [Read].
func ReadRows(path string, wanted []Wanted) (*Rows, error) {
	if strings.EqualFold(filepath.Ext(path), ".npz") {
		r := &Rows{Path: path, Values: map[string][]float64{}}
		return r, r.arrays(wanted) // its errors have the path
	}
	return readTable(path, func(columns []savedColumn) ([]pick, error) { return pickWanted(columns, wanted) })
}

// arrays reads an .npz file.
func (r *Rows) arrays(wanted []Wanted) error {
	f, err := numpy.Open(r.Path)
	if err != nil {
		return err
	}
	defer f.Close()
	r.SHA256 = f.SHA256
	used := map[string]bool{}
	defer func() { r.Unused = unused(f.Keys, func(name string) bool { return used[name] }) }()
	for _, w := range wanted {
		i := slices.IndexFunc(w.Names, func(name string) bool { return slices.Contains(f.Keys, name) })
		if i < 0 {
			continue
		}
		used[w.Names[i]] = true
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
	if r.Len > 0 {
		return nil
	}
	var names []string
	for _, w := range wanted {
		names = append(names, w.Names[0])
	}
	return fmt.Errorf("%s: none of the arrays %s among %s", r.Path, numpy.Quote(names), numpy.Quote(f.Keys))
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

// elements returns the columns of numbers whose names have indices, in row-major order. The indices must be complete
// from 0 on. indices returns the indices in a name, or nil. Messages show the format of the names as shown.
func elements(columns []savedColumn, shown string, indices func(name string) []string) ([]int, error) {
	found, size := map[string]int{}, []int(nil)
	for i, c := range columns {
		index := indices(c.name)
		if index == nil || c.list {
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

// readTable reads the picked columns of the CSV, TSV, JSON lines or Parquet file at path.
func readTable(path string, choose picker) (*Rows, error) {
	if ext := strings.ToLower(filepath.Ext(path)); !slices.Contains(table.Extensions, ext) {
		return nil, fmt.Errorf("%s: format of predictions %w", path, &word.Unknown{Word: ext, Want: readFormats})
	}
	t, err := table.OpenGaps(path)
	if err != nil {
		return nil, err
	}
	columns := make([]savedColumn, len(t.Names))
	for i, name := range t.Names {
		columns[i] = savedColumn{name, t.Lists[i]}
	}
	picks, err := choose(columns)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	var names []string
	used := map[string]bool{}
	for _, p := range picks {
		for _, i := range p.columns {
			names, used[t.Names[i]] = append(names, t.Names[i]), true
		}
	}
	found, err := t.Read(nil, names)
	if err != nil {
		return nil, err
	}
	r := &Rows{Path: path, SHA256: t.SHA256, Len: t.Rows, Values: map[string][]float64{}, Unused: unused(t.Names, func(name string) bool {
		return used[name]
	})}
	for _, p := range picks {
		cells := make([]*table.Column, len(p.columns))
		for k, i := range p.columns {
			cells[k] = found[t.Names[i]]
		}
		if r.Values[p.key], err = joined(cells, t.Rows); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
	}
	return r, nil
}

// joined returns the numbers of all rows: the lists of the only column, or one number from each column. It returns nil
// if no row has a list.
func joined(columns []*table.Column, rows int) ([]float64, error) {
	n := len(columns)
	if c := columns[0]; n == 1 && c.Lengths != nil {
		return lists(c)
	}
	values := make([]float64, rows*n)
	for k, c := range columns {
		for row := range rows {
			values[row*n+k] = c.At(row)
		}
	}
	return values, nil
}

// lists returns the numbers of the lists of a column. A missing list becomes a row of NaN.
func lists(c *table.Column) (values []float64, err error) {
	length, numbers := 0, 1 // of a list, and in each of its elements
	for _, d := range c.Inner {
		numbers *= d
	}
	for row, n := range c.Lengths {
		if length = cmp.Or(length, n); n != 0 && n != length {
			return nil, fmt.Errorf("row %d: column %q: a list of %d, want %d as in the rows before", row, c.Name, n, length)
		}
	}
	at := 0
	for _, n := range c.Lengths {
		for range length * numbers {
			x := math.NaN()
			if n > 0 {
				x = c.At(at)
				at++
			}
			values = append(values, x)
		}
	}
	return values, nil
}

// TaskOf returns the task of the predictions in the file at path, by the names in it. It is "labels", "regression", or otherwise
// "classes".
func TaskOf(path string) string {
	names, err := namesIn(path)
	if err != nil {
		return "classes" // the reader of classes reports the error
	}
	return taskOf(names)
}

// namesIn returns the names of the arrays or columns of a file.
func namesIn(path string) ([]string, error) {
	if ext := strings.ToLower(filepath.Ext(path)); ext == ".npz" || ext == ".npy" {
		f, err := numpy.Open(path)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		return f.Keys, nil
	}
	t, err := table.OpenGaps(path)
	if err != nil {
		return nil, err
	}
	return t.Names, nil
}

// taskOf knows tasks by names that score writes. Regressions of other programs have a mean, or targets and a spread, and no scores of
// classes.
func taskOf(names []string) string {
	has := func(wanted ...string) bool {
		return slices.ContainsFunc(names, func(name string) bool {
			return slices.Contains(wanted, name) || slices.Contains(wanted, indexed.ReplaceAllString(name, ""))
		})
	}
	scores := func(name string) bool { // also followed by a number without a sign between, such as p3
		return meaning(name) != "" || meaning(strings.TrimRight(name, "0123456789")) != ""
	}
	switch {
	case has("mutual_informations") || slices.Contains(names, "mutual_information_0"):
		return "labels"
	case has("epistemic_std"):
		return "regression"
	case slices.ContainsFunc(names, scores):
		return "classes"
	case has("mean", "means", "mu", "loc", "pred_mean"):
		return "regression"
	case has("y_pred", "pred", "prediction", "predictions") && slices.ContainsFunc(spreads, func(s spread) bool { return has(s.names...) }):
		return "regression"
	}
	return "classes"
}

// otherTasks says what is wrong with predictions of tasks without classes that exclude each other.
var otherTasks = map[string]string{
	"labels":     "predictions of independent labels, want those of classes that exclude each other",
	"regression": "predictions of a regression, want those of classes",
}

// A TaskError says that predictions belong to another task than classification with mutually exclusive classes.
type TaskError struct{ Task string }

func (e *TaskError) Error() string {
	return otherTasks[e.Task]
}
