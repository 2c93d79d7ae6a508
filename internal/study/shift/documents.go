package shift

import (
	"cmp"
	"fmt"

	"github.com/swagwrap/swagwrap/internal/corrupt"
	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/splitmix"
)

// openText prepares damaged texts: for each severity and each corruption one of the documents that it damages. The random
// numbers of a document are its own.
func (s *Data) openText(test dataset.Dataset, documents []dataset.Document, seed uint64) error {
	kind := corrupt.Words
	var ids [][]int32
	for _, d := range documents {
		if ids = append(ids, d.IDs); d.IDs != nil {
			kind = corrupt.Tokens
		}
	}
	s.Texts = true
	if err := cmp.Or(s.choose(kind, len(documents), false, seed), s.openIce(test, kind)); err != nil {
		return err
	}
	if s.Examples < len(documents) {
		var with []dataset.Document
		for _, i := range s.Chosen() {
			with = append(with, documents[i])
		}
		var err error
		if s.Clean, err = dataset.Rewritten(test, with, s.Chosen(), "documents", s.Chosen()); err != nil {
			return err
		}
	}
	for _, severity := range s.Severities {
		for c := range s.Corruptions {
			var with []dataset.Document
			units := s.With(c)
			for j := range units {
				at := s.spot(c+j*len(s.Corruptions), severity, seed)
				d := documents[units[j]]
				if d.Body = at.Text(d.Body, severity, at.seed); d.IDs != nil {
					d.IDs = listed(d.IDs, at.List(len(d.IDs), severity, at.seed), ids, at.seed)
				}
				with = append(with, d)
			}
			if with == nil {
				return fmt.Errorf("%d corruptions, and %d documents: want each=all, or fewer corruptions", len(s.Corruptions), s.Examples)
			}
			d, err := dataset.Rewritten(test, with, units, append(s.how(severity, seed), c)...)
			if err != nil {
				return fmt.Errorf("damaged at severity %d: %w", severity, err)
			}
			s.Sets = append(s.Sets, d)
		}
	}
	return nil
}

// listed returns the tokens of a document after its list changed: see [corrupt.Corruption.List]. all has all documents.
func listed(old []int32, from []int, all [][]int32, seed uint64) (out []int32) {
	for j, k := range from {
		if k >= 0 {
			out = append(out, old[k])
		} else {
			out = append(out, anyToken(all, func(i int) (int, int) { return 0, len(all[i]) }, splitmix.Nth(seed, 1<<32+uint64(j))))
		}
	}
	return out
}
