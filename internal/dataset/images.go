package dataset

import (
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/swagwrap/swagwrap/internal/dataset/listing"
	"github.com/swagwrap/swagwrap/internal/dataset/masks"
	"github.com/swagwrap/swagwrap/internal/names"
	"github.com/swagwrap/swagwrap/internal/picture"
	"github.com/swagwrap/swagwrap/internal/preprocess"
	"github.com/swagwrap/swagwrap/internal/target"
)

// openImages opens the images that the inputs name. They are read and decoded on demand. Only their names are kept,
// about 100 bytes per image.
func openImages(inputs []string, opts Options) (Dataset, error) {
	l, err := listing.Read(inputs, opts.listing())
	if err != nil {
		return nil, err
	}
	return opts.openListing(l, inputs[0])
}

// openListing opens the images of a listing. of is the name of the listing in errors.
func (opts Options) openListing(l *listing.Listing, of string) (_ Dataset, err error) {
	e := &examples{n: l.Len(), classNames: opts.Known.Classes, name: func(i int) string { return l.Example(i).Path() }}
	for _, in := range l.Inputs() {
		e.sources = append(e.sources, listed(in))
	}
	e.listed(l)
	e.fileSize, e.doubt = l.Bytes, l.Doubt
	if opts.Labels == "" && !opts.Unlabelled {
		var found *names.Resolved
		reading := opts.reading()
		if known := l.ClassNames(); known != nil && reading.Known == nil {
			reading.Known, reading.From = known, l.Inputs()[0].Path
		}
		if e.labels, found, err = l.Target(opts.Target, reading); err != nil {
			return nil, err
		}
		e.resolved(found, opts, l.Inputs()[0].Path)
	}
	return opts.openPictures(e, of, func(i int) (*listing.Example, error) { return l.Example(i), nil })
}

// openPart opens an existing listing when only a part of it is used. It returns nil if the classes are known only after
// reading all rows.
func openPart(input, path string, opts Options) (Dataset, error) {
	if listing.HasPictures(path) {
		return nil, nil
	}
	p, err := listing.OpenPartial(input, path, opts.Labels == "", opts.listing())
	if p == nil {
		return nil, err
	}
	e := &examples{n: p.Input.Images, loaded: p, sources: []Source{listed(p.Input)}, doubt: p.Doubt}
	e.resolved(p.Found, opts, input)
	e.name = func(i int) string {
		if x := p.At(i); x != nil {
			return x.Path()
		}
		return fmt.Sprintf("%s[%d]", path, i)
	}
	return opts.openPictures(e, input, func(i int) (*listing.Example, error) {
		if x := p.At(i); x != nil {
			return x, nil
		}
		return nil, errors.New("is not of the part that is loaded")
	})
}

// listing returns the options that apply to listing the inputs.
func (o Options) listing() listing.Options {
	return listing.Options{
		Target:     o.Target,
		Classes:    o.reading(),
		Targets:    o.targets(),
		Columns:    o.Named,
		Order:      o.Order,
		Unlabelled: o.Unlabelled,
		Pipes:      o.Pipes,
	}
}

func listed(in listing.Input) Source {
	return Source{Path: in.Path, Kind: "listing", SHA256: in.SHA256, Files: in.Images}
}

// openPictures returns the dataset of the examples that at returns. of is their common name in errors.
func (opts Options) openPictures(e *examples, of string, at func(i int) (*listing.Example, error)) (Dataset, error) {
	decoder := listing.Decoder{Budget: listing.NewBudget(opts.Memory), Orientation: opts.Preprocess.Orientation}
	if decoder.Orientation == "" && opts.Sideways != nil {
		e.sideways = opts.Sideways.of(e)
	}
	e.file = at
	if info, err := os.Stat(opts.Labels); opts.Positions != nil && err == nil && info.IsDir() {
		if err := opts.useMasks(e, of, at, decoder); err != nil {
			return nil, err
		}
	} else if opts.Labels != "" {
		err := e.readLabels(opts.Labels, "", of, opts)
		if err == nil {
			err = checkLabels(e.labels, e.classNames, opts.Labels)
		}
		if err != nil {
			return nil, err
		}
	}
	if opts.Tiling.Size > 0 {
		return opts.openTiles(e, of, at, decoder)
	}
	p, err := opts.preprocess()
	if err != nil {
		return nil, err
	}
	shape := opts.Shape
	if shape == nil {
		shape = []int64{-1, -1, -1}
	}
	if opts.Original {
		if err := e.keepOriginal(p, shape, at, decoder); err != nil {
			return nil, fmt.Errorf("%s: %w", of, err)
		}
	}
	d, err := opts.pictures(e, p, shape, 0, 0, func(p preprocess.Settings, i int, use func(picture.Picture) error) error {
		x, err := at(i)
		if err != nil {
			return err
		}
		return x.Picture(e.counted(decoder, i), p.Channels == "grey", use)
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", of, err)
	}
	return d, nil
}

// useMasks takes the labels of pictures from a folder of masks.
func (opts Options) useMasks(e *examples, of string, at func(i int) (*listing.Example, error), decoder listing.Decoder) error {
	p, err := opts.preprocess()
	if opts.Tiling.Size > 0 || opts.Original {
		p.Image = preprocess.Transform{} // labels are of whole pictures
	} else if err == nil {
		p, err = p.Resolve(opts.Shape)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", of, err)
	}
	info, err := os.Stat(of)
	pictures := masks.Pictures{Len: e.n, Open: at, Whole: err == nil && info.IsDir(), Transform: p.Image, Decoder: decoder}
	labels, sum, err := masks.Open(opts.Labels, opts.Target, *opts.Positions, pictures)
	e.labels, e.sources = labels, append(e.sources, Source{Path: opts.Labels, Kind: "masks", SHA256: sum, Files: e.n})
	return err
}

// Bare returns the first example of d that has no label where others have one, and the number of such examples. Examples
// with several positions have no label of their own, and are not counted.
func Bare(d Dataset) (first, n int) {
	e, labels := examplesIn(d), d.Labels()
	if labels.Dense() {
		return -1, 0
	}
	first = -1
	// −1 stands for a label that is not known, and may be a number.
	numbers := labels.Gaps()
	for i := range labels.Len() {
		one := labels.Part(i, i+1)
		if (one.Classes != nil || numbers) && one.Known() || !numbers && slices.ContainsFunc(one.Values, func(v float64) bool {
			return v != target.Unknown
		}) {
			continue
		}
		if e.file != nil && labels.Len() == e.n {
			if x, err := e.file(i); err == nil && x.Unlisted() {
				continue // it cannot be read, which is counted elsewhere
			}
		}
		if n++; first < 0 {
			first = i
		}
	}
	return first, n
}

// noteBare notes how many examples have no label.
func (e *examples) noteBare(d Dataset, kind target.Kind) {
	if kind == target.Numbers {
		return // any number is a target
	}
	if first, n := Bare(d); n > 0 && n < d.Len() {
		e.told.note(fmt.Sprintf("no label: %d of %d examples, such as %s; no score counts them", n, d.Len(), d.Name(first)))
	}
}
