// Package shift makes test data that change: the same examples, damaged in several severities (Ovadia et al. 2019).
//
// # Invariants
//
// The damaged data depend on the test data, the corruptions and the seed alone. Labels stay those of the examples.
package shift

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/swagwrap/swagwrap/internal/corrupt"
	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/memory"
	"github.com/swagwrap/swagwrap/internal/splitmix"
	"github.com/swagwrap/swagwrap/internal/word"
)

// Data are test examples that are damaged in several severities.
type Data struct {
	dataset.Damaged

	// Memory has room for damaged pictures and for photographs of ice.
	Memory *memory.Budget

	corruptions []corrupt.Corruption

	list string // of corruptions, as the user wrote it
	ice  string // a folder with photographs, or ""
	// iceSum is the SHA-256 of the photographs.
	iceSum string
}

// most is the largest number of examples, or of corruptions of one. More mean all.
const most = 1e9

// Parse reads corruptions as [corrupt.Parse] does, followed by severities=1,3,5, examples=N, each=N and ice=FOLDER.
// Without these it uses all severities, one corruption of each of 1,000 examples, and drawn ice.
func Parse(text string) (*Data, error) {
	s := &Data{Damaged: dataset.Damaged{Severities: []int{1, 2, 3, 4, 5}, Examples: 1000, Each: 1}, list: "common"}
	number := func(to *int, written, value, all string) (err error) {
		if *to = most; value != all {
			if *to, err = word.Integer(value, 1, most); err != nil {
				err = fmt.Errorf("%s: %w, or %s", written, err, all)
			}
		}
		return err
	}
	for i, written := range strings.Fields(text) {
		key, value, ok := strings.Cut(written, "=")
		var err error
		switch {
		case i == 0 && !ok:
			s.list = written
			_, err = corrupt.Parse(written, "")
		case key == "examples":
			err = number(&s.Examples, written, value, "all")
		case key == "each":
			err = number(&s.Each, written, value, "all")
		case key == "ice":
			s.ice = value
		case key == "severities":
			s.Severities = nil
			for _, v := range strings.Split(value, ",") {
				n, err := word.Integer(v, 1, corrupt.Severities)
				if err != nil {
					return nil, fmt.Errorf("%s: %w", written, err)
				}
				s.Severities = append(s.Severities, n)
			}
			slices.Sort(s.Severities)
			s.Severities = slices.Compact(s.Severities)
		default:
			err = fmt.Errorf("%q: want corruptions, severities=1,3,5, examples=1000, each=2 or ice=FOLDER", written)
		}
		if err != nil {
			return nil, err
		}
	}
	return s, nil
}

// Open prepares the damaged examples of the test data. dense says that the network scores pixels or tokens. The seed
// chooses the examples and the random numbers. What is typical of numbers is read from the clean data. Open fails for data
// that no corruption is for.
func (s *Data) Open(test, clean dataset.Dataset, dense bool, seed uint64) error {
	documents, err := dataset.Documents(test)
	if err != nil {
		return err
	}
	if documents != nil {
		return s.openText(test, documents, seed)
	}
	damage, kind, err := damages(test, clean)
	if err != nil {
		return err
	}
	if err := s.choose(kind, test.Len(), dense, seed); err != nil {
		return err
	}
	if err := s.openIce(test, kind); err != nil {
		return err
	}
	if dense && s.Examples < test.Len() {
		s.Clean = dataset.Picked(test, s.Chosen())
	}
	rows := dataset.Picked(test, s.Rows)
	for _, severity := range s.Severities {
		d, err := damage(rows, s.Memory.Pictures().Split(len(s.Severities)), func(i int) spot {
			return s.spot(i, severity, seed)
		}, s.how(severity, seed)...)
		if err != nil {
			return err
		}
		s.Sets = append(s.Sets, d)
	}
	return nil
}

// choose chooses the corruptions, and examples among n.
func (s *Data) choose(kind corrupt.Kind, n int, dense bool, seed uint64) (err error) {
	if s.corruptions, err = corrupt.Parse(s.list, kind); err != nil {
		return err
	}
	if dense {
		moves := func(c corrupt.Corruption) bool { return c.Moves }
		if i := slices.IndexFunc(s.corruptions, moves); i >= 0 && strings.Contains(s.list, s.corruptions[i].Name) {
			return fmt.Errorf("%s moves pixels, and the labels of pixels stay: leave it out", s.corruptions[i].Name)
		}
		s.corruptions = slices.DeleteFunc(s.corruptions, moves)
	}
	for _, c := range s.corruptions {
		s.Corruptions = append(s.Corruptions, c.Name)
	}
	s.Each = min(s.Each, len(s.corruptions))
	examples := dataset.Order{Shuffle: true, Seed: seed, Limit: s.Examples}.Indices(n)
	if s.Texts {
		slices.Sort(examples) // they are read one after the other
	}
	for s.Examples = len(examples); len(s.Rows) < s.Examples*s.Each; {
		s.Rows = append(s.Rows, examples[len(s.Rows)/s.Each])
	}
	return nil
}

// openIce reads the photographs for frost.
func (s *Data) openIce(test dataset.Dataset, kind corrupt.Kind) error {
	frost := slices.IndexFunc(s.corruptions, func(c corrupt.Corruption) bool { return c.Name == "frost" })
	if s.ice == "" {
		return nil
	} else if frost < 0 || kind != corrupt.Pictures {
		return errors.New("ice= is for the corruption frost of pictures")
	}
	c, sum := &s.corruptions[frost], sha256.New()
	var err error
	if c.Ice, err = corrupt.Ice(s.ice, s.Memory.Decoding()); err != nil {
		return err
	}
	for _, p := range c.Ice {
		fmt.Fprint(sum, p.W, p.H)
		sum.Write(p.Pix)
	}
	s.iceSum = fmt.Sprintf("%x", sum.Sum(nil))
	return c.FitsIce(dataset.PictureSize(test))
}

// spot returns what happens to row i.
func (s *Data) spot(i, severity int, seed uint64) spot {
	own := splitmix.Nth(seed, uint64(severity))
	return spot{s.corruptions[i%len(s.corruptions)], severity, splitmix.Nth(own, uint64(s.Rows[i])), splitmix.Nth(seed, 0)}
}

// how describes the damaged data for their ID.
func (s *Data) how(severity int, seed uint64) []any {
	names := slices.Clone(s.Corruptions)
	if s.iceSum != "" {
		names = append(names, s.iceSum)
	}
	return []any{"corrupt", corrupt.Version, names, severity, seed}
}

// spot is what happens to one example. seed is its own, and common that of all examples.
type spot struct {
	corrupt.Corruption
	severity     int
	seed, common uint64
}
