package predictions

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/swagwrap/swagwrap/internal/file"
	"github.com/swagwrap/swagwrap/internal/task"
)

// Part is a range of the examples, scored by one job of several. Its rows are in the
// same records as a work file's, and with what is said here they are all that it takes
// to write the file that one run would have written.
type Part struct {
	Index, Of  int // part Index of Of, from 0
	First, End int // rows are of the examples [First, End), whole batches; of a part too many there are none
	Examples   int // of all parts together
	Schema     *Schema
	Task       string // its name
	Processor  string // on which the part was begun
	About      json.RawMessage
}

const partMagic = "swagwrap part of scores 1\n"

// PartName is the name of a part's file, for the result at path.
func PartName(path string, index, of int) string {
	return fmt.Sprintf("%s.part-%04d-of-%04d", path, index, of)
}

// PartNames lists the files of parts that there are of the result at path.
func PartNames(path string) ([]string, error) {
	dir, base := filepath.Split(path)
	entries, err := os.ReadDir(filepath.Clean(dir)) // of "" this is "."
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		if index, of, ok := ParsePartName(e.Name()); ok && PartName(base, index, of) == e.Name() {
			names = append(names, dir+e.Name())
		}
	}
	return names, nil
}

// ParsePartName tells which part a file is by its name.
func ParsePartName(path string) (index, of int, ok bool) {
	ext := filepath.Ext(path)
	n, err := fmt.Sscanf(ext, ".part-%d-of-%d", &index, &of)
	return index, of, err == nil && n == 2 && fmt.Sprintf(".part-%04d-of-%04d", index, of) == ext
}

// Range returns the examples of a part: batches ⌊i·b/n⌋ … ⌊(i+1)·b/n⌋−1 of b, each of
// unit examples but the last.
func (p *Part) Range(examples, unit int) (first, end int) {
	batches := (examples + unit - 1) / unit
	at := func(i int) int { return min(examples, int(int64(i)*int64(batches)/int64(p.Of))*unit) }
	return at(p.Index), at(p.Index + 1)
}

// partHead is the JSON of a part's file.
type partHead struct {
	Parameters Parameters
	Part       *Part
}

// differences says in what a part that is there is not the one that is asked for.
func (h *partHead) differences(p Parameters, part *Part) []string {
	d := h.Parameters.Differences(p)
	if h.Part.First != part.First || h.Part.End != part.End {
		d = append(d, fmt.Sprintf("examples were %d to %d", h.Part.First, h.Part.End))
	}
	return d
}

// OpenPart opens the work file of a part: see [OpenRecords]. [Records.Publish] makes it
// a part's file.
func OpenPart(path string, part *Part, p Parameters, existing Existing) (*Records, error) {
	r := newRecords(path, part.Schema)
	r.magic = partMagic
	r.begins = partHead{p, part}
	r.compare = func(js []byte) ([]string, error) {
		var was partHead
		if err := json.Unmarshal(js, &was); err != nil {
			return nil, err
		}
		if was.Part == nil {
			return nil, errors.New("nothing says which part it is")
		}
		return was.differences(p, part), nil
	}
	return r.use(existing)
}

// Publish puts complete rows on disk under the name of the part's file, and closes it.
func (r *Records) Publish(path string) error {
	if err := r.named(r.file.Sync()); err != nil {
		return err
	}
	if err := os.Rename(r.Path, path); err != nil {
		return file.Error(path, err)
	}
	if dir, err := os.Open(filepath.Dir(path)); err == nil {
		defer dir.Close()
		dir.Sync() // some file systems cannot; the rows are safe by now
	}
	return r.named(r.file.Close())
}

// PartFile is the file of a complete part.
type PartFile struct {
	Part
	Path       string
	Parameters Parameters
	Errors     int // rows that have one
}

// Differences says in what the part is not the one that is asked for.
func (p *PartFile) Differences(now Parameters, part *Part) []string {
	return (&partHead{p.Parameters, &p.Part}).differences(now, part)
}

// ErrDamaged is the error of a part's file that is not whole: the part is to be scored
// again.
var ErrDamaged = errors.New("is damaged, or not all of it is there")

// ReadPart reads the head of a part's file, and all rows once: an error that is
// [ErrDamaged] says that they are not what was written.
func ReadPart(path string) (*PartFile, error) {
	p := &PartFile{Path: path}
	var fields []field // once, and not for each row
	err := p.scan(func(row *Row) error {
		if row.Error != "" {
			p.Errors++
			return nil
		}
		if fields == nil {
			fields = p.Schema.fields()
		}
		return p.classes(fields, row)
	})
	if err != nil {
		return nil, err
	}
	return p, nil
}

// check refuses what no part is. A file may be anybody's.
func (p *Part) check() error {
	if p == nil || p.Schema == nil || p.Index < 0 || p.Index >= p.Of || p.First < 0 || p.First > p.End || p.End > p.Examples {
		return errors.New("nothing says which part it is")
	}
	const most = 1 << 24 // numbers in a row
	for _, c := range p.Schema.Columns {
		n := 1
		for _, d := range c.Shape {
			if d < 1 || d > most/n {
				return fmt.Errorf("column %q: shape %d", c.Name, c.Shape)
			}
			n *= d
		}
		if c.Kind < task.Float64 || c.Kind > task.Ranked {
			return fmt.Errorf("column %q: is of no kind", c.Name)
		}
	}
	return nil
}

// classes refuses a class that has no name where classes have.
func (p *PartFile) classes(fields []field, row *Row) error {
	for _, f := range fields {
		if v := f.values(row); f.named != "" && !(v[0] >= 0 && int(v[0]) < len(p.Schema.ClassNames)) {
			return file.Error(p.Path, fmt.Errorf("%w: row %d: class %v of %d", ErrDamaged, row.Index, v[0], len(p.Schema.ClassNames)))
		}
	}
	return nil
}

// Each calls f with every row in turn, which is valid during the call. A row's index is
// that of its example among all.
func (p *PartFile) Each(f func(*Row) error) error {
	was := *p
	return was.scan(func(row *Row) error {
		row.Index += p.First
		return f(row)
	})
}

// scan reads the file from the beginning.
func (p *PartFile) scan(f func(*Row) error) error {
	in, err := os.Open(p.Path)
	if err != nil {
		return err
	}
	defer in.Close()
	damaged := func(err error) error {
		if err == nil {
			return file.Error(p.Path, ErrDamaged)
		}
		return file.Error(p.Path, fmt.Errorf("%w: %w", ErrDamaged, err))
	}
	r := &Records{Path: p.Path, magic: partMagic, file: in}
	js, err := r.head(io.NewSectionReader(in, 0, 1<<62))
	if err != nil || js == nil {
		return damaged(err)
	}
	var h partHead
	if err := json.Unmarshal(js, &h); err != nil {
		return damaged(err)
	}
	if err := h.Part.check(); err != nil {
		return damaged(err)
	}
	p.Part, p.Parameters = *h.Part, h.Parameters
	r.setSchema(p.Schema)
	own := false
	rows, _, err := r.scan(func(row *Row) error {
		err := f(row)
		own = err != nil
		return err
	})
	switch {
	case own:
		return err
	case err != nil || rows != p.End-p.First:
		return damaged(err)
	}
	return nil
}
