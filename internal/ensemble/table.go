package ensemble

import (
	"bufio"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/swagwrap/swagwrap/internal/dataset"
)

// Formats lists the extensions of files that rows can be written to; see
// docs/formats.md.
var Formats = []string{".csv", ".jsonl", ".parquet", ".npz"}

// Format returns the format of a file name, or of "-", which is CSV.
func Format(name string) (string, error) {
	if name == "-" {
		return ".csv", nil
	}
	ext := strings.ToLower(filepath.Ext(name))
	if !slices.Contains(Formats, ext) {
		return "", fmt.Errorf("%s: unknown output format %q, want one of %s", name, ext, strings.Join(Formats, " "))
	}
	return ext, nil
}

// Table says what rows mean.
type Table struct {
	Columns Columns
	Classes int
	Members int
	Errors  bool // there is a column for errors

	data   dataset.Dataset
	labels []int    // nil if there are none
	names  []string // of the classes, likewise
}

// Table returns what the rows of s mean.
func (s *Scorer) Table() *Table {
	return &Table{Columns: s.columns, Classes: s.classes, Members: s.count, Errors: s.skip, data: s.data, labels: s.labels, names: s.names}
}

// ClassNames returns the names of the classes, or nil.
func (t *Table) ClassNames() []string { return t.names }

// Label returns the label of an example, or −1.
func (t *Table) Label(i int) int {
	if t.labels == nil {
		return -1
	}
	return t.labels[i]
}

// label is Label with nil for none.
func (t *Table) label(i int) *int64 {
	v := int64(t.Label(i))
	if v < 0 {
		return nil
	}
	return &v
}

// RowWriter writes rows in the order in which it gets them.
type RowWriter interface {
	Write(*Row) error
	Flush() error // passes on what is held back
	Close() error // does not close what is written to
}

// Write writes all rows in the given format. each calls a function with every
// row, and may be called several times.
func (t *Table) Write(w io.Writer, format string, each func(func(*Row) error) error) error {
	buf := bufio.NewWriterSize(w, 1<<18)
	if format == ".npz" {
		if err := t.writeNPZ(buf, each); err != nil {
			return err
		}
		return buf.Flush()
	}
	var rows RowWriter
	switch format {
	case ".csv":
		rows = t.CSV(buf)
	case ".jsonl":
		rows = t.jsonl(buf)
	case ".parquet":
		rows = t.parquet(buf)
	default:
		panic("ensemble: unknown format")
	}
	if err := each(rows.Write); err != nil {
		return err
	}
	if err := rows.Close(); err != nil {
		return err
	}
	return buf.Flush()
}

// Names lists the columns of a CSV file.
func (t *Table) Names() []string {
	names := []string{"path", "label", "prediction"}
	if t.names != nil {
		names = append(names, "name")
	}
	names = append(names, "confidence", "predictive_entropy", "expected_entropy", "mutual_information")
	if t.Columns.Top > 1 {
		for k := 1; k <= t.Columns.Top; k++ {
			names = append(names, fmt.Sprintf("top_%d", k))
			if t.names != nil {
				names = append(names, fmt.Sprintf("top_%d_name", k))
			}
			names = append(names, fmt.Sprintf("top_%d_probability", k))
		}
	}
	if t.Columns.Probabilities {
		for c := range t.Classes {
			names = append(names, fmt.Sprintf("p_%d", c))
		}
	}
	if t.Columns.Members {
		for m := range t.Members {
			for c := range t.Classes {
				names = append(names, fmt.Sprintf("member_%d_p_%d", m, c))
			}
		}
	}
	if t.Errors {
		names = append(names, "error")
	}
	return names
}

// number keeps nine digits: networks answer in float32, which has no more.
func number(v float64) string { return strconv.FormatFloat(v, 'g', 9, 64) }
