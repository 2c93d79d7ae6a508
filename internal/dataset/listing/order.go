package listing

import (
	"path/filepath"
	"slices"

	"github.com/swagwrap/swagwrap/internal/dataset/filelist"
	"github.com/swagwrap/swagwrap/internal/dataset/fileorder"
)

// A level is a sequence of names whose order is that of examples: the files of a folder, its subfolders, what a pattern stands
// for, or the files of a tar.
type level struct {
	input string
	by    fileorder.By
	at, n int      // n examples from at on have the names, if names is nil
	names []string // of groups of examples
	first []int    // their first examples
}

// places keeps what put the examples in their order.
type places struct {
	order  fileorder.Order
	levels []level
	nested []nested
	listed *fileorder.Doubt // of an existing listing
}

// files notes that n examples from at on have the order of their own names.
func (p *places) files(input string, by fileorder.By, at, n int) {
	if n > 1 {
		p.levels = append(p.levels, level{input: input, by: by, at: at, n: n})
	}
}

// groups notes that groups of examples have the order of names. first are their first examples, and may go on with that of
// what follows. Groups without examples do not count.
func (p *places) groups(input string, by fileorder.By, names []string, first []int, n int) {
	v := level{input: input, by: by}
	for k, name := range names {
		at, end := first[k], n
		if k+1 < len(first) {
			end = first[k+1]
		}
		if end > at {
			v.names, v.first = append(v.names, name), append(v.first, at)
		}
	}
	if v.n = len(v.names); v.n > 1 {
		p.levels = append(p.levels, v)
	}
}

// Doubt returns where the order of the examples is not known, or nil. It matters only where rows of something without names
// belong to the examples by their place.
func (l *Listing) Doubt() *fileorder.Doubt {
	var least *fileorder.Doubt
	for _, v := range l.places.levels {
		names, example := v.names, func(k int) int { return v.at + k }
		if names != nil {
			example = func(k int) int { return v.first[k] }
		} else {
			for k := range v.n {
				names = append(names, filepath.ToSlash(l.examples[v.at+k].name))
			}
		}
		if d := l.places.order.Differs(names, v.by); d != nil && (least == nil || example(d.At) < least.Row) {
			least = d.Doubt(v.input, example(d.At), func(k int) string { return l.examples[example(k)].Path() }, v.by)
		}
	}
	switch {
	case least != nil:
		return least
	case l.places.listed != nil:
		return l.places.listed
	}
	return l.places.nestedDoubt(l.examples)
}

// nested are the examples of a folder with subfolders.
type nested struct {
	input      string
	first, end int
}

// nestedDoubt is the doubt about folders in folders. Torchvision sorts them folder by folder, and sorted() of Python whole paths.
func (p *places) nestedDoubt(examples []Example) *fileorder.Doubt {
	if p.order == fileorder.Text || p.order == fileorder.Number {
		return nil
	}
	for _, t := range p.nested {
		var paths []string
		for _, e := range examples[t.first:t.end] {
			paths = append(paths, filepath.ToSlash(e.Path()))
		}
		sorted := slices.Sorted(slices.Values(paths))
		for k := range paths {
			if paths[k] != sorted[k] {
				return &fileorder.Doubt{
					Input: t.input,
					Row:   t.first + k,
					Here:  paths[k],
					There: sorted[k],
					How:   "as text folder by folder, and as text of whole paths",
				}
			}
		}
	}
	return nil
}

// doubtOf returns the doubt about the rows of an existing listing, or nil. Its first row becomes example at. Names that nobody
// asked to be sorted otherwise were sorted as text.
func doubtOf(in *filelist.Listing, order fileorder.Order, at int) *fileorder.Doubt {
	if in.Doubt == nil || order == fileorder.Given || order == fileorder.Text && !in.Doubt.Archived {
		return nil
	}
	d := *in.Doubt
	d.Input, d.Row, d.Listed = in.Path, d.Row+at, true
	return &d
}
