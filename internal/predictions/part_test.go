package predictions

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/swagwrap/swagwrap/internal/promise"
	"github.com/swagwrap/swagwrap/internal/task"
	"github.com/swagwrap/swagwrap/weights"
)

// Parts tile the examples, in whole batches, as evenly as batches allow.
func TestPartRange(t *testing.T) {
	for _, examples := range []int{1, 2, 9, 10, 64, 65, 1000} {
		for _, unit := range []int{1, 2, 16, 64} {
			batches := (examples + unit - 1) / unit
			for of := 1; of <= 70; of++ {
				at, least, most := 0, batches, 0
				for i := range of {
					first, end := (&Part{Index: i, Of: of}).Range(examples, unit)
					if first != at || end < first || first%unit != 0 && first != examples || end%unit != 0 && end != examples {
						t.Fatalf("part %d of %d: %d to %d of %d in batches of %d, want from %d", i, of, first, end, examples, unit, at)
					}
					at = end
					n := (end - first + unit - 1) / unit
					least, most = min(least, n), max(most, n)
				}
				if at != examples || most-least > 1 {
					t.Fatalf("%d parts of %d in batches of %d end at %d, with %d to %d batches", of, examples, unit, at, least, most)
				}
			}
		}
	}
}

func TestPartNames(t *testing.T) {
	dir := t.TempDir()
	base := filepath.Join(dir, "a.csv")
	for _, name := range []string{"a.csv.part-0001-of-0003", "a.csv.part-0000-of-0003", "a.csv.part-12345-of-20000", "a.csv.part-0002-of-0003.partial", "a.csv.part-1-of-3", "b.csv.part-0000-of-0003", "a.csv"} {
		check(t, os.WriteFile(filepath.Join(dir, name), nil, 0o666))
	}
	got, err := PartNames(base)
	want := []string{PartName(base, 0, 3), PartName(base, 1, 3), PartName(base, 12345, 20000)}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%q, %v, want %q", got, err, want)
	}
	t.Chdir(dir)
	if got, err := PartNames("a.csv"); err != nil || len(got) != 3 || got[0] != "a.csv.part-0000-of-0003" {
		t.Errorf("here: %q, %v", got, err)
	}
}

// aPart is a part of a task's rows, and rows of it.
func aPart(t testing.TB, name string, width int, want task.Want) (*Part, []chunk) {
	t.Helper()
	o := outline{Width: width, Want: want, Hidden: []string{"nll", "brier"}, Top: want.Top, Labels: true}
	of, schema, err := o.schema(name)
	if err != nil {
		t.Fatal(err)
	}
	for i := range of.ClassNames() {
		schema.ClassNames = append(schema.ClassNames, fmt.Sprintf("class %d", i))
	}
	rows := schema.chunks(8, 5)
	for _, c := range rows {
		for i := range c.rows {
			c.rows[i].Label = min(c.rows[i].Label, of.ClassNames()-1)
			if c.rows[i].Error != "" {
				continue
			}
			for column, values := range schema.All(&c.rows[i]) {
				if column.Kind == task.Class || column.Kind == task.Ranked {
					for k := range values {
						values[k] = float64(k % 2)
					}
				}
			}
		}
	}
	return &Part{Index: 1, Of: 3, First: 8, End: 21, Examples: 30, Schema: schema, Task: name, Processor: "p", About: json.RawMessage(`{"program":"x"}`)}, rows
}

// someParts are parts of all tasks.
func someParts(t testing.TB) map[string]*forged {
	parts := map[string]*forged{}
	for _, tc := range []struct {
		task  string
		width int
		want  task.Want
	}{
		{"classes", 3, task.Want{Top: 2, Outcomes: true, Members: 2}},
		{"binary", 2, task.Want{Top: 1}},
		{"labels", 6, task.Want{Top: 1, Truth: true}},
		{"regression", 6, task.Want{Top: 1, Members: 2, Truth: true}},
	} {
		p, rows := aPart(t, tc.task, tc.width, tc.want)
		parts[tc.task] = forge(t, p, rows)
	}
	return parts
}

// forged is the file of a part, in pieces that can be changed and put together again with their checksums.
type forged struct {
	head   []byte
	frames [][]byte
}

// forge writes a part and takes its file apart.
func forge(t testing.TB, p *Part, rows []chunk) *forged {
	t.Helper()
	path := filepath.Join(t.TempDir(), "p")
	work, err := OpenPart(path, p, someParameters, Discard)
	if err != nil {
		t.Fatal(err)
	}
	f := &forged{}
	at := work.end
	for _, c := range rows {
		if err := work.Append(c.first, c.each); err != nil {
			t.Fatal(err)
		}
	}
	if err := work.Close(); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	f.head = b[len(partMagic)+8 : at]
	for rest := b[at:]; len(rest) > 0; {
		n := frameHead + int(binary.LittleEndian.Uint64(rest))
		f.frames = append(f.frames, rest[:n:n])
		rest = rest[n:]
	}
	return f
}

// bytes puts the file together. Checksums are right; lengths are what the frames say.
func (f *forged) bytes() []byte {
	b := binary.LittleEndian.AppendUint32([]byte(partMagic), uint32(len(f.head)))
	b = append(binary.LittleEndian.AppendUint32(b, weights.CRC32C(0, f.head)), f.head...)
	for _, frame := range f.frames {
		if len(frame) >= frameHead {
			frame = slices.Clone(frame)
			binary.LittleEndian.PutUint32(frame[frameHead-4:], checksum(frame))
		}
		b = append(b, frame...)
	}
	return b
}

// mutated is one with something changed, in its head or its frames.
func (f *forged) mutated(r *rand.Rand) *forged {
	m := &forged{f.head, slices.Clone(f.frames)}
	if r.IntN(3) > 0 {
		m.head = promise.Mutate(r, m.head)
		return m
	}
	k := r.IntN(len(m.frames))
	frame := slices.Clone(m.frames[k])
	for range 1 + r.IntN(3) {
		switch at := r.IntN(len(frame)); r.IntN(6) {
		case 0: // the length, the first row, the number of rows
			field := r.IntN(3)
			v := []uint64{0, 1, 13, 1 << 20, 1 << 31, 1<<32 - 1, 1 << 62, 1<<64 - 1}[r.IntN(8)]
			if field < 2 {
				binary.LittleEndian.PutUint64(frame[8*field:], v)
			} else {
				binary.LittleEndian.PutUint32(frame[16:], uint32(v))
			}
		case 1: // longer or shorter, and it says so
			frame = append(frame[:at:at], frame[min(len(frame), at+r.IntN(40)):]...)
			if len(frame) < frameHead {
				frame = slices.Clone(m.frames[k])
			}
			binary.LittleEndian.PutUint64(frame, uint64(len(frame)-frameHead))
		case 2:
			frame = append(frame, make([]byte, r.IntN(100))...)
			binary.LittleEndian.PutUint64(frame, uint64(len(frame)-frameHead))
		case 3:
			for i := range frame[at:min(len(frame), at+8)] {
				frame[at+i] = []byte{0, 0xff, 0x7f, 0x80}[r.IntN(4)]
			}
		default:
			frame[at] ^= 1 << r.IntN(8)
		}
	}
	m.frames[k] = frame
	return m
}

// readForged reads a part as merge does, and writes its rows in one of the formats. It fails the test if that takes too much memory. It
// reports whether the part was accepted.
func readForged(t testing.TB, path string, b []byte) bool {
	t.Helper()
	check(t, os.WriteFile(path, b, 0o666))
	var p *PartFile
	var err error
	promise.Heap(t, len(b), func() { p, err = ReadPart(path) })
	if err != nil {
		if !errors.Is(err, ErrDamaged) {
			t.Errorf("%v", err)
		}
		return false
	}
	of, err := task.OfWidth(p.Task, p.Schema.Width)
	if err != nil {
		t.Fatal(err)
	}
	if p.First == p.End {
		return true // merge refuses parts that are all empty
	}
	sum, judged, rows, format := of.NewEvaluator(task.EvaluateOptions{MainOnly: true, NoLosses: true}), false, 0, formats[len(b)%len(formats)]
	if format != ".npz" || len(b) < 1<<16 { // which takes as much room on disk
		err = Write(io.Discard, format, p.Schema, filepath.Dir(path), func(write func(*Row) error) error {
			return p.Each(func(r *Row) error {
				if rows++; r.Error == "" {
					judged = sum.AddRow(r.Values, r.Label) || judged
				}
				return write(r)
			})
		})
		if err == nil && rows != p.End-p.First {
			t.Errorf("%s: %d rows, want %d", format, rows, p.End-p.First)
		}
	}
	if judged {
		sum.Evaluation()
	}
	return true
}

// Whatever stands in a part whose checksums are right, it is refused or read: no panic, no wait, no memory without bound.
func TestMutatedParts(t *testing.T) {
	r := rand.New(rand.NewPCG(28, 2))
	path := filepath.Join(t.TempDir(), "p")
	for name, whole := range someParts(t) {
		if !readForged(t, path, whole.bytes()) {
			t.Fatalf("%s: refused unchanged", name)
		}
		accepted := 0
		for range promise.Figure(500, 40_000) {
			m := whole.mutated(r)
			if readForged(t, path, m.bytes()) {
				accepted++
			}
			if t.Failed() {
				t.Fatalf("%s: %s, %x", name, m.head, m.frames)
			}
		}
		if accepted == 0 {
			t.Errorf("%s: none was accepted: the test does not reach the rows", name)
		}
	}
}

func FuzzPart(f *testing.F) {
	for _, p := range someParts(f) {
		f.Add(p.head, slices.Concat(p.frames...))
	}
	f.Fuzz(func(t *testing.T, head, frame []byte) {
		readForged(t, filepath.Join(t.TempDir(), "p"), (&forged{head, [][]byte{frame}}).bytes())
	})
}

// Attacks on merge: the checksum is right, and the head is nonsense.
func TestForgedPart(t *testing.T) {
	path := filepath.Join(t.TempDir(), "p")
	for what, tc := range map[string]struct {
		forge func(part, rows map[string]any)
		want  string
	}{
		"parts":        {func(p, _ map[string]any) { p["Of"] = 1_000_000_000_000 }, "part 1 of 1000000000000, want one of 1 to 1000000 parts"},
		"index":        {func(p, _ map[string]any) { p["Index"] = 3 }, "part 3 of 3"},
		"range":        {func(p, _ map[string]any) { p["First"] = 22 }, "examples 22 to 21 of 30"},
		"too far":      {func(p, _ map[string]any) { p["End"] = 31 }, "examples 8 to 31 of 30"},
		"more rows":    {func(p, _ map[string]any) { p["End"] = 22 }, ""},
		"many rows":    {func(p, _ map[string]any) { p["End"], p["Examples"] = 1<<40, 1<<40 }, "1099511627768 rows need more than its"},
		"no rows":      {func(p, _ map[string]any) { p["End"] = 8 }, "has rows, and none belongs to it"},
		"task":         {func(p, _ map[string]any) { p["Task"] = "x" }, `task "x" has no outcomes of 3 numbers`},
		"classes":      {func(_, r map[string]any) { r["Width"], r["ClassNames"] = 1<<62, nil }, "rows need more than its"},
		"no classes":   {func(_, r map[string]any) { r["Width"] = -1 }, "nothing says what its rows hold"},
		"members":      {func(_, r map[string]any) { r["Want"].(map[string]any)["members"] = 1 << 62 }, "rows need more than its"},
		"fewer":        {func(_, r map[string]any) { r["Want"].(map[string]any)["members"] = -1 }, "nothing says what its rows hold"},
		"class names":  {func(_, r map[string]any) { r["ClassNames"] = []string{"a"} }, "1 names for 3 classes"},
		"many columns": {func(_, r map[string]any) { r["Hidden"] = make([]string, 300_000) }, "values among its parameters, want at most 262144"},
	} {
		whole := someParts(t)["classes"]
		var head map[string]any
		check(t, json.Unmarshal(whole.head, &head))
		tc.forge(head["Part"].(map[string]any), head["Rows"].(map[string]any))
		var err error
		whole.head, err = json.Marshal(head)
		check(t, err)
		b := whole.bytes()
		check(t, os.WriteFile(path, b, 0o666))
		promise.Heap(t, len(b), func() { _, err = ReadPart(path) })
		if !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %s", what, err, tc.want)
		}
	}
	check(t, os.Remove(path))
	check(t, syscall.Mkfifo(path, 0o666))
	_, err := ReadPart(path)
	wantError(t, err, "not a regular file")
}

// Columns come from the task: what a file says of them is not looked at.
func TestOutline(t *testing.T) {
	for name, whole := range someParts(t) {
		path := filepath.Join(t.TempDir(), "p")
		check(t, os.WriteFile(path, whole.bytes(), 0o666))
		got, err := ReadPart(path)
		check(t, err)
		want, _ := aPart(t, name, got.Schema.Width, got.Schema.Want)
		if diff := cmp.Diff(want.Schema, got.Schema); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		if strings.Contains(string(whole.head), "%d") {
			t.Errorf("%s: formats in the file: %s", name, whole.head)
		}
	}
}
