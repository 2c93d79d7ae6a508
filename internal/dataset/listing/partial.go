package listing

import (
	"slices"

	"github.com/swagwrap/swagwrap/internal/dataset/filelist"
	"github.com/swagwrap/swagwrap/internal/dataset/fileorder"
	"github.com/swagwrap/swagwrap/internal/names"
	"github.com/swagwrap/swagwrap/internal/target"
)

// Partial is an existing listing with only some rows in memory.
type Partial struct {
	Input Input
	Found *names.Resolved // how names of classes became numbers

	listing  *filelist.Listing
	opts     Options
	numbers  []int // class numbers of its labels, if these are classes
	labelled bool  // rows have labels, and they are wanted

	first    int   // index of the first loaded row
	rows     []int // indices of the loaded rows if they are not consecutive
	examples []Example
	labels   target.Target
}

// OpenPartial opens the listing at path without reading its rows. It returns nil if the classes are known only after
// reading the rows. The caller named the listing input. labels says whether labels are wanted.
func OpenPartial(input, path string, labels bool, opts Options) (*Partial, error) {
	in, err := filelist.Open(path)
	if err != nil {
		return nil, err
	}
	l := opts.newListing()
	if err := l.addListing(in, 0, 0, nil); err != nil {
		return nil, err
	}
	p := &Partial{Input: Input{input, in.SHA256, in.Rows}, Found: &names.Resolved{Names: opts.Classes.Known}, listing: in, opts: opts,
		labelled: labels && !opts.Unlabelled && len(in.Labels) > 0}
	switch {
	case p.labelled && opts.Target != target.Classes && in.Bare > 0:
		return nil, nil
	case p.labelled && opts.Target == target.Classes:
		for _, v := range in.Labels {
			l.labels = append(l.labels, label{v.Text, v.Folder})
		}
		if p.Found, err = l.resolve(opts.Classes, func(int) string { return in.Path }); err != nil || in.Bare > 0 {
			return nil, nil
		}
		p.numbers = p.Found.Numbers
	}
	return p, nil
}

// Doubt returns where the order of the rows is not known, or nil.
func (p *Partial) Doubt() *fileorder.Doubt { return doubtOf(p.listing, p.opts.Order, 0) }

// At returns example i, or nil if it is not loaded.
func (p *Partial) At(i int) *Example {
	if p.rows != nil {
		if at, loaded := slices.BinarySearch(p.rows, i); loaded {
			return &p.examples[at]
		}
		return nil
	}
	if i < p.first || i >= p.first+len(p.examples) {
		return nil
	}
	return &p.examples[i-p.first]
}

// Load reads the rows [first, end), and drops all others. It does not read rows again that are already loaded, so
// commands that make images run once.
func (p *Partial) Load(first, end int) error {
	if p.rows == nil && p.first == first && len(p.examples) == end-first {
		return nil
	}
	return p.load(first, end, nil)
}

// LoadRows reads the given rows, in ascending order, and drops all others. It returns their true values.
func (p *Partial) LoadRows(rows []int) (target.Target, error) {
	err := p.load(rows[0], rows[len(rows)-1]+1, rows)
	return p.labels, err
}

func (p *Partial) load(first, end int, only []int) error {
	l := p.opts.newListing()
	l.beginSource(p.listing.Path)
	if err := l.addListing(p.listing, first, end, only); err != nil {
		return err
	}
	p.first, p.rows, p.examples, p.labels = first, only, l.examples, target.Target{}
	switch {
	case p.opts.Target != target.Classes && p.labelled:
		t, err := l.rows(p.opts.Target)
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

// Labels returns the true values of the loaded examples [first, end). It returns none if no example has any.
func (p *Partial) Labels(first, end int) target.Target {
	if p.labels.None() {
		return p.labels
	}
	return p.labels.Part(first-p.first, end-p.first)
}
