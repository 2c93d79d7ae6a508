package records

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/swagwrap/swagwrap/internal/file"
)

// MaxParts is the largest number of parts of one run. Arrays of Slurm, Kubernetes and AWS Batch are smaller
// by default.
const MaxParts = 1_000_000

// Part is a range of the rows of a run. One of several jobs computes it.
type Part struct {
	Index, Of  int // part Index of Of, from 0
	First, End int // its rows are First … End−1; a superfluous part has none
	All        int // the number of rows of all parts together
}

// Range sets the range of the part among the rows of all parts. With b batches and n parts, part i has the batches
// ⌊i·b/n⌋ … ⌊(i+1)·b/n⌋−1. Each batch has unit rows, except the last.
func (p *Part) Range(all, unit int) {
	batches := (all + unit - 1) / unit
	at := func(i int) int { return min(all, int(int64(i)*int64(batches)/int64(p.Of))*unit) }
	p.First, p.End, p.All = at(p.Index), at(p.Index+1), all
}

// Rows returns the number of rows of the part.
func (p *Part) Rows() int { return p.End - p.First }

// check refuses indices and ranges that no part can have.
func (p *Part) check() error {
	switch {
	case p.Of < 1 || p.Of > MaxParts || p.Index < 0 || p.Index >= p.Of:
		return fmt.Errorf("part %d of %d, want one of 1 to %d parts", p.Index, p.Of, MaxParts)
	case p.First < 0 || p.First > p.End || p.End > p.All || p.All < 1:
		return fmt.Errorf("rows %d to %d of %d", p.First, p.End, p.All)
	}
	return nil
}

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

// Saved is a complete file.
type Saved struct {
	Path   string
	Errors int // number of rows with an error
	Head
	kind  Kind
	check Check
}

// Check checks the head of a file whose checksums are right, and returns a function that checks each row. The file may
// come from anywhere, so Check must refuse heads and rows that no run writes. The function may also keep the values of the rows.
type Check func(*Head) (func(*Row) error, error)

// ErrDamaged is the error for a file that is incomplete or corrupt. Its rows must be computed again.
var ErrDamaged = errors.New("is damaged, or not all of it is there")

// Read reads the head of the file at path, and checks all rows. The error wraps [ErrDamaged] if the file is not what
// was written.
func Read(path string, kind Kind, check Check) (*Saved, error) {
	s := &Saved{Path: path, kind: kind, check: check}
	h, err := s.scan(func(row *Row) error {
		if row.Error != "" {
			s.Errors++
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	s.Head = *h
	return s, nil
}

// Each calls f with every row in turn. The row is valid only during the call. Its index is its place among the rows of
// all parts.
func (s *Saved) Each(f func(*Row) error) error {
	_, err := s.scan(func(row *Row) error {
		row.Index += s.Part.First
		return f(row)
	})
	return err
}

// Differences describes how the rows differ from those that a job wants.
func (s *Saved) Differences(now *Head) []string { return s.Head.differences(now) }

// Unlike lists the differences that show that s and other belong to different runs. If there are none, s shares the
// parameters and the schema of other. This saves memory, because a run may have many parts.
func (s *Saved) Unlike(other *Saved) []string {
	d := other.Parameters.Differences(s.Parameters)
	if d == nil && !bytes.Equal(s.Schema, other.Schema) {
		d = []string{"its rows hold something else"}
	}
	if d == nil {
		s.Parameters, s.Schema = other.Parameters, other.Schema
	}
	return d
}

// scan reads the file from the beginning, and calls f with each row.
func (s *Saved) scan(f func(*Row) error) (*Head, error) {
	damaged := func(err error) (*Head, error) {
		if err == nil {
			return nil, file.Error(s.Path, ErrDamaged)
		}
		return nil, file.Error(s.Path, fmt.Errorf("%w: %w", ErrDamaged, err))
	}
	in, info, err := file.Regular(s.Path)
	if errors.Is(err, file.ErrNotRegular) {
		return damaged(file.Cause(err))
	}
	if err != nil {
		return nil, file.Error(s.Path, err)
	}
	defer in.Close()
	h, start, err := readHead(in, s.kind)
	if err == nil {
		err = h.Part.check()
	}
	if err != nil {
		return damaged(err)
	}
	check, err := s.check(h)
	if err != nil {
		return damaged(err)
	}
	own := false
	rows, end, err := scan(in, start, func(row *Row) error {
		if row.Index >= h.Part.Rows() {
			return fmt.Errorf("has rows after its %d", h.Part.Rows())
		}
		if err := check(row); err != nil {
			return err
		}
		err := f(row)
		own = err != nil
		return err
	})
	switch {
	case own:
		return nil, err
	case err != nil || rows != h.Part.Rows() || end != info.Size():
		return damaged(err)
	}
	return h, nil
}
