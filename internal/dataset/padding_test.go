package dataset

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/swagwrap/swagwrap/internal/target"
)

// TestOwn tests which positions of a text are its own: the same for all ways to write padding down.
func TestOwn(t *testing.T) {
	token := func(name string, length int64) Field {
		return Field{Name: name, Shape: []int64{length}, Dims: []string{""}, Type: "int64"}
	}
	const ids, mask, padding = "ids", "attention_mask", "key_padding_mask"
	for _, c := range []struct {
		name   string
		inputs []string
		pad    map[string]float64
		row    string
		want   string // a dot for each position that fills up
	}{
		{"a short list", []string{ids}, map[string]float64{ids: 0}, `{"ids":[4,5],"labels":[1,2]}`, "xx...."},
		{"an empty end within a list", []string{ids}, map[string]float64{ids: 0}, `{"ids":[4,5,0,0],"labels":[1,2,-100,-100]}`, "xx...."},
		{"filled up on the right", []string{ids}, map[string]float64{ids: 0}, `{"ids":[4,5,0,0,0,0],"labels":[1,2,-100,-100,-100,-100]}`, "xx...."},
		{"filled up on the left", []string{ids}, map[string]float64{ids: 0}, `{"ids":[0,0,0,0,4,5],"labels":[-100,-100,-100,-100,-100,2]}`, "....xx"},
		{"no labels", []string{ids}, map[string]float64{ids: 7}, `{"ids":[4,5,7,7,7,7]}`, "xx...."},
		{"a label says that it is a token", []string{ids}, map[string]float64{ids: 0}, `{"ids":[4,5,0,0,0,0],"labels":[1,2,3,-100,-100,-100]}`, "xxx..."},
		{"the filling between tokens", []string{ids}, map[string]float64{ids: 0}, `{"ids":[4,0,0,5,0,0]}`, "xxxx.."},
		{"later pieces of words", []string{ids}, map[string]float64{ids: 0}, `{"ids":[4,5,6,4,5,6],"labels":[-100,1,-100,2,-100,-100]}`, "xxxxxx"},
		{"nobody knows the filling", []string{ids}, nil, `{"ids":[4,5,0,0,0,0],"labels":[1,2,-100,-100,-100,-100]}`, "xxxxxx"},
		{"a mask", []string{ids, mask}, nil, `{"ids":[4,0,0,0,0,0],"attention_mask":[1,1,0,0,0,0]}`, "xx...."},
		{"a mask is right against labels", []string{ids, mask}, nil, `{"ids":[4,5,0,0,0,0],"attention_mask":[1,1,0,0,0,0],"labels":[1,1,0,0,0,0]}`, "xx...."},
		{"a mask with a hole", []string{ids, mask}, nil, `{"ids":[4,5,6,4,5,6],"attention_mask":[0,1,1,0,1,1]}`, ".xx.xx"},
		{"a mask that the card fills up", []string{ids, padding}, map[string]float64{ids: 0, padding: 1}, `{"ids":[4,0,0,0,0,0],"key_padding_mask":[0,0,1,1,1,1]}`, "xx...."},
		{"a mask of unknown sense", []string{ids, padding}, nil, `{"ids":[4,5,0,0,0,0],"key_padding_mask":[0,0,1,1,1,1]}`, "xxxxxx"},
		{"nothing but filling", []string{ids}, map[string]float64{ids: 0}, `{"ids":[0,0,0,0,0,0]}`, "xxxxxx"},
	} {
		for _, length := range []int64{6, -1} {
			t.Run(fmt.Sprintf("%s/%d", c.name, length), func(t *testing.T) {
				path := filepath.Join(t.TempDir(), "x.jsonl")
				opts := Options{Pad: c.pad}
				if strings.Contains(c.row, "labels") {
					opts.Positions = &target.Positions{Width: 1}
				}
				filler := `{"ids":[1,2,3,4,5,6]`
				for _, name := range c.inputs {
					opts.Fields = append(opts.Fields, token(name, length))
					if name != ids {
						filler += `,"` + name + `":[1,1,1,1,1,1]`
					}
				}
				if opts.Positions != nil {
					filler += `,"labels":[1,1,1,1,1,1]`
				}
				if err := os.WriteFile(path, []byte(c.row+"\n"+filler+"}\n"), 0o666); err != nil {
					t.Fatal(err)
				}
				d, err := Open([]string{path}, opts)
				if err != nil {
					t.Fatal(err)
				}
				for _, of := range []Dataset{d, Part(d, 0, 1), Picked(d, []int{0}), Altered(d, d.Labels(), func(Values, int) {}, nil)} {
					if got := drawn(t, of, 6); got != c.want {
						t.Errorf("%T: %s, want %s", of, got, c.want)
					}
				}
			})
		}
	}
}

// drawn shows which positions of the first example are its own.
func drawn(t *testing.T, d Dataset, n int) string {
	t.Helper()
	size, err := SizeOf(d)
	if err != nil {
		t.Fatal(err)
	}
	v := size.Make(1)
	if err := d.Read(v, 0); err != nil {
		t.Fatal(err)
	}
	own := Own(d, v, 0, n)
	if own == nil {
		own = slices.Repeat([]bool{true}, n)
	}
	out := ""
	for _, is := range own {
		out += map[bool]string{true: "x", false: "."}[is]
	}
	return out
}

// TestOnlyList tests that the only column of lists feeds an input that no column is named for.
func TestOnlyList(t *testing.T) {
	lists := func(names ...string) (fields []Field) {
		for _, name := range names {
			fields = append(fields, Field{Name: name, Shape: []int64{8}, Dims: []string{""}, Type: "int64"})
		}
		return fields
	}
	pad := map[string]float64{"ids": 0, "mask": 0}
	for _, c := range []struct {
		row    string
		fields []Field
		want   bool
	}{
		{`{"text_ids":[1,2],"label":0}`, lists("ids"), true},
		{`{"text_ids":[1,2],"title":"a","n":3,"label":0}`, lists("ids"), true},
		{`{"text_ids":[1,2],"mask":[1,1],"label":0}`, lists("ids", "mask"), true},
		{`{"text_ids":[1,2],"other_ids":[1,2],"label":0}`, lists("ids"), false},
		{`{"text_ids":[1,2],"label":0}`, lists("ids", "mask"), false},
	} {
		path := filepath.Join(t.TempDir(), "x.jsonl")
		if err := os.WriteFile(path, []byte(c.row+"\n"), 0o666); err != nil {
			t.Fatal(err)
		}
		opts := Options{Fields: c.fields, Pad: pad}
		_, err := Open([]string{path}, opts)
		if u := Unclear(path, opts); (err == nil) != c.want || c.want && u != nil {
			t.Errorf("%s: %v, unclear %v; want %v", c.row, err, u, c.want)
		}
	}
}
