// Package predictions writes the results of a scoring run, one row per example, and reads predictions of any program.
//
// A [Schema] describes the rows by the columns of a task. The formats depend only on the kinds of the columns, not on
// their names. So every format can write the columns of any task. [Write] and [Read] handle the formats .csv, .jsonl,
// .parquet and .npz, which docs/formats.md specifies. Package records has the files of unfinished runs and of parts.
//
// # Invariants
//
// The same rows give the same bytes. A row has either the values of all columns, or an error and no values.
//
// # Concurrency
//
// Several goroutines may use a [Schema]. Only one goroutine at a time may use a value of any other type.
package predictions

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"iter"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/swagwrap/swagwrap/internal/records"
	"github.com/swagwrap/swagwrap/internal/task"
	"github.com/swagwrap/swagwrap/internal/word"
)

// Row is the result for one example.
type Row = records.Row

// Schema describes the contents of rows.
type Schema struct {
	Columns    []task.Column   // of Values, in their order
	Want       task.RowOptions // the request that the task made the columns for
	ClassNames []string        // nil for none
	Labels     bool            // examples have labels
	Errors     bool            // there is a column for errors
	// Width is the number of values in an outcome, also if rows do not store them. It sets the size of the row groups
	// in Parquet files.
	Width int
	// Sides are the sizes of the axes of an example's positions, all 0 if it has one position.
	Sides [3]int
	// Windows is the number of windows of each row of a text, or 0 for other data. All rows of a text advance together, so
	// work files have window after window.
	Windows int
}

// InOrder wraps each, so that rows come in the order of the words of a text. each calls its argument with n rows in the
// order of a work file.
func (s *Schema) InOrder(n int, each func(func(*Row) error) error) func(func(*Row) error) error {
	if s.Windows < 2 {
		return each
	}
	return func(f func(*Row) error) error {
		rows := n / s.Windows
		for own := range rows {
			at := 0
			err := each(func(r *Row) error {
				here := at
				if at++; here%rows != own {
					return nil
				}
				r.Index += own*s.Windows + here/rows - here
				return f(r)
			})
			if err != nil {
				return err
			}
		}
		return nil
	}
}

// All iterates over the columns, including hidden ones, and their values in a row. The row must not have an error.
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

// classes reports whether the true values of examples are classes in Label, not columns of the task.
func (s *Schema) classes() bool {
	return !slices.ContainsFunc(s.Columns, func(c task.Column) bool { return c.Target })
}

// formats lists the extensions of files that rows can be written to.
var formats = []string{".csv", ".jsonl", ".parquet", ".npz"}

// Format returns the format of a file by its extension. The format of "-" is CSV.
func Format(name string) (string, error) {
	switch name {
	case "-":
		return ".csv", nil
	case "":
		return "", errors.New("no output file")
	}
	ext := strings.ToLower(filepath.Ext(name))
	if !slices.Contains(formats, ext) {
		return "", fmt.Errorf("%s: format %w", name, &word.Unknown{Word: ext, Want: formats})
	}
	return ext, nil
}

// writer writes rows in the order of the calls. Close does not close the underlying writer.
type writer interface {
	Write(*Row) error
	Close() error
}

// Write writes all rows in the given format. It calls each once, and each calls its argument with every row. The arrays
// of an .npz file are kept in temporary files in the folder dir until they are complete. These need the same space
// again.
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
	at    int    // index of its first value in the values of a row
	named string // name of the column with the names of these classes, or ""
}

// fields lists the columns that files show.
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

// values returns the values of the field in a row without an error.
func (f field) values(r *Row) []float64 { return r.Values[f.at : f.at+f.Len()] }

// leaf is a column or an array with elements of one type, either texts or numbers.
type leaf struct {
	name  string
	shape []int // shape of the numbers in a row; nil for a single number
	kind  task.Kind
	// Exactly one of text and values is set. It extracts the cell from a row, if the row has one.
	text   func(*Row) (string, bool)
	values func(*Row) []float64
	always bool // every row has one
	label  bool // it is the class number of the example
	class  bool // it is a class name
	ragged bool // see [task.Column]
}

// leaves lists the leaves of a file. A ranking has two, for its classes and its probabilities.
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
		list = append(list, leaf{name: f.Name, shape: f.Shape, kind: f.Kind, values: f.every(1, 0), ragged: f.Ragged})
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

// every returns a function that extracts every step-th value of the field, beginning at index from. The result of the
// function is valid until its next call.
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

// number formats a value for text formats. It keeps nine digits, because networks answer in float32, which has no more.
func number(v float64) string { return strconv.FormatFloat(v, 'g', 9, 64) }
