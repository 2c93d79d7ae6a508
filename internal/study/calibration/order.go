package calibration

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/swagwrap/swagwrap/internal/dataset/fileorder"
	"github.com/swagwrap/swagwrap/internal/dataset/table"
)

// namesOf returns the column path of a table, or nil if a file has none.
func namesOf(path string) ([]string, error) {
	if !slices.Contains(table.Extensions, strings.ToLower(filepath.Ext(path))) {
		return nil, nil
	}
	t, err := table.OpenGaps(path)
	if err != nil || !slices.Contains(t.Names, "path") {
		return nil, err
	}
	found, err := t.Read([]string{"path"}, nil)
	if err != nil {
		return nil, err
	}
	return found["path"].Texts, nil
}

// labelRows returns the row of a file of labels for each row of predictions: by their names if both have names, and else nil, by
// place. It fails if nobody knows the order of the rows.
func labelRows(path, labels string) ([]int, error) {
	names, err := namesOf(path)
	if names == nil {
		return nil, err
	}
	known, err := namesOf(labels)
	switch {
	case err != nil:
		return nil, err
	case known == nil:
		return nil, fileorder.OfRows(path, names).ByPlace(labels)
	case slices.Equal(names, known):
		return nil, nil
	}
	at := make(map[string]int, len(known))
	for row, name := range known {
		if other, twice := at[name]; twice {
			return nil, fmt.Errorf("%s: rows %d and %d have the same path %q", labels, other, row, name)
		}
		at[name] = row
	}
	rows := make([]int, len(names))
	for i, name := range names {
		row, ok := at[name]
		if !ok {
			return nil, fmt.Errorf("%s: no row has the path %q, row %d of %s", labels, name, i, path)
		}
		rows[i] = row
	}
	return rows, nil
}

// picked returns rows of a width, or all of them in their order if rows is nil.
func picked(values []float64, rows []int, width int) (out []float64) {
	if rows == nil {
		return values
	}
	for _, row := range rows {
		out = append(out, values[row*width:][:width]...)
	}
	return out
}
