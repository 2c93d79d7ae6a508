package predictions

import (
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
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/swagwrap/swagwrap/fixtures/reliability"
	"github.com/swagwrap/swagwrap/fixtures/reliability/forge"
	"github.com/swagwrap/swagwrap/internal/records"
	"github.com/swagwrap/swagwrap/internal/task"
)

// `aPart` is the head of a part of a task's rows, and chunks of its rows.
func aPart(t testing.TB, name string, width int, want task.RowOptions) (*records.Head, *Schema, [][]Row) {
	t.Helper()
	of, err := task.OfWidth(name, width, [3]int{})
	if err != nil {
		t.Fatal(err)
	}
	schema := &Schema{Columns: of.Columns(want), Want: want, Labels: true, Width: width}
	for i := range schema.Columns {
		c := &schema.Columns[i]
		c.Hidden = c.Name == "nll" || c.Name == "brier"
		if c.Kind == task.Ranked {
			c.Shown = want.Top
		}
	}
	for i := range of.About().Classes {
		schema.ClassNames = append(schema.ClassNames, fmt.Sprintf("class %d", i))
	}
	h, err := schema.Head(name, records.Part{Index: 1, Of: 3, First: 8, End: 21, All: 30}, someParameters)
	if err != nil {
		t.Fatal(err)
	}
	h.Processor, h.About = "p", json.RawMessage(`{"program":"x"}`)
	rng := rand.New(rand.NewPCG(1, 2))
	var chunks [][]Row
	for first, n := range map[int]int{0: 8, 8: 5} {
		var rows []Row
		for i := range n {
			r := Row{Index: first + i, Path: fmt.Sprintf("images/%d.png", first+i), Label: min((first+i)%4, of.About().Classes) - 1}
			if r.Index%7 == 3 {
				r.Error = fmt.Sprintf("image %d: is broken", r.Index)
			} else {
				for _, c := range schema.Columns {
					for k := range c.Len() {
						v := float64(rng.IntN(3))
						if c.Kind == task.Class || c.Kind == task.Ranked {
							v = float64(k % 2)
						}
						r.Values = append(r.Values, v)
					}
				}
			}
			rows = append(rows, r)
		}
		chunks = append(chunks, rows)
	}
	if len(chunks[0]) < len(chunks[1]) {
		chunks[0], chunks[1] = chunks[1], chunks[0]
	}
	return h, schema, chunks
}

var someParameters = records.Parameters{"ensemble": json.RawMessage(`"e"`), "examples": json.RawMessage("50")}

// someParts are the files of parts of all tasks.
func someParts(t testing.TB) map[string]*forge.Rows {
	parts := map[string]*forge.Rows{}
	for _, tc := range []struct {
		task  string
		width int
		want  task.RowOptions
	}{
		{"classes", 3, task.RowOptions{Top: 2, Outcomes: true, Members: 2}},
		{"binary", 2, task.RowOptions{Top: 1}},
		{"labels", 6, task.RowOptions{Top: 1, Target: true}},
		{"regression", 6, task.RowOptions{Top: 1, Members: 2, Target: true}},
	} {
		h, _, chunks := aPart(t, tc.task, tc.width, tc.want)
		path := filepath.Join(t.TempDir(), "p")
		f, err := records.Open(path, records.ScorePart, h, records.Discard)
		if err != nil {
			t.Fatal(err)
		}
		for _, rows := range chunks {
			each := func(yield func(*Row) bool) {
				for i := range rows {
					if !yield(&rows[i]) {
						return
					}
				}
			}
			if err := f.Append(f.Rows(), each); err != nil {
				t.Fatal(err)
			}
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(path)
		if err == nil {
			parts[tc.task], err = forge.OpenRows(b)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return parts
}

// readForged reads a part as merge does, and writes its rows in one of the formats. It fails the test if that takes too much memory. It
// reports whether the part was accepted.
func readForged(t testing.TB, path string, b []byte) bool {
	t.Helper()
	check(t, os.WriteFile(path, b, 0o666))
	var p *records.Saved
	var err error
	reliability.Heap(t, len(b), func() { p, err = ReadPart(path) })
	if err != nil {
		if !errors.Is(err, records.ErrDamaged) {
			t.Errorf("%v", err)
		}
		return false
	}
	of, schema, err := PartSchema(&p.Head)
	if err != nil {
		t.Fatal(err)
	}
	if p.Part.Rows() == 0 {
		return true // merge refuses parts that are all empty
	}
	sum, judged, rows, format := task.NewEvaluator(of, task.EvaluateOptions{MainOnly: true, NoLosses: true}), false, 0, formats[len(b)%len(formats)]
	if format != ".npz" || len(b) < 1<<16 { // which takes as much room on disk
		err = Write(io.Discard, format, schema, filepath.Dir(path), func(write func(*Row) error) error {
			return p.Each(func(r *Row) error {
				if rows++; r.Error == "" {
					judged = sum.AddRow(r.Values, r.Label, r.Sums) || judged
				}
				return write(r)
			})
		})
		if err == nil && rows != p.Part.Rows() {
			t.Errorf("%s: %d rows, want %d", format, rows, p.Part.Rows())
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
		if !readForged(t, path, whole.Bytes()) {
			t.Fatalf("%s: refused unchanged", name)
		}
		accepted := 0
		for range reliability.Figure(200, 40_000) {
			m := whole.Mutated(r)
			if readForged(t, path, m.Bytes()) {
				accepted++
			}
			if t.Failed() {
				t.Fatalf("%s: %s, %x", name, m.Head, m.Frames)
			}
		}
		if accepted == 0 {
			t.Errorf("%s: none was accepted: the test does not reach the rows", name)
		}
	}
}

func FuzzPart(f *testing.F) {
	for _, p := range someParts(f) {
		f.Add(p.Head, slices.Concat(p.Frames...))
	}
	magic := someParts(f)["classes"].Magic
	f.Fuzz(func(t *testing.T, head, frame []byte) {
		readForged(t, filepath.Join(t.TempDir(), "p"), (&forge.Rows{Magic: magic, Head: head, Frames: [][]byte{frame}}).Bytes())
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
		"range":        {func(p, _ map[string]any) { p["First"] = 22 }, "rows 22 to 21 of 30"},
		"too far":      {func(p, _ map[string]any) { p["End"] = 31 }, "rows 8 to 31 of 30"},
		"more rows":    {func(p, _ map[string]any) { p["End"] = 22 }, ""},
		"many rows":    {func(p, _ map[string]any) { p["End"], p["All"] = 1<<40, 1<<40 }, ""},
		"no rows":      {func(p, _ map[string]any) { p["End"] = 8 }, "has rows after its 0"},
		"task":         {func(_, r map[string]any) { r["Task"] = "x" }, `task "x" has no outcomes of 3 numbers`},
		"classes":      {func(_, r map[string]any) { r["Width"], r["ClassNames"] = 1<<62, nil }, "shape"},
		"no classes":   {func(_, r map[string]any) { r["Width"] = -1 }, "nothing says what its rows hold"},
		"members":      {func(_, r map[string]any) { r["Want"].(map[string]any)["members"] = 1 << 62 }, "shape"},
		"fewer":        {func(_, r map[string]any) { r["Want"].(map[string]any)["members"] = -1 }, "nothing says what its rows hold"},
		"class names":  {func(_, r map[string]any) { r["ClassNames"] = []string{"a"} }, "1 names for 3 classes"},
		"many columns": {func(_, r map[string]any) { r["Hidden"] = make([]string, 300_000) }, "values among its parameters, want at most 262144"},
	} {
		whole := someParts(t)["classes"]
		var head map[string]any
		check(t, json.Unmarshal(whole.Head, &head))
		tc.forge(head["Part"].(map[string]any), head["Schema"].(map[string]any))
		var err error
		whole.Head, err = json.Marshal(head)
		check(t, err)
		b := whole.Bytes()
		check(t, os.WriteFile(path, b, 0o666))
		reliability.Heap(t, len(b), func() { _, err = ReadPart(path) })
		if !errors.Is(err, records.ErrDamaged) || !strings.Contains(err.Error(), tc.want) {
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
		check(t, os.WriteFile(path, whole.Bytes(), 0o666))
		got, err := ReadPart(path)
		check(t, err)
		_, schema, err := PartSchema(&got.Head)
		check(t, err)
		_, want, _ := aPart(t, name, schema.Width, schema.Want)
		if diff := cmp.Diff(want, schema); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		if strings.Contains(string(whole.Head), "%d") {
			t.Errorf("%s: formats in the file: %s", name, whole.Head)
		}
	}
}

func TestFormat(t *testing.T) {
	for name, want := range map[string]string{"-": ".csv", "a.CSV": ".csv", "b/c.parquet": ".parquet"} {
		if got, err := Format(name); got != want || err != nil {
			t.Errorf("%s: %s, %v", name, got, err)
		}
	}
	_, err := Format("a.txt")
	wantError(t, err, `a.txt: format ".txt": want one of .csv, .jsonl, .parquet or .npz`)
}

// wantError checks that the error has a text.
func wantError(t *testing.T, err error, text string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), text) {
		t.Errorf("error %v, want one with %q", err, text)
	}
}

var sameRow = cmp.Options{cmpopts.EquateNaNs(), cmpopts.EquateEmpty()}

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
