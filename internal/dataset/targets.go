package dataset

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/swagwrap/swagwrap/internal/cell"
	"github.com/swagwrap/swagwrap/internal/file"
	"github.com/swagwrap/swagwrap/internal/numpy"
	"github.com/swagwrap/swagwrap/internal/truth"
)

// ReadTargets reads the numbers that training predicted, and nothing of what it predicted
// them from: an array, that of an .npz by its name as beside examples, or the columns of a
// .csv or .tsv that are a list's labels. Such a table may have other columns, of any kind.
func ReadTargets(path string) (t truth.Truth, err error) {
	switch ext := strings.ToLower(filepath.Ext(path)); ext {
	case ".csv", ".tsv":
		var f *os.File
		if f, _, err = file.Open(path, "a table"); err != nil {
			return t, file.Error(path, err)
		}
		defer f.Close()
		t, err = readTargetColumns(f, ext)
	default:
		return readTargetArray(path)
	}
	if err != nil {
		return truth.Truth{}, fmt.Errorf("%s: %w", path, err)
	}
	return t, nil
}

func readTargetArray(path string) (t truth.Truth, err error) {
	n, err := numpy.Open(path)
	if err != nil {
		return t, err
	}
	defer n.Close()
	key, err := n.Pick("", numpy.Labels, "")
	if err != nil {
		return t, err
	}
	if key == "" && n.Keys != nil {
		return t, fmt.Errorf("%s: no targets among %s, want an array targets", path, numpy.Quote(n.Keys))
	}
	a, err := n.Read(key, numpy.Values)
	if err != nil {
		return t, err
	}
	if s := a.Shape; len(s) != 1 && len(s) != 2 || s[0] == 0 || s[len(s)-1] == 0 {
		return t, fmt.Errorf("%s: targets of shape %d, want a number or a row for each example", n.Where(key), s)
	}
	t = truth.Truth{Values: a.Float64s(), Width: 1}
	if len(a.Shape) == 2 {
		t.Width = a.Shape[1]
	}
	return t, checkRows(n.Where(key), t)
}

func checkRows(where string, t truth.Truth) error {
	for i := range t.Len() {
		if err := truth.Numbers.Check(t.At(i).Values); err != nil {
			return fmt.Errorf("%s: row %d: %w", where, i, err)
		}
	}
	return nil
}

// readTargetColumns reads a table with a header.
func readTargetColumns(f *os.File, ext string) (t truth.Truth, err error) {
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, maxLine)
	var columns []int
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(strings.TrimPrefix(lines.Text(), "\ufeff"))
		if line == "" || line[0] == '#' {
			continue
		}
		fields, err := splitLine(line, ext)
		if err != nil {
			return t, fmt.Errorf("line %d: %w", n, err)
		}
		if columns == nil {
			if columns = targetColumns(fields); columns == nil {
				return t, errors.New("no column target, or target_0, target_1 …, in the first line")
			}
			t.Width = len(columns)
			continue
		}
		for k, i := range columns {
			if i >= len(fields) {
				return t, fmt.Errorf("line %d: %d columns, want target %d in column %d", n, len(fields), k, i+1)
			}
			v, err := strconv.ParseFloat(cell.Bare(fields[i]), 64)
			if err != nil {
				return t, fmt.Errorf("line %d: target %d is %.40q, want a number", n, k, fields[i])
			}
			t.Values = append(t.Values, v)
		}
		if err := truth.Numbers.Check(t.Values[len(t.Values)-t.Width:]); err != nil {
			return t, fmt.Errorf("line %d: %w", n, err)
		}
	}
	switch {
	case errors.Is(lines.Err(), bufio.ErrTooLong):
		return t, fmt.Errorf("a line is longer than %d bytes", maxLine)
	case lines.Err() != nil:
		return t, file.Cause(lines.Err())
	case t.Values == nil:
		return t, errors.New("no targets, want a header and a row for each example")
	}
	return t, nil
}

// targetColumns are those that a list's labels are in.
func targetColumns(header []string) (columns []int) {
	for i, name := range header {
		stem, _, _ := strings.Cut(strings.ToLower(name), "_")
		if stem == "target" || stem == "label" || strings.EqualFold(name, "y") {
			columns = append(columns, i)
		}
	}
	return columns
}
