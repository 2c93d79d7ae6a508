package table

import (
	"errors"
	"io"
)

// unpacked fails: a page has no folder for temporary files. It reads tables that are in memory.
func unpacked(io.Reader, int64, func(f *io.SectionReader) error) error {
	return errors.New("compressed with gzip: unpack it with gunzip")
}
