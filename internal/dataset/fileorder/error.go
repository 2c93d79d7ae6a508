package fileorder

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/swagwrap/swagwrap/internal/setting"
)

// A Doubt says where the order of files is not known.
type Doubt struct {
	Input string `json:"input"` // the folder, pattern or archive
	Row   int    `json:"row"`   // the first example that another order moves
	Here  string `json:"here"`  // its file now
	There string `json:"there"` // its file in the other order
	How   string `json:"how"`   // the two orders, in words

	Number   bool `json:"number,omitempty"`   // the order of numbers was wanted, and is itself in doubt
	Archived bool `json:"archived,omitempty"` // the order is that of an archive, or of the command line
	Listed   bool `json:"-"`                  // a listing has the files in that order
	Saved    bool `json:"-"`                  // saved predictions have the files in that order
}

// Doubt says the difference between names of files. path returns the file that belongs to one.
func (d *Difference) Doubt(input string, row int, path func(k int) string, by By) *Doubt {
	how := fmt.Sprintf("%s, and %s", d.Here, d.There)
	if d.Same {
		how = "as text. Both names have the same number"
	}
	return &Doubt{Input: input, Row: row, Here: path(d.At), There: path(d.Other), How: how, Number: d.Number, Archived: by != Sorted}
}

// An Error is the error for files that are matched by place with rows of something without names, where the order of the files is
// not known.
type Error struct {
	Doubt
	With string // what has the rows
}

func (e *Error) Error() string {
	return fmt.Sprintf("%s: the files belong to the rows of %s by their place, and their order is not known: row %d is %s or %s (%s)",
		e.Input, e.With, e.Row, e.Here, e.There, e.How)
}

// Hints says what to do.
func (e *Error) Hints() []string {
	const list = "a list has an order of its own, and decides: a .csv file with the columns path and label, a line for each file"
	if e.Listed {
		return []string{"make the listing again, with the order of " + e.With + ": " +
			setting.Line(setting.List.With(setting.FileOrder.With("text|number|given"), "IMAGES")), list}
	}
	switch {
	case e.Saved && isArray(e.With):
		return []string{"add them to " + e.Input + " as a column label or target: no " + setting.Labels.String() + " is needed then",
			"or score again with " + setting.Labels.With(e.With) + " and " + setting.FileOrder.With("text|number") +
				": the predictions have labels then"}
	case e.Saved:
		return []string{"add a column path to " + e.With + ", with the names that the predictions have, such as " +
			e.Here + ": names decide then"}
	case e.Number:
		return []string{list}
	}
	hints := []string{
		setting.FileOrder.With("text") + ": " + e.With + " has the order of the names as text (1, 10, 2), as sorted() of Python, " +
			"torchvision and most training code have it",
		setting.FileOrder.With("number") + ": it has the order of the numbers in the names (1, 2, 10), as people and natsort have it",
	}
	if e.Archived {
		hints = append(hints, setting.FileOrder.With("given")+": it has the order of the archive, or of the command line")
	}
	return append(hints, list, setting.Fit.With(setting.FileOrder.String())+" remembers it")
}

// isArray reports whether a file has no columns.
func isArray(path string) bool {
	ext := strings.ToLower(filepath.Ext(path))
	return ext == ".npy" || ext == ".npz"
}

// ByPlace returns an error if the rows of something are matched with files whose order is in doubt. d may be nil.
func (d *Doubt) ByPlace(with string) error {
	if d == nil {
		return nil
	}
	return &Error{*d, with}
}

// OfRows returns the doubt about examples with names that saved rows have, such as predictions. Their order is that of the file
// unless they look sorted as text.
func OfRows(input string, names []string) *Doubt {
	d := Unsaid.Differs(names, Typed)
	if d == nil {
		return nil
	}
	doubt := d.Doubt(input, d.At, func(k int) string { return names[k] }, Typed)
	doubt.Saved = true
	return doubt
}
