package inputs

import (
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/preprocess"
)

// Pictures and tables become what the datasets of all commands give, bit for bit.
func TestPictures(t *testing.T) {
	paths, err := filepath.Glob("../../../fixtures/images/files/re-*")
	if err != nil || len(paths) < 10 {
		t.Fatal(len(paths), err)
	}
	paths = append(paths, "../../../fixtures/images/files/hopper_orientation_6.jpg", "../../../fixtures/images/files/orientation_rectangle.jpg")
	for _, spec := range []string{"imagenet input-size=20", "resize-size=24 input-size=20x16 interpolation=bicubic channels=grey mean=0.5 std=0.25", "input-size=9 crop-mode=squash channels=bgr layout=nhwc",
		"input-size=9 crop-mode=squash orientation=apply", "input-size=9 crop-mode=squash orientation=ignore mean=123.675,116.28,103.53 std=58.395,57.12,57.375"} {
		settings, err := preprocess.Settings{}.With(spec)
		if err != nil {
			t.Fatal(err)
		}
		d, err := dataset.Open(paths, dataset.Options{Preprocess: settings, Unlabelled: true})
		if err != nil {
			t.Fatal(err)
		}
		s, err := settings.Resolve([]int64{-1, -1, -1})
		if err != nil {
			t.Fatal(err)
		}
		for _, dtype := range []string{"float32", "float64", "float16"} {
			n := Network{Picture: &s, Inputs: []Input{{Name: "x", Type: dtype, Shape: s.Shape()}}}
			if err := n.Check(); err != nil {
				t.Fatal(err)
			}
			for i, path := range paths {
				content, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				got, seen, err := n.Read(content)
				if err != nil {
					t.Fatal(path, err)
				}
				size, _ := dataset.SizeOf(d)
				want := size.Make(1)
				if err := d.Read(want, i); err != nil {
					t.Fatal(err)
				}
				if !slices.Equal(got.Dims, append([]int64{1}, d.Shape()...)) || seen.Pixels.H != s.Image.InputSize[0] || !slices.Equal(got.Data, encoded(dtype, want.Floats)) {
					t.Errorf("%s: %s: other values than those of the dataset", spec, path)
				}
			}
		}
	}
}

// encoded is a second way to write numbers.
func encoded(dtype string, values []float32) (b []byte) {
	for _, v := range values {
		switch dtype {
		case "float32":
			b, _ = binary.Append(b, binary.LittleEndian, v)
		case "float64":
			b, _ = binary.Append(b, binary.LittleEndian, float64(v))
		default:
			b = appendFloat(b, dtype, v)
		}
	}
	return b
}

func TestPictureErrors(t *testing.T) {
	s, err := preprocess.Settings{}.Resolve([]int64{1, 4, 4})
	if err != nil {
		t.Fatal(err)
	}
	n := Network{Picture: &s, Inputs: []Input{{Name: "x", Type: "float32", Shape: s.Shape()}}}
	for content, want := range map[string]string{
		"":                      "empty file, want an image",
		"hello":                 "not an image",
		"P5 3 3 255\n123456789": "3×3 pixels, want 4×4",
	} {
		if _, _, err := n.Read([]byte(content)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.20q: %v, want %q", content, err, want)
		}
	}
	for _, bad := range []Network{
		{Inputs: []Input{{Name: "x", Type: "uint16", Shape: []int64{1}, Columns: []string{"a"}}}},
		{Inputs: []Input{{Name: "x", Type: "float32", Shape: []int64{2}, Columns: []string{"a"}}}},
		{Inputs: []Input{{Name: "x", Type: "float32", Shape: []int64{1, 1}, Columns: []string{"a"}}}},
		{Picture: &s, Inputs: []Input{{Name: "x", Type: "float32"}, {Name: "y", Type: "float32"}}},
	} {
		if err := bad.Check(); err == nil {
			t.Errorf("%+v was accepted", bad)
		}
	}
}

func TestTable(t *testing.T) {
	n := Network{Inputs: []Input{
		{Name: "x", Type: "float32", Shape: []int64{2}, Columns: []string{"b", "a"}},
		{Name: "k", Type: "int64", Columns: []string{"site"}, Rows: 10},
	}}
	if err := n.Check(); err != nil {
		t.Fatal(err)
	}
	table, err := n.Table("x.csv", []byte("name;a;site;b\nAnn;1,5;3;0,1\nBob;2;4;1e3\n"))
	if err != nil {
		t.Fatal(err)
	}
	got := table.Batch(1, 1)
	if table.Rows != 2 || !slices.Equal(table.Left, []string{"name"}) || len(got) != 2 || !slices.Equal(got[0].Dims, []int64{1, 2}) || !slices.Equal(got[1].Dims, []int64{1}) {
		t.Errorf("%+v, %+v", table, got)
	}
	if !slices.Equal(got[0].Data, encoded("float32", []float32{1000, 2})) || got[1].Data[0] != 4 || len(got[1].Data) != 8 {
		t.Errorf("%v, %v", got[0].Data, got[1].Data)
	}
	if all := table.Batch(0, 2); math.Float32frombits(binary.LittleEndian.Uint32(all[0].Data)) != 0.1 {
		t.Errorf("%v", all[0].Data)
	}
	for text, want := range map[string]string{
		"a,b\n1,2\n":            `no column "site" among ["a" "b"]`,
		"a,b,site\n1,2,10\n":    `row 0, column "site": 10, want 0 to 9: input "k" takes numbers of rows in a table of 10`,
		"a,b,site\n1,2,1.5\n":   `1.5, want whole numbers`,
		"a,b,site\n1,x,1\n":     `"x", want a number`,
		"a,b,site\n1,1e300,1\n": "want finite float32 values",
		"a,b,site\n":            "no rows, want some",
		"a,b,site\n1,,1\n":      "empty, want a number",
		"1,2,3\n":               "want the names of the columns",
		"a,b,site,a\n1,2,3,4\n": `two columns are named "a"`,
	} {
		if _, err := n.Table("x.csv", []byte(text)); err == nil || !strings.HasPrefix(err.Error(), "x.csv: ") || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	if _, err := n.Table("x.jsonl", []byte(`{"a": [1], "b": 2, "site": 3}`)); err == nil || !strings.Contains(err.Error(), "holds lists") {
		t.Error(err)
	}
}

// A table gives the numbers that it gives all commands, and is refused with their words.
func TestTableAsCommands(t *testing.T) {
	dir := t.TempDir()
	accepted := 0
	for _, dtype := range []string{"float16", "float32", "float64", "uint8", "bool", "int32", "int64"} {
		for _, rows := range []int64{0, 3} {
			for k, text := range []string{"0", "1", "2", "3", "2.5", "-1", "-0.5", "256", "1e5", "2147483648", "1e39", "9007199254740993", "16777217", "9223372036854775807", "1e19", "x", "true"} {
				content := []byte("a,k\n0," + text + "\n")
				in := Input{Name: "k", Type: dtype, Shape: []int64{1}, Columns: []string{"k"}, Rows: rows}
				got, gotErr := Network{Inputs: []Input{in}}.Table("x.csv", content)
				path := filepath.Join(dir, fmt.Sprintf("%s-%d-%d.csv", dtype, rows, k))
				if err := os.WriteFile(path, content, 0o666); err != nil {
					t.Fatal(err)
				}
				d, err := dataset.Open([]string{path}, dataset.Options{Fields: []dataset.Field{{Name: "k", Type: dtype, Shape: []int64{1}, Rows: rows}}, Columns: map[string][]string{"k": {"k"}}, Unlabelled: true})
				if err != nil {
					if gotErr == nil || !strings.HasPrefix(strings.TrimPrefix(err.Error(), path), strings.TrimPrefix(gotErr.Error(), "x.csv")) {
						t.Errorf("%s of %d rows, %s: %v, want %v", dtype, rows, text, gotErr, err)
					}
					continue
				}
				size, _ := dataset.SizeOf(d)
				want := size.Make(1)
				if err := d.Read(want, 0); err != nil || gotErr != nil {
					t.Fatalf("%s of %d rows, %s: %v, %v", dtype, rows, text, gotErr, err)
				}
				var data []byte
				switch {
				case dtype == "uint8":
					data = []byte{byte(want.Floats[0])}
				case len(want.Ints) > 0:
					data = appendWhole(nil, dtype, want.Ints[0])
				default:
					data = encoded(dtype, want.Floats)
				}
				if !slices.Equal(got.Batch(0, 1)[0].Data, data) {
					t.Errorf("%s of %d rows, %s: %v, want %v", dtype, rows, text, got.Batch(0, 1)[0].Data, data)
				}
				accepted++
			}
		}
	}
	if accepted < 30 {
		t.Errorf("%d tables were accepted", accepted)
	}
}
