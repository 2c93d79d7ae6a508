package names

import (
	"errors"
	"fmt"
)

// ErrReading is the error of labels that may be names or numbers. The user can say which.
var ErrReading = errors.New("names of classes or their numbers")

// CardName stands for the model card where a message says who knows a name.
const CardName = "the model card"

// ClassError is the error for classes in the data that are not among the known ones.
type ClassError struct {
	Path    string   // of the first example with such a class
	Names   []string // of these classes
	Known   []string
	From    string   // who knows them; "" for the model card
	Unused  []string // known classes that no example of the data has
	Folders bool     // all names come from class folders
}

func (e *ClassError) add(path string, v Label) {
	if len(e.Names) == 0 {
		e.Path, e.Folders = path, true
	}
	e.Names, e.Folders = append(e.Names, v.Text), e.Folders && v.Folder
}

// missing notes the known classes that no label names.
func (e *ClassError) missing(labels []Label) {
	var texts []string
	for _, v := range labels {
		texts = append(texts, v.Text)
	}
	have := index(texts)
	for _, name := range e.Known {
		if _, ok := have.find(name); !ok {
			e.Unused = append(e.Unused, name)
		}
	}
}

func (e *ClassError) Error() string {
	what := "class " + list(e.Names) + " is"
	if len(e.Names) > 1 {
		what = "classes " + list(e.Names) + " are"
	}
	of := ""
	if e.From != "" {
		of = " of " + e.From
	}
	text := fmt.Sprintf("%s: %s not among the %d class names%s: %s", e.Path, what, len(e.Known), of, list(e.Known))
	if len(e.Unused) > 0 && len(e.Unused) < len(e.Known) {
		text += "; of these, no example here has " + list(e.Unused)
	}
	return text
}

// CountError is the error for data with fewer or more names of classes than the network has classes. Nobody knows which
// number a name has.
type CountError struct {
	Path  string // of an example with a name
	Names []string
	Want  int
}

func (e *CountError) Error() string {
	return fmt.Sprintf("%s: the data has %d class names and the network %d classes, and nobody says which number a name has: %s", e.Path,
		len(e.Names), e.Want, list(e.Names))
}

// CheckCount fails if the names of classes in data are not as many as the classes of a network, which were found by a run.
func CheckCount(names []string, path string, classes int) error {
	if names == nil || len(names) == classes {
		return nil
	}
	return &CountError{Path: path, Names: names, Want: classes}
}

// Unwrap tells that class folders may be numbers.
func (e *CountError) Unwrap() error {
	if numbers(e.Names) != nil {
		return ErrReading
	}
	return nil
}

// DoubtError is the error of a label that is the name of one class, and the number of another.
type DoubtError struct {
	Path, Text   string
	Name, Number int
	Known        []string
	From         string
}

func (e *DoubtError) Error() string {
	return fmt.Sprintf("%s: label %s is the name of class %d, and the number of class %d, which is named %q", e.Path, e.Text, e.Name,
		e.Number, e.Known[e.Number])
}

func (e *DoubtError) Unwrap() error { return ErrReading }
