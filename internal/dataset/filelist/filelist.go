// Package filelist reads and writes listings of images. A listing is a file with a row for each image: the position of
// its bytes, and their number. With a listing, a job that works on a part of a million images does not search for the
// others. docs/formats.md describes the columns. A listing is a Parquet file, so a range of rows can be read alone.
//
// # Invariants
//
// Checksums guarantee that the rows are those that were written. The rows of an untrusted file are also checked one by
// one: an image lies within its file, and no text contains a NUL. A row may name any file, and even a command. The
// caller must decide whether to allow this.
//
// # Concurrency
//
// A Listing does not change after Open. Any number of goroutines may call its methods.
package filelist

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"iter"
	"os"
	"strings"

	"github.com/swagwrap/swagwrap/internal/dataset/fileorder"
	"github.com/swagwrap/swagwrap/internal/dataset/table"
	"github.com/swagwrap/swagwrap/internal/file"
	"github.com/swagwrap/swagwrap/internal/setting"
)

// Row is the row of an image.
type Row struct {
	Path     string `parquet:"path,dict"`          // path of the file that holds it, or Pipe and a command that writes this file
	Name     string `parquet:"name"`               // name of the example in predictions
	Offset   int64  `parquet:"offset,optional"`    // place of its bytes in a tar; 0 if the file is the image
	Size     int64  `parquet:"size"`               // size of the image in bytes, or −1 if it could not be read
	FileSize int64  `parquet:"file_size,optional"` // size of the tar in bytes, or 0
	Label    string `parquet:"label,optional,dict"`
	Error    string `parquet:"error,optional,dict"` // why it could not be read when it was listed, or ""
}

// Pipe is the prefix of a command in a row's path.
const Pipe = "pipe:"

// Label is a class that occurs in the rows.
type Label struct {
	Text   string `json:"text"`
	Folder bool   `json:"folder,omitempty"` // the name of a class folder, which is never a number
}

// Head holds the data about all rows of a listing.
type Head struct {
	Kind     string  `json:"kind"`
	Version  int     `json:"format_version"`
	Producer string  `json:"producer"`
	Rows     int     `json:"rows"`
	SHA256   string  `json:"sha256"`                  // identifies the data; equal to the input's hash if there is one input
	Labels   []Label `json:"labels,omitempty"`        // in the order of their first rows
	Bare     int     `json:"unlabelled,omitempty"`    // rows without label and without error
	Empty    string  `json:"empty_classes,omitempty"` // class folders without images, in words
	Pipes    bool    `json:"pipes,omitempty"`         // some paths are commands
	Failed   int     `json:"errors,omitempty"`        // rows with an error
	// Doubt says where the order of the rows is not known, if it is not. It matters where rows without names belong to them.
	Doubt *fileorder.Doubt `json:"order_in_doubt,omitempty"`
	// Sums are CRC-32 checksums, with Castagnoli's polynomial, of blocks of Block rows.
	Block int      `json:"block"`
	Sums  []uint32 `json:"sums"`
}

const (
	kind    = "swagwrap.listing"
	version = 1
	// key is the key of the head in the metadata of a Parquet file.
	key = table.ListingKey
	// groupRows is the number of rows in a row group. This is the least that can be read.
	groupRows = 1 << 13
	// maxBlock is the largest number of rows in a block.
	maxBlock = 1 << 20
	// what names a listing in errors.
	what = "a listing"
)

// Extension ends the name of a listing.
const Extension = ".parquet"

// Is reports whether a file that begins with head is a listing or another Parquet file.
func Is(head []byte) bool { return bytes.HasPrefix(head, []byte("PAR1")) }

// Listing is an open listing. Its rows are read by [Listing.Each].
type Listing struct {
	Path string
	Head
	text string // the head as text in the file
}

// Open reads the head of the listing at path.
func Open(path string) (*Listing, error) {
	l := &Listing{Path: path}
	err := file.With(path, what, func(f *os.File, size int64) (err error) {
		l.text, err = headOf(f, size)
		return err
	})
	if err == nil {
		err = file.Error(path, l.parse())
	}
	if err != nil {
		return nil, err
	}
	return l, nil
}

// headOf returns the head of a listing as text.
func headOf(f io.ReaderAt, size int64) (string, error) {
	text, ok, err := table.TextOf(f, size, key)
	if err == nil && !ok {
		err = fmt.Errorf("a Parquet file of another kind, want a listing that %s made", setting.Line(setting.List.String()))
	}
	return text, err
}

func (l *Listing) parse() error {
	if err := json.Unmarshal([]byte(l.text), &l.Head); err != nil {
		return fmt.Errorf("damaged: %w", err)
	}
	switch {
	case l.Kind != kind:
		return fmt.Errorf("%q, want a listing", l.Kind)
	case l.Version != version:
		return fmt.Errorf("a listing of format version %d, want %d", l.Version, version)
	case l.Rows < 1 || l.Block < 1 || l.Block > maxBlock || len(l.Sums) != (l.Rows-1)/l.Block+1:
		return fmt.Errorf("damaged: %d rows in %d blocks of %d", l.Rows, len(l.Sums), l.Block)
	}
	return nil
}

// Each calls f with the rows in [first, end), in order. A row is valid only during the call, but its texts stay valid.
// If Each fails, the rows passed to f are unreliable.
func (l *Listing) Each(first, end int, f func(*Row) error) error {
	if first < 0 || first > end || end > l.Rows {
		panic("filelist: rows out of range")
	}
	if first == end {
		return nil
	}
	// Each reads whole blocks to verify their checksums.
	from, to := first/l.Block*l.Block, min(((end-1)/l.Block+1)*l.Block, l.Rows)
	at, sum := from, uint32(0)
	each := func(r *Row) error {
		sum = r.add(sum)
		if at++; at%l.Block == 0 || at == l.Rows {
			if sum != l.Sums[(at-1)/l.Block] {
				return errChanged()
			}
			sum = 0
		}
		if at <= first || at > end {
			return nil
		}
		if err := r.check(); err != nil {
			return fmt.Errorf("row %d: %w", at-1, err)
		}
		return f(r)
	}
	return file.With(l.Path, what, func(in *os.File, size int64) error {
		text, err := headOf(in, size)
		if err != nil {
			return err
		}
		if text != l.text {
			return errors.New("is not what it was: another listing took its place")
		}
		err = table.EachRow(in, size, l.Rows, from, to, each)
		if err == nil && at != to {
			err = errChanged()
		}
		return err
	})
}

// errChanged returns the error of a listing whose bytes have changed.
func errChanged() error {
	return fmt.Errorf("is not what %s wrote: make it again", setting.Line(setting.List.String()))
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// add returns the checksum sum, extended by one more row.
func (r *Row) add(sum uint32) uint32 {
	b := make([]byte, 0, 512)
	for _, text := range []string{r.Path, r.Name, r.Label, r.Error} {
		b = append(append(b, text...), 0)
	}
	for _, n := range []int64{r.Offset, r.Size, r.FileSize} {
		b = binary.LittleEndian.AppendUint64(b, uint64(n))
	}
	return crc32.Update(sum, castagnoli, b)
}

func (r *Row) check() error {
	for _, text := range []string{r.Path, r.Name, r.Label, r.Error} {
		if strings.ContainsRune(text, 0) {
			return fmt.Errorf("%.40q, want text", text)
		}
	}
	inside := r.Offset > 0 && r.FileSize > 0
	switch {
	case r.Path == "" || r.Name == "":
		return errors.New("no path, or no name")
	case r.Size < -1 || r.Size < 0 && r.Error == "":
		return fmt.Errorf("size %d", r.Size)
	case inside && (r.Size > r.FileSize || r.Offset > r.FileSize-r.Size), !inside && (r.Offset != 0 || r.FileSize != 0):
		return fmt.Errorf("%d bytes at %d of a file of %d", r.Size, r.Offset, r.FileSize)
	case strings.HasPrefix(r.Path, Pipe) && !inside:
		return errors.New("a command that writes no tar")
	}
	return nil
}

// Write writes a listing. It iterates over the rows twice.
func Write(w io.Writer, h Head, rows iter.Seq[*Row]) error {
	h.Kind, h.Version, h.Block, h.Sums = kind, version, groupRows, nil
	n := 0
	for r := range rows {
		if n%groupRows == 0 {
			h.Sums = append(h.Sums, 0)
		}
		h.Sums[n/groupRows] = r.add(h.Sums[n/groupRows])
		n++
	}
	text, err := json.Marshal(h)
	if err != nil {
		return err
	}
	return table.WriteRows(w, key, string(text), groupRows, rows)
}
