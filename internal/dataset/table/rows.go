//go:build !noparquet

package table

import (
	"errors"
	"fmt"
	"io"
	"iter"

	"github.com/parquet-go/parquet-go"
)

// WriteRows writes structs as the rows of a Parquet file, with a text under a key. A group of rows can be read alone.
func WriteRows[R any](w io.Writer, key, text string, group int, rows iter.Seq[*R]) error {
	out := parquet.NewGenericWriter[R](w, parquet.Compression(&parquet.Zstd), parquet.CreatedBy("swagwrap", "", ""),
		parquet.KeyValueMetadata(key, text), parquet.MaxRowsPerRowGroup(int64(group)))
	some := make([]R, 0, 256)
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

// TextOf returns the text under a key of a Parquet file.
func TextOf(f io.ReaderAt, size int64, key string) (text string, ok bool, err error) {
	p, err := openParquet(f, size)
	if err != nil {
		return "", false, err
	}
	text, ok = p.Lookup(key)
	return text, ok, nil
}

// EachRow calls each with the rows [first, end) of a file that [WriteRows] wrote. It reads the row groups that contain some of them.
func EachRow[R any](f io.ReaderAt, size int64, rows, first, end int, each func(*R) error) error {
	p, err := openParquet(f, size)
	if err != nil {
		return err
	}
	if want := parquet.SchemaOf(new(R)); p.NumRows() != int64(rows) || !parquet.EqualNodes(want, p.Schema()) {
		return errors.New("damaged: not the rows or columns that it was written with")
	}
	at := 0 // index of the first row of the group
	for _, group := range p.RowGroups() {
		n := int(group.NumRows())
		if n < 0 || n > rows {
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
func eachOf[R any](group parquet.RowGroup, from int64, n int, each func(*R) error) error {
	r := parquet.NewGenericRowGroupReader[R](group)
	defer r.Close()
	if err := r.SeekToRow(from); err != nil {
		return err
	}
	buffer := make([]R, 256)
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
			return nil // the caller counts them
		case err != nil:
			return err
		case k == 0:
			return io.ErrNoProgress
		}
	}
	return nil
}
