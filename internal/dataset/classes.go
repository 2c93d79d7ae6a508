package dataset

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/swagwrap/swagwrap/internal/file"
	"github.com/swagwrap/swagwrap/internal/numpy"
	"github.com/swagwrap/swagwrap/internal/truth"
)

// truth is what the examples' labels say, and the names of classes, given those that are
// known.
func (l *listing) truth(kind truth.Kind, names []string) (t truth.Truth, all []string, err error) {
	if kind == truth.Classes {
		t.Classes, names, err = l.classes(names)
	} else {
		t, err = l.rows(kind)
	}
	return t, names, err
}

// rows turns the labels as written into rows of numbers. Nothing is known where no
// example has a label.
func (l *listing) rows(kind truth.Kind) (t truth.Truth, err error) {
	all, err := l.labelled()
	if err != nil || !all || !slices.ContainsFunc(l.labels, func(v label) bool { return !v.folder }) {
		return t, err // names of folders say nothing
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
			return truth.Truth{}, fmt.Errorf("%s: %w", e.path(), err)
		}
		parsed[e.label], t.Width = row, len(row)
	}
	for _, e := range l.examples {
		row := slices.Repeat([]float64{truth.Unknown}, t.Width) // of what could not be listed
		if e.label >= 0 {
			row = parsed[e.label]
		}
		t.Values = append(t.Values, row...)
	}
	return t, nil
}

// parseRow reads the numbers of an example's labels, with spaces or commas between.
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

// unknown stands in a label's text for a cell that is empty.
const unknown = "?"

// labelled reports whether all examples have a label, but for what could not be listed,
// or none has. Some are an error.
func (l *listing) labelled() (bool, error) {
	i := slices.IndexFunc(l.examples, func(e example) bool { return e.label < 0 && e.unlisted() == nil })
	if i < 0 && len(l.labels) > 0 {
		return true, nil
	}
	if j := slices.IndexFunc(l.examples, func(e example) bool { return e.label >= 0 }); j >= 0 {
		return false, fmt.Errorf("%s: no label, but %s has one: want all or none labelled", l.examples[i].path(), l.examples[j].path())
	}
	return false, nil
}

// classes turns the labels as written into class numbers. Names are numbered by
// their place in names; without names, by their order when sorted, as
// torchvision numbers class folders. Both results are nil if nothing is
// labelled. What could not be listed need not be: its label is −1.
func (l *listing) classes(names []string) (labels []int, all []string, err error) {
	if all, err := l.labelled(); err != nil || !all {
		return nil, names, err
	}
	numbers, names, err := l.numbers(names, func(k int) string { // the first example with label k
		i := slices.IndexFunc(l.examples, func(e example) bool { return int(e.label) == k })
		return l.examples[i].path()
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

// numbers turns each label as written into a class number. where names an example of
// the label.
func (l *listing) numbers(names []string, where func(k int) string) (numbers []int, all []string, err error) {
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

// ClassError says that classes of the data are not among those that are known.
type ClassError struct {
	Path    string   // of the first example of such a class
	Names   []string // of these classes
	Known   []string
	Folders bool // all are names of class folders
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

// classNames returns the names among the labels, sorted, or nil if all labels
// are numbers.
func (l *listing) classNames(where func(k int) string) ([]string, error) {
	var names []string
	number := -1
	for k, v := range l.labels {
		if _, ok := classNumber(v.text); ok && !v.folder {
			number = k
		} else {
			names = append(names, v.text) // twice, if a folder and a list both have it
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

// checkLabels makes sure that every label has a name, if there are names.
func checkLabels(labels truth.Truth, names []string, path string) error {
	if i := slices.IndexFunc(labels.Classes, func(v int) bool { return v >= len(names) }); names != nil && i >= 0 {
		return fmt.Errorf("%s: label %d is %d, and there are %d class names", path, i, labels.Classes[i], len(names))
	}
	return nil
}

// maxNames bounds files with names, in bytes: 22,000 classes of ImageNet take
// 0.5 MB.
const maxNames = 16 << 20

// ReadClassNames reads the names of classes 0, 1, 2 ... from a file: one a line,
// a JSON list, or a JSON object {"0": name, ...}, which may be the id2label of a
// Hugging Face or the label_names of a timm config.json. Of a folder with class
// folders it is their names, in torchvision's order.
func ReadClassNames(path string) ([]string, error) {
	if entries, err := os.ReadDir(path); err == nil {
		var names []string
		for _, e := range entries { // sorted
			if e.IsDir() && !strings.HasPrefix(e.Name(), ".") {
				names = append(names, e.Name())
			}
		}
		if names == nil {
			err = fmt.Errorf("%s: has no class folders", path)
		}
		return names, err
	}
	b, err := file.Read(path, maxNames)
	if err != nil {
		return nil, err
	}
	names, err := parseClassNames(b)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if i := slices.Index(names, ""); i >= 0 {
		return nil, fmt.Errorf("%s: class %d has an empty name", path, i)
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("%s: no class names, want one a line, a JSON list, or an object with id2label", path)
	}
	return names, nil
}

func parseClassNames(b []byte) ([]string, error) {
	text := bytes.TrimSpace(bytes.TrimPrefix(b, []byte("\ufeff")))
	var names []string
	switch {
	case len(text) == 0:
		return nil, nil
	case text[0] == '[':
		err := json.Unmarshal(text, &names)
		return names, err
	case text[0] != '{':
		for line := range strings.Lines(string(text)) {
			names = append(names, strings.TrimSpace(line))
		}
		return names, nil
	}
	var config struct {
		ID2Label   json.RawMessage `json:"id2label"`
		LabelNames []string        `json:"label_names"`
		Pretrained struct {
			LabelNames []string `json:"label_names"`
		} `json:"pretrained_cfg"`
	}
	if err := json.Unmarshal(text, &config); err != nil {
		return nil, err
	}
	switch {
	case config.LabelNames != nil:
		return config.LabelNames, nil
	case config.Pretrained.LabelNames != nil:
		return config.Pretrained.LabelNames, nil
	case config.ID2Label != nil:
		text = config.ID2Label
	}
	var byID map[string]string
	if err := json.Unmarshal(text, &byID); err != nil {
		return nil, err
	}
	names = make([]string, len(byID))
	for id, name := range byID {
		i, ok := classNumber(id)
		if !ok || i >= len(names) || names[i] != "" {
			return nil, fmt.Errorf("class %q of %d, want each number from 0 to %d once", id, len(names), len(names)-1)
		}
		names[i] = name
	}
	return names, nil
}
