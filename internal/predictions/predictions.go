// Package predictions holds what a run of scoring says of its examples, row by row:
// in files that others read, and in the work file that a run goes on from.
//
// A [Schema] says what rows hold, by the columns of a task. Formats go by the kinds
// of columns, never by their names: a task with other columns is written by all of
// them. [Write] and [Read] are of files in .csv, .jsonl, .parquet and .npz, each
// format in a file of its own here, as docs/formats.md has them. [Records] is the
// work file.
//
// # Invariants
//
// The same rows give the same bytes. A row has the values of all columns, or an
// error and none.
//
// # Concurrency
//
// Nothing here may be used by several goroutines at once, but for a Schema.
package predictions

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"iter"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/swagwrap/swagwrap/internal/task"
)

// Row is what is said of one example.
type Row struct {
	Index  int    // of the example
	Path   string // its name
	Label  int    // −1 for none
	Error  string // why there are no values, in one line; or empty
	Values []float64
}

// Schema says what rows hold.
type Schema struct {
	Columns    []task.Column // of Values, in their order
	ClassNames []string      // nil for none
	Labels     bool          // examples have labels
	Errors     bool          // there is a column for errors
	// Width is how many numbers an outcome has, whether or not rows have it. The
	// row groups of Parquet files go by it.
	Width int
}

// All goes through the columns, hidden ones too, and the values that a row has of
// each. The row must not have an error.
func (s *Schema) All(r *Row) iter.Seq2[task.Column, []float64] {
	return func(yield func(task.Column, []float64) bool) {
		at := 0
		for _, c := range s.Columns {
			if !yield(c, r.Values[at:at+c.Len()]) {
				return
			}
			at += c.Len()
		}
	}
}

// classes reports whether what is known of examples are classes, and no columns of a task.
func (s *Schema) classes() bool {
	return !slices.ContainsFunc(s.Columns, func(c task.Column) bool { return c.Truth })
}

// formats lists the extensions of files that rows can be written to.
var formats = []string{".csv", ".jsonl", ".parquet", ".npz"}

// Format returns the format of a file name, or of "-", which is CSV.
func Format(name string) (string, error) {
	if name == "-" {
		return ".csv", nil
	}
	ext := strings.ToLower(filepath.Ext(name))
	if !slices.Contains(formats, ext) {
		return "", fmt.Errorf("%s: unknown output format %q, want one of %s", name, ext, strings.Join(formats, " "))
	}
	return ext, nil
}

// writer writes rows in the order in which it gets them. Close does not close what
// is written to.
type writer interface {
	Write(*Row) error
	Close() error
}

// Write writes all rows in the given format. each calls a function with every
// row; it is called once. An .npz is held back in the folder dir until it is
// complete: this needs the same space again.
func Write(w io.Writer, format string, s *Schema, dir string, each func(func(*Row) error) error) error {
	buf := bufio.NewWriterSize(w, 1<<18)
	var rows writer
	switch format {
	case ".csv":
		rows = NewCSV(buf, s)
	case ".jsonl":
		rows = newJSONL(buf, s)
	case ".parquet":
		rows = newParquet(buf, s)
	case ".npz":
		z, err := newNPZ(buf, s, dir)
		defer z.discard()
		if err != nil {
			return err
		}
		rows = z
	default:
		panic("predictions: unknown format")
	}
	if err := each(rows.Write); err != nil {
		return err
	}
	if err := rows.Close(); err != nil {
		return err
	}
	return buf.Flush()
}

// field is a column as files show it.
type field struct {
	task.Column
	at    int    // where its values begin in those of a row
	named string // the column with the names of the classes in this one, or ""
}

// fields lists them.
func (s *Schema) fields() []field {
	var list []field
	at, named := 0, "name"
	for _, c := range s.Columns {
		f := field{Column: c, at: at}
		at += c.Len()
		if c.Hidden {
			continue
		}
		if c.Shown > 0 {
			f.Shape = slices.Clone(c.Shape)
			f.Shape[0] = min(c.Shape[0], c.Shown)
		}
		if c.Kind == task.Class && c.Shape == nil && s.ClassNames != nil {
			f.named = cmp.Or(named, c.Name+"_name")
			named = ""
		}
		list = append(list, f)
	}
	return list
}

// values returns those of a row without an error.
func (f field) values(r *Row) []float64 { return r.Values[f.at : f.at+f.Len()] }

// leaf is a column or an array of a format that holds one type in each: a text, or
// numbers.
type leaf struct {
	name  string
	shape []int // of a row's numbers; nil for one
	kind  task.Kind
	// One of the two says what a row has of it, if anything.
	text   func(*Row) (string, bool)
	values func(*Row) []float64
	always bool // no row is without
	label  bool // it is the number of the example's class
	class  bool // it is the name of one
}

// leaves lists those of a file. Classes and probabilities of a ranking are two.
func (s *Schema) leaves() []leaf {
	list := []leaf{{name: "path", always: true, text: func(r *Row) (string, bool) { return r.Path, true }}}
	if s.Labels {
		list = append(list, leaf{name: "label", kind: task.Class, label: true, values: func(r *Row) []float64 {
			if r.Label < 0 {
				return nil
			}
			return []float64{float64(r.Label)}
		}})
	}
	for _, f := range s.fields() {
		if f.Kind == task.Ranked {
			list = append(list,
				leaf{name: f.Name, shape: f.Shape, kind: task.Class, values: f.every(2, 0)},
				leaf{name: f.Name + "_probability", shape: f.Shape, values: f.every(2, 1)})
			continue
		}
		list = append(list, leaf{name: f.Name, shape: f.Shape, kind: f.Kind, values: f.every(1, 0)})
		if f.named != "" {
			list = append(list, leaf{name: f.named, class: true, text: func(r *Row) (string, bool) {
				if r.Error != "" {
					return "", false
				}
				return s.ClassNames[int(r.Values[f.at])], true
			}})
		}
	}
	if s.Errors {
		list = append(list, leaf{name: "error", text: func(r *Row) (string, bool) { return r.Error, r.Error != "" }})
	}
	return list
}

// every returns what gives every so many of a row's values, in memory of its own
// where they are not all.
func (f field) every(step, from int) func(*Row) []float64 {
	var some []float64
	return func(r *Row) []float64 {
		if r.Error != "" {
			return nil
		}
		all := f.values(r)
		if step == 1 {
			return all
		}
		some = some[:0]
		for i := from; i < len(all); i += step {
			some = append(some, all[i])
		}
		return some
	}
}

// number is a value as formats of text have it. Nine digits are kept: networks answer
// in float32, which has no more.
func number(v float64) string { return strconv.FormatFloat(v, 'g', 9, 64) }
