package ensemble

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// invented is a Scorer of made-up rows: 50 examples, 3 classes, 2 members.
func invented() *Scorer {
	return &Scorer{count: 2, classes: 3, columns: Columns{Top: 2, Probabilities: true, Members: true}}
}

// chunks makes up chunks of the given numbers of examples. Every seventh
// example has an error.
func (s *Scorer) chunks(lengths ...int) []*Chunk {
	r := rand.New(rand.NewPCG(1, 2))
	first := 0
	var out []*Chunk
	for _, n := range lengths {
		c := s.newChunk(nil, &examples{first: first, n: n, errs: make([]error, n)})
		for i := range n {
			if (first+i)%7 == 3 {
				c.errs[i] = fmt.Errorf("image %d:\nis broken", first+i)
			}
		}
		for m := range s.count {
			o := &outcome{probabilities: make([]float64, n*s.classes), entropies: make([]float64, n)}
			for i := range n {
				o.entropies[i] = r.Float64()
				left := 1.0
				for k := range s.classes {
					p := left
					if k < s.classes-1 {
						p *= r.Float64()
					}
					o.probabilities[i*s.classes+k] = p
					left -= p
				}
			}
			c.add(0, m, &loaded{weight: 1}, o)
			c.sums.Weight++
		}
		out = append(out, c)
		first += n
	}
	return out
}

func parameters(values map[string]string) Parameters {
	p := Parameters{}
	for k, v := range values {
		p[k] = json.RawMessage(v)
	}
	return p
}

var someParameters = parameters(map[string]string{"ensemble": `"e"`, "examples": "50"})

// rows copies all rows.
func rows(t *testing.T, r *Records) []Row {
	t.Helper()
	var out []Row
	err := r.Each(func(row *Row) error {
		c := *row
		c.Top, c.probabilities = append([]Ranked(nil), row.Top...), nil
		c.Probabilities = append([]float64(nil), row.Probabilities...)
		c.Members = append([]float32(nil), row.Members...)
		out = append(out, c)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

var sameRow = cmp.Options{cmpopts.IgnoreUnexported(Row{}), cmpopts.EquateNaNs(), cmpopts.EquateEmpty()}

// What is appended comes back, bit for bit, also after the file was closed.
func TestRecords(t *testing.T) {
	s := invented()
	path := filepath.Join(t.TempDir(), "out.csv.partial")
	r, err := s.Records(path, someParameters, Refuse)
	if err != nil {
		t.Fatal(err)
	}
	var want []Row
	for _, c := range s.chunks(20, 20, 10) {
		if err := r.Append(c); err != nil {
			t.Fatal(err)
		}
		for i := range c.Len {
			var row Row
			c.Row(i, &row)
			want = append(want, row)
		}
	}
	if diff := cmp.Diff(want, rows(t, r), sameRow); diff != "" {
		t.Fatal(diff)
	}
	if want[3].Error != "image 3: is broken" || want[4].Error != "" || len(want[4].Probabilities) != 3 || len(want[4].Members) != 6 {
		t.Errorf("rows 3 and 4: %+v", want[3:5])
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Records(path, someParameters, Refuse); !errors.Is(err, ErrUnfinished) {
		t.Errorf("a file that is there: %v", err)
	}
	r, err = s.Records(path, someParameters, Resume)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, rows(t, r), sameRow); diff != "" {
		t.Fatal(diff)
	}
	if r.Rows() != 50 || r.Errors() != 7 { // 3, 10, 17, 24, 31, 38, 45
		t.Errorf("%d rows, %d errors", r.Rows(), r.Errors())
	}
	if _, err := s.Records(path, someParameters, Resume); !errors.Is(err, ErrBusy) {
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
	s := invented()
	path := filepath.Join(t.TempDir(), "out.csv.partial")
	chunks := s.chunks(20, 20, 10)
	whole, ends := written(t, s, path, chunks)
	for n := range whole {
		if n > 2000 && n%37 != 0 {
			continue
		}
		if err := os.WriteFile(path, whole[:n], 0o666); err != nil {
			t.Fatal(err)
		}
		r, err := s.Records(path, someParameters, Resume)
		if err != nil {
			t.Fatalf("%d bytes: %v", n, err)
		}
		complete, rowsThen := 0, 0
		for i, end := range ends {
			if n >= end {
				complete, rowsThen = i+1, chunks[i].First+chunks[i].Len
			}
		}
		if r.Rows() != rowsThen {
			t.Fatalf("%d bytes: %d rows, want %d", n, r.Rows(), rowsThen)
		}
		for _, c := range chunks[complete:] {
			if err := r.Append(c); err != nil {
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
func written(t *testing.T, s *Scorer, path string, chunks []*Chunk) (whole []byte, ends []int) {
	t.Helper()
	r, err := s.Records(path, someParameters, Refuse)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range chunks {
		if err := r.Append(c); err != nil {
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
	s := invented()
	path := filepath.Join(t.TempDir(), "out.csv.partial")
	whole, ends := written(t, s, path, s.chunks(20, 20, 10))
	r, err := s.Records(path, someParameters, Resume)
	if err != nil {
		t.Fatal(err)
	}
	want := rows(t, r)
	r.Close()
	for i := range 400 {
		at := i * len(whole) / 400
		b := bytes.Clone(whole)
		b[at] ^= 1 << (i % 8)
		if err := os.WriteFile(path, b, 0o666); err != nil {
			t.Fatal(err)
		}
		r, err := s.Records(path, someParameters, Resume)
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
	if r, err = s.Records(path, someParameters, Resume); err != nil {
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
	s := invented()
	path := filepath.Join(t.TempDir(), "out.csv.partial")
	whole, _ := written(t, s, path, s.chunks(20))
	other := parameters(map[string]string{"ensemble": `"f"`, "examples": "51"})
	_, err := s.Records(path, other, Resume)
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
	_, err = s.Records(path, someParameters, Resume)
	wantError(t, err, path+": not a work file of this program")
	r, err := s.Records(path, someParameters, Discard)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range s.chunks(20) {
		if err := r.Append(c); err != nil {
			t.Fatal(err)
		}
	}
	r.Close()
	if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, whole) {
		t.Error("begun anew it is another file")
	}
	_, err = s.Records(filepath.Join(path, "below"), someParameters, Refuse)
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
	s := invented()
	path := filepath.Join(t.TempDir(), "out.csv.partial")
	chunks := s.chunks(20, 20, 10)
	whole, ends := written(t, s, path, chunks)
	for _, room := range []int{0, 1, 100, ends[1] - ends[0] - 1} {
		os.Remove(path)
		r, err := s.Records(path, someParameters, Refuse)
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Append(chunks[0]); err != nil {
			t.Fatal(err)
		}
		r.out = &full{r.file, room}
		if err := r.Append(chunks[1]); !errors.Is(err, errFull) || !strings.HasPrefix(err.Error(), path) {
			t.Fatalf("error %v", err)
		}
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
		if r, err = s.Records(path, someParameters, Resume); err != nil {
			t.Fatal(err)
		}
		if r.Rows() != 20 {
			t.Errorf("room for %d bytes: %d rows, want 20", room, r.Rows())
		}
		for _, c := range chunks[1:] {
			if err := r.Append(c); err != nil {
				t.Fatal(err)
			}
		}
		r.Close()
		if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, whole) {
			t.Errorf("room for %d bytes: another file after it was resumed, %v", room, err)
		}
	}
}

func TestRank(t *testing.T) {
	r := Row{probabilities: []float64{0.1, 0.3, 0.1, 0.3, 0.2, math.SmallestNonzeroFloat64}}
	r.rank(4)
	if diff := cmp.Diff([]Ranked{{1, 0.3}, {3, 0.3}, {4, 0.2}, {0, 0.1}}, r.Top); diff != "" {
		t.Error(diff)
	}
}
