package dataset

import (
	"slices"

	"github.com/swagwrap/swagwrap/internal/dataset/listing"
	"github.com/swagwrap/swagwrap/internal/names"
)

// told holds what the files of a dataset call things, and what a reader of its results has to know about that.
type told struct {
	names  names.Known
	notes  []string // rules by which names became numbers, and things that were left out
	doubts []string // warnings
}

// Names returns what the files of d call things: classes, columns of inputs, columns of labels.
func Names(d Dataset) names.Known { return examplesIn(d).told.names.Clone() }

// Notes returns the rules by which names in d became numbers, and what was left out of its files. Doubts are warnings.
func Notes(d Dataset) (notes, doubts []string) {
	return examplesIn(d).told.notes, examplesIn(d).told.doubts
}

// Note adds a note to those of d, which [Open] returned. Doubt adds a warning.
func Note(d Dataset, what string) { examplesIn(d).told.note(what) }
func Doubt(d Dataset, what string) {
	examplesIn(d).told.doubts = append(examplesIn(d).told.doubts, what)
}

// reading says how texts of labels become classes.
func (o Options) reading() names.Reading {
	return names.Reading{Known: o.Known.Classes, From: o.Known.ClassesFrom, Count: o.Classes, Binary: o.Binary, As: o.LabelsAs}
}

// targets says what columns of labels are called.
func (o Options) targets() names.Targets {
	return names.Targets{Known: o.Known.Targets, From: o.Known.TargetsFrom, Classes: o.Known.Classes}
}

// resolved keeps how names of classes became numbers. path is the file.
func (e *examples) resolved(found *names.Resolved, opts Options, path string) {
	e.classNames = found.Names
	if opts.Known.Classes == nil && found.Names != nil {
		e.told.names.Classes, e.told.names.ClassesFrom = found.Names, path
	}
	e.told.note(found.Rule)
	e.told.doubts = append(e.told.doubts, found.Doubts...)
}

// listed keeps what the listing of the inputs says.
func (e *examples) listed(l *listing.Listing) {
	for _, note := range slices.Concat(l.Rules(), l.LeftOut()) {
		e.told.note(note)
	}
	if t := l.Targets(); t != nil {
		e.told.names.Targets, e.told.names.TargetsFrom = t, l.Inputs()[0].Path
	}
}

// ColumnsOf returns the columns of the table at path that feed each field. It returns nil if the file is no table of
// examples for the fields.
func ColumnsOf(path string, opts Options) map[string][]string {
	if !isTable([]string{path}, opts) {
		return nil
	}
	t, err := tableAt(path)
	if err != nil {
		return nil
	}
	h, err := newHead(t.Names, t.Lists, opts)
	if err != nil || len(opts.Fields) == 1 && len(h.inputs[0]) > 1 && !h.fits(opts.Fields[0]) {
		return nil
	}
	var found told
	h.tell(&found, path, opts)
	if len(found.names.Columns) == 0 {
		return nil
	}
	return found.names.Columns
}

// fits reports whether a field takes as many numbers as the table has columns for it.
func (h *head) fits(f Field) bool {
	return len(f.Shape) == 1 && f.Shape[0] == int64(len(h.inputs[0]))
}

func (t *told) note(what string) {
	if what != "" && !slices.Contains(t.notes, what) {
		t.notes = append(t.notes, what)
	}
}
