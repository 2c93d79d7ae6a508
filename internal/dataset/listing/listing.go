// Package listing finds the image files that inputs name, and their labels. Inputs are folders, tars, lists, existing
// listings, and patterns for these. The package does not decode images. [List] makes the content of a listing; see
// package filelist.
//
// # Invariants
//
// A [Listing] has at least one example. An unreadable folder is an example, whose Open returns the error. Files are
// untrusted: a length is compared with the size of the file before memory is allocated for it.
//
// # Concurrency
//
// A Listing does not change after [Read]. Any number of goroutines may call its methods and those of an [Example]. A
// [Partial] must not be read while it is loaded.
package listing

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/swagwrap/swagwrap/internal/dataset/filelist"
	"github.com/swagwrap/swagwrap/internal/dataset/fileorder"
	"github.com/swagwrap/swagwrap/internal/dataset/table"
	"github.com/swagwrap/swagwrap/internal/file"
	"github.com/swagwrap/swagwrap/internal/names"
	"github.com/swagwrap/swagwrap/internal/target"
)

// Options says how [Read] reads its inputs.
type Options struct {
	// Target is the kind of the labels.
	Target target.Kind
	// Classes says how class folders, lists and tars name classes.
	Classes names.Reading
	// Targets says which columns of a list are the labels, if there are several.
	Targets names.Targets
	// Columns says which columns of a list have the paths and the labels.
	Columns Columns
	// Order is that of files which no list names.
	Order fileorder.Order
	// Unlabelled says that no labels are wanted, so labels may be invalid.
	Unlabelled bool
	// Pipes, if not nil, allows a listing to name commands instead of tars. The end of the context ends the commands.
	Pipes context.Context
}

// Input is an input that was listed.
type Input struct {
	Path   string // the first path for images given one by one
	SHA256 string // in hex, of a line "name\x00size\x00label\n" for each image
	Images int
}

// Listing has the examples of several inputs, in the given order.
type Listing struct {
	examples []Example
	labels   []label
	index    map[label]int32 // into labels
	inputs   []Input
	sum      hash.Hash // of the input being listed

	strict     bool          // a class folder must not be empty
	unlabelled bool          // the labels of the input are not wanted
	several    bool          // a list may have a column for each of several labels
	targets    names.Targets // their names
	columns    Columns
	listed     bool // a listing is made
	byNumber   bool // labels are numbers, even if a file has names for them

	fileClasses []string         // names of classes that a file numbers
	categories  names.Categories // of a column of labels in the files
	rules       []string         // by which they were ordered
	left        leftOut

	spool *spool   // outputs of commands; nil if none may run
	sizes []int64  // sizes of the examples in bytes, or negative
	empty []string // class folders without images, which were skipped
	made  string   // the digest of the last listing that was an input

	places places
}

// label is the text of a class in an input.
type label struct {
	text   string
	folder bool // the name of a class folder, which is never a number
}

// newListing returns an empty listing. In strict mode a class folder must not be empty, unless labels are not wanted.
func newListing(strict, unlabelled bool) *Listing {
	return &Listing{index: map[label]int32{}, strict: strict && !unlabelled, unlabelled: unlabelled}
}

func (o Options) newListing() *Listing {
	l := newListing(o.Classes.Known == nil && o.Classes.As != names.Numbers, o.Unlabelled)
	l.several, l.targets, l.columns, l.places.order = o.Target != target.Classes, o.Targets, o.Columns, o.Order
	l.byNumber = o.Classes.As == names.Numbers
	if o.Pipes != nil {
		l.spool = newSpool(o.Pipes)
	}
	return l
}

// Read lists the images of the inputs: folders, tars, lists, listings, images, commands, and patterns for them.
func Read(inputs []string, opts Options) (*Listing, error) {
	l := opts.newListing()
	return l, l.list(inputs)
}

// Bytes returns the size of example i in bytes. It is 0 if nobody knows it.
func (l *Listing) Bytes(i int) int64 {
	if i >= len(l.sizes) {
		return 0
	}
	return max(0, l.sizes[i])
}

// Len returns the number of examples.
func (l *Listing) Len() int { return len(l.examples) }

// Example returns example i.
func (l *Listing) Example(i int) *Example { return &l.examples[i] }

// Inputs returns the inputs. Images given one by one count as one input.
func (l *Listing) Inputs() []Input { return l.inputs }

func (l *Listing) list(inputs []string) error {
	loose := false                                                     // the last input consists of images given one by one
	if l.places.order == fileorder.Number && slices.IsSorted(inputs) { // a shell may have sorted them
		inputs = slices.Clone(inputs)
		fileorder.Sort(l.places.order, inputs, func(input string) string { return input })
	}
	first := make([]int, len(inputs))
	for k, input := range inputs {
		first[k] = len(l.examples)
		found, err := expand(input, l.places.order)
		if err != nil {
			return err
		}
		paths := found.paths
		l.leaveKinds(found.hidden)
		kinds := make([]Kind, len(paths))
		for i, path := range paths {
			if kinds[i], err = KindOf(path); err != nil {
				return err
			}
		}
		single := len(paths) == 1 && kinds[0] == KindImage && paths[0] == input
		if !single || !loose {
			l.beginSource(input)
		}
		loose = single
		at := make([]int, len(paths))
		for i, path := range paths {
			at[i] = len(l.examples)
			if err := l.add(path, kinds[i]); err != nil {
				return err
			}
		}
		for _, s := range found.sorted {
			l.places.groups(input, fileorder.Sorted, paths[s[0]:s[1]], at[s[0]:min(s[1]+1, len(at))], len(l.examples))
		}
		l.endSource()
		if len(paths) == 1 && kinds[0] == KindListing && l.made != "" {
			l.inputs[len(l.inputs)-1].SHA256 = l.made
		}
	}
	if len(l.examples) == 0 {
		return fmt.Errorf("%s: no images, want some", inputs[0])
	}
	l.places.groups(inputs[0]+" and others", fileorder.Typed, inputs, first, len(l.examples))
	return nil
}

func (l *Listing) add(path string, k Kind) error {
	switch k {
	case KindFolder:
		return l.addFolder(path)
	case KindTar:
		return l.addTar(path)
	case KindList:
		return l.addList(path)
	case KindListing:
		if p, err := table.OpenPictures(path); err == nil && p != nil {
			return l.addParquet(p)
		}
		in, err := filelist.Open(path)
		if err != nil {
			return err
		}
		l.made = in.SHA256
		if l.places.listed == nil {
			l.places.listed = doubtOf(in, l.places.order, len(l.examples))
		}
		return l.addListing(in, 0, in.Rows, nil)
	case KindPipe:
		return l.addPipe(path)
	case KindImage:
		info, err := os.Stat(path)
		if err != nil {
			return file.Error(path, err)
		}
		l.addExample(Example{name: path}, path, label{}, info.Size())
		return file.Listed(info)
	}
	return fmt.Errorf("%s: an array, want it as the only input", path)
}

// addExample adds an example. The text of its label is "" if there is none. The hash of the input covers the
// name of the example below the input, its size and its label. size is negative if there is no such file.
func (l *Listing) addExample(e Example, name string, v label, size int64) {
	fmt.Fprintf(l.sum, "%s\x00%d\x00%s\n", filepath.ToSlash(name), size, v.text)
	e.label = -1
	if v.text != "" {
		var ok bool
		if e.label, ok = l.index[v]; !ok {
			v.text = strings.Clone(v.text) // do not keep the whole line in memory
			e.label = int32(len(l.labels))
			l.labels, l.index[v] = append(l.labels, v), e.label
		}
	}
	l.examples = append(l.examples, e)
	l.sizes = append(l.sizes, size)
	l.inputs[len(l.inputs)-1].Images++
}

// beginSource starts the hash of an input. endSource stores it.
func (l *Listing) beginSource(input string) {
	l.inputs = append(l.inputs, Input{Path: input})
	l.sum = sha256.New()
}

func (l *Listing) endSource() {
	l.inputs[len(l.inputs)-1].SHA256 = hex.EncodeToString(l.sum.Sum(nil))
}

// Rows lists the rows of the table at path. files are the paths of image files, relative to the folder of the table. If
// files is nil, the rows have no files. labels returns the texts in the label columns of a row.
func Rows(path string, n int, files []string, labels func(i int) []string) (*Listing, error) {
	l := newListing(false, false)
	l.beginSource(path)
	in := &place{path: filepath.Dir(path)}
	for i := range n {
		class, err := joined(labels(i))
		if err != nil {
			return nil, fmt.Errorf("%s: row %d: %w", path, i, err)
		}
		if files == nil {
			l.addExample(Example{name: fmt.Sprintf("%s[%d]", filepath.Base(path), i)}, "", label{text: class}, -1)
			continue
		}
		if err := checkPath(files[i]); err != nil {
			return nil, fmt.Errorf("%s: row %d: %w", path, i, err)
		}
		if err := l.addFile(in, files[i], class); err != nil {
			return nil, err
		}
	}
	l.endSource()
	return l, nil
}
