package predictions

import (
	"bufio"
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

// Records is the work file of a run: the rows so far, and the parameters that
// they depend on. A run that is stopped for any reason continues from there. One
// process at a time has it open.
//
//	┌────────┬────────────┬─────────┬─────────┬───
//	│ recordsMagic        │ frame   │ frame   │ …
//	│ n, crc │ n bytes of │ of rows │         │
//	│        │ JSON       │         │         │
//	└────────┴────────────┴─────────┴─────────┴───
//
// A frame is what one chunk gave: a head of frameHead bytes (length of the rest,
// first row, number of rows, CRC-32C of these and the rest), the rows, all of the
// same size, and their paths and errors. A frame that a crash cut short does
// not have its checksum, and is dropped with all behind it.
type Records struct {
	Path string

	magic   string
	begins  any                            // the JSON of its head
	compare func([]byte) ([]string, error) // what differs in another's

	file   *os.File
	out    io.Writer   // file, but for tests
	kinds  []task.Kind // of a row's values; none is ranked
	size   int         // bytes of a row
	start  int64       // of the first frame
	end    int64       // of the last whole one
	rows   int
	errors int
	synced time.Time
}

const (
	recordsMagic = "swagwrap unfinished scores 2\n"
	frameHead    = 8 + 8 + 4 + 4 // the size of a frame
	rowHead      = 4 + 4 + 8     // length of path, length of error, label
	// syncEvery is how much work a crash of the machine may cost, beside the chunk
	// at work. A crash of the process alone costs none.
	syncEvery = 5 * time.Second
)

// frame is the head of one.
type frame struct {
	Length, First uint64
	Rows, Sum     uint32
}

// checksum returns what the sum of a frame should be, of which b holds all bytes.
func checksum(b []byte) uint32 {
	const sum = frameHead - 4
	return weights.CRC32C(weights.CRC32C(0, b[:sum]), b[frameHead:])
}

// Existing says what to do with a work file that is there.
type Existing int

const (
	Refuse  Existing = iota // with an error that is [ErrUnfinished]
	Resume                  // unless its parameters are others: [ChangedError]
	Discard                 // and start anew
)

// ErrUnfinished is the error of a work file that an earlier run left.
var ErrUnfinished = errors.New("an earlier run has left it unfinished")

// ErrBusy is the error of a work file that another process has open.
var ErrBusy = errors.New("another process has it open")

// OpenRecords opens the work file at path, for rows that depend on the given
// parameters. Where there is none it is made.
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

// setSchema says what rows hold.
func (r *Records) setSchema(s *Schema) {
	r.size = rowHead
	for _, c := range s.Columns {
		of := []task.Kind{c.Kind}
		if c.Kind == task.Ranked {
			of = []task.Kind{task.Class, task.Float64}
		}
		r.kinds = append(r.kinds, slices.Repeat(of, c.Len()/len(of))...)
		r.size += c.Bytes()
	}
}

// use opens the file for more rows.
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
		// A file system without locks is trusted to have one user.
		if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); errors.Is(err, syscall.EWOULDBLOCK) {
			f.Close()
			return ErrBusy
		}
		// Its last user may have removed it before we had the lock.
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

// begin writes the head of the file, in which there is nothing else then.
func (r *Records) begin() error {
	js, err := json.Marshal(r.begins)
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

// maxParameters bounds the JSON of parameters; a source takes some hundred
// bytes.
const maxParameters = 16 << 20

// head reads the JSON of the head, and finds where frames start. A head that a crash
// cut short is nil.
func (r *Records) head(in io.Reader) (js []byte, err error) {
	head := make([]byte, len(r.magic)+8)
	n, err := io.ReadFull(in, head)
	if magic := head[:min(n, len(r.magic))]; !strings.HasPrefix(r.magic, string(magic)) {
		return nil, errors.New("not a work file of this program")
	}
	if err == nil {
		length := binary.LittleEndian.Uint32(head[len(r.magic):])
		if length > maxParameters {
			return nil, fmt.Errorf("%d bytes of parameters, want at most %d", length, maxParameters)
		}
		js = make([]byte, length)
		_, err = io.ReadFull(in, js)
	}
	if err != nil {
		return nil, ignoreEnd(err)
	}
	if weights.CRC32C(0, js) != binary.LittleEndian.Uint32(head[len(r.magic)+4:]) {
		return nil, errors.New("its parameters are damaged")
	}
	r.start = int64(len(head) + len(js))
	return js, nil
}

// resume reads the head, compares its parameters, and finds all whole frames. Behind a
// head that a crash cut short there are no rows: the file begins anew.
func (r *Records) resume() error {
	js, err := r.head(bufio.NewReader(r.file))
	if err != nil {
		return err
	}
	if js == nil {
		return r.begin()
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

// scan reads frames up to the first that is not whole, and calls f with each row.
// It returns how many rows there are, and where they end.
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
		binary.Decode(b, binary.LittleEndian, &h) // is long enough
		left := uint64(info.Size() - end - frameHead)
		if h.First != uint64(rows) || h.Rows < 1 || h.Length < uint64(h.Rows)*uint64(r.size) || h.Length > left {
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

// Rows returns how many rows there are.
func (r *Records) Rows() int { return r.rows }

// Errors returns how many of them have an error.
func (r *Records) Errors() int { return r.errors }

// Append adds rows, of which the first must be the one behind those that are there.
// None of them is kept.
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
	binary.Encode(b, binary.LittleEndian, h) // is long enough
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

// encode appends a row, but for its texts. Values that it does not have are zeros.
func (r *Records) encode(b []byte, row *Row) []byte {
	end := len(b) + r.size
	b = binary.LittleEndian.AppendUint32(b, uint32(len(row.Path)))
	b = binary.LittleEndian.AppendUint32(b, uint32(len(row.Error)))
	b = binary.LittleEndian.AppendUint64(b, uint64(row.Label))
	for i, v := range row.Values {
		switch r.kinds[i] {
		case task.Class:
			b = binary.LittleEndian.AppendUint32(b, uint32(int32(v)))
		case task.Float32:
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(float32(v)))
		default:
			b = binary.LittleEndian.AppendUint64(b, math.Float64bits(v))
		}
	}
	return append(b, make([]byte, end-len(b))...)
}

// decode appends the values of a row to dst.
func (r *Records) decode(dst []float64, b []byte) []float64 {
	for _, kind := range r.kinds {
		switch kind {
		case task.Class:
			dst = append(dst, float64(int32(binary.LittleEndian.Uint32(b))))
			b = b[4:]
		case task.Float32:
			dst = append(dst, float64(math.Float32frombits(binary.LittleEndian.Uint32(b))))
			b = b[4:]
		default:
			dst = append(dst, math.Float64frombits(binary.LittleEndian.Uint64(b)))
			b = b[8:]
		}
	}
	return dst
}

// each calls f with each of n rows, which share memory.
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

// Each calls f with every row in turn, which is valid during the call.
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

// Remove removes the file, whose rows are elsewhere now.
func (r *Records) Remove() error {
	err := os.Remove(r.Path)
	return r.named(errors.Join(err, r.file.Close()))
}

// Close puts the rows on disk and closes the file.
func (r *Records) Close() error {
	return r.named(errors.Join(r.file.Sync(), r.file.Close()))
}

// named puts the path in front of an error, as all ours have it.
func (r *Records) named(err error) error {
	if _, ok := errors.AsType[*ChangedError](err); ok {
		return err
	}
	return file.Error(r.Path, err)
}
