package dataset

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// Examples of two data sets are compared by their content, whatever the format, the order and the names.
func TestShared(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	rows := make([]string, 40)
	for i := range rows {
		rows[i] = fmt.Sprintf("%d,%d,%d", r.IntN(1e6), r.IntN(1e6), i%2)
	}
	discrete := make([]string, 60) // only six different rows
	for i := range discrete {
		discrete[i] = fmt.Sprintf("%d,%d,%d", r.IntN(3), r.IntN(2), i%2)
	}
	shuffled := slices.Clone(rows)
	r.Shuffle(len(rows), func(i, k int) { shuffled[i], shuffled[k] = shuffled[k], shuffled[i] })
	open := func(name string, rows []string) Dataset {
		text := "a,b,label\n" + strings.Join(rows, "\n") + "\n"
		if strings.HasSuffix(name, ".jsonl") {
			text = ""
			for _, row := range rows {
				cells := strings.Split(row, ",")
				text += fmt.Sprintf("{\"label\": %s, \"b\": %s, \"a\": %s.0}\n", cells[2], cells[1], cells[0])
			}
		}
		opts := Options{Fields: []Field{floats("x", 2)}}
		opts.Known.Columns = map[string][]string{"x": {"a", "b"}}
		d, err := Open([]string{textFile(t, name, text)}, opts)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	for _, tt := range []struct {
		name string
		a, b Dataset
		want Sharing
	}{
		{"itself", open("a.csv", rows), open("b.csv", rows), Sharing{40, true}},
		{"other order", open("a.csv", rows), open("b.csv", shuffled), Sharing{40, true}},
		{"other format", open("a.csv", rows), open("b.jsonl", shuffled), Sharing{40, true}},
		{"some", open("a.csv", rows[:25]), open("b.csv", rows[20:]), Sharing{5, false}},
		{"none", open("a.csv", rows[:20]), open("b.csv", rows[20:]), Sharing{0, false}},
		{"few different rows", open("a.csv", discrete[:30]), open("b.csv", discrete[30:]), Sharing{0, false}},
		{"few different rows, the same file", open("a.csv", discrete), open("b.csv", discrete), Sharing{60, true}},
	} {
		if got := Shared(tt.a, tt.b); got != tt.want {
			t.Errorf("%s: %+v, want %+v", tt.name, got, tt.want)
		}
	}
}

// Lists are compared without what fills them up.
func TestSharedLists(t *testing.T) {
	field := Field{Name: "ids", Shape: []int64{-1}, Type: "int64"}
	open := func(text string) Dataset {
		d, err := Open([]string{textFile(t, "a.jsonl", text)}, Options{Fields: []Field{field}, Pad: map[string]float64{"ids": 0}})
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	a := open("{\"ids\": [1, 2]}\n{\"ids\": [3]}\n")
	b := open("{\"ids\": [1, 2, 5, 6]}\n{\"ids\": [3]}\n{\"ids\": [4]}\n")
	if got := Shared(a, b); got != (Sharing{1, false}) {
		t.Errorf("%+v", got)
	}
}
