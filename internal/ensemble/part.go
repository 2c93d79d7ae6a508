package ensemble

import (
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/swagwrap/swagwrap/weights"
)

// PartKind is the kind of a file with some of an ensemble's members, which one of several
// jobs has drawn.
const PartKind = "swagwrap.ensemble.part"

// Part says which.
type Part struct {
	Index int `json:"index"` // part Index of Of, from 0
	Of    int `json:"of"`
	First int `json:"first"` // its members are First … End−1
	End   int `json:"end"`
}

// PartOf returns part index of so many: members ⌊i·S/n⌋ … ⌊(i+1)·S/n⌋−1.
func (e *Ensemble) PartOf(index, of int) Part {
	s := e.Members()
	return Part{index, of, index * s / of, (index + 1) * s / of}
}

// WritePart writes the members of a part. All else is as [Ensemble.Write] has it. asked
// is what the job was told, but for where it runs.
func (e *Ensemble) WritePart(w io.WriterAt, producer string, p Part, asked []string) error {
	return e.write(w, PartKind, producer, map[string]any{"part": p, "asked": asked})
}

// A PartFile is a part that was read.
type PartFile struct {
	Part
	*Ensemble
	Producer string
	Asked    []string
	metadata map[string]string
}

// OpenPart reads the file at path, whole, and checks its checksums.
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
	if p.Of < 1 || p.Index < 0 || p.Index >= p.Of || p.Part != e.PartOf(p.Index, p.Of) {
		return nil, fmt.Errorf("%s: metadata \"part\": part %d of %d has not members %d to %d of %d", path, p.Index, p.Of, p.First, p.End, e.Members())
	}
	return p, nil
}

// Differences names the metadata in which a part of the same ensemble differs.
func (p *PartFile) Differences(q *PartFile) []string {
	var names []string
	for _, key := range slices.Sorted(maps.Keys(p.metadata)) {
		switch key {
		case "part", "crc32c", "crc32c_header":
		default:
			if p.metadata[key] != q.metadata[key] {
				names = append(names, key+" is another")
			}
		}
	}
	return names
}

// Take takes the members of a part.
func (e *Ensemble) Take(p *PartFile) {
	for k := p.First; k < p.End; k++ {
		i, place := e.Find(k)
		e.Components[i].Statistics[place] = p.Components[i].Statistics[place]
	}
}
