package filelist

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/swagwrap/swagwrap/internal/dataset/table"
)

// sample are rows with what makes trouble in texts.
func sample(n int) (h Head, rows []Row) {
	names := []string{"a.jpg", `"`, "a, b.png", "=1+1", "'=x", " c ", "new\nline", "ümlaut/\xff.png", "#x", "+"}
	for i := range n {
		r := Row{Path: names[i%len(names)], Name: fmt.Sprint(i, names[i*7%len(names)]), Size: int64(i), Label: []string{"cat", "-1", ""}[i%3]}
		switch i % 4 {
		case 1:
			r.Path, r.Offset, r.FileSize = "x.tar", 512, int64(i)+1024
		case 2:
			r.Size, r.Error = -1, "no such file"
		}
		rows = append(rows, r)
	}
	return Head{Producer: "test", Rows: n, SHA256: "00", Labels: []Label{{"cat", true}, {"-1", false}}, Bare: 3}, rows
}

// write writes a listing, and returns its path.
func write(t testing.TB, h Head, rows []Row) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "files"+Extension)
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	err = Write(f, h, func(yield func(*Row) bool) {
		for _, r := range rows {
			if !yield(&r) {
				return
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// What was written is read again, also any range of it.
func TestRoundTrip(t *testing.T) {
	const n = 2*groupRows + 77
	h, rows := sample(n)
	path := write(t, h, rows)
	l, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if l.Rows != n || l.SHA256 != h.SHA256 || !slices.Equal(l.Labels, h.Labels) || l.Bare != 3 {
		t.Errorf("%+v", l.Head)
	}
	for _, of := range [][2]int{{0, n}, {0, 1}, {n - 1, n}, {groupRows - 3, groupRows + 3}, {groupRows, 2 * groupRows}, {5, 5}, {300, 900}} {
		var got []Row
		if err := l.Each(of[0], of[1], func(r *Row) error { got = append(got, *r); return nil }); err != nil {
			t.Fatalf("%d: %v", of, err)
		}
		if want := rows[of[0]:of[1]]; len(got) != len(want) || len(want) > 0 && !cmp.Equal(got, want) {
			t.Errorf("%d: %s", of, cmp.Diff(want, got)[:300])
		}
	}
}

// A row that lies outside of its file, and the like, is refused.
func TestCheck(t *testing.T) {
	for _, r := range []Row{
		{Name: "a", Size: 1},
		{Path: "a", Size: 1},
		{Path: "a", Name: "a", Size: -1},
		{Path: "a", Name: "a", Size: -2, Error: "x"},
		{Path: "a", Name: "a\x00", Size: 1},
		{Path: "a", Name: "a", Size: 10, Offset: 512, FileSize: 521},
		{Path: "a", Name: "a", Size: 1 << 62, Offset: 1 << 62, FileSize: 1 << 62},
		{Path: "a", Name: "a", Size: 10, Offset: 512},
		{Path: "a", Name: "a", Size: 10, Offset: -512, FileSize: 1000},
		{Path: "a", Name: "a", Size: 10, FileSize: 1000},
		{Path: "pipe:cat a", Name: "a", Size: 10},
	} {
		l, err := Open(write(t, Head{Rows: 1}, []Row{r}))
		if err == nil {
			err = l.Each(0, 1, func(*Row) error { return nil })
		}
		if err == nil || !strings.Contains(err.Error(), "row 0: ") {
			t.Errorf("%+v: %v", r, err)
		}
	}
}

// Damaged listings are errors, or say the same as before.
func TestDamaged(t *testing.T) {
	h, rows := sample(600)
	path := write(t, h, rows)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(1, 2))
	passed := 0
	for k := range 300 {
		b := bytes.Clone(whole)
		if k < 60 {
			b = b[:len(b)*k/60]
		} else {
			b[r.IntN(len(b))] ^= 1 << r.IntN(8)
		}
		if !tryListing(t, b, func(i int, r *Row) {
			if !cmp.Equal(*r, rows[i]) {
				t.Errorf("damage %d: row %d is %+v, was %+v", k, i, *r, rows[i])
			}
		}) {
			continue
		}
		passed++
	}
	if passed > 150 { // a flip in what nobody reads, such as statistics of a column
		t.Errorf("%d of 300 damaged listings are as good as new", passed)
	}
}

// tryListing reports whether all rows can be read from a file of that content. Of one
// that cannot it looks at none.
func tryListing(t testing.TB, content []byte, each func(i int, r *Row)) bool {
	path := filepath.Join(t.TempDir(), "listing")
	if err := os.WriteFile(path, content, 0o666); err != nil {
		t.Fatal(err)
	}
	l, err := Open(path)
	if err != nil {
		return false
	}
	var rows []Row
	if l.Rows > 1<<20 || l.Each(0, l.Rows, func(r *Row) error { rows = append(rows, *r); return nil }) != nil {
		return false
	}
	for i := range rows {
		each(i, &rows[i])
	}
	return true
}

func FuzzOpen(f *testing.F) {
	h, rows := sample(12)
	b, err := os.ReadFile(write(f, h, rows))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) {
		tryListing(t, b, func(i int, r *Row) {
			if err := r.check(); err != nil {
				t.Error(err)
			}
		})
	})
}

// A listing is no table of examples, although its file is one.
func TestNoTable(t *testing.T) {
	if h, rows := sample(1); table.Is(write(t, h, rows)) {
		t.Error("a listing is a table")
	}
}
