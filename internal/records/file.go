// Package records keeps rows of numbers in files. A job that stopped continues from its file, and jobs that share the
// work leave files that another job puts together.
//
// score keeps what it has so far in a [File]. [File.Publish] turns it into the file of a part, which merge
// reads as a [Saved]. An entry of a store has the same format: [Write] writes all rows at once.
//
// # Format
//
// A file begins with a line that names its kind. Frames follow, each of length, CRC-32C and content. The first frame is
// the [Head], as JSON. Each other frame has some rows. The checksum of a frame that a crash cut short does not match.
// This frame and everything after it are dropped.
//
// # Concurrency
//
// Only one process at a time can have a [File] open. Only one goroutine at a time may use a value of this package.
package records

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/swagwrap/swagwrap/internal/file"
	"github.com/swagwrap/swagwrap/internal/step"
	"github.com/swagwrap/swagwrap/weights"
)

// Row is the result for one example or one batch.
type Row struct {
	Index  int    // among the rows of all parts
	Path   string // the name of the example
	Label  int    // −1 for none
	Error  string // why there are no values, in one line; or ""
	Fatal  error  // ends the run: [File.Append] returns it, and adds no row
	Values []float64
	// Sums is what the positions of an example add to all metrics: see package task. It is empty for other examples.
	Sums []byte
}

// rowHead is the size in bytes of the head of a row. The head holds the lengths of path and error, the number of values,
// the label, and the length of the sums. Texts, values and sums follow.
const rowHead = 4 + 4 + 4 + 8 + 4

func (r *Row) append(b []byte) []byte {
	b = binary.LittleEndian.AppendUint32(b, uint32(len(r.Path)))
	b = binary.LittleEndian.AppendUint32(b, uint32(len(r.Error)))
	b = binary.LittleEndian.AppendUint32(b, uint32(len(r.Values)))
	b = binary.LittleEndian.AppendUint64(b, uint64(r.Label))
	b = binary.LittleEndian.AppendUint32(b, uint32(len(r.Sums)))
	b = append(append(b, r.Path...), r.Error...)
	for _, v := range r.Values {
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(v))
	}
	return append(b, r.Sums...)
}

// parse sets the row to the first row in b, and returns the rest of b. It reuses the memory of the values.
func (r *Row) parse(b []byte) ([]byte, error) {
	if len(b) < rowHead {
		return nil, errors.New("a row is cut short")
	}
	path, failed := int64(binary.LittleEndian.Uint32(b)), int64(binary.LittleEndian.Uint32(b[4:]))
	n := int64(binary.LittleEndian.Uint32(b[8:]))
	r.Label = int(binary.LittleEndian.Uint64(b[12:]))
	sums := int64(binary.LittleEndian.Uint32(b[20:]))
	if b = b[rowHead:]; path+failed+8*n+sums > int64(len(b)) {
		return nil, errors.New("a row is cut short")
	}
	r.Path, r.Error = string(b[:path]), string(b[path:path+failed])
	b = b[path+failed:]
	r.Values = slices.Grow(r.Values[:0], int(n))[:n]
	for i := range r.Values {
		r.Values[i] = math.Float64frombits(binary.LittleEndian.Uint64(b[8*i:]))
	}
	r.Sums = append(r.Sums[:0], b[8*n:8*n+sums]...)
	return b[8*n+sums:], nil
}

// Kind says what the rows of a file are for.
type Kind string

// The kinds of files.
const (
	Unfinished Kind = "unfinished scores"
	ScorePart  Kind = "part of scores"
	Stored     Kind = "stored result"
)

// Magic begins the files of every kind and version.
const Magic = "swagwrap "

func (k Kind) magic() string { return Magic + string(k) + " 4\n" }

// KindOf returns the kind of a file that begins with start, or "".
func KindOf(start []byte) Kind {
	for _, k := range []Kind{Unfinished, ScorePart, Stored} {
		if bytes.HasPrefix(start, []byte(k.magic())) {
			return k
		}
	}
	return ""
}

// Head is the JSON at the beginning of a file.
type Head struct {
	Parameters Parameters
	Part       Part            // which of the rows the file has
	Processor  string          // the processor on which the file was begun
	Schema     json.RawMessage `json:",omitempty"` // describes the rows of all parts of a run
	About      json.RawMessage `json:",omitempty"` // information for the reader; may differ between the parts of a run
}

// differences describes how the content of a file with this head differs from the content that a job wants.
func (h *Head) differences(now *Head) []string {
	d := h.Parameters.Differences(now.Parameters)
	if was := h.Part; d == nil && (was.First != now.Part.First || was.End != now.Part.End) {
		d = []string{fmt.Sprintf("rows were %d to %d", was.First, was.End)}
	}
	return d
}

// frameHead is the size in bytes of the length and the checksum of a frame.
const frameHead = 8 + 4

// newFrame returns the beginning of a frame. The content is to be appended.
func newFrame() []byte { return make([]byte, frameHead, 1<<10) }

// sealed sets the length and the checksum of a frame.
func sealed(frame []byte) []byte {
	binary.LittleEndian.PutUint64(frame, uint64(len(frame)-frameHead))
	binary.LittleEndian.PutUint32(frame[8:], weights.CRC32C(0, frame[frameHead:]))
	return frame
}

// readFrame reads the content of a frame into b. left is the number of bytes in the file. It returns nil for a frame
// that is cut short or damaged.
func readFrame(in io.Reader, b []byte, left int64) ([]byte, error) {
	var head [frameHead]byte
	if _, err := io.ReadFull(in, head[:]); err != nil {
		return nil, ignoreEnd(err)
	}
	length := binary.LittleEndian.Uint64(head[:])
	if length > uint64(max(0, left-frameHead)) {
		return nil, nil
	}
	b = slices.Grow(b[:0], int(length))[:length]
	if _, err := io.ReadFull(in, b); err != nil {
		return nil, ignoreEnd(err)
	}
	if weights.CRC32C(0, b) != binary.LittleEndian.Uint32(head[8:]) {
		return nil, nil
	}
	return b, nil
}

func ignoreEnd(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return nil
	}
	return err
}

// syncEvery limits how much work a crash of the machine can lose, in addition to the current chunk. A crash of the
// process alone loses no finished chunk.
const syncEvery = 5 * time.Second

// Existing says what to do with an existing file.
type Existing int

const (
	Refuse  Existing = iota // fails with [ErrUnfinished]
	Resume                  // continues, or fails with [ChangedError] if the parameters differ
	Discard                 // starts again from the beginning
)

// ErrUnfinished is the error for a file that an earlier run left behind.
var ErrUnfinished = errors.New("an earlier run has left it unfinished")

// ErrBusy is the error for a file that another process has open.
var ErrBusy = errors.New("another process has it open")

// File is a file to which a job appends rows.
type File struct {
	Path   string
	Kind   Kind
	Head   *Head
	file   *os.File
	out    io.Writer // file, except in tests
	start  int64     // offset of the first frame of rows
	end    int64     // end of the last whole frame
	rows   int
	errors int
	synced time.Time
}

// Open opens the file at path for appending rows, or creates it.
func Open(path string, kind Kind, head *Head, existing Existing) (*File, error) {
	r := &File{Path: path, Kind: kind, Head: head, synced: time.Now()}
	if err := r.lock(); err != nil {
		return nil, r.named(err)
	}
	info, err := r.file.Stat()
	switch {
	case err != nil:
	case info.Size() == 0 || existing == Discard:
		err = r.begin()
	case existing == Refuse:
		err = ErrUnfinished
	default:
		err = r.resume()
	}
	if err == nil {
		err = r.file.Truncate(r.end)
	}
	if err == nil {
		_, err = r.file.Seek(r.end, io.SeekStart)
	}
	if r.out = r.file; err != nil {
		r.file.Close()
		return nil, r.named(err)
	}
	return r, nil
}

// Write writes a file with n rows to the empty file f. row fills in the row with the given index.
func Write(f *os.File, kind Kind, head *Head, n int, row func(i int, r *Row)) error {
	r := &File{Path: f.Name(), Kind: kind, Head: head, file: f, out: f, synced: time.Now()}
	if err := r.begin(); err != nil {
		return err
	}
	if _, err := f.Seek(r.end, io.SeekStart); err != nil {
		return err
	}
	one := Row{Label: -1}
	for r.rows < n {
		err := r.Append(r.rows, func(yield func(*Row) bool) {
			const frameBytes = 1 << 20
			for i, bytes := r.rows, 0; i < n && bytes < frameBytes; i++ {
				if row(i, &one); !yield(&one) {
					return
				}
				bytes += rowHead + 8*len(one.Values)
			}
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (r *File) lock() error {
	for {
		if info, err := os.Lstat(r.Path); err == nil && !info.Mode().IsRegular() {
			return file.ErrNotRegular
		}
		f, err := os.OpenFile(r.Path, os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o666)
		if err != nil {
			return err
		}
		// On a file system without locks, only one process may use the file.
		if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); errors.Is(err, syscall.EWOULDBLOCK) {
			f.Close()
			return ErrBusy
		}
		// Another process may have removed the file before we got the lock.
		here, err1 := os.Stat(r.Path)
		mine, err2 := f.Stat()
		if err1 == nil && err2 == nil && os.SameFile(here, mine) {
			r.file = f
			return nil
		}
		f.Close()
		if err1 != nil && !errors.Is(err1, fs.ErrNotExist) {
			return err1
		}
	}
}

// begin empties the file and writes its head.
func (r *File) begin() error {
	js, err := json.Marshal(r.Head)
	if err == nil {
		err = checkHead(js)
	}
	if err != nil {
		return err
	}
	b := append([]byte(r.Kind.magic()), sealed(append(newFrame(), js...))...)
	r.start, r.end = int64(len(b)), int64(len(b))
	if err := r.file.Truncate(0); err != nil {
		return err
	}
	_, err = r.file.WriteAt(b, 0)
	step.Reached(step.Begun)
	return err
}

// checkHead refuses JSON that is too large for a head. A decoded value can take a hundred times as much memory as its
// text. A source takes about 150 bytes and four values.
func checkHead(js []byte) error {
	const maxHead, maxCommas = 16 << 20, 1 << 18
	if len(js) > maxHead {
		return fmt.Errorf("%d bytes of parameters, want at most %d", len(js), maxHead)
	}
	if n := bytes.Count(js, []byte(",")); n > maxCommas {
		return fmt.Errorf("%d values among its parameters, want at most %d", n, maxCommas)
	}
	return nil
}

// errDamagedHead is the error for a head that is cut short, or has changed since it was written.
var errDamagedHead = errors.New("its head is damaged")

// readHead reads the head of a file, and finds the start of its rows.
func readHead(f *os.File, kind Kind) (h *Head, start int64, err error) {
	info, err := f.Stat()
	if err != nil {
		return nil, 0, err
	}
	in := io.NewSectionReader(f, 0, info.Size())
	magic := kind.magic()
	b := make([]byte, len(magic))
	n, err := io.ReadFull(in, b)
	if !strings.HasPrefix(magic, string(b[:n])) {
		return nil, 0, errors.New("not a work file of this program")
	}
	var js []byte
	if err = ignoreEnd(err); err == nil {
		js, err = readFrame(in, nil, info.Size()-int64(n))
	}
	if err == nil && (js == nil || checkHead(js) != nil) {
		err = errors.Join(errDamagedHead, checkHead(js))
	}
	if err != nil {
		return nil, 0, err
	}
	h = &Head{}
	return h, int64(n + frameHead + len(js)), json.Unmarshal(js, h)
}

// resume reads the head, compares its parameters, and finds all whole frames. If the head is cut short or damaged, the
// origin of the rows is unknown, so the file begins again. A job that a scheduler restarts must not fail forever on
// such a file.
func (r *File) resume() error {
	was, start, err := readHead(r.file, r.Kind)
	if errors.Is(err, errDamagedHead) {
		return r.begin()
	}
	if err != nil {
		return err
	}
	if d := was.differences(r.Head); d != nil {
		return &ChangedError{r.Path, d}
	}
	r.start = start
	r.rows, r.end, err = scan(r.file, start, func(row *Row) error {
		if row.Error != "" {
			r.errors++
		}
		return nil
	})
	return err
}

// scan reads frames from the offset start up to the first that is not whole, and calls f with each row. All rows share
// the same memory. scan returns the number of rows and the offset of their end.
func scan(file *os.File, start int64, f func(*Row) error) (rows int, end int64, err error) {
	info, err := file.Stat()
	if err != nil {
		return 0, 0, err
	}
	in := bufio.NewReaderSize(io.NewSectionReader(file, start, info.Size()-start), 1<<20)
	var row Row
	var frame []byte
	for end = start; ; {
		if frame, err = readFrame(in, frame, info.Size()-end); frame == nil {
			return rows, end, err
		}
		end += frameHead + int64(len(frame))
		for rest := frame; len(rest) > 0; rows++ {
			row.Index = rows
			if rest, err = row.parse(rest); err == nil {
				err = f(&row)
			}
			if err != nil {
				return rows, end, err
			}
		}
	}
}

// Rows returns the number of rows.
func (r *File) Rows() int { return r.rows }

// Errors returns the number of rows with an error.
func (r *File) Errors() int { return r.errors }

// Append adds rows. The index of the first must be the number of rows so far. Append keeps no reference to the rows.
func (r *File) Append(first int, rows iter.Seq[*Row]) error {
	if first != r.rows {
		panic("records: rows out of order")
	}
	b, n := newFrame(), 0
	failed := 0
	for row := range rows {
		if row.Fatal != nil {
			return row.Fatal
		}
		if row.Error != "" {
			failed++
		}
		b = row.append(b)
		n++
	}
	if n == 0 { // a batch may complete no picture; an empty frame would end the file
		return nil
	}
	r.errors += failed
	if _, err := r.out.Write(sealed(b)); err != nil {
		return r.named(err)
	}
	r.rows, r.end = r.rows+n, r.end+int64(len(b))
	step.Reached(step.Rows)
	if time.Since(r.synced) < syncEvery {
		return nil
	}
	r.synced = time.Now()
	return r.named(r.file.Sync())
}

// Each calls f with every row in turn. The row is valid only during the call.
func (r *File) Each(f func(*Row) error) error {
	own := false
	rows, _, err := scan(r.file, r.start, func(row *Row) error {
		err := f(row)
		own = err != nil
		return err
	})
	switch {
	case own:
		return err
	case err == nil && rows < r.rows:
		err = fmt.Errorf("rows from %d on are damaged", rows)
	}
	return r.named(err)
}

// Publish syncs the complete rows to disk, renames the file to path, and closes it.
func (r *File) Publish(path string) error {
	if err := r.named(r.file.Sync()); err != nil {
		return err
	}
	step.Reached(step.Synced)
	if err := os.Rename(r.Path, path); err != nil {
		return file.Error(path, err)
	}
	step.Reached(step.Named)
	if dir, err := os.Open(filepath.Dir(path)); err == nil {
		defer dir.Close()
		dir.Sync() // some file systems cannot do this; the rows are already safe
	}
	return r.named(r.file.Close())
}

// Remove removes the file when its rows have been written elsewhere.
func (r *File) Remove() error {
	err := os.Remove(r.Path)
	return r.named(errors.Join(err, r.file.Close()))
}

// Close syncs the rows to disk and closes the file.
func (r *File) Close() error {
	return r.named(errors.Join(r.file.Sync(), r.file.Close()))
}

// named adds the path to an error, unless it already has it.
func (r *File) named(err error) error {
	if _, ok := errors.AsType[*ChangedError](err); ok {
		return err
	}
	return file.Error(r.Path, err)
}

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
