package records

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/swagwrap/swagwrap/fixtures/reliability"
)

// openRows opens a work file.
func openRows(path string, p Parameters, existing Existing) (*File, error) {
	return Open(path, Unfinished, &Head{Parameters: p}, existing)
}

// chunk is some rows one after the other.
type chunk struct {
	first int
	rows  []Row
}

// each hands on the rows as a run does, in the same memory.
func (c chunk) each(yield func(*Row) bool) {
	var row Row
	for i := range c.rows {
		row = c.rows[i]
		if !yield(&row) {
			return
		}
	}
}

// someChunks makes up chunks of the given numbers of rows. Every seventh has an error.
func someChunks(lengths ...int) []chunk {
	rng := rand.New(rand.NewPCG(1, 2))
	first := 0
	var out []chunk
	for _, n := range lengths {
		c := chunk{first: first}
		for i := range n {
			r := Row{Index: first + i, Path: fmt.Sprintf("images/%d.png", first+i), Label: (first+i)%4 - 1}
			if r.Index%7 == 3 {
				r.Error = fmt.Sprintf("image %d: is broken", r.Index)
			} else {
				for range 20 {
					r.Values = append(r.Values, rng.NormFloat64())
				}
				r.Values[5] = math.NaN()
			}
			c.rows = append(c.rows, r)
		}
		out = append(out, c)
		first += n
	}
	return out
}

func parameters(ensemble string, examples int) Parameters {
	p, err := NewParameters(map[string]any{"ensemble": ensemble, "examples": examples})
	if err != nil {
		panic(err)
	}
	return p
}

var someParameters = parameters("e", 50)

// rows copies all rows.
func rows(t *testing.T, r *File) []Row {
	t.Helper()
	var out []Row
	err := r.Each(func(row *Row) error {
		c := *row
		c.Values = slices.Clone(row.Values)
		out = append(out, c)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

var sameRow = cmp.Options{cmpopts.EquateNaNs(), cmpopts.EquateEmpty()}

// What is appended comes back, bit for bit, also after the file was closed.
func TestRecords(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out.csv.partial")
	r, err := openRows(path, someParameters, Refuse)
	if err != nil {
		t.Fatal(err)
	}
	var want []Row
	for _, c := range someChunks(20, 20, 10) {
		if err := r.Append(c.first, c.each); err != nil {
			t.Fatal(err)
		}
		want = append(want, c.rows...)
	}
	if diff := cmp.Diff(want, rows(t, r), sameRow); diff != "" {
		t.Fatal(diff)
	}
	if want[3].Error != "image 3: is broken" || want[4].Error != "" || len(want[4].Values) != 20 {
		t.Errorf("rows 3 and 4: %+v", want[3:5])
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := openRows(path, someParameters, Refuse); !errors.Is(err, ErrUnfinished) {
		t.Errorf("a file that is there: %v", err)
	}
	r, err = openRows(path, someParameters, Resume)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, rows(t, r), sameRow); diff != "" {
		t.Fatal(diff)
	}
	if r.Rows() != 50 || r.Errors() != 7 { // 3, 10, 17, 24, 31, 38, 45
		t.Errorf("%d rows, %d errors", r.Rows(), r.Errors())
	}
	if _, err := openRows(path, someParameters, Resume); !errors.Is(err, ErrBusy) {
		t.Errorf("open twice: %v", err)
	}
	if err := r.Remove(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("is still there")
	}
}

// A file that ends anywhere is resumed with the rows of its whole frames, and
// then becomes the file that it would have been.
func TestRecordsTruncated(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out.csv.partial")
	chunks := someChunks(20, 20, 10)
	whole, ends := written(t, path, chunks)
	for n := range whole {
		if n > 2000 && n%37 != 0 {
			continue
		}
		if err := os.WriteFile(path, whole[:n], 0o666); err != nil {
			t.Fatal(err)
		}
		r, err := openRows(path, someParameters, Resume)
		if err != nil {
			t.Fatalf("%d bytes: %v", n, err)
		}
		complete, rowsThen := 0, 0
		for i, end := range ends {
			if n >= end {
				complete, rowsThen = i+1, chunks[i].first+len(chunks[i].rows)
			}
		}
		if r.Rows() != rowsThen {
			t.Fatalf("%d bytes: %d rows, want %d", n, r.Rows(), rowsThen)
		}
		for _, c := range chunks[complete:] {
			if err := r.Append(c.first, c.each); err != nil {
				t.Fatal(err)
			}
		}
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, whole) {
			t.Fatalf("%d bytes: another file after it was resumed, %v", n, err)
		}
	}
}

// written writes chunks to a new file and returns its bytes, and where each
// frame ends.
func written(t *testing.T, path string, chunks []chunk) (whole []byte, ends []int) {
	t.Helper()
	r, err := openRows(path, someParameters, Refuse)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range chunks {
		if err := r.Append(c.first, c.each); err != nil {
			t.Fatal(err)
		}
		ends = append(ends, int(r.end))
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if whole, err = os.ReadFile(path); err != nil {
		t.Fatal(err)
	}
	return whole, ends
}

// No flipped bit gives another row: rows before it stay, or the file is refused.
func TestRecordsDamaged(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out.csv.partial")
	whole, ends := written(t, path, someChunks(20, 20, 10))
	r, err := openRows(path, someParameters, Resume)
	if err != nil {
		t.Fatal(err)
	}
	want := rows(t, r)
	r.Close()
	for i := range 200 {
		at := i * len(whole) / 200
		b := bytes.Clone(whole)
		b[at] ^= 1 << (i % 8)
		if err := os.WriteFile(path, b, 0o666); err != nil {
			t.Fatal(err)
		}
		r, err := openRows(path, someParameters, Resume)
		if err != nil {
			if !strings.HasPrefix(err.Error(), path+": ") {
				t.Errorf("byte %d: %v", at, err)
			}
			continue
		}
		got := rows(t, r)
		if diff := cmp.Diff(want[:len(got)], got, sameRow); diff != "" {
			t.Fatalf("byte %d: %s", at, diff)
		}
		if at >= ends[0] && len(got) < 20 || at < ends[0] && len(got) > 0 {
			t.Errorf("byte %d: %d rows", at, len(got))
		}
		r.Close()
	}
	// While it is open, too.
	if err := os.WriteFile(path, whole, 0o666); err != nil {
		t.Fatal(err)
	}
	if r, err = openRows(path, someParameters, Resume); err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := r.file.WriteAt([]byte{whole[ends[1]-5] ^ 1}, int64(ends[1]-5)); err != nil {
		t.Fatal(err)
	}
	err = r.Each(func(*Row) error { return nil })
	wantError(t, err, path+": rows from 20 on are damaged")
}

func TestRecordsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out.csv.partial")
	whole, _ := written(t, path, someChunks(20))
	other := parameters("f", 51)
	_, err := openRows(path, other, Resume)
	wantError(t, err, path+`: was begun with other parameters: ensemble was "e" and is "f"; examples was 50 and is 51`)
	if changed := new(ChangedError); !errors.As(err, &changed) || len(changed.Differences) != 2 {
		t.Errorf("error %#v", err)
	}
	if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, whole) {
		t.Error("the file was changed")
	}

	if err := os.WriteFile(path, []byte("path,label\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	_, err = openRows(path, someParameters, Resume)
	wantError(t, err, path+": not a work file of this program")
	r, err := openRows(path, someParameters, Discard)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range someChunks(20) {
		if err := r.Append(c.first, c.each); err != nil {
			t.Fatal(err)
		}
	}
	r.Close()
	if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, whole) {
		t.Error("begun anew it is another file")
	}
	_, err = openRows(filepath.Join(path, "below"), someParameters, Refuse)
	wantError(t, err, "below: not a directory")
}

// full is a disk with so much room.
type full struct {
	w    io.Writer
	room int
}

var errFull = errors.New("no space left on device")

func (f *full) Write(p []byte) (int, error) {
	n, err := f.w.Write(p[:min(len(p), f.room)])
	if f.room -= n; err == nil && n < len(p) {
		err = errFull
	}
	return n, err
}

// When the disk is full, rows before stay, and the run is resumed when there is
// room again.
func TestRecordsDiskFull(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out.csv.partial")
	chunks := someChunks(20, 20, 10)
	whole, ends := written(t, path, chunks)
	for _, room := range []int{0, 1, 100, ends[1] - ends[0] - 1} {
		os.Remove(path)
		r, err := openRows(path, someParameters, Refuse)
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Append(chunks[0].first, chunks[0].each); err != nil {
			t.Fatal(err)
		}
		r.out = &full{r.file, room}
		if err := r.Append(chunks[1].first, chunks[1].each); !errors.Is(err, errFull) || !strings.HasPrefix(err.Error(), path) {
			t.Fatalf("error %v", err)
		}
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
		if r, err = openRows(path, someParameters, Resume); err != nil {
			t.Fatal(err)
		}
		if r.Rows() != 20 {
			t.Errorf("room for %d bytes: %d rows, want 20", room, r.Rows())
		}
		for _, c := range chunks[1:] {
			if err := r.Append(c.first, c.each); err != nil {
				t.Fatal(err)
			}
		}
		r.Close()
		if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, whole) {
			t.Errorf("room for %d bytes: another file after it was resumed, %v", room, err)
		}
	}
}

// FuzzFrames: whatever the bytes behind the head, no panic, and the rows that are found are read again.
func FuzzFrames(f *testing.F) {
	path := filepath.Join(f.TempDir(), "seed")
	r, err := openRows(path, someParameters, Refuse)
	if err != nil {
		f.Fatal(err)
	}
	head := r.end
	r.Append(0, someChunks(5)[0].each)
	r.Close()
	whole, err := os.ReadFile(path)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole[head:])
	f.Add(whole[head : head+40])
	f.Fuzz(func(t *testing.T, frames []byte) {
		path := filepath.Join(t.TempDir(), "x")
		check(t, os.WriteFile(path, slices.Concat(whole[:head], frames), 0o666))
		var r *File
		var err error
		reliability.Heap(t, int(head)+len(frames), func() { r, err = openRows(path, someParameters, Resume) })
		if err != nil {
			return
		}
		defer r.file.Close() // without a wait for the disk
		n := 0
		if err := r.Each(func(*Row) error { n++; return nil }); err != nil || n != r.Rows() {
			t.Errorf("%d rows, want %d: %v", n, r.Rows(), err)
		}
	})
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantError(t *testing.T, err error, text string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), text) {
		t.Errorf("error %v, want one with %q", err, text)
	}
}
