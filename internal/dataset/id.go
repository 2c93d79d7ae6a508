package dataset

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
)

// ID identifies what the examples of d are and the order they are in, without their labels:
// by the content of arrays, by the names and sizes of image files (see [Source]), and by
// what is done to them. It is "" for a dataset that does not say, and does not depend on
// the paths of the inputs.
func ID(d Dataset) string {
	if known, ok := d.(interface{ ID() string }); ok {
		return known.ID()
	}
	return ""
}

// IDOf is the ID of what is made of a dataset with the ID of, or "" if that is: how says by
// what means, in values that encoding/json writes.
func IDOf(of string, how ...any) string {
	if of == "" {
		return ""
	}
	return identity(append(how, of))
}

func identity(parts []any) string {
	js, err := json.Marshal(parts)
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(js)
	return hex.EncodeToString(sum[:])
}

// ID makes that of a dataset that Open returned.
func (e *examples) ID() string { return e.id }

// identify notes it.
func (e *examples) identify(opts Options) {
	sources := e.sources
	if e.apart {
		sources = sources[:len(sources)-1]
	}
	var sums []string
	for _, s := range sources {
		sums = append(sums, s.Kind, s.SHA256)
	}
	what := []any{sums, e.n, e.shape, opts.ImagesKey, opts.Uint8, opts.Preprocess, opts.Augment, e.asSeen}
	if e.fields != nil {
		what = append(what, e.fields)
	}
	if e.said != nil {
		what = append(what, e.said)
	}
	e.id = identity(what)
}

func (p *part) ID() string { return IDOf(ID(p.Dataset), "part", p.first, p.end) }

func (s *subset) ID() string { return IDOf(ID(s.Dataset), "subset", s.rows) }
