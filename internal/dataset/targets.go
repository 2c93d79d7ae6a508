package dataset

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/swagwrap/swagwrap/internal/dataset/listing"
	"github.com/swagwrap/swagwrap/internal/dataset/table"
	"github.com/swagwrap/swagwrap/internal/names"
	"github.com/swagwrap/swagwrap/internal/numpy"
	"github.com/swagwrap/swagwrap/internal/target"
)

// ReadClassNames returns the sorted names in the label column of the table at path, which named may name. It returns
// nil if the file is no table, cannot be read, or has other labels.
func ReadClassNames(path string, named listing.Columns) []string {
	if tablePaths(path) == nil {
		return nil
	}
	tab, err := tableAt(path)
	if err != nil {
		return nil
	}
	_, labels, _, err := named.Find(tab.Names, false)
	if err != nil || len(labels) != 1 {
		return nil
	}
	_, found, err := readLabels(tab, labels, target.Classes)
	if err != nil {
		return nil
	}
	return found.Names
}

// readLabels reads the columns of a table that have the labels.
func readLabels(tab *table.Table, labels []int, kind target.Kind) (t target.Target, found *names.Resolved, err error) {
	h := head{names: tab.Names, path: -1, labels: labels}
	text, _ := h.read(true)
	columns, err := tab.Read(text, nil)
	if err != nil {
		return t, nil, err
	}
	return h.target(tab, columns, Options{Target: kind})
}

// ReadTargets reads only the targets of training examples. They are in an array, with a usual name for labels in an
// .npz file, or in the columns of a table whose names mark labels, or that named names. Such a table may have other columns of any kind.
func ReadTargets(path string, named listing.Columns) (t target.Target, err error) {
	if tablePaths(path) == nil {
		t, _, err = numpy.OpenTargets(path, "", target.Numbers, nil, numpy.AnyCount, path)
		return t, err
	}
	tab, err := tableAt(path)
	if err != nil {
		return t, err
	}
	_, labels, _, err := named.Find(tab.Names, true)
	if err != nil {
		return t, fmt.Errorf("%s: %w", path, err)
	}
	if labels == nil {
		return t, fmt.Errorf("%s: no column target, or target_0, target_1 …, among %s", path, numpy.Quote(tab.Names))
	}
	t, _, err = readLabels(tab, labels, target.Numbers)
	if err == nil && t.None() {
		err = fmt.Errorf("%s: no targets in column %q", path, tab.Names[labels[0]])
	}
	return t, err
}

// CheckReadable returns the error of a file of arrays or a table that cannot be opened, and nil for other data.
func CheckReadable(path string) error {
	switch ext := strings.ToLower(filepath.Ext(path)); {
	case slices.Contains(table.Extensions, ext):
		_, err := table.Open(path)
		return err
	case ext == ".npz" || ext == ".npy":
		f, err := numpy.Open(path)
		if err == nil {
			f.Close()
		}
		return err
	}
	return nil
}
