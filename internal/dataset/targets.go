package dataset

import (
	"fmt"
	"slices"

	"github.com/swagwrap/swagwrap/internal/dataset/listing"
	"github.com/swagwrap/swagwrap/internal/dataset/table"
	"github.com/swagwrap/swagwrap/internal/numpy"
	"github.com/swagwrap/swagwrap/internal/truth"
)

// ReadTargets reads only the targets of training examples. They are in an array, with a usual name for labels in an
// .npz file, or in the columns of a table whose names mark labels. Such a table may have other columns of any kind.
func ReadTargets(path string) (t truth.Truth, err error) {
	if !table.Is(path) {
		return readTargetArray(path)
	}
	tab, err := table.Open(path)
	if err != nil {
		return t, err
	}
	_, labels := listing.Head(tab.Names, true)
	if labels == nil {
		return t, fmt.Errorf("%s: no column target, or target_0, target_1 …, among %s", path, numpy.Quote(tab.Names))
	}
	var names []string
	for _, i := range labels {
		names = append(names, tab.Names[i])
	}
	columns, err := tab.Read(nil, names)
	if err != nil {
		return t, err
	}
	var of []*table.Column
	for _, name := range names {
		of = append(of, columns[name])
	}
	t.Width = len(of)
	if of[0].Lengths != nil && len(of) == 1 {
		t.Width = of[0].Lengths[0]
	}
	for _, c := range of {
		if len(c.Inner) > 0 || c.Lengths != nil && (len(of) > 1 || t.Width == 0 || slices.Min(c.Lengths) != slices.Max(c.Lengths)) {
			return truth.Truth{}, fmt.Errorf("%s: column %q: lists, want a number or as many for each example", path, c.Name)
		}
	}
	for i := range of[0].Len() {
		for _, c := range of {
			t.Values = append(t.Values, c.At(i))
		}
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
