package dataset

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
)

// ID identifies the examples of d and their order, without their labels. It depends on the content of arrays, on the
// names and sizes of image files (see [Source]), and on their preprocessing. It does not depend on the paths of the
// inputs. It is "" if d has no ID.
func ID(d Dataset) string {
	if known, ok := d.(interface{ ID() string }); ok {
		return known.ID()
	}
	return ""
}

// IDOf returns the ID of data that is derived from a dataset with the ID of. how describes the derivation, in values
// that encoding/json accepts. IDOf returns "" if of is "".
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

// ID returns the ID of a dataset that Open returned.
func (e *examples) ID() string { return e.id }

// identify computes the ID.
func (e *examples) identify(opts Options) {
	sources := e.sources
	if e.labelled {
		sources = sources[:len(sources)-1]
	}
	var sums []string
	for _, s := range sources {
		sums = append(sums, s.Kind, s.SHA256)
	}
	what := []any{sums, e.n, e.shape, opts.Uint8, opts.Preprocess, opts.Augment, e.asSeen}
	if e.fields != nil {
		what = append(what, e.fields)
	}
	if e.chosenOptions != nil {
		what = append(what, e.chosenOptions)
	}
	e.id = identity(what)
}
