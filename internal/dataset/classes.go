package dataset

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/swagwrap/swagwrap/internal/file"
	"github.com/swagwrap/swagwrap/internal/numpy"
)

// classes turns the labels as written into class numbers. Names are numbered by
// their place in names; without names, by their order when sorted, as
// torchvision numbers class folders. Both results are nil if nothing is
// labelled. What could not be listed need not be: its label is −1.
func (l *listing) classes(names []string) (labels []int, all []string, err error) {
	if i := slices.IndexFunc(l.examples, func(e example) bool { return e.label < 0 && e.unlisted() == nil }); i >= 0 || len(l.labels) == 0 {
		if j := slices.IndexFunc(l.examples, func(e example) bool { return e.label >= 0 }); j >= 0 {
			return nil, nil, fmt.Errorf("%s: no label, but %s has one: want all or none labelled", l.examples[i].path(), l.examples[j].path())
		}
		return nil, names, nil
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
func checkLabels(labels []int, names []string, path string) error {
	if i := slices.IndexFunc(labels, func(v int) bool { return v >= len(names) }); names != nil && i >= 0 {
		return fmt.Errorf("%s: label %d is %d, and there are %d class names", path, i, labels[i], len(names))
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
