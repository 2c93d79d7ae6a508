package table

import (
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/swagwrap/swagwrap/internal/csvsafe"
)

// rows returns a reader of the rows of a CSV file. As in lists, lines that begin with # are skipped in tables of examples. The path
// of a prediction may begin with #.
func (t *Table) rows(f io.Reader) *csvsafe.Rows {
	return csvsafe.NewRows(f, maxObject, !t.gaps, func(first string) rune {
		if extension(t.Path) == ".tsv" {
			return '\t'
		}
		return csvsafe.Comma(first)
	})
}

func (t *Table) openCSV(f *io.SectionReader) error {
	in := t.rows(f)
	n, err := in.Next()
	if err == io.EOF {
		return errors.New("empty, want a first line with the names of the columns")
	}
	if err != nil {
		return err
	}
	for i := range n {
		name, _ := in.Cell(i)
		t.Names = append(t.Names, strings.Clone(name))
	}
	if !slices.ContainsFunc(t.Names, func(name string) bool { _, err := parseFloat(name); return err != nil && name != "" }) {
		return fmt.Errorf("first line %q, want the names of the columns", t.Names[:min(len(t.Names), 5)])
	}
	t.read = t.readCSV
	return nil
}

func (t *Table) readCSV(f *io.SectionReader, columns []*Column) (rows int, err error) {
	in, form := t.rows(f), csvsafe.Form{}
	if _, err := in.Next(); err != nil {
		return 0, err
	}
	for ; ; rows++ {
		_, err := in.Next() // checks that the row is as wide as the first
		if err == io.EOF {
			return rows, nil
		}
		if err != nil {
			return 0, err
		}
		for i, c := range columns {
			if c == nil {
				continue
			}
			text, line := in.Cell(i)
			if in.Comma == ';' {
				if text, err = c.point(place{"line", line}, text, &form); err != nil {
					return 0, err
				}
			}
			if c.text {
				c.Texts = append(c.Texts, strings.Clone(text))
				continue
			}
			if err := c.add(place{"line", line}, text); err != nil {
				return 0, err
			}
		}
	}
}

// point returns a number with a decimal comma as one with a point, as the form of the file allows.
func (c *Column) point(where place, text string, of *csvsafe.Form) (string, error) {
	number, comma, err := of.Number(text, func() string { return fmt.Sprintf("%s, column %q", where, c.Name) })
	if err == nil && !comma && !c.text && strings.Contains(text, ",") && strings.Trim(text, "0123456789.,+-") == "" {
		err = c.fail(where, "%.40q, in a file with semicolons and decimal commas: %w", text, csvsafe.ErrDecimal)
	}
	return number, err
}

// parseInt parses an integer, or a boolean as pandas writes it.
func parseInt(text string) (int64, bool) {
	switch text {
	case "True", "true":
		return 1, true
	case "False", "false":
		return 0, true
	}
	v, err := strconv.ParseInt(text, 10, 64)
	return v, err == nil
}

// parseFloat parses a number. A number that is too large becomes infinite.
func parseFloat(text string) (float64, error) {
	v, err := strconv.ParseFloat(text, 64)
	if math.IsInf(v, 0) {
		err = nil
	}
	return v, err
}
