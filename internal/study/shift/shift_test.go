package shift

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/swagwrap/swagwrap/fixtures/reliability"
	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/dataset/text"
	"github.com/swagwrap/swagwrap/internal/target"
)

// opened opens a table of JSON lines.
func opened(t *testing.T, opts dataset.Options, lines ...string) dataset.Dataset {
	t.Helper()
	path := filepath.Join(t.TempDir(), "rows.jsonl")
	if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	d, err := dataset.Open([]string{path}, opts)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func opening(t *testing.T, text string, d dataset.Dataset) *Data {
	t.Helper()
	s, err := Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Open(d, d, false, 1); err != nil {
		t.Fatal(err)
	}
	return s
}

// texts is for a network with token ids, a mask and places.
func texts(pad map[string]float64, length int64) dataset.Options {
	shape, dims := []int64{length}, []string{"sequence"}
	return dataset.Options{Pad: pad, Fields: []dataset.Field{{Name: "ids", Shape: shape, Dims: dims, Type: "int64", Rows: 1000},
		{Name: "mask", Shape: shape, Dims: dims, Type: "int64"}, {Name: "place", Shape: shape, Dims: dims, Type: "int64", Rows: 50}}}
}

// line returns a row with tokens from first on, filled up on a side.
func line(first, n, before, after int) string {
	ids, mask, place := make([]int, before), make([]int, before), make([]int, before)
	for i := range n {
		ids, mask, place = append(ids, first+i), append(mask, 1), append(place, i)
	}
	fill := make([]int, after)
	list := func(v []int) string { return strings.ReplaceAll(fmt.Sprint(append(v, fill...)), " ", ",") }
	return fmt.Sprintf(`{"ids": %s, "mask": %s, "place": %s, "label": 0}`, list(ids), list(mask), list(place))
}

// Tokens are dropped from all lists alike. What becomes free is filled up on the side where the data are filled up.
func TestDroppedTokens(t *testing.T) {
	zero := map[string]float64{"ids": 0, "mask": 0, "place": 0}
	for name, d := range map[string]dataset.Dataset{
		"lists":            opened(t, texts(zero, 0), line(100, 20, 0, 0), line(200, 12, 0, 0), line(300, 3, 0, 0)),
		"filled up":        opened(t, texts(nil, 20), line(100, 20, 0, 0), line(200, 12, 0, 8), line(300, 3, 0, 17)),
		"filled up before": opened(t, texts(nil, 20), line(100, 20, 0, 0), line(200, 12, 8, 0), line(300, 3, 17, 0)),
	} {
		s := opening(t, "drop severities=5 examples=all", d)
		fields := dataset.Fields(d)
		size, err := dataset.SizeOf(d)
		if err != nil {
			t.Fatal(err)
		}
		lost := 0
		for j, row := range s.Rows {
			v := size.Make(1)
			if err := s.Sets[0].Read(v, j); err != nil {
				t.Fatal(err)
			}
			ids, mask, place := v.Field(fields, 0).Ints, v.Field(fields, 1).Ints, v.Field(fields, 2).Ints
			had := []int{20, 12, 3}[row]
			real := slices.DeleteFunc(slices.Clone(ids), func(v int64) bool { return v == 0 })
			n := len(real)
			lost += had - n
			if want := int64(100 * (row + 1)); real[0] != want || real[n-1] != want+int64(had)-1 || !slices.IsSorted(real) {
				t.Errorf("%s: tokens %d of row %d", name, real, row)
			}
			from := 0
			if name == "filled up before" {
				from = 20 - n
			}
			for i := range ids {
				inside := i >= from && i < from+n
				if (ids[i] != 0) != inside || (mask[i] == 1) != inside || inside && place[i] != int64(i-from) || !inside && place[i] != 0 {
					t.Errorf("%s: row %d: ids %d, mask %d, places %d", name, row, ids, mask, place)
					break
				}
			}
			if got := dataset.Length(s.Sets[0], 0, j); name == "lists" && got != n || name != "lists" && got != -1 {
				t.Errorf("%s: row %d: length %d, and %d tokens", name, row, got, n)
			}
		}
		if lost < 5 || lost > 22 { // 28 tokens lie between ends, and each is dropped with probability ½
			t.Errorf("%s: %d tokens are lost", name, lost)
		}
	}
	full := opened(t, texts(nil, 12), line(100, 12, 0, 0), line(200, 12, 0, 0))
	s, _ := Parse("drop severities=5 examples=all")
	if err := s.Open(full, full, false, 1); err == nil || !strings.Contains(err.Error(), "want replace or swap") {
		t.Errorf("nothing is filled up: %v", err)
	}
}

// A replacing token is one of the data that is not at an end.
func TestReplacedTokens(t *testing.T) {
	d := opened(t, texts(nil, 20), line(100, 20, 0, 0), line(200, 12, 0, 8))
	s := opening(t, "replace severities=5 examples=all", d)
	fields := dataset.Fields(d)
	size, _ := dataset.SizeOf(d)
	replaced := 0
	for j, row := range s.Rows {
		was, v := size.Make(1), size.Make(1)
		if err := d.Read(was, row); err != nil {
			t.Fatal(err)
		}
		if err := s.Sets[0].Read(v, j); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(was.Ints[20:], v.Ints[20:]) {
			t.Error("the mask or the places changed")
		}
		for i, id := range v.Field(fields, 0).Ints {
			if id == was.Ints[i] {
				continue
			}
			replaced++
			if !(id > 100 && id < 119 || id > 200 && id < 211) {
				t.Errorf("a token became %d", id)
			}
		}
	}
	if replaced < 7 || replaced > 22 {
		t.Errorf("%d tokens of 28 changed", replaced)
	}
}

// The columns of a table are those of the clean data.
func TestDamagedTable(t *testing.T) {
	opts := dataset.Options{Fields: []dataset.Field{{Name: "x", Shape: []int64{3}, Type: "float32"}}}
	clean := opened(t, opts, `{"x": [1, 0, 5], "label": 0}`, `{"x": [3, 1, 5], "label": 0}`)
	columns, err := describe(clean, dataset.Fields(clean))
	if err != nil {
		t.Fatal(err)
	}
	for k, want := range []struct {
		mean, std float64
		binary    bool
	}{{2, 1, false}, {.5, .5, true}, {5, 0, false}} {
		if c := columns[k]; math.Abs(c.Mean-want.mean) > 1e-12 || math.Abs(c.Std-want.std) > 1e-12 || c.Binary != want.binary || c.Fixed {
			t.Errorf("column %d: %+v, want %+v", k, c, want)
		}
	}
	s := opening(t, "common each=all", clean)
	if len(s.Rows) != 6 || s.Each != 3 || s.Sets[4].Len() != 6 || s.Sets[4].Name(1) != s.Sets[4].Name(0) {
		t.Errorf("rows %d, each %d", s.Rows, s.Each)
	}
	if dataset.ID(s.Sets[0]) == dataset.ID(s.Sets[1]) || dataset.ID(s.Sets[0]) == "" {
		t.Error("severities have one ID")
	}
	s, _ = Parse("fog")
	if err := s.Open(clean, clean, false, 1); err == nil || !strings.Contains(err.Error(), "fog damages pictures, and the data are numbers") {
		t.Errorf("fog in a table: %v", err)
	}
}

func TestParse(t *testing.T) {
	for _, bad := range []string{"fogg", "common severities=0", "common severities=6", "common severities=", "common examples=0", "common examples=few", "common each=0", "common common", "common size=3"} {
		if s, err := Parse(bad); err == nil {
			t.Errorf("%q: %+v", bad, s)
		}
	}
	s, err := Parse("fog,noise severities=5,1,5 examples=20 each=2")
	if err != nil || !slices.Equal(s.Severities, []int{1, 5}) || s.Examples != 20 || s.Each != 2 || s.Named() != "severities 1 and 5" {
		t.Errorf("%+v, %v", s, err)
	}
}

// Labels of tokens follow their tokens, and filling has none.
func TestMovedLabels(t *testing.T) {
	opts := texts(map[string]float64{"ids": 0, "mask": 0, "place": 0}, 0)
	opts.Positions = &target.Positions{Width: 1}
	labelled := func(first, n int) string {
		list, _ := strings.CutSuffix(line(first, n, 0, 0), `"label": 0}`)
		labels := make([]string, n)
		for i := range labels {
			labels[i] = fmt.Sprint((first + i) % 7)
		}
		return list + `"label": [` + strings.Join(labels, ",") + "]}"
	}
	d := opened(t, opts, labelled(100, 20), labelled(200, 12), labelled(300, 3))
	for _, how := range []string{"drop", "swap", "replace"} {
		s, err := Parse(how + " severities=5 examples=all")
		if err == nil {
			err = s.Open(d, d, true, 1)
		}
		if err != nil {
			t.Fatal(err)
		}
		size, _ := dataset.SizeOf(d)
		for j := range s.Rows {
			v, was := size.Make(1), size.Make(1)
			if err := errors.Join(s.Sets[0].Read(v, j), d.Read(was, s.Rows[j])); err != nil {
				t.Fatal(err)
			}
			ids, old := v.Field(dataset.Fields(d), 0).Ints, was.Field(dataset.Fields(d), 0).Ints
			labels, err := s.Sets[0].Labels().Load(j)
			if err != nil || labels.Positions != 20 || len(labels.Classes) != 20 {
				t.Fatalf("%s: %d labels of %d positions: %v", how, len(labels.Classes), labels.Positions, err)
			}
			for i, id := range ids {
				want := int(id % 7)
				if how == "replace" {
					want = int(old[i] % 7)
				}
				if id == 0 {
					want = target.Unknown
				}
				if labels.Classes[i] != want {
					t.Errorf("%s: token %d of row %d has label %d, want %d", how, id, j, labels.Classes[i], want)
				}
			}
		}
	}
}

// Documents of a text are damaged one by one: a document has the same damage whichever others are damaged.
func TestDamagedText(t *testing.T) {
	dir := t.TempDir()
	content, vocabulary := "", "Title\n=\n<unk>\n<eos>\n"
	for k := range 6 {
		content += fmt.Sprintf(" = Title %d = \n", k)
		for i := range 50 {
			content += fmt.Sprintf("w%dx%d ", k, i)
			vocabulary += fmt.Sprintf("w%dx%d\n", k, i)
		}
		content += "\n"
	}
	for name, text := range map[string]string{"text": content, "vocabulary": vocabulary} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	how, err := text.ParseCutting("rows=1 bptt=30 vocabulary=" + filepath.Join(dir, "vocabulary"))
	if err != nil {
		t.Fatal(err)
	}
	d, err := dataset.Open([]string{filepath.Join(dir, "text")}, dataset.Options{Text: &how, Fields: []dataset.Field{{Name: "x", Shape: []int64{-1}, Type: "int64"}}})
	if err != nil {
		t.Fatal(err)
	}
	// words returns the words of each document at severity 3, by the numbers of units.
	words := func(text string) map[int]string {
		s, err := Parse(text)
		if err == nil {
			err = s.Open(d, d, true, 1)
		}
		if err != nil {
			t.Fatal(err)
		}
		out := map[int]string{}
		for _, data := range s.Sets {
			size, _ := dataset.SizeOf(data)
			for i := range data.Len() {
				v := size.Make(1)
				labels, err := data.Labels().Load(i)
				if err = errors.Join(err, data.Read(v, i)); err != nil {
					t.Fatal(err)
				}
				for p, c := range labels.Classes {
					if c >= 0 {
						out[labels.Text.Unit[p]] += d.ClassNames()[c] + " "
					}
				}
			}
		}
		return out
	}
	all, some := words("drop_words severities=3"), words("drop_words severities=3 examples=3")
	if len(all) != 6 || len(some) != 3 {
		t.Fatalf("%d and %d documents", len(all), len(some))
	}
	for k, text := range all {
		n := strings.Count(text, "w"+fmt.Sprint(k)+"x")
		if n < 30 || n > 48 || strings.Count(text, "w") != n || strings.Count(text, "Title") != 1 && k > 0 {
			t.Errorf("document %d: %s", k, text)
		}
		if some[k] != "" && !strings.HasSuffix(text, some[k]) { // the first token of all is not predicted
			t.Errorf("document %d: %q, and among others %q", k, some[k], text)
		}
	}
	s, _ := Parse("common")
	if err := s.Open(d, d, true, 1); err != nil || len(s.Sets) != 10 || s.Clean != nil || len(s.With(1)) != 3 {
		t.Errorf("%d texts, %v", len(s.Sets), err)
	}
	s, _ = Parse("fog")
	if err := s.Open(d, d, true, 1); err == nil || !strings.Contains(err.Error(), "fog damages pictures, and the data are words") {
		t.Errorf("fog in a text: %v", err)
	}
}

// FuzzParse: whatever --shift says, damage is an error, or has a row for each example, severity and corruption.
func FuzzParse(f *testing.F) {
	for _, text := range []string{"common", "all severities=1,5 examples=2 each=all", "noise severities=5 examples=1", "drop each=2", "severities=9223372036854775807 examples=-1", "common examples=9223372036854775807 each=9223372036854775807"} {
		f.Add(text, true)
		f.Add(text, false)
	}
	path := filepath.Join(f.TempDir(), "rows.jsonl")
	rows := strings.Join([]string{line(100, 20, 0, 0), line(200, 12, 0, 0), line(300, 3, 0, 0)}, "\n")
	if err := os.WriteFile(path, []byte(rows), 0o600); err != nil {
		f.Fatal(err)
	}
	d, err := dataset.Open([]string{path}, texts(map[string]float64{"ids": 0, "mask": 0, "place": 0}, 0))
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text string, dense bool) {
		reliability.Heap(t, 100*len(text), func() {
			s, err := Parse(text)
			if err != nil || strings.Contains(text, "ice=") || s.Open(d, d, dense, 1) != nil { // FuzzIce reads photographs
				return
			}
			if len(s.Sets) != len(s.Severities) || len(s.Rows) != s.Examples*s.Each || s.Examples > d.Len() {
				t.Errorf("%q: %d sets, %d rows of %d examples", text, len(s.Sets), len(s.Rows), s.Examples)
			}
		})
	})
}
