package predictions

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"

	"github.com/swagwrap/swagwrap/internal/file"
)

// MaxParts is the largest number of parts of one run. Arrays of Slurm, Kubernetes and AWS Batch are smaller
// by default.
const MaxParts = 1_000_000

// Part is a range of the examples, which one of several jobs scores. Its rows are stored in the same records as in a
// work file. The rows and the fields of Part suffice to write the file that a single run would have written.
type Part struct {
	Index, Of  int     // part Index of Of, from 0
	First, End int     // the rows are for the examples [First, End), in whole batches; a superfluous part has none
	Examples   int     // of all parts together
	Schema     *Schema `json:"-"` // the file stores an [outline] instead
	Task       string  // its name
	Processor  string  // on which the part was begun
	About      json.RawMessage
}

const partMagic = "swagwrap part of scores 2\n"

// IsPart reports whether a file that begins with head is a [Part].
func IsPart(head []byte) bool { return bytes.HasPrefix(head, []byte(partMagic)) }

// IsUnfinished reports whether a file that begins with head is the work file of a run that has not ended.
func IsUnfinished(head []byte) bool { return bytes.HasPrefix(head, []byte(recordsMagic)) }

// PartName returns the path of a part's file, for the result at path.
func PartName(path string, index, of int) string {
	return fmt.Sprintf("%s.part-%04d-of-%04d", path, index, of)
}

// PartNames lists the existing files of parts of the result at path.
func PartNames(path string) ([]string, error) {
	dir, base := filepath.Split(path)
	entries, err := os.ReadDir(filepath.Clean(dir)) // Clean turns "" into "."
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

// ParsePartName returns the index and the number of parts in the name of a part's file.
func ParsePartName(path string) (index, of int, ok bool) {
	ext := filepath.Ext(path)
	n, err := fmt.Sscanf(ext, ".part-%d-of-%d", &index, &of)
	return index, of, err == nil && n == 2 && fmt.Sprintf(".part-%04d-of-%04d", index, of) == ext
}

// Range returns the examples [first, end) of a part. With b batches and n parts, part i has the batches ⌊i·b/n⌋ …
// ⌊(i+1)·b/n⌋−1. Each batch has unit examples, except the last.
func (p *Part) Range(examples, unit int) (first, end int) {
	batches := (examples + unit - 1) / unit
	at := func(i int) int { return min(examples, int(int64(i)*int64(batches)/int64(p.Of))*unit) }
	return at(p.Index), at(p.Index + 1)
}

// partHead is the JSON head of a part's file.
type partHead struct {
	Parameters Parameters
	Part       *Part
	Rows       outline
}

// differences describes how a stored part differs from the requested one.
func (h *partHead) differences(p Parameters, part *Part) []string {
	d := h.Parameters.Differences(p)
	if h.Part.First != part.First || h.Part.End != part.End {
		d = append(d, fmt.Sprintf("examples were %d to %d", h.Part.First, h.Part.End))
	}
	return d
}

// OpenPart opens the work file of a part; see [OpenRecords]. [Records.Publish] turns it into the part's file.
func OpenPart(path string, part *Part, p Parameters, existing Existing) (*Records, error) {
	r := newRecords(path, part.Schema)
	r.magic = partMagic
	r.begins = partHead{p, part, part.Schema.outline()}
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

// Publish syncs the complete rows to disk, renames the file to the name of the part's file, and closes it.
func (r *Records) Publish(path string) error {
	if err := r.named(r.file.Sync()); err != nil {
		return err
	}
	if err := os.Rename(r.Path, path); err != nil {
		return file.Error(path, err)
	}
	if dir, err := os.Open(filepath.Dir(path)); err == nil {
		defer dir.Close()
		dir.Sync() // some file systems cannot do this; the rows are already safe
	}
	return r.named(r.file.Close())
}

// PartFile is the file of a complete part.
type PartFile struct {
	Part
	Path       string
	Parameters Parameters
	Errors     int // number of rows with an error
}

// Differences describes how the part differs from the requested one.
func (p *PartFile) Differences(now Parameters, part *Part) []string {
	return (&partHead{Parameters: p.Parameters, Part: &p.Part}).differences(now, part)
}

// ErrDamaged is the error for a part's file that is incomplete or corrupt. The part must be scored again.
var ErrDamaged = errors.New("is damaged, or not all of it is there")

// ReadPart reads the head of a part's file, and checks all rows. The error wraps [ErrDamaged] if the file is not what
// was written.
func ReadPart(path string) (*PartFile, error) {
	p := &PartFile{Path: path}
	err := p.scan(func(row *Row) error {
		if row.Error != "" {
			p.Errors++
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return p, nil
}

// Each calls f with every row in turn. The row is valid only during the call. Its index is the index of the example
// among all examples.
func (p *PartFile) Each(f func(*Row) error) error {
	was := *p
	return was.scan(func(row *Row) error {
		row.Index += p.First
		return f(row)
	})
}

// Unlike lists the differences that show that p and q belong to different runs. If there are none, p drops its copy of
// the schema and the parameters and uses those of q. This saves memory, because a run may have many parts.
func (p *PartFile) Unlike(q *PartFile) []string {
	d := q.Parameters.Differences(p.Parameters)
	if d == nil && (p.Task != q.Task || !reflect.DeepEqual(p.Schema, q.Schema)) {
		d = []string{"its rows hold something else"}
	}
	if d == nil {
		p.Schema, p.Parameters = q.Schema, q.Parameters
	}
	return d
}

// scan reads the file from the beginning, and calls f with each row. The file may come from anywhere, so scan refuses a
// head or a row that no run writes.
func (p *PartFile) scan(f func(*Row) error) error {
	damaged := func(err error) error {
		if err == nil {
			return file.Error(p.Path, ErrDamaged)
		}
		return file.Error(p.Path, fmt.Errorf("%w: %w", ErrDamaged, err))
	}
	in, info, err := file.Regular(p.Path)
	if errors.Is(err, file.ErrNotRegular) {
		return damaged(file.Cause(err))
	}
	if err != nil {
		return err
	}
	defer in.Close()
	r := &Records{Path: p.Path, magic: partMagic, file: in}
	classes, err := p.head(r, info.Size())
	if err != nil {
		return damaged(err)
	}
	if p.First == p.End {
		if info.Size() != r.start {
			return damaged(errors.New("has rows, and none belongs to it"))
		}
		return nil
	}
	own := false
	rows, _, err := r.scan(func(row *Row) error {
		if err := classes.check(row); err != nil {
			return err
		}
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

// head reads and checks the head of the file. size is the size of the file in bytes.
func (p *PartFile) head(r *Records, size int64) (*classCheck, error) {
	js, err := r.head(io.NewSectionReader(r.file, 0, size))
	if err != nil {
		return nil, err
	}
	if js == nil {
		return nil, errors.New("its head is cut short")
	}
	var h partHead
	if err := json.Unmarshal(js, &h); err != nil {
		return nil, err
	}
	if err := h.Part.check(); err != nil {
		return nil, err
	}
	t, schema, err := h.Rows.schema(h.Part.Task)
	if err != nil {
		return nil, err
	}
	h.Part.Schema = schema
	p.Part, p.Parameters = *h.Part, h.Parameters
	if rows := int64(p.End - p.First); rows > 0 {
		most := (size - r.start) / rows
		if !schema.fits(most) {
			return nil, fmt.Errorf("%d rows need more than its %d bytes", rows, size)
		}
		r.setSchema(schema)
	}
	return &classCheck{schema.fields(), t.ClassNames()}, nil
}

// check refuses indices and ranges that no part can have.
func (p *Part) check() error {
	switch {
	case p == nil:
		return errors.New("nothing says which part it is")
	case p.Of < 1 || p.Of > MaxParts || p.Index < 0 || p.Index >= p.Of:
		return fmt.Errorf("part %d of %d, want one of 1 to %d parts", p.Index, p.Of, MaxParts)
	case p.First < 0 || p.First > p.End || p.End > p.Examples || p.Examples < 1:
		return fmt.Errorf("examples %d to %d of %d", p.First, p.End, p.Examples)
	}
	return nil
}
