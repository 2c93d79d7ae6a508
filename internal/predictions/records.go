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
	"strings"
	"syscall"
	"time"

	"github.com/swagwrap/swagwrap/internal/task"
	"github.com/swagwrap/swagwrap/weights"
)

// Records is the work file of a run: the rows so far, and the parameters that
// they depend on. A run that is stopped, by whatever, goes on from there. One
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

	file   *os.File
	out    io.Writer // file, but for tests
	schema *Schema
	size   int // bytes of a row
	frames []frame
	end    int64 // of the last whole frame
	rows   int
	errors int
	synced time.Time
}

const (
	recordsMagic = "swagwrap unfinished scores 2\n"
	frameHead    = 8 + 8 + 4 + 4
	rowHead      = 4 + 4 + 8 // length of path, length of error, label
	// syncEvery is how much work a crash of the machine may cost, beside the chunk
	// at work. A crash of the process alone costs none.
	syncEvery = 5 * time.Second
)

// frame is where some rows are.
type frame struct {
	offset, length int64 // of what follows the head
	first, rows    int
	sum            uint32
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
var ErrBusy = errors.New("another process is at work on it")

// OpenRecords opens the work file at path, for rows that depend on the given
// parameters. Where there is none it is made.
func OpenRecords(path string, s *Schema, p Parameters, existing Existing) (*Records, error) {
	r := &Records{Path: path, schema: s, size: rowHead, synced: time.Now()}
	for _, c := range s.Columns {
		r.size += c.Bytes()
	}
	if err := r.open(existing); err != nil {
		return nil, r.named(err)
	}
	info, err := r.file.Stat()
	switch {
	case err != nil:
	case info.Size() == 0:
		err = r.begin(p)
	case existing == Refuse:
		err = ErrUnfinished
	case existing == Discard:
		if err = r.file.Truncate(0); err == nil {
			err = r.begin(p)
		}
	default:
		err = r.resume(p)
	}
	if err != nil {
		r.file.Close()
		return nil, r.named(err)
	}
	return r, nil
}

// open opens and locks the file.
func (r *Records) open(existing Existing) error {
	for {
		f, err := os.OpenFile(r.Path, os.O_RDWR|os.O_CREATE, 0o666)
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

// begin writes the head of the file.
func (r *Records) begin(p Parameters) error {
	js, err := json.Marshal(p)
	if err != nil {
		return err
	}
	head := binary.LittleEndian.AppendUint32([]byte(recordsMagic), uint32(len(js)))
	head = binary.LittleEndian.AppendUint32(head, weights.CRC32C(0, js))
	head = append(head, js...)
	r.end, r.out = int64(len(head)), r.file
	if _, err := r.file.WriteAt(head, 0); err != nil {
		return err
	}
	_, err = r.file.Seek(r.end, io.SeekStart)
	return err
}

// maxParameters bounds the JSON of parameters; a source takes some hundred
// bytes.
const maxParameters = 16 << 20

// resume reads the head, compares its parameters, and finds all whole frames. A
// head that a crash cut short has no rows behind it: the file begins anew.
func (r *Records) resume(p Parameters) error {
	in := bufio.NewReaderSize(r.file, 1<<20)
	head := make([]byte, len(recordsMagic)+8)
	n, err := io.ReadFull(in, head)
	if magic := head[:min(n, len(recordsMagic))]; !strings.HasPrefix(recordsMagic, string(magic)) {
		return errors.New("not a work file of this program")
	}
	var js []byte
	if err == nil {
		length := binary.LittleEndian.Uint32(head[len(recordsMagic):])
		if length > maxParameters {
			return fmt.Errorf("%d bytes of parameters, want at most %d", length, maxParameters)
		}
		js = make([]byte, length)
		_, err = io.ReadFull(in, js)
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		if err := r.file.Truncate(0); err != nil {
			return err
		}
		return r.begin(p)
	}
	if err != nil {
		return err
	}
	if weights.CRC32C(0, js) != binary.LittleEndian.Uint32(head[len(recordsMagic)+4:]) {
		return errors.New("its parameters are damaged")
	}
	var was Parameters
	if err := json.Unmarshal(js, &was); err != nil {
		return err
	}
	if d := was.Differences(p); d != nil {
		return &ChangedError{r.Path, d}
	}
	r.end = int64(len(head) + len(js))
	if err := r.find(in); err != nil {
		return err
	}
	if err := r.file.Truncate(r.end); err != nil {
		return err
	}
	r.out = r.file
	_, err = r.file.Seek(r.end, io.SeekStart)
	return err
}

// find reads frames up to the first that is not whole.
func (r *Records) find(in io.Reader) error {
	info, err := r.file.Stat()
	if err != nil {
		return err
	}
	var row Row
	for {
		head := make([]byte, frameHead)
		if _, err := io.ReadFull(in, head); err != nil {
			return ignoreEnd(err)
		}
		f := decodeHead(head, r.end)
		if f.first != r.rows || f.rows < 1 || f.length < int64(f.rows)*int64(r.size) || f.length > info.Size()-f.offset {
			return nil
		}
		body := make([]byte, f.length)
		if _, err := io.ReadFull(in, body); err != nil {
			return ignoreEnd(err)
		}
		if f.checksum(head, body) != f.sum {
			return nil
		}
		if err := r.rowsOf(f, body, &row, func(row *Row) error { r.note(row); return nil }); err != nil {
			return err
		}
		r.add(f)
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

func (r *Records) add(f frame) {
	r.frames = append(r.frames, f)
	r.rows += f.rows
	r.end = f.offset + f.length
}

// decodeHead reads the head of a frame that begins at the given place.
func decodeHead(b []byte, at int64) frame {
	return frame{
		offset: at + frameHead,
		length: int64(binary.LittleEndian.Uint64(b) & math.MaxInt64),
		first:  int(binary.LittleEndian.Uint64(b[8:]) & math.MaxInt64),
		rows:   int(binary.LittleEndian.Uint32(b[16:]) & math.MaxInt32),
		sum:    binary.LittleEndian.Uint32(b[20:]),
	}
}

// checksum returns what the checksum of a frame should be.
func (f frame) checksum(head, body []byte) uint32 {
	return weights.CRC32C(weights.CRC32C(0, head[:frameHead-4]), body)
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
	f := frame{offset: r.end + frameHead, first: first}
	b, texts := make([]byte, frameHead), []byte(nil)
	for row := range rows {
		f.rows++
		r.note(row)
		b = r.encode(b, row)
		texts = append(append(texts, row.Path...), row.Error...)
	}
	b = append(b, texts...)
	f.length = int64(len(b) - frameHead)
	binary.LittleEndian.PutUint64(b, uint64(f.length))
	binary.LittleEndian.PutUint64(b[8:], uint64(f.first))
	binary.LittleEndian.PutUint32(b[16:], uint32(f.rows))
	f.sum = f.checksum(b[:frameHead], b[frameHead:])
	binary.LittleEndian.PutUint32(b[20:], f.sum)
	if _, err := r.out.Write(b); err != nil {
		return r.named(err)
	}
	r.add(f)
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
	if row.Error == "" {
		for c, values := range r.schema.All(row) {
			for i, v := range values {
				switch kindOf(c, i) {
				case task.Class:
					b = binary.LittleEndian.AppendUint32(b, uint32(int32(v)))
				case task.Float32:
					b = binary.LittleEndian.AppendUint32(b, math.Float32bits(float32(v)))
				default:
					b = binary.LittleEndian.AppendUint64(b, math.Float64bits(v))
				}
			}
		}
	}
	return append(b, make([]byte, end-len(b))...)
}

// decode is the inverse of encode. The values are appended to those of the row.
func (r *Records) decode(b []byte, row *Row) {
	four := func() uint32 {
		v := binary.LittleEndian.Uint32(b)
		b = b[4:]
		return v
	}
	for _, c := range r.schema.Columns {
		for i := range c.Len() {
			var v float64
			switch kindOf(c, i) {
			case task.Class:
				v = float64(int32(four()))
			case task.Float32:
				v = float64(math.Float32frombits(four()))
			default:
				v = math.Float64frombits(binary.LittleEndian.Uint64(b))
				b = b[8:]
			}
			row.Values = append(row.Values, v)
		}
	}
}

// kindOf returns what value i of a column is: of those that are ranked every
// second is a probability.
func kindOf(c task.Column, i int) task.Kind {
	switch {
	case c.Kind != task.Ranked:
		return c.Kind
	case i%2 == 0:
		return task.Class
	}
	return task.Float64
}

// rowsOf calls f with each row of a frame. The rows share memory.
func (r *Records) rowsOf(at frame, body []byte, row *Row, f func(*Row) error) error {
	texts := body[at.rows*r.size:]
	text := func(length uint32) (string, bool) {
		if uint64(length) > uint64(len(texts)) {
			return "", false
		}
		s := string(texts[:length])
		texts = texts[length:]
		return s, true
	}
	values := row.Values
	for i := range at.rows {
		b := body[i*r.size:][:r.size]
		path, ok1 := text(binary.LittleEndian.Uint32(b))
		failed, ok2 := text(binary.LittleEndian.Uint32(b[4:]))
		if !ok1 || !ok2 {
			return errors.New("the text of a row is missing")
		}
		*row = Row{Index: at.first + i, Path: path, Label: int(binary.LittleEndian.Uint64(b[8:])), Error: failed, Values: values[:0]}
		if failed == "" {
			r.decode(b[rowHead:], row)
			values = row.Values
		}
		if err := f(row); err != nil {
			return err
		}
	}
	return nil
}

// Each calls f with every row in turn, which is valid during the call.
func (r *Records) Each(f func(*Row) error) error {
	var row Row
	var body []byte
	for _, at := range r.frames {
		if int64(cap(body)) < at.length+frameHead {
			body = make([]byte, at.length+frameHead)
		}
		body = body[:at.length+frameHead]
		if _, err := r.file.ReadAt(body, at.offset-frameHead); err != nil {
			return r.named(err)
		}
		if at.checksum(body[:frameHead], body[frameHead:]) != at.sum || !bytes.Equal(body[20:24], binary.LittleEndian.AppendUint32(nil, at.sum)) {
			return r.named(fmt.Errorf("rows from %d on are damaged", at.first))
		}
		if err := r.rowsOf(at, body[frameHead:], &row, f); err != nil {
			return err
		}
	}
	return nil
}

// Remove removes the file, whose rows are elsewhere now.
func (r *Records) Remove() error {
	err := os.Remove(r.Path)
	return r.named(errors.Join(err, r.file.Close()))
}

// Close puts the rows on disk and lets go of the file.
func (r *Records) Close() error {
	return r.named(errors.Join(r.file.Sync(), r.file.Close()))
}

// named puts the path in front of an error, as all ours have it.
func (r *Records) named(err error) error {
	var at *fs.PathError
	var changed *ChangedError
	switch {
	case err == nil, errors.As(err, &changed):
		return err
	case errors.As(err, &at):
		err = at.Err
	}
	return fmt.Errorf("%s: %w", r.Path, err)
}
