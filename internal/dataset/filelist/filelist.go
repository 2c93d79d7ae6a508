// Package filelist reads and writes listings of images: files made once, with a row
// for each image that says where its bytes lie and how many they are, so that nobody
// who works on some of a million images must look for the others. docs/formats.md has
// the columns. A listing is Parquet, of which a range of rows can be read, or CSV,
// which people can read.
//
// # Invariants
//
// A listing is used as it was written: rows are compared with checksums. Rows of a file from a stranger are checked one
// by one: an image lies in its file, and no text holds a NUL. That a row may name any
// file, and even a command, is for the caller to judge.
//
// # Concurrency
//
// A Listing does not change after Open; its methods may be called from any number of
// goroutines.
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
	"path/filepath"
	"slices"
	"strings"

	"github.com/swagwrap/swagwrap/internal/file"
)

// Row is an image.
type Row struct {
	Path     string `parquet:"path,dict"`          // of the file that holds it, or Pipe and a command that writes that
	Name     string `parquet:"name"`               // in predictions
	Offset   int64  `parquet:"offset,optional"`    // of its bytes in a tar; 0 where the file is the image
	Size     int64  `parquet:"size"`               // of the image, or −1 where it could not be read
	FileSize int64  `parquet:"file_size,optional"` // of the tar, or 0
	Label    string `parquet:"label,optional,dict"`
	Error    string `parquet:"error,optional,dict"` // why it could not be read when it was listed, or ""
}

// Pipe stands before the command in a row's path.
const Pipe = "pipe:"

// Label is a class among the rows.
type Label struct {
	Text   string `json:"text"`
	Folder bool   `json:"folder,omitempty"` // the name of a class folder, and never a number
}

// Head is what a listing says of all its rows.
type Head struct {
	Kind     string  `json:"kind"`
	Version  int     `json:"format_version"`
	Producer string  `json:"producer"`
	Rows     int     `json:"rows"`
	SHA256   string  `json:"sha256"`                  // identifies the data: that of the input, if it is made of one
	Labels   []Label `json:"labels,omitempty"`        // in the order in which they come first
	Bare     int     `json:"unlabelled,omitempty"`    // rows without label and without error
	Empty    string  `json:"empty_classes,omitempty"` // class folders without images, in words
	Pipes    bool    `json:"pipes,omitempty"`         // some paths are commands
	Failed   int     `json:"errors,omitempty"`        // rows with an error
	// Sums are CRC-32 checksums, with Castagnoli's polynomial, of blocks of so many rows.
	Block int      `json:"block"`
	Sums  []uint32 `json:"sums"`
}

const (
	kind    = "swagwrap.listing"
	version = 1
	// key names the head among the metadata of a Parquet file.
	key = kind
	// mark begins the first line of a CSV file; the head follows.
	mark = "# swagwrap listing "
	// maxBlock bounds the rows of a block.
	maxBlock = 1 << 20
	// maxHead bounds the head, in bytes: 22,000 classes take 1 MB.
	maxHead = 64 << 20
)

// Formats are the extensions of a listing's name.
var Formats = []string{".parquet", ".csv"}

// Format returns the format that a path asks for.
func Format(path string) (string, error) {
	if ext := strings.ToLower(filepath.Ext(path)); slices.Contains(Formats, ext) {
		return ext, nil
	}
	return "", fmt.Errorf("%s: want a name that ends in %s", path, strings.Join(Formats, " or "))
}

// Enough bytes of a file tell whether it is a listing, or a Parquet file of another kind.
const Enough = len(mark)

// Is tells by its first bytes whether a file can only be a listing.
func Is(head []byte) bool {
	return bytes.HasPrefix(head, []byte(mark)) || bytes.HasPrefix(head, []byte(magic))
}

// Listing is a listing whose rows are yet to be read.
type Listing struct {
	Path string
	Head
	text string // the head as it stands in the file
}

// Open reads what the listing at path says of all its rows.
func Open(path string) (*Listing, error) {
	l := &Listing{Path: path}
	err := l.with(func(f *os.File, size int64) (err error) {
		l.text, _, err = head(f, size)
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

// with calls f with the file. The library for Parquet panics on some damaged files.
func (l *Listing) with(f func(f *os.File, size int64) error) (err error) {
	in, size, err := file.Open(l.Path, "a listing")
	if err != nil {
		return file.Error(l.Path, err)
	}
	defer in.Close()
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("damaged: %v", r)
		}
		err = file.Error(l.Path, err)
	}()
	return f(in, size)
}

// head returns the head of a file as text, and where what follows it begins in a CSV
// file, or 0.
func head(f io.ReaderAt, size int64) (text string, rest int64, err error) {
	start := make([]byte, min(size, int64(Enough)))
	if _, err := f.ReadAt(start, 0); err != nil {
		return "", 0, err
	}
	if bytes.HasPrefix(start, []byte(magic)) {
		text, err = parquetHead(f, size)
		return text, 0, err
	}
	return csvHead(f, size)
}

// Each calls f with the rows from first to before end, in order. A row is valid during
// the call only; its texts are valid for ever. After an error of Each what f was told
// means nothing.
func (l *Listing) Each(first, end int, f func(*Row) error) error {
	if first < 0 || first > end || end > l.Rows {
		panic("filelist: rows out of range")
	}
	if first == end {
		return nil
	}
	// Whole blocks are read, for their checksums.
	from, to := first/l.Block*l.Block, min(((end-1)/l.Block+1)*l.Block, l.Rows)
	at, sum := from, uint32(0)
	each := func(r *Row) error {
		sum = r.add(sum)
		if at++; at%l.Block == 0 || at == l.Rows {
			if sum != l.Sums[(at-1)/l.Block] {
				return errChanged
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
	return l.with(func(in *os.File, size int64) error {
		text, rest, err := head(in, size)
		if err != nil {
			return err
		}
		if text != l.text {
			return errors.New("is not what it was: another listing took its place")
		}
		if rest == 0 {
			err = l.eachParquet(in, size, from, to, each)
		} else {
			err = l.eachCSV(io.NewSectionReader(in, rest, size-rest), from, to, each)
		}
		if err == nil && at != to {
			err = errChanged
		}
		return err
	})
}

var errChanged = errors.New("is not what swagwrap list wrote: make it again")

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// add returns the checksum of a block with one more row.
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

// check says what is wrong with a row.
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

// Write writes a listing in one of the Formats. It goes through the rows twice.
func Write(w io.Writer, format string, h Head, rows iter.Seq[*Row]) error {
	h.Kind, h.Version, h.Block, h.Sums = kind, version, groupRows, nil
	n := 0
	for r := range rows {
		if n%groupRows == 0 {
			h.Sums = append(h.Sums, 0)
		}
		h.Sums[n/groupRows] = r.add(h.Sums[n/groupRows])
		n++
	}
	if format == ".parquet" {
		return writeParquet(w, h, rows)
	}
	return writeCSV(w, h, rows)
}
