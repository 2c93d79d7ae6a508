package listing

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/swagwrap/swagwrap/internal/numpy"
	"github.com/swagwrap/swagwrap/internal/truth"
)

// Truth returns the true values of the examples, and all class names. names are the class names that are already known.
func (l *Listing) Truth(kind truth.Kind, names []string) (t truth.Truth, all []string, err error) {
	if kind == truth.Classes {
		t.Classes, names, err = l.classes(names)
	} else {
		t, err = l.rows(kind)
	}
	return t, names, err
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

// classes converts the labels from text to class numbers. The number of a name is its index in names. Without names, it
// is the index in the sorted names, as in torchvision. Both results are nil if there are no labels. An example that
// could not be listed may have label −1.
func (l *Listing) classes(names []string) (labels []int, all []string, err error) {
	if all, err := l.labelled(); err != nil || !all {
		return nil, names, err
	}
	numbers, names, err := l.numbers(names, func(k int) string { // the first example with label k
		i := slices.IndexFunc(l.examples, func(e Example) bool { return int(e.label) == k })
		return l.examples[i].Path()
	})
	if err != nil {
		return nil, nil, err
	}
	labels = make([]int, len(l.examples))
	for i, e := range l.examples {
		if labels[i] = -1; e.label >= 0 {
			labels[i] = numbers[e.label]
		}
	}
	return labels, names, nil
}

// numbers returns the class number of each label text. where returns the path of an example with the label.
func (l *Listing) numbers(names []string, where func(k int) string) (numbers []int, all []string, err error) {
	if names == nil {
		if names, err = l.classNames(where); err != nil {
			return nil, nil, err
		}
	}
	const twice = -1 // ImageNet has two classes named crane
	index := make(map[string]int, len(names))
	for i, n := range names {
		if _, ok := index[n]; ok {
			i = twice
		}
		index[n] = i
	}
	numbers = make([]int, len(l.labels))
	unknown := &ClassError{Known: names}
	for k, v := range l.labels {
		n, ok := index[v.text]
		if ok && n == twice {
			return nil, nil, fmt.Errorf("%s: two classes are named %q: want another name, or numbers", where(k), v.text)
		}
		if !ok && !v.folder {
			n, ok = classNumber(v.text)
		}
		if !ok {
			unknown.add(where(k), v)
			continue
		}
		if names != nil && n >= len(names) {
			return nil, nil, fmt.Errorf("%s: class %d, and there are %d class names", where(k), n, len(names))
		}
		numbers[k] = n
	}
	if len(unknown.Names) > 0 {
		return nil, nil, unknown
	}
	return numbers, names, nil
}

// ClassError is the error for classes in the data that are not among the known ones.
type ClassError struct {
	Path    string   // of the first example with such a class
	Names   []string // of these classes
	Known   []string
	Folders bool // all names come from class folders
}

func (e *ClassError) add(path string, v label) {
	if len(e.Names) == 0 {
		e.Path, e.Folders = path, true
	}
	e.Names, e.Folders = append(e.Names, v.text), e.Folders && v.folder
}

func (e *ClassError) Error() string {
	what := "class " + numpy.Quote(e.Names) + " is"
	if len(e.Names) > 1 {
		what = "classes " + numpy.Quote(e.Names) + " are"
	}
	return fmt.Sprintf("%s: %s not among the %d class names: %s", e.Path, what, len(e.Known), numpy.Quote(e.Known))
}

// classNames returns the sorted names among the labels, or nil if all labels are numbers.
func (l *Listing) classNames(where func(k int) string) ([]string, error) {
	var names []string
	number := -1
	for k, v := range l.labels {
		if _, ok := classNumber(v.text); ok && !v.folder {
			number = k
		} else {
			names = append(names, v.text) // it is there twice if a folder and a list both have it
		}
	}
	if number >= 0 && len(names) > 0 {
		return nil, fmt.Errorf("%s: class %s, a number, where others have names such as %q: want a list of class names that says which number each has", where(number), l.labels[number].text, names[0])
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

func classNumber(text string) (int, bool) {
	n, err := strconv.Atoi(text)
	return n, err == nil && n >= 0
}
