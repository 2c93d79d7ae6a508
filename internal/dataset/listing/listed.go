package listing

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/swagwrap/swagwrap/internal/dataset/filelist"
	"github.com/swagwrap/swagwrap/internal/dataset/fileorder"
	"github.com/swagwrap/swagwrap/internal/file"
	"github.com/swagwrap/swagwrap/internal/setting"
)

// listed is the position of an image in an existing listing.
type listed struct {
	path          string // path of the file or tar, or a command
	pipe          bool   // path is a command
	off, size, of int64  // of is the size of the tar, or 0 if the file is the image
	err           error  // why it could not be read when it was listed
}

// open opens the file that holds the image. It compares the size of the file, because the file may have changed since
// the listing was made. name is the name of the image.
func (r *listed) open(name string, s *spool) (f *os.File, release func(), err error) {
	if r.pipe {
		return s.open(r.path, r.of)
	}
	f, size, err := file.OpenListed(r.path, "an image")
	if err != nil {
		return nil, nil, err
	}
	if want := max(r.size, r.of); size != want {
		f.Close()
		err = fmt.Errorf("%d bytes, and the listing says %d", size, want)
		if r.path != name {
			err = fmt.Errorf("%s: %w", r.path, err)
		}
		return nil, nil, err
	}
	return f, func() { f.Close() }, nil
}

// addListing adds the rows [first, end) of a listing. If only is not nil, it adds just those rows.
func (l *Listing) addListing(in *filelist.Listing, first, end int, only []int) error {
	switch {
	case in.Pipes && l.spool == nil:
		return fmt.Errorf("%s: its images come from commands, which are run by %s alone", in.Path,
			setting.Score.With(setting.Allow.With("pipe")))
	case l.strict && in.Empty != "":
		return fmt.Errorf("%s: when it was made there were no images in class folder %s: fill it, remove it, or give a list of class "+
			"names", in.Path, in.Empty)
	}
	folders := make(map[string]bool, len(in.Labels))
	for _, v := range in.Labels {
		folders[v.Text] = v.Folder
	}
	at := &place{path: in.Path, listed: make([]listed, 0, min(end-first, 1<<16)), spool: l.spool}
	dir := filepath.Dir(in.Path)
	var was listed // the images of a tar are consecutive, and share its path
	var written string
	i := first - 1
	return in.Each(first, end, func(r *filelist.Row) error {
		if i++; only != nil {
			if _, wanted := slices.BinarySearch(only, i); !wanted {
				return nil
			}
		}
		if r.Path != written {
			written = r.Path
			was.path, was.pipe = strings.CutPrefix(r.Path, filelist.Pipe)
			switch {
			case was.pipe && l.spool == nil:
				return errors.New("a command among files")
			case was.pipe:
			case filepath.IsAbs(was.path):
			default:
				was.path = filepath.Join(dir, filepath.FromSlash(was.path))
			}
		}
		e := Example{in: at, name: r.Name, at: int32(len(at.listed))}
		if was.path == r.Name {
			e.name = was.path // one copy in memory
		}
		row := listed{was.path, was.pipe, r.Offset, r.Size, r.FileSize, nil}
		if r.Error != "" {
			row.err = errors.New(r.Error)
		}
		folder, known := folders[r.Label]
		if r.Label != "" && !known {
			return fmt.Errorf("damaged: label %q is not among those of the listing", r.Label)
		}
		at.listed = append(at.listed, row)
		l.addExample(e, r.Name, label{r.Label, folder}, r.Size)
		return nil
	})
}

// addPipe adds the images of the tar that a command writes.
func (l *Listing) addPipe(input string) error {
	f, size, err := fetch(l.spool.ctx, strings.TrimPrefix(input, filelist.Pipe), -1)
	if err != nil {
		return fmt.Errorf("%s: %w", input, err)
	}
	defer f.Close()
	return l.addTarFile(&place{path: input, tar: true, pipe: true, size: size}, f)
}

// ListOptions says how [List] reads its inputs.
type ListOptions struct {
	// Unlabelled says that no labels are wanted, as in [Options].
	Unlabelled bool
	// Path converts the path of a file to its path in the listing.
	Path func(string) string
	// Pipes ends the commands of inputs that begin with pipe:.
	Pipes context.Context
	// Columns says which columns of lists have the paths and the labels.
	Columns Columns
	// Order is that of files which no list names.
	Order fileorder.Order
	// Note, if not nil, is told in sentences what the inputs hold and no row has.
	Note func(sentence string)
}

// List lists the images of the inputs, as [Read] does. It returns the head and the rows of a listing. failed is the error
// of the first image that cannot be read, or nil.
func List(inputs []string, opts ListOptions) (h filelist.Head, rows iter.Seq[*filelist.Row], failed error, err error) {
	l := newListing(false, opts.Unlabelled)
	l.columns, l.listed, l.places.order = opts.Columns, true, opts.Order
	l.spool = newSpool(opts.Pipes)
	if err := l.list(inputs); err != nil {
		return h, nil, nil, err
	}
	for _, sentence := range l.LeftOut() {
		if opts.Note != nil {
			opts.Note(sentence)
		}
	}
	h = filelist.Head{
		Rows:   len(l.examples),
		SHA256: l.inputs[0].SHA256,
		Empty:  strings.Join(l.empty[:min(len(l.empty), 5)], ", "),
		Doubt:  l.Doubt(),
	}
	if len(l.inputs) > 1 {
		sum := sha256.New()
		for _, s := range l.inputs {
			fmt.Fprintln(sum, s.SHA256)
		}
		h.SHA256 = hex.EncodeToString(sum.Sum(nil))
	}
	folders := map[string]bool{}
	for _, v := range l.labels {
		if was, ok := folders[v.text]; ok && was != v.folder {
			return h, nil, nil, fmt.Errorf("%q is a class folder, and a class that a list or a tar names: make a listing of each", v.text)
		}
		if !utf8.ValidString(v.text) {
			return h, nil, nil, fmt.Errorf("class %q: want a name in UTF-8", v.text)
		}
		folders[v.text] = v.folder
		h.Labels = append(h.Labels, filelist.Label{Text: v.text, Folder: v.folder})
	}
	for i := range l.examples {
		r := l.row(i, opts.Path)
		h.Pipes = h.Pipes || strings.HasPrefix(r.Path, filelist.Pipe)
		if r.Error != "" {
			if h.Failed++; failed == nil {
				failed = fmt.Errorf("%s: %s", r.Name, r.Error)
			}
		}
		if r.Error == "" && r.Label == "" {
			h.Bare++
		}
	}
	return h, func(yield func(*filelist.Row) bool) {
		for i := range l.examples {
			if r := l.row(i, opts.Path); !yield(&r) {
				return
			}
		}
	}, failed, nil
}

func (l *Listing) row(i int, path func(string) string) filelist.Row {
	e := &l.examples[i]
	r := filelist.Row{Path: e.Path(), Name: e.Path(), Size: l.sizes[i]}
	isPipe := false
	if e.label >= 0 {
		r.Label = l.labels[e.label].text
	}
	err := e.unlisted()
	switch in := e.in; {
	case in == nil:
	case in.listed != nil:
		was := in.listed[e.at]
		r.Path, r.Offset, r.FileSize, isPipe = was.path, was.off, was.of, was.pipe
		if isPipe {
			r.Path = filelist.Pipe + r.Path
		}
	case in.tar:
		r.Path, r.Offset, r.FileSize, isPipe = in.path, in.entries[e.at].off, in.size, in.pipe
	}
	if err == nil && r.Size < 0 {
		if _, err = os.Stat(r.Path); err == nil { // the file was missing before
			err = os.ErrNotExist
		}
		err = file.Cause(err)
	}
	if err != nil {
		r.Error = strings.Join(strings.Fields(err.Error()), " ")
	}
	if isPipe {
		return r
	}
	if r.Path = path(r.Path); strings.HasPrefix(r.Path, filelist.Pipe) {
		r.Path = "./" + r.Path // the name of a file, not a command
	}
	return r
}
