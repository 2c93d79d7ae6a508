package listing

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/swagwrap/swagwrap/internal/names"
	"github.com/swagwrap/swagwrap/internal/target"
)

// Target returns the true values of the examples, and how names of classes became numbers.
func (l *Listing) Target(kind target.Kind, classes names.Reading) (t target.Target, found *names.Resolved, err error) {
	found = &names.Resolved{Names: classes.Known}
	if kind != target.Numbers {
		if err := l.dropMissing(kind, classes); err != nil {
			return t, found, fmt.Errorf("%s: %w", l.inputs[0].Path, err)
		}
	}
	if kind == target.Classes {
		t.Classes, found, err = l.classes(classes)
	} else {
		t, err = l.rows(kind)
	}
	return t, found, err
}

// rows converts the labels from text to rows of numbers. The result is empty if no example has a label.
func (l *Listing) rows(kind target.Kind) (t target.Target, err error) {
	some, err := l.labelled()
	if err != nil || !some || !slices.ContainsFunc(l.labels, func(v label) bool { return !v.folder }) {
		return t, err // folder names are not numbers
	}
	var signs target.Signs
	parsed := make([][]float64, len(l.labels))
	for _, e := range l.examples {
		if e.label < 0 || parsed[e.label] != nil {
			continue
		}
		row, err := parseRow(kind, l.labels[e.label])
		if err == nil && t.Width > 0 && len(row) != t.Width {
			err = fmt.Errorf("%d labels, and others have %d", len(row), t.Width)
		}
		if err != nil {
			return target.Target{}, fmt.Errorf("%s: %w", e.Path(), err)
		}
		parsed[e.label], t.Width = row, len(row)
		for _, v := range row {
			signs.Add(v)
		}
	}
	if err := signs.Err(); err != nil && kind == target.Labels {
		return target.Target{}, fmt.Errorf("%s: %w", l.inputs[0].Path, err)
	}
	for _, e := range l.examples {
		none := float64(target.Unknown)
		if kind == target.Numbers {
			none = math.NaN()
		}
		row := slices.Repeat([]float64{none}, t.Width)
		if e.label >= 0 {
			row = parsed[e.label]
		}
		t.Values = append(t.Values, row...)
	}
	return t, nil
}

// parseRow parses the labels of an example, which are separated by spaces or commas.
func parseRow(kind target.Kind, l label) (row []float64, err error) {
	if l.folder {
		return nil, fmt.Errorf("folder %q, want labels in a list or an array, not in folders' names", l.text)
	}
	for _, text := range strings.FieldsFunc(l.text, func(r rune) bool { return r == ' ' || r == ',' || r == '\t' }) {
		v, err := strconv.ParseFloat(text, 64)
		if kind == target.Labels && (text == unknown || names.Missing(text)) {
			v, err = target.Unknown, nil
		}
		if err != nil {
			return nil, fmt.Errorf("label %d is %.40q, want a number", len(row), text)
		}
		row = append(row, v)
	}
	if len(row) == 0 {
		return nil, errors.New("no label")
	}
	return row, kind.Check(row)
}

// unknown stands for an empty cell in the text of a label.
const unknown = "?"

// labelled reports whether examples have labels. A row of a list or a table may have none: its cell is empty, or NaN in a column
// of numbers. A picture beside class folders must have one, and so must one example of each input if others have labels.
func (l *Listing) labelled() (bool, error) {
	has := slices.IndexFunc(l.examples, func(e Example) bool { return e.label >= 0 })
	if has < 0 {
		return false, nil
	}
	byFolder := slices.ContainsFunc(l.labels, func(v label) bool { return v.folder })
	first := 0
	for _, in := range l.inputs {
		rows := l.examples[first : first+in.Images]
		bare := slices.IndexFunc(rows, func(e Example) bool { return e.label < 0 && e.unlisted() == nil })
		some := slices.ContainsFunc(rows, func(e Example) bool { return e.label >= 0 })
		if bare >= 0 && (byFolder || !some) {
			return false, fmt.Errorf("%s: no label, but %s has one: want all or none labelled",
				l.examples[first+bare].Path(), l.examples[has].Path())
		}
		first += in.Images
	}
	return true, nil
}

// dropMissing takes away labels that stand for none: numbers such as −1, and NaN if all others are numbers. So pandas writes an empty
// cell.
func (l *Listing) dropMissing(kind target.Kind, classes names.Reading) error {
	var signs target.Signs
	var missing, empty []int
	numbers := true // all labels are, but for empty cells
	for k, v := range l.labels {
		number, err := strconv.ParseFloat(v.text, 64)
		switch {
		case v.folder:
			return nil
		case slices.Contains(classes.Known, v.text):
			signs.Add(0) // it is a name
		case names.Missing(v.text) && classes.As != names.Names:
			empty = append(empty, k)
		case err != nil:
			numbers = false
			signs.Add(0)
		default:
			if signs.Add(number); kind == target.Classes && target.NoClass(number) {
				missing = append(missing, k)
			}
		}
	}
	if numbers {
		missing = append(missing, empty...)
	}
	slices.Sort(missing)
	for _, k := range slices.Backward(missing) {
		l.labels = slices.Delete(l.labels, k, k+1)
		for i := range l.examples {
			switch at := &l.examples[i].label; {
			case *at == int32(k):
				*at = -1
			case *at > int32(k):
				*at--
			}
		}
	}
	return signs.Err()
}

// classes converts the labels from text to class numbers. There are none if no example has a label. An example without one has
// label −1.
func (l *Listing) classes(classes names.Reading) (labels []int, found *names.Resolved, err error) {
	if some, err := l.labelled(); err != nil || !some {
		return nil, &names.Resolved{Names: classes.Known}, err
	}
	found, err = l.resolve(classes, func(k int) string { // the first example with label k
		i := slices.IndexFunc(l.examples, func(e Example) bool { return int(e.label) == k })
		return l.examples[i].Path()
	})
	if err != nil {
		return nil, nil, err
	}
	labels = make([]int, len(l.examples))
	for i, e := range l.examples {
		if labels[i] = -1; e.label >= 0 {
			labels[i] = found.Numbers[e.label]
		}
	}
	return labels, found, nil
}

// resolve returns the class number of each label text. where returns the path of an example with the label.
func (l *Listing) resolve(classes names.Reading, where func(k int) string) (*names.Resolved, error) {
	texts := make([]names.Label, len(l.labels))
	for k, v := range l.labels {
		texts[k] = names.Label{Text: v.text, Folder: v.folder}
	}
	if l.categories.Order != nil {
		classes.Categories = l.categories
	}
	return classes.Resolve(texts, where)
}
