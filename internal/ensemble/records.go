package ensemble

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"math"
	"os"
	"strings"
	"syscall"
	"time"
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
// same size, and the texts of their errors. A frame that a crash cut short does
// not have its checksum, and is dropped with all behind it.
type Records struct {
	Path string

	file   *os.File
	out    io.Writer // file, but for tests
	shape  shape
	frames []frame
	end    int64 // of the last whole frame
	rows   int
	errors int
	synced time.Time
}

const (
	recordsMagic = "swagwrap unfinished scores 1\n"
	frameHead    = 8 + 8 + 4 + 4
	// syncEvery is how much work a crash of the machine may cost, beside the chunk
	// at work. A crash of the process alone costs none.
	syncEvery = 5 * time.Second
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// frame is where some rows are.
type frame struct {
	offset, length int64 // of what follows the head
	first, rows    int
	sum            uint32
}

// shape says what a row holds.
type shape struct{ top, probabilities, members int }

func (s *Scorer) shape() shape {
	h := shape{top: s.columns.Top}
	if s.columns.Probabilities {
		h.probabilities = s.classes
	}
	if s.columns.Members {
		h.members = s.count * s.classes
	}
	return h
}

// size returns the bytes of a row: the length of its error, its numbers, and its
// lists.
func (h shape) size() int { return 4 + 5*8 + 12*h.top + 8*h.probabilities + 4*h.members }

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

// ChangedError says that rows there were made with other parameters.
type ChangedError struct {
	Path        string
	Differences []string
}

func (e *ChangedError) Error() string {
	return fmt.Sprintf("%s: was begun with other parameters: %s", e.Path, strings.Join(e.Differences, "; "))
}

// Records opens the work file at path for the rows of s. Where there is none it
// is made.
func (s *Scorer) Records(path string, p Parameters, existing Existing) (*Records, error) {
	r := &Records{Path: path, shape: s.shape(), synced: time.Now()}
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
	head = binary.LittleEndian.AppendUint32(head, crc32.Checksum(js, castagnoli))
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
	if crc32.Checksum(js, castagnoli) != binary.LittleEndian.Uint32(head[len(recordsMagic)+4:]) {
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
		if f.first != r.rows || f.rows < 1 || f.length < int64(f.rows)*int64(r.shape.size()) || f.length > info.Size()-f.offset {
			return nil
		}
		body := make([]byte, f.length)
		if _, err := io.ReadFull(in, body); err != nil {
			return ignoreEnd(err)
		}
		if f.checksum(head, body) != f.sum {
			return nil
		}
		if err := r.shape.each(f, body, &row, func(row *Row) error { r.note(row); return nil }); err != nil {
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
	return crc32.Update(crc32.Checksum(head[:frameHead-4], castagnoli), castagnoli, body)
}

// Rows returns how many rows there are.
func (r *Records) Rows() int { return r.rows }

// Errors returns how many of them have an error.
func (r *Records) Errors() int { return r.errors }

// Append adds the rows of a chunk.
func (r *Records) Append(c *Chunk) error {
	if c.First != r.rows {
		panic("ensemble: rows out of order")
	}
	b, texts := make([]byte, frameHead, frameHead+c.Len*r.shape.size()), []byte(nil)
	var row Row
	for i := range c.Len {
		c.Row(i, &row)
		r.note(&row)
		b = r.shape.append(b, &row)
		texts = append(texts, row.Error...)
	}
	b = append(b, texts...)
	f := frame{offset: r.end + frameHead, length: int64(len(b) - frameHead), first: c.First, rows: c.Len}
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

// append encodes a row, but for the text of its error.
func (h shape) append(b []byte, r *Row) []byte {
	float := func(v float64) { b = binary.LittleEndian.AppendUint64(b, math.Float64bits(v)) }
	end := len(b) + h.size()
	b = binary.LittleEndian.AppendUint32(b, uint32(len(r.Error)))
	for _, v := range []float64{r.PredictiveEntropy, r.ExpectedEntropy, r.MutualInformation, r.Loss, r.Square} {
		float(v)
	}
	for _, t := range r.Top {
		b = binary.LittleEndian.AppendUint32(b, uint32(t.Class))
		float(t.Probability)
	}
	for _, v := range r.Probabilities {
		float(v)
	}
	for _, v := range r.Members {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
	}
	return append(b, make([]byte, end-len(b))...) // a row with an error has no lists
}

// each calls f with each row of a frame. The rows share memory.
func (h shape) each(at frame, body []byte, r *Row, f func(*Row) error) error {
	texts := body[at.rows*h.size():]
	for i := range at.rows {
		length := h.decode(body[i*h.size():][:h.size()], r)
		if length > len(texts) {
			return errors.New("the text of an error is missing")
		}
		r.Index, r.Error = at.first+i, string(texts[:length])
		if texts = texts[length:]; length > 0 {
			r.Prediction, r.Confidence, r.Top, r.Probabilities, r.Members = -1, 0, r.Top[:0], nil, nil
		}
		if err := f(r); err != nil {
			return err
		}
	}
	return nil
}

// decode is the inverse of append. It returns the length of the error's text.
func (h shape) decode(b []byte, r *Row) int {
	float := func() float64 {
		v := math.Float64frombits(binary.LittleEndian.Uint64(b))
		b = b[8:]
		return v
	}
	length := int(binary.LittleEndian.Uint32(b))
	b = b[4:]
	for _, v := range []*float64{&r.PredictiveEntropy, &r.ExpectedEntropy, &r.MutualInformation, &r.Loss, &r.Square} {
		*v = float()
	}
	r.Top = r.Top[:0]
	for range h.top {
		class := int(binary.LittleEndian.Uint32(b))
		b = b[4:]
		r.Top = append(r.Top, Ranked{class, float()})
	}
	r.Prediction, r.Confidence = r.Top[0].Class, r.Top[0].Probability
	if r.Probabilities = nil; h.probabilities > 0 {
		r.probabilities = zeros(r.probabilities, h.probabilities)
		r.Probabilities = r.probabilities
		for c := range r.Probabilities {
			r.Probabilities[c] = float()
		}
	}
	if h.members > 0 {
		r.Members = zeros(r.Members, h.members)
		for k := range r.Members {
			r.Members[k] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*k:]))
		}
	}
	return length
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
		if err := r.shape.each(at, body[frameHead:], &row, f); err != nil {
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
