package predictions

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
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/swagwrap/swagwrap/internal/file"
	"github.com/swagwrap/swagwrap/internal/task"
	"github.com/swagwrap/swagwrap/weights"
)

// Records is the work file of a run. It holds the rows so far and the parameters that they depend on. A run that
// stopped for any reason continues from there. Only one process at a time can have it open.
//
//	┌────────┬────────────┬─────────┬─────────┬───
//	│ recordsMagic        │ frame   │ frame   │ …
//	│ n, crc │ n bytes of │ of rows │         │
//	│        │ JSON       │         │         │
//	└────────┴────────────┴─────────┴─────────┴───
//
// A frame holds the rows of one chunk. It begins with a head of frameHead bytes: the length of the rest, the index of
// the first row, the number of rows, and a CRC-32C. The CRC-32C covers these numbers and the rest. The rows follow, all
// of the same size, and then their paths and errors. The checksum of a frame that a crash cut short does not match.
// This frame and everything after it are dropped.
type Records struct {
	Path string

	magic   string
	begins  any                            // the content of the head, stored as JSON
	compare func([]byte) ([]string, error) // describes how the head of an existing file differs

	file   *os.File
	out    io.Writer // file, except in tests
	runs   []run     // layout of the values of a row
	size   int       // bytes of a row
	start  int64     // offset of the first frame
	end    int64     // end of the last whole frame
	rows   int
	errors int
	synced time.Time
}

const (
	recordsMagic = "swagwrap unfinished scores 2\n"
	frameHead    = 8 + 8 + 4 + 4 // size in bytes of the head of a frame
	rowHead      = 4 + 4 + 8     // length of path, length of error, label
	// syncEvery limits how much work a crash of the machine can lose, in addition to the current chunk. A crash of the
	// process alone loses no finished chunk.
	syncEvery = 5 * time.Second
)

// frame is the head of a frame.
type frame struct {
	Length, First uint64
	Rows, Sum     uint32
}

// checksum returns the correct checksum of a frame. b holds the whole frame.
func checksum(b []byte) uint32 {
	const sum = frameHead - 4
	return weights.CRC32C(weights.CRC32C(0, b[:sum]), b[frameHead:])
}

// Existing says what to do with an existing work file.
type Existing int

const (
	Refuse  Existing = iota // fails with [ErrUnfinished]
	Resume                  // continues, or fails with [ChangedError] if the parameters differ
	Discard                 // starts again from the beginning
)

// ErrUnfinished is the error for a work file that an earlier run left behind.
var ErrUnfinished = errors.New("an earlier run has left it unfinished")

// ErrBusy is the error for a work file that another process has open.
var ErrBusy = errors.New("another process has it open")

// OpenRecords opens the work file at path, or creates it. Its rows depend on the given parameters.
func OpenRecords(path string, s *Schema, p Parameters, existing Existing) (*Records, error) {
	r := newRecords(path, s)
	r.magic, r.begins = recordsMagic, p
	r.compare = func(js []byte) ([]string, error) {
		var was Parameters
		err := json.Unmarshal(js, &was)
		return was.Differences(p), err
	}
	return r.use(existing)
}

func newRecords(path string, s *Schema) *Records {
	r := &Records{Path: path, synced: time.Now()}
	r.setSchema(s)
	return r
}

// run is a run of n consecutive elements of one kind in a row.
type run struct {
	kind task.Kind
	n    int
}

// setSchema sets the layout of the rows.
func (r *Records) setSchema(s *Schema) {
	r.runs, r.size = nil, rowHead
	for _, c := range s.Columns {
		n := c.Len()
		if c.Kind == task.Ranked {
			n /= 2
		}
		r.runs = append(r.runs, run{c.Kind, n})
		r.size += c.Bytes()
	}
}

// use opens the file for appending rows.
func (r *Records) use(existing Existing) (*Records, error) {
	if err := r.open(); err != nil {
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

// open opens and locks the file.
func (r *Records) open() error {
	for {
		if info, err := os.Lstat(r.Path); err == nil && !info.Mode().IsRegular() {
			return errors.New("not a regular file")
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
func (r *Records) begin() error {
	js, err := json.Marshal(r.begins)
	if err == nil {
		err = checkHead(int64(len(js)), js)
	}
	if err != nil {
		return err
	}
	head := binary.LittleEndian.AppendUint32([]byte(r.magic), uint32(len(js)))
	head = binary.LittleEndian.AppendUint32(head, weights.CRC32C(0, js))
	head = append(head, js...)
	r.start, r.end = int64(len(head)), int64(len(head))
	if err := r.file.Truncate(0); err != nil {
		return err
	}
	_, err = r.file.WriteAt(head, 0)
	return err
}

// maxParameters is the largest head in bytes. maxCommas limits the number of values in its JSON. A decoded value can
// take a hundred times as much memory as its text. A source takes about 150 bytes and four values.
const (
	maxParameters = 16 << 20
	maxCommas     = 1 << 18
)

// checkHead refuses JSON that is too large for a head. length is its size in bytes. js is nil if it was not read yet.
func checkHead(length int64, js []byte) error {
	if length > maxParameters {
		return fmt.Errorf("%d bytes of parameters, want at most %d", length, maxParameters)
	}
	if n := bytes.Count(js, []byte(",")); n > maxCommas {
		return fmt.Errorf("%d values among its parameters, want at most %d", n, maxCommas)
	}
	return nil
}

// damagedHead is the error for a head whose content has changed since it was written.
type damagedHead struct{ error }

// head reads the JSON of the head, and finds the start of the frames. It returns nil for a head that a crash cut short.
func (r *Records) head(in io.Reader) (js []byte, err error) {
	head := make([]byte, len(r.magic)+8)
	n, err := io.ReadFull(in, head)
	if magic := head[:min(n, len(r.magic))]; !strings.HasPrefix(r.magic, string(magic)) {
		return nil, errors.New("not a work file of this program")
	}
	if err == nil {
		length := binary.LittleEndian.Uint32(head[len(r.magic):])
		if err := checkHead(int64(length), nil); err != nil {
			return nil, damagedHead{err}
		}
		js = make([]byte, length)
		_, err = io.ReadFull(in, js)
	}
	if err != nil {
		return nil, ignoreEnd(err)
	}
	if weights.CRC32C(0, js) != binary.LittleEndian.Uint32(head[len(r.magic)+4:]) {
		return nil, damagedHead{errors.New("its parameters are damaged")}
	}
	if err := checkHead(0, js); err != nil {
		return nil, damagedHead{err}
	}
	r.start = int64(len(head) + len(js))
	return js, nil
}

// resume reads the head, compares its parameters, and finds all whole frames. If the head is cut short or damaged, the
// origin of the rows is unknown, so the file begins again. A job that a scheduler restarts must not fail forever on
// such a file.
func (r *Records) resume() error {
	js, err := r.head(bufio.NewReader(r.file))
	if js == nil && err == nil || errors.As(err, new(damagedHead)) {
		return r.begin()
	}
	if err != nil {
		return err
	}
	d, err := r.compare(js)
	if err != nil {
		return err
	}
	if d != nil {
		return &ChangedError{r.Path, d}
	}
	r.rows, r.end, err = r.scan(func(row *Row) error { r.note(row); return nil })
	return err
}

// scan reads frames up to the first that is not whole, and calls f with each row. It returns the number of rows and the
// offset of their end.
func (r *Records) scan(f func(*Row) error) (rows int, end int64, err error) {
	info, err := r.file.Stat()
	if err != nil {
		return 0, 0, err
	}
	in := bufio.NewReaderSize(io.NewSectionReader(r.file, r.start, info.Size()-r.start), 1<<20)
	var row Row
	var b []byte
	for end = r.start; ; {
		b = slices.Grow(b[:0], frameHead)[:frameHead]
		if _, err := io.ReadFull(in, b); err != nil {
			return rows, end, ignoreEnd(err)
		}
		var h frame
		binary.Decode(b, binary.LittleEndian, &h) // b is long enough
		left := uint64(info.Size() - end - frameHead)
		if h.First != uint64(rows) || h.Rows < 1 || h.Length > left || uint64(h.Rows) > h.Length/uint64(r.size) {
			return rows, end, nil
		}
		b = slices.Grow(b, int(h.Length))[:frameHead+int(h.Length)]
		if _, err := io.ReadFull(in, b[frameHead:]); err != nil {
			return rows, end, ignoreEnd(err)
		}
		if checksum(b) != h.Sum {
			return rows, end, nil
		}
		if err := r.each(rows, int(h.Rows), b[frameHead:], &row, f); err != nil {
			return rows, end, err
		}
		rows, end = rows+int(h.Rows), end+int64(len(b))
	}
}

func ignoreEnd(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return nil
	}
	return err
}

func (r *Records) note(row *Row) {
	if row.Error != "" {
		r.errors++
	}
}

// Rows returns the number of rows.
func (r *Records) Rows() int { return r.rows }

// Errors returns the number of rows with an error.
func (r *Records) Errors() int { return r.errors }

// Append adds rows. The index of the first must be the number of rows so far. Append keeps no reference to the rows.
func (r *Records) Append(first int, rows iter.Seq[*Row]) error {
	if first != r.rows {
		panic("predictions: rows out of order")
	}
	h := frame{First: uint64(first)}
	b, texts := make([]byte, frameHead), []byte(nil)
	for row := range rows {
		h.Rows++
		r.note(row)
		b = r.encode(b, row)
		texts = append(append(texts, row.Path...), row.Error...)
	}
	b = append(b, texts...)
	h.Length = uint64(len(b) - frameHead)
	binary.Encode(b, binary.LittleEndian, h) // b is long enough
	binary.LittleEndian.PutUint32(b[frameHead-4:], checksum(b))
	if _, err := r.out.Write(b); err != nil {
		return r.named(err)
	}
	r.rows, r.end = r.rows+int(h.Rows), r.end+int64(len(b))
	if time.Since(r.synced) < syncEvery {
		return nil
	}
	r.synced = time.Now()
	return r.named(r.file.Sync())
}

// encode appends a row without its texts. Missing values are stored as zeros.
func (r *Records) encode(b []byte, row *Row) []byte {
	end := len(b) + r.size
	b = binary.LittleEndian.AppendUint32(b, uint32(len(row.Path)))
	b = binary.LittleEndian.AppendUint32(b, uint32(len(row.Error)))
	b = binary.LittleEndian.AppendUint64(b, uint64(row.Label))
	if values := row.Values; len(values) > 0 {
		for _, run := range r.runs {
			for range run.n {
				switch run.kind {
				case task.Class:
					b = appendClass(b, values[0])
				case task.Float32:
					b = binary.LittleEndian.AppendUint32(b, math.Float32bits(float32(values[0])))
				case task.Ranked:
					b = appendClass(b, values[0])
					values = values[1:]
					fallthrough
				default:
					b = binary.LittleEndian.AppendUint64(b, math.Float64bits(values[0]))
				}
				values = values[1:]
			}
		}
	}
	return append(b, make([]byte, end-len(b))...)
}

// decode appends the values of a row to dst.
func (r *Records) decode(dst []float64, b []byte) []float64 {
	class := func() {
		dst = append(dst, float64(int32(binary.LittleEndian.Uint32(b))))
		b = b[4:]
	}
	for _, run := range r.runs {
		for range run.n {
			switch run.kind {
			case task.Class:
				class()
			case task.Float32:
				dst = append(dst, float64(math.Float32frombits(binary.LittleEndian.Uint32(b))))
				b = b[4:]
			case task.Ranked:
				class()
				fallthrough
			default:
				dst = append(dst, math.Float64frombits(binary.LittleEndian.Uint64(b)))
				b = b[8:]
			}
		}
	}
	return dst
}

func appendClass(b []byte, v float64) []byte {
	return binary.LittleEndian.AppendUint32(b, uint32(int32(v)))
}

// each calls f with each of n rows. All rows share the same memory.
func (r *Records) each(first, n int, body []byte, row *Row, f func(*Row) error) error {
	texts := body[n*r.size:]
	values := row.Values
	for i := range n {
		b := body[i*r.size:][:r.size]
		path, failed := uint64(binary.LittleEndian.Uint32(b)), uint64(binary.LittleEndian.Uint32(b[4:]))
		if path+failed > uint64(len(texts)) {
			return errors.New("the text of a row is missing")
		}
		*row = Row{
			Index: first + i, Label: int(binary.LittleEndian.Uint64(b[8:])),
			Path: string(texts[:path]), Error: string(texts[path : path+failed]),
		}
		if texts = texts[path+failed:]; failed == 0 {
			values = r.decode(values[:0], b[rowHead:])
			row.Values = values
		}
		if err := f(row); err != nil {
			return err
		}
	}
	return nil
}

// Each calls f with every row in turn. The row is valid only during the call.
func (r *Records) Each(f func(*Row) error) error {
	failed := false
	rows, _, err := r.scan(func(row *Row) error {
		err := f(row)
		failed = err != nil
		return err
	})
	switch {
	case failed:
		return err
	case err == nil && rows < r.rows:
		err = fmt.Errorf("rows from %d on are damaged", rows)
	}
	return r.named(err)
}

// Remove removes the file when its rows have been written elsewhere.
func (r *Records) Remove() error {
	err := os.Remove(r.Path)
	return r.named(errors.Join(err, r.file.Close()))
}

// Close syncs the rows to disk and closes the file.
func (r *Records) Close() error {
	return r.named(errors.Join(r.file.Sync(), r.file.Close()))
}

// named adds the path to an error, unless it already has it.
func (r *Records) named(err error) error {
	if _, ok := errors.AsType[*ChangedError](err); ok {
		return err
	}
	return file.Error(r.Path, err)
}
