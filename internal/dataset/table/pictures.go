//go:build !noparquet

package table

import (
	"encoding/json"
	"fmt"
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
		in, err := openParquet(f, size)
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
		in, err := openParquet(f, size)
		if err != nil {
			return err
		}
		room, row := most*size+spare, 0 // pictures cannot be compressed further
		take := func(b []byte) error {
			if room -= int64(len(b)); room < 0 {
				return fmt.Errorf("row %d: more than %d times the file's size of pictures", row, most)
			}
			return nil
		}
		for _, group := range in.RowGroups() {
			chunks := group.ColumnChunks()
			if p.bytes >= len(chunks) || p.path >= len(chunks) {
				return errChanged
			}
			var paths []string
			if p.path >= 0 {
				err := eachValue(chunks[p.path], nil, func(v parquet.Value) error {
					paths = append(paths, string(v.ByteArray()))
					return take(v.ByteArray())
				})
				if err != nil {
					return err
				}
			}
			first := row
			err := eachValue(chunks[p.bytes], nil, func(v parquet.Value) error {
				path := ""
				if at := row - first; p.path >= 0 && at < len(paths) {
					path = paths[at]
				}
				if row >= p.Rows {
					return errChanged
				}
				if err := take(v.ByteArray()); err != nil {
					return err
				}
				defer func() { row++ }()
				return use(row, v.ByteArray(), path)
			})
			if err != nil {
				return err
			}
		}
		if row != p.Rows {
			return errChanged
		}
		return nil
	})
}

// featuresOf returns the JSON object with the columns, from what Hugging Face's datasets keeps in a file.
func featuresOf(text string) []byte {
	var kept struct {
		Info struct {
			Features json.RawMessage `json:"features"`
		} `json:"info"`
	}
	if json.Unmarshal([]byte(text), &kept) != nil {
		return nil
	}
	return kept.Info.Features
}
