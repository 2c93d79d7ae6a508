package records

import (
	"fmt"

	"github.com/swagwrap/swagwrap/internal/file"
)

// Look reads the head of the file at path, and counts its whole rows. It checks their checksums, but not what they hold.
// The error wraps [ErrDamaged] if the head is damaged, or if whole is true and rows are missing.
func Look(path string, kind Kind, whole bool) (h *Head, rows int, err error) {
	in, _, err := file.Regular(path)
	if err != nil {
		return nil, 0, err
	}
	defer in.Close()
	h, start, err := readHead(in, kind)
	if err == nil {
		err = h.Part.check()
	}
	if err == nil {
		rows, _, err = scan(in, start, func(*Row) error { return nil })
	}
	switch {
	case err != nil:
		return nil, 0, file.Error(path, fmt.Errorf("%w: %w", ErrDamaged, err))
	case rows > h.Part.Rows() || rows < h.Part.Rows() && whole:
		return nil, 0, file.Error(path, fmt.Errorf("%w: %d rows, want %d", ErrDamaged, rows, h.Part.Rows()))
	}
	return h, rows, nil
}
