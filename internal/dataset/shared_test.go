package dataset

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"math/rand/v2"
	"os"
	"path/filepath"
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

// Image files are compared by their bytes, and with an array by their pixels.
func TestSharedPictures(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 9))
	dir := t.TempDir()
	for _, channels := range []int{1, 3} {
		var stored, planes []byte
		for i := range 12 {
			img := image.NewNRGBA(image.Rect(0, 0, 5, 4))
			var plane [3][]byte
			for p := range 20 {
				c := [3]byte{byte(r.IntN(256)), byte(r.IntN(256)), byte(r.IntN(256))}
				if channels == 1 {
					c[1], c[2] = c[0], c[0]
				}
				img.SetNRGBA(p%5, p/5, color.NRGBA{c[0], c[1], c[2], 255})
				for k := range channels {
					stored, plane[k] = append(stored, c[k]), append(plane[k], c[k])
				}
			}
			planes = append(planes, slices.Concat(plane[:channels]...)...)
			var b bytes.Buffer
			var of image.Image = img
			if channels == 1 {
				grey := image.NewGray(img.Bounds())
				draw.Draw(grey, grey.Bounds(), img, image.Point{}, draw.Src)
				of = grey
			}
			if err := png.Encode(&b, of); err != nil {
				t.Fatal(err)
			}
			for _, to := range []string{"one", "two"} {
				if to == "one" && i > 7 || to == "two" && i < 5 {
					continue
				}
				path := filepath.Join(dir, fmt.Sprint(channels), to, fmt.Sprintf("%s-%d.png", to, 20-i))
				if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, b.Bytes(), 0o666); err != nil {
					t.Fatal(err)
				}
			}
		}
		opts := Options{Shape: []int64{int64(channels), 4, 5}}
		open := func(path string) Dataset {
			d, err := Open([]string{path}, opts)
			if err != nil {
				t.Fatal(err)
			}
			return d
		}
		one, two := open(filepath.Join(dir, fmt.Sprint(channels), "one")), open(filepath.Join(dir, fmt.Sprint(channels), "two"))
		if got := Shared(one, two); got != (Sharing{3, false}) {
			t.Errorf("%d channels: folders share %+v", channels, got)
		}
		values := func(b []byte) (out []float64) {
			for _, v := range b {
				out = append(out, float64(v))
			}
			return out
		}
		for shape, content := range map[[4]int][]byte{{12, 4, 5, channels}: stored, {12, channels, 4, 5}: planes} {
			array := open(textFile(t, "a.npy", string(npy("|u1", values(content), shape[:]...))))
			if got := Shared(one, array); got != (Sharing{8, false}) {
				t.Errorf("%d channels, array %v: %+v", channels, shape, got)
			}
			if got := Shared(array, two); got != (Sharing{7, false}) {
				t.Errorf("%d channels, array %v second: %+v", channels, shape, got)
			}
		}
	}
}
