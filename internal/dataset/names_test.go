package dataset

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"golang.org/x/text/unicode/norm"

	"github.com/swagwrap/swagwrap/fixtures/reliability"
	"github.com/swagwrap/swagwrap/internal/names"
	"github.com/swagwrap/swagwrap/internal/target"
)

// rowsOf returns the values and targets of each example as text, in an order that does not depend on that of the rows.
func rowsOf(t *testing.T, d Dataset) (out []string) {
	size, err := SizeOf(d)
	if err != nil {
		t.Fatal(err)
	}
	for i := range d.Len() {
		v := size.Make(1)
		if err := d.Read(v, i); err != nil {
			t.Fatal(err)
		}
		of := d.Labels().At(i)
		out = append(out, fmt.Sprint(v.Floats, of.Classes, of.Values))
	}
	slices.Sort(out)
	return out
}

// tableText writes a table in the format that the name of the file says, with its columns and rows in the given orders.
func tableText(file string, head []string, rows [][]string, columns, order []int) string {
	var b strings.Builder
	sep := map[bool]string{true: "\t", false: ","}[strings.HasSuffix(file, ".tsv")]
	line := func(cells []string) string { return strings.Join(names.Pick(cells, columns), sep) + "\n" }
	isLines := strings.HasSuffix(file, ".jsonl")
	if !isLines {
		b.WriteString(line(head))
	}
	for _, i := range order {
		if !isLines {
			b.WriteString(line(rows[i]))
			continue
		}
		var cells []string
		for _, k := range columns {
			cells = append(cells, fmt.Sprintf("%q: %q", head[k], rows[i][k]))
			if strings.Trim(rows[i][k], "0123456789.-") == "" {
				cells[len(cells)-1] = fmt.Sprintf("%q: %s", head[k], rows[i][k])
			}
		}
		b.WriteString("{" + strings.Join(cells, ", ") + "}\n")
	}
	return b.String()
}

// forms writes some of the names in the form NFD.
func forms(r *rand.Rand, all []string) []string {
	out := slices.Clone(all)
	for i := range out {
		if r.IntN(2) == 0 {
			out[i] = norm.NFD.String(out[i])
		}
	}
	return out
}

// A table with shuffled columns, rows, formats and forms of letters gives the examples of the first file of the command.
func TestShuffledTables(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 1))
	class := []string{"aigle", "zèbre", "école"}
	kinds := []struct {
		name  string
		kind  target.Kind
		heads []string // the last columns are labels
		label func() []string
	}{
		{"classes", target.Classes, []string{"température", "w2", "w10", "w1", "label"}, func() []string { return []string{class[r.IntN(3)]} }},
		{"labels", target.Labels, []string{"température", "w2", "w10", "w1", "label_été", "label_a"}, func() []string { return []string{fmt.Sprint(r.IntN(2)), fmt.Sprint(r.IntN(2))} }},
		{"numbers", target.Numbers, []string{"température", "w2", "w10", "w1", "target_10", "target_2"}, func() []string { return []string{fmt.Sprint(r.IntN(100)), fmt.Sprint(r.IntN(100))} }},
	}
	for _, k := range kinds {
		var rows [][]string
		for i := range 12 {
			cells := []string{fmt.Sprint(r.IntN(1e4)), fmt.Sprint(r.IntN(1e4)), fmt.Sprint(r.IntN(1e4)), fmt.Sprint(r.IntN(1e4))}
			labels := k.label()
			if k.kind == target.Classes && i < 3 {
				labels[0] = class[i]
			}
			rows = append(rows, append(cells, labels...))
		}
		straight := func(n int) (out []int) {
			for i := range n {
				out = append(out, i)
			}
			return out
		}
		opts := Options{Fields: []Field{floats("x", 4)}, Target: k.kind, Classes: 3}
		first, err := Open([]string{textFile(t, "first.csv", tableText("first.csv", k.heads, rows, straight(len(k.heads)), straight(len(rows))))}, opts)
		if err != nil {
			t.Fatal(err)
		}
		want := rowsOf(t, first)
		opts.Known = Names(first)
		for range reliability.Figure(20, 2000) {
			file := []string{"a.csv", "a.tsv", "a.jsonl"}[r.IntN(3)]
			written := make([][]string, len(rows))
			for i := range rows {
				written[i] = forms(r, rows[i])
			}
			text := tableText(file, forms(r, k.heads), written, r.Perm(len(k.heads)), r.Perm(len(rows)))
			d, err := Open([]string{textFile(t, file, text)}, opts)
			if err != nil {
				t.Fatalf("%s: %v\n%s", k.name, err, text)
			}
			if got := rowsOf(t, d); !slices.Equal(got, want) {
				t.Fatalf("%s:\n%s\n%v\nwant\n%v", k.name, text, got, want)
			}
		}
		// A column under another name is an error.
		other := slices.Clone(k.heads)
		other[1] = "w3"
		_, err = Open([]string{textFile(t, "b.csv", tableText("b.csv", other, rows, straight(len(k.heads)), straight(len(rows))))}, opts)
		if !errors.As(err, new(*names.MismatchError)) {
			t.Errorf("%s: another column gives %v", k.name, err)
		}
	}
}

// What no example has is counted and named.
func TestNotes(t *testing.T) {
	d, err := Open([]string{textFile(t, "a.csv", "a,b,site,label\n1,2,x,0\n")}, Options{Fields: []Field{floats("x", 2)}, Columns: map[string][]string{"x": {"a", "b"}}})
	if err != nil {
		t.Fatal(err)
	}
	notes, doubts := Notes(d)
	if want := []string{`left out: columns of the table that feed no input, 1 in all: "site"`}; !slices.Equal(notes, want) || doubts != nil {
		t.Errorf("%q, %q, want %q", notes, doubts, want)
	}
}
