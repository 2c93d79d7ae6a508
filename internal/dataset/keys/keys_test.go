package keys

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/swagwrap/swagwrap/internal/dataset/fileorder"
	"github.com/swagwrap/swagwrap/internal/dataset/table"
)

// A column names the examples by its values. Without one, row i is example i, unless the rows have other names.
func TestMatch(t *testing.T) {
	dir := t.TempDir()
	doubt := &fileorder.Doubt{Here: "x/b.png", There: "x/a.png"}
	for _, tt := range []struct {
		name, table string
		examples    string
		doubt       *fileorder.Doubt
		want        string // the values of the examples, or a part of an error
	}{
		{"any header", "slide,v\nb,B\na,A\n", "x/a.png x/b.png", nil, "AB"},
		{"file names", "Image Index,v\nb.png,B\na.png,A\n", "x/a.png x/b.png", doubt, "AB"},
		{"behind other columns", "age,sex,scan,v\n50,f,b,B\n50,m,a,A\n", "x/a.png x/b.png", nil, "AB"},
		{"rows of an array", "slide,v\nb,B\na,A\n", "x.npz[0] x.npz[1]", nil, "BA"},
		{"by row", "v\nB\nA\n", "x/a.png x/b.png", nil, "BA"},
		{"by row in doubt", "v\nB\nA\n", "x/a.png x/b.png", doubt, "order is not known"},
		{"row numbers", "row,v\n0,B\n1,A\n", "x/a.png x/b.png", nil, "BA"},
		{"measured", "size,v\n0.25,B\n1.5,A\n", "x/a.png x/b.png", nil, "BA"},
		{"other names", "slide,v\nS1,B\nS2,A\n", "x/a.png x/b.png", nil, "another name in each row"},
		{"other numbers", "number,v\n17,B\n9,A\n", "x/a.png x/b.png", nil, "another name in each row"},
		{"one is missing", "slide,v\nb,B\nc,A\nd,A\n", "x/a.png x/b.png x/d.png", nil, "no row has the slide x/a.png"},
		{"a path of another machine", "path,isic,v\n/data/1.jpg,b,B\n/data/2.jpg,a,A\n", "x/a.png x/b.png", nil, "AB"},
		{"two columns that differ", "one,two,v\na,b,A\nb,a,B\n", "x/a.png x/b.png", nil, "not the same ones"},
		{"two columns that agree", "one,two,v\nb,b.png,B\na,a.png,A\n", "x/a.png x/b.png", nil, "AB"},
		{"several rows of an example", "slide,v\nb,B\na,A\nb,B\n", "x/a.png x/b.png", nil, "AB"},
		{"the data itself", "slide,v\nb,B\na,A\n", "TABLE[0] TABLE[1]", nil, "BA"},
	} {
		path := filepath.Join(dir, "table.csv")
		if err := os.WriteFile(path, []byte(tt.table), 0o666); err != nil {
			t.Fatal(err)
		}
		names := strings.Fields(strings.ReplaceAll(tt.examples, "TABLE", path))
		in, err := table.OpenGaps(path)
		if err != nil {
			t.Fatal(err)
		}
		of := Examples{Len: len(names), Name: func(i int) string { return names[i] }, Doubt: func() *fileorder.Doubt { return tt.doubt }}
		rows, columns, err := Match(in, []string{"v"}, of)
		got := fmt.Sprint(err)
		if err == nil {
			got = ""
			for i, name := range names {
				row, ok := rows.Row(i, name)
				if !ok {
					t.Errorf("%s: no row for %s", tt.name, name)
				}
				got += columns["v"].Texts[row]
			}
		}
		if !strings.Contains(got, tt.want) || got == "" {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
		if tt.name == "other names" && !errors.Is(err, ErrUnnamed) {
			t.Errorf("%v", err)
		}
	}
}
