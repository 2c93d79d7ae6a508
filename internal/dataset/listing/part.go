package listing

import (
	"github.com/swagwrap/swagwrap/internal/dataset/filelist"
	"github.com/swagwrap/swagwrap/internal/truth"
)

// Part is a listing made before, of which some rows are loaded.
type Part struct {
	Input      Input
	ClassNames []string

	listing  *filelist.Listing
	opts     Options
	numbers  []int // of its labels, where these are classes
	labelled bool  // rows have labels, and they are wanted

	first    int
	examples []Example
	labels   truth.Truth
}

// OpenPart opens the listing at path, which is that input, with no row of it read; it
// returns nil if that is not enough to know the classes. Labels are looked for if they
// are wanted.
func OpenPart(input, path string, labels bool, opts Options) (*Part, error) {
	in, err := filelist.Open(path)
	if err != nil {
		return nil, err
	}
	l := opts.newListing()
	if err := l.addListing(in, 0, 0); err != nil {
		return nil, err
	}
	p := &Part{Input: Input{input, in.SHA256, in.Rows}, ClassNames: opts.ClassNames, listing: in, opts: opts,
		labelled: labels && !opts.Unlabelled && len(in.Labels) > 0}
	switch {
	case p.labelled && opts.Truth != truth.Classes && in.Bare > 0:
		return nil, nil
	case p.labelled && opts.Truth == truth.Classes:
		for _, v := range in.Labels {
			l.labels = append(l.labels, label{v.Text, v.Folder})
		}
		p.numbers, p.ClassNames, err = l.numbers(opts.ClassNames, func(int) string { return in.Path })
		if err != nil || in.Bare > 0 {
			return nil, nil
		}
	}
	return p, nil
}

// At returns example i, or nil if it is not loaded.
func (p *Part) At(i int) *Example {
	if i < p.first || i >= p.first+len(p.examples) {
		return nil
	}
	return &p.examples[i-p.first]
}

// Load reads the rows from first to before end, and forgets all others.
func (p *Part) Load(first, end int) error {
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

// Labels is what is known of the examples [first, end), which are loaded; nothing where
// that is not known of any.
func (p *Part) Labels(first, end int) truth.Truth {
	if p.labels.None() {
		return p.labels
	}
	return p.labels.Part(first-p.first, end-p.first)
}
