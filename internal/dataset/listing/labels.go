package listing

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/swagwrap/swagwrap/internal/names"
	"github.com/swagwrap/swagwrap/internal/truth"
)

// Truth returns the true values of the examples, and how names of classes became numbers.
func (l *Listing) Truth(kind truth.Kind, classes names.Reading) (t truth.Truth, found *names.Resolved, err error) {
	found = &names.Resolved{Names: classes.Known}
	if kind == truth.Classes {
		t.Classes, found, err = l.classes(classes)
	} else {
		t, err = l.rows(kind)
	}
	return t, found, err
}

// rows converts the labels from text to rows of numbers. The result is empty if no example has a label.
func (l *Listing) rows(kind truth.Kind) (t truth.Truth, err error) {
	all, err := l.labelled()
	if err != nil || !all || !slices.ContainsFunc(l.labels, func(v label) bool { return !v.folder }) {
		return t, err // folder names are not numbers
	}
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
			return truth.Truth{}, fmt.Errorf("%s: %w", e.Path(), err)
		}
		parsed[e.label], t.Width = row, len(row)
	}
	for _, e := range l.examples {
		row := slices.Repeat([]float64{truth.Unknown}, t.Width) // the example could not be listed
		if e.label >= 0 {
			row = parsed[e.label]
		}
		t.Values = append(t.Values, row...)
	}
	return t, nil
}

// parseRow parses the labels of an example, which are separated by spaces or commas.
func parseRow(kind truth.Kind, l label) (row []float64, err error) {
	if l.folder {
		return nil, fmt.Errorf("folder %q, want labels in a list or an array, not in folders' names", l.text)
	}
	for _, text := range strings.FieldsFunc(l.text, func(r rune) bool { return r == ' ' || r == ',' || r == '\t' }) {
		v, err := strconv.ParseFloat(text, 64)
		if text == unknown && kind == truth.Labels {
			v, err = truth.Unknown, nil
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

// labelled reports whether all examples have a label. Examples that could not be listed need none. It returns false if
// no example has a label, and fails if only some have one.
func (l *Listing) labelled() (bool, error) {
	i := slices.IndexFunc(l.examples, func(e Example) bool { return e.label < 0 && e.unlisted() == nil })
	if i < 0 && len(l.labels) > 0 {
		return true, nil
	}
	if j := slices.IndexFunc(l.examples, func(e Example) bool { return e.label >= 0 }); j >= 0 {
		return false, fmt.Errorf("%s: no label, but %s has one: want all or none labelled", l.examples[i].Path(), l.examples[j].Path())
	}
	return false, nil
}

// classes converts the labels from text to class numbers. There are none if no example has a label. An example that could
// not be listed may have label −1.
func (l *Listing) classes(classes names.Reading) (labels []int, found *names.Resolved, err error) {
	if all, err := l.labelled(); err != nil || !all {
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
	return classes.Resolve(texts, where)
}
