package listing

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/swagwrap/swagwrap/internal/cell"
	"github.com/swagwrap/swagwrap/internal/file"
	"github.com/swagwrap/swagwrap/internal/truth"
)

// ReadTargets reads the columns of a table with a header, a .csv or .tsv by ext, that are a
// list's targets.
func ReadTargets(r io.Reader, ext string) (t truth.Truth, err error) {
	lines := bufio.NewScanner(r)
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
