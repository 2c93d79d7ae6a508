//go:build !noparquet

package filelist

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"

	"github.com/swagwrap/swagwrap/internal/setting"
)

// writeRows writes the rows, and the text of the head as metadata.
func writeRows(w io.Writer, head string, rows iter.Seq[*Row]) error {
	out := parquet.NewGenericWriter[Row](w, parquet.Compression(&parquet.Zstd), parquet.CreatedBy("swagwrap", "", ""),
		parquet.KeyValueMetadata(key, head), parquet.MaxRowsPerRowGroup(groupRows))
	some := make([]Row, 0, 256)
	for r := range rows {
		if some = append(some, *r); len(some) < cap(some) {
			continue
		}
		if _, err := out.Write(some); err != nil {
			return err
		}
		some = some[:0]
	}
	if _, err := out.Write(some); err != nil {
		return err
	}
	return out.Close()
}

// OpenParquet opens a Parquet file and reads only its footer. It first checks the length that the file claims for the
// footer.
func OpenParquet(f io.ReaderAt, size int64) (*parquet.File, error) {
	const magics, length = 8, 4
	tail := make([]byte, length+len(magic))
	if size < magics+length {
		return nil, errors.New("too short for a Parquet file")
	}
	if _, err := f.ReadAt(tail, size-int64(len(tail))); err != nil {
		return nil, err
	}
	if n := int64(binary.LittleEndian.Uint32(tail)); n > size-magics-length {
		return nil, fmt.Errorf("damaged: footer of %d bytes in a file of %d", n, size)
	}
	p, err := parquet.OpenFile(f, size, parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true))
	if err != nil {
		return nil, err
	}
	return p, readable(p.Metadata())
}

// readable refuses compressions that parquet-go does not read, and LZ4: up to v0.32.0 its column.go keeps a buffer of old bytes where
// the codec returned another one of the right length, so that values are zeros or those of other pages.
func readable(m *format.FileMetaData) error {
	for _, group := range m.RowGroups {
		for i := range group.Columns {
			switch c := &group.Columns[i].MetaData; c.Codec {
			case format.Uncompressed, format.Snappy, format.Gzip, format.Brotli, format.Zstd:
			default:
				return &CompressionError{strings.Join(c.PathInSchema, "."), c.Codec.String()}
			}
		}
	}
	return nil
}

// headOf returns the head of a listing as text.
func headOf(f io.ReaderAt, size int64) (string, error) {
	p, err := OpenParquet(f, size)
	if err != nil {
		return "", err
	}
	text, ok := p.Lookup(key)
	if !ok {
		return "", fmt.Errorf("a Parquet file of another kind, want a listing that %s made", setting.Line(setting.List.String()))
	}
	return text, nil
}

// eachRow reads the row groups that contain some of the rows.
func (l *Listing) eachRow(f io.ReaderAt, size int64, first, end int, each func(*Row) error) error {
	p, err := OpenParquet(f, size)
	if err != nil {
		return err
	}
	if want := parquet.SchemaOf(Row{}); p.NumRows() != int64(l.Rows) || !parquet.EqualNodes(want, p.Schema()) {
		return errors.New("damaged: not the rows or columns that it was written with")
	}
	at := 0 // index of the first row of the group
	for _, group := range p.RowGroups() {
		n := int(group.NumRows())
		if n < 0 || n > l.Rows {
			return fmt.Errorf("damaged: a group of %d rows", n)
		}
		if from, to := max(first, at), min(end, at+n); from < to {
			if err := eachOf(group, int64(from-at), to-from, each); err != nil {
				return err
			}
		}
		at += n
	}
	return nil
}

// eachOf reads n rows of a group, beginning at index from.
func eachOf(group parquet.RowGroup, from int64, n int, each func(*Row) error) error {
	r := parquet.NewGenericRowGroupReader[Row](group)
	defer r.Close()
	if err := r.SeekToRow(from); err != nil {
		return err
	}
	buffer := make([]Row, 256)
	for n > 0 {
		clear(buffer) // Read leaves null fields unchanged
		k, err := r.Read(buffer[:min(n, len(buffer))])
		for i := range buffer[:k] {
			if err := each(&buffer[i]); err != nil {
				return err
			}
		}
		n -= k
		switch {
		case err == io.EOF:
			return nil // Each checks the number of rows
		case err != nil:
			return err
		case k == 0:
			return io.ErrNoProgress
		}
	}
	return nil
}
