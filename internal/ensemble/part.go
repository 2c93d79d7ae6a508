package ensemble

import (
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/swagwrap/swagwrap/internal/predictions"
	"github.com/swagwrap/swagwrap/weights"
)

// PartKind is the kind of a file with some of an ensemble's members. One of several jobs has drawn them.
const PartKind = "swagwrap.ensemble.part"

// Part is a range of the members of an ensemble.
type Part struct {
	Index int `json:"index"` // part Index of Of, from 0
	Of    int `json:"of"`
	First int `json:"first"` // its members are First … End−1
	End   int `json:"end"`
}

// PartOf returns part index of the given number of parts, n. It has the members ⌊i·S/n⌋ … ⌊(i+1)·S/n⌋−1, where i is
// index.
func (e *Ensemble) PartOf(index, of int) Part {
	s := e.Members()
	return Part{index, of, index * s / of, (index + 1) * s / of}
}

// WritePart writes the members of a part. The rest of the file is the same as with [Ensemble.Write]. asked lists the
// flags of the job, except those that say where it runs.
func (e *Ensemble) WritePart(w io.WriterAt, producer string, p Part, asked []string) error {
	return e.write(w, PartKind, producer, map[string]any{"part": p, "asked": asked})
}

// A PartFile is the content of the file of a part.
type PartFile struct {
	Part
	*Ensemble
	Producer string
	Asked    []string
	metadata map[string]string
	sizes    []int // batch-norm statistics per member, for each component
}

// OpenPart reads the whole file at path, and checks its checksums. It keeps only the statistics of the members of the
// part.
func OpenPart(path string) (*PartFile, error) {
	p := &PartFile{}
	e, err := open(path, PartKind, func(st *weights.Safetensors) error {
		p.metadata, p.Producer = st.Metadata, st.Metadata["producer"]
		return st.DecodeMetadata(map[string]any{"part": &p.Part, "asked": &p.Asked})
	})
	if err != nil {
		return nil, err
	}
	p.Ensemble = e
	if p.Of < 1 || p.Of > predictions.MaxParts || p.Index < 0 || p.Index >= p.Of || p.Part != e.PartOf(p.Index, p.Of) {
		return nil, fmt.Errorf("%s: metadata \"part\": part %d of %d has not members %d to %d of %d", path, p.Index, p.Of, p.First, p.End, e.Members())
	}
	k := 0
	for _, c := range e.Components {
		p.sizes = append(p.sizes, len(c.Statistics[0]))
		for place := range c.Statistics {
			if k < p.First || k >= p.End {
				c.Statistics[place] = nil
			}
			k++
		}
	}
	return p, nil
}

// Unlike lists the metadata that show that p and q belong to different runs. If there are none, p drops its own copy of
// the metadata.
func (p *PartFile) Unlike(q *PartFile) []string {
	var names []string
	both := maps.Clone(p.metadata)
	maps.Copy(both, q.metadata)
	for _, key := range slices.Sorted(maps.Keys(both)) {
		switch key {
		case "part", "crc32c", "crc32c_header":
		default:
			if p.metadata[key] != q.metadata[key] {
				names = append(names, key+" is another")
			}
		}
	}
	if names == nil && !slices.Equal(p.sizes, q.sizes) {
		names = append(names, "its members have other batch-norm statistics")
	}
	if names == nil {
		p.metadata = q.metadata
	}
	return names
}

// Take copies the statistics of the members of a part into e.
func (e *Ensemble) Take(p *PartFile) {
	for k := p.First; k < p.End; k++ {
		i, place := e.Find(k)
		e.Components[i].Statistics[place] = p.Components[i].Statistics[place]
	}
}
