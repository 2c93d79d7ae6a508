package dataset

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/swagwrap/swagwrap/internal/dataset/listing"
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
		t, err = listing.ReadTargets(f, ext)
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
