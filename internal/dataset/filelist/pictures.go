//go:build !noparquet

package filelist

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/parquet-go/parquet-go"

	"github.com/swagwrap/swagwrap/internal/file"
)

// Pictures is a Parquet file whose rows hold pictures, as Hugging Face's datasets writes them: a structure of bytes and path, or
// the bytes alone.
type Pictures struct {
	Path     string
	Rows     int
	Column   string // of the pictures
	Features []byte // the JSON object that describes the columns, or nil

	bytes, path int // columns of values; path is −1 if there is none
}

// pictureNames are the usual names of a column of bytes.
var pictureNames = []string{"image", "img", "picture", "jpg", "png", "jpeg", "bytes", "image_bytes", "data"}

// OpenPictures looks for a column of pictures in the file at path. It returns nil without an error if there is none.
func OpenPictures(path string) (p *Pictures, err error) {
	err = file.With(path, "a Parquet file", func(f *os.File, size int64) error {
		in, err := OpenParquet(f, size)
		if err != nil {
			return err
		}
		found := &Pictures{Path: path, Rows: int(in.NumRows()), path: -1}
		for _, c := range in.Root().Columns() {
			if found.isColumn(c) {
				p = found
				if text, ok := in.Lookup("huggingface"); ok {
					p.Features = featuresOf(text)
				}
				return nil
			}
		}
		return nil
	})
	return p, err
}

// isColumn reports whether a column holds pictures, and remembers it.
func (p *Pictures) isColumn(c *parquet.Column) bool {
	if c.Repeated() {
		return false
	}
	isBytes := func(c *parquet.Column) bool { return c.Leaf() && !c.Repeated() && c.Type().Kind() == parquet.ByteArray }
	if c.Leaf() {
		if !isBytes(c) || c.Type().LogicalType() != nil || !slices.Contains(pictureNames, strings.ToLower(c.Name())) {
			return false
		}
		p.Column, p.bytes = c.Name(), c.Index()
		return true
	}
	b := c.Column("bytes")
	if b == nil || !isBytes(b) {
		return false
	}
	p.Column, p.bytes = c.Name(), b.Index()
	if at := c.Column("path"); at != nil && isBytes(at) {
		p.path = at.Index()
	}
	return true
}

// Each calls use with the bytes and the path of each row's picture. Both may be missing. The bytes are valid only during the
// call.
func (p *Pictures) Each(use func(row int, bytes []byte, path string) error) error {
	return file.With(p.Path, "a Parquet file", func(f *os.File, size int64) error {
		in, err := OpenParquet(f, size)
		if err != nil {
			return err
		}
		const most, apart = 100, 64 << 20 // pictures cannot be compressed further
		room := most*size + apart
		row := 0
		for _, group := range in.RowGroups() {
			chunks := group.ColumnChunks()
			if p.bytes >= len(chunks) || p.path >= len(chunks) {
				return errChangedFile
			}
			bytes := newValues(chunks[p.bytes])
			var paths *values
			if p.path >= 0 {
				paths = newValues(chunks[p.path])
			}
			err := func() error {
				defer bytes.close()
				defer paths.close()
				for range group.NumRows() {
					b, err := bytes.next()
					if err != nil {
						return err
					}
					path, err := paths.next()
					if err != nil {
						return err
					}
					if room -= int64(len(b)); room < 0 {
						return fmt.Errorf("row %d: more than %d times the file's size of pictures", row, most)
					}
					if err := use(row, b, string(path)); err != nil {
						return err
					}
					row++
				}
				return nil
			}()
			if err != nil {
				return err
			}
		}
		if row != p.Rows {
			return errChangedFile
		}
		return nil
	})
}

var errChangedFile = errors.New("is not what it was: another file took its place")

// values reads the values of a column one by one.
type values struct {
	pages  parquet.Pages
	page   parquet.Page
	values parquet.ValueReader
	buffer [1]parquet.Value
}

func newValues(chunk parquet.ColumnChunk) *values { return &values{pages: chunk.Pages()} }

// next returns the bytes of the next row, or nil for a missing value. A nil receiver has no values.
func (v *values) next() ([]byte, error) {
	if v == nil {
		return nil, nil
	}
	for {
		if v.values == nil {
			page, err := v.pages.ReadPage()
			if err == io.EOF {
				return nil, io.ErrUnexpectedEOF
			}
			if err != nil {
				return nil, err
			}
			v.page, v.values = page, page.Values()
		}
		n, err := v.values.ReadValues(v.buffer[:])
		if n == 1 {
			if v.buffer[0].IsNull() {
				return nil, nil
			}
			return v.buffer[0].ByteArray(), nil
		}
		if err != io.EOF && err != nil {
			return nil, err
		}
		parquet.Release(v.page)
		v.page, v.values = nil, nil
	}
}

func (v *values) close() {
	if v != nil {
		if v.page != nil {
			parquet.Release(v.page)
		}
		v.pages.Close()
	}
}
