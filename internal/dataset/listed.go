package dataset

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/swagwrap/swagwrap/internal/dataset/filelist"
	"github.com/swagwrap/swagwrap/internal/file"
	"github.com/swagwrap/swagwrap/internal/truth"
)

// listed is where a listing made before says that an image lies.
type listed struct {
	path          string // of the file or tar, or a command
	pipe          bool   // path is a command
	off, size, of int64  // of is the tar's size, or 0 where the file is the image
	err           error  // that it could not be read then
}

// open opens the file that holds the image, and compares its size: nobody looked at it
// since the listing was made. name is the image's own.
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

// addListing adds the rows of a listing, or those of a range.
func (l *listing) addListing(in *filelist.Listing, first, end int) error {
	switch {
	case in.Pipes && l.spool == nil:
		return fmt.Errorf("%s: its images come from commands, which are run by score --allow-pipe alone", in.Path)
	case l.strict && in.Empty != "":
		return fmt.Errorf("%s: when it was made there were no images in class folder %s: fill it, remove it, or give a list of class names", in.Path, in.Empty)
	}
	folders := make(map[string]bool, len(in.Labels))
	for _, v := range in.Labels {
		folders[v.Text] = v.Folder
	}
	at := &place{path: in.Path, listed: make([]listed, 0, min(end-first, 1<<16)), spool: l.spool}
	dir := filepath.Dir(in.Path)
	var was listed // images of one tar stand together, and share its path
	var written string
	return in.Each(first, end, func(r *filelist.Row) error {
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
		e := example{in: at, name: r.Name, at: int32(len(at.listed))}
		if was.path == r.Name {
			e.name = was.path // once in memory
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
func (l *listing) addPipe(input string) error {
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
	// Path turns the path of a file into what stands in the listing.
	Path func(string) string
	// Pipes ends the commands of inputs that begin with pipe:.
	Pipes context.Context
}

// List looks at the images that the inputs name, as [Open] does, and returns what a
// listing says of them, with the first of those that cannot be read, or nil.
func List(inputs []string, opts ListOptions) (h filelist.Head, rows iter.Seq[*filelist.Row], failed error, err error) {
	l := newListing(false, opts.Unlabelled)
	l.spool, l.sizes = newSpool(opts.Pipes), []int64{}
	if err := l.list(inputs); err != nil {
		return h, nil, nil, err
	}
	h = filelist.Head{Rows: len(l.examples), SHA256: l.sources[0].SHA256, Empty: strings.Join(l.empty[:min(len(l.empty), 5)], ", ")}
	if len(l.sources) > 1 {
		sum := sha256.New()
		for _, s := range l.sources {
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

// row is what a listing says of example i.
func (l *listing) row(i int, path func(string) string) filelist.Row {
	e := &l.examples[i]
	r := filelist.Row{Path: e.path(), Name: e.path(), Size: l.sizes[i]}
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
		if _, err = os.Stat(r.Path); err == nil { // it was not there a moment ago
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
		r.Path = "./" + r.Path // a file's name, and no command
	}
	return r
}

// partial is what is known of the examples of a listing of which a part is used: see
// [Options].Parted.
type partial struct {
	listing  *filelist.Listing
	opts     Options
	numbers  []int // of its labels, where these are classes
	labelled bool  // rows have labels, and they are wanted

	first    int
	examples []example
	labels   truth.Truth
}

// openPartial returns the dataset of the listing at path with no row of it read; nil if
// that is not enough to know the classes.
func openPartial(input, path string, opts Options) (Dataset, error) {
	in, err := filelist.Open(path)
	if err != nil {
		return nil, err
	}
	l := opts.newListing()
	if err := l.addListing(in, 0, 0); err != nil {
		return nil, err
	}
	p := &partial{listing: in, opts: opts}
	e := &examples{n: in.Rows, classNames: opts.ClassNames, partial: p,
		sources: []Source{{Path: input, Kind: "listing", SHA256: in.SHA256, Files: in.Rows}}}
	e.name = func(i int) string {
		if x := p.at(i); x != nil {
			return x.path()
		}
		return fmt.Sprintf("%s[%d]", in.Path, i)
	}
	p.labelled = opts.Labels == "" && !opts.Unlabelled && len(in.Labels) > 0
	switch {
	case p.labelled && opts.Truth != truth.Classes && in.Bare > 0:
		return nil, nil
	case p.labelled && opts.Truth == truth.Classes:
		for _, v := range in.Labels {
			l.labels = append(l.labels, label{v.Text, v.Folder})
		}
		p.numbers, e.classNames, err = l.numbers(opts.ClassNames, func(int) string { return in.Path })
		if err != nil || in.Bare > 0 {
			return nil, nil
		}
	}
	return opts.openPictures(e, input, func(i int) (*example, error) {
		if x := p.at(i); x != nil {
			return x, nil
		}
		return nil, errors.New("is not of the part that is loaded")
	})
}

// at returns example i, or nil if it is not loaded.
func (p *partial) at(i int) *example {
	if i < p.first || i >= p.first+len(p.examples) {
		return nil
	}
	return &p.examples[i-p.first]
}

// load reads the rows from first to before end, and forgets all others.
func (p *partial) load(first, end int) error {
	l := p.opts.newListing()
	l.beginSource(p.listing.Path)
	if err := l.addListing(p.listing, first, end); err != nil {
		return err
	}
	p.first, p.examples, p.labels = first, l.examples, truth.Truth{}
	switch {
	case p.opts.Truth != truth.Classes && p.labelled:
		t, err := l.rows(p.opts.Truth)
		p.labels = t
		return err
	case p.numbers == nil:
		return nil
	}
	number := make(map[label]int, len(p.numbers))
	for k, v := range p.listing.Labels {
		number[label{v.Text, v.Folder}] = p.numbers[k]
	}
	for _, e := range l.examples {
		n := -1
		if e.label >= 0 {
			n = number[l.labels[e.label]]
		}
		p.labels.Classes = append(p.labels.Classes, n)
	}
	return nil
}
