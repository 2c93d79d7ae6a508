package dataset

import (
	"encoding/csv"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/maruel/natural"

	"github.com/swagwrap/swagwrap/internal/dataset/filelist"
	"github.com/swagwrap/swagwrap/internal/dataset/fileorder"
	"github.com/swagwrap/swagwrap/internal/dataset/groups"
	"github.com/swagwrap/swagwrap/internal/dataset/listing"
	"github.com/swagwrap/swagwrap/internal/preprocess"
)

// namings are ways in which programs and people call file k.
var namings = map[string]func(k int) string{
	"numbers":       func(k int) string { return fmt.Sprint(k) },
	"from 1":        func(k int) string { return fmt.Sprint(k + 1) },
	"padded":        func(k int) string { return fmt.Sprintf("%04d", k) },
	"unequal zeros": func(k int) string { return fmt.Sprintf("%0*d", 2+k%3, k) },
	"prefix":        func(k int) string { return fmt.Sprintf("img_%d", k) },
	"prefixes":      func(k int) string { return fmt.Sprintf("%c%d", 'a'+k%3, k) },
	"dashes":        func(k int) string { return fmt.Sprintf("img-%d", k) },
	"dates":         func(k int) string { return fmt.Sprintf("2024-%d-%d", 1+k/5, 1+k) },
	"padded dates":  func(k int) string { return fmt.Sprintf("2024-%02d-%02d", 1+k/5, 1+k) },
	"hexadecimal":   func(k int) string { return fmt.Sprintf("%x", 3*k) },
	"hashes":        func(k int) string { return fmt.Sprintf("%08x", uint32(k*2654435761)) },
	"negative":      func(k int) string { return fmt.Sprint(k - 5) },
	"decimals":      func(k int) string { return fmt.Sprint(float64(k) / 4) },
	"versions":      func(k int) string { return fmt.Sprintf("v1.%d.0", k) },
	"letters":       func(k int) string { return string(rune('a' + k)) },
	"cases":         func(k int) string { return string(rune('a'+k)) + string(rune('Z'-k)) },
	"words":         func(k int) string { return []string{"Cat", "bird", "ant", "Dog"}[k%4] + strings.Repeat("x", k) },
	"twins":         func(k int) string { return fmt.Sprintf("%0*d", 1+k%2, k/2) },
	"long numbers":  func(k int) string { return fmt.Sprintf("%d%030d", k, 7) },
	"other digits":  func(k int) string { return string(rune(0x0660+k%10)) + fmt.Sprint(k/10) },
	"beginnings":    func(k int) string { return "a" + strings.Repeat("-b", k) },
}

const namedFiles = 13

// containers make an input of files with names, and say what the rows of an array may belong to: files or folders.
var containers = map[string]func(t *testing.T, dir string, names []string) []string{
	"folder": func(t *testing.T, dir string, names []string) []string {
		for _, name := range names {
			write(t, filepath.Join(dir, "in", name), nil)
		}
		return []string{filepath.Join(dir, "in")}
	},
	"folders": func(t *testing.T, dir string, names []string) []string {
		for _, name := range names {
			write(t, filepath.Join(dir, "in", stem(name), "x.png"), nil)
		}
		return []string{filepath.Join(dir, "in")}
	},
	"pattern": func(t *testing.T, dir string, names []string) []string {
		for _, name := range names {
			write(t, filepath.Join(dir, "in", name), nil)
		}
		return []string{filepath.Join(dir, "in", "*.png")}
	},
	"arguments of a shell": func(t *testing.T, dir string, names []string) (paths []string) {
		for _, name := range slices.Sorted(slices.Values(names)) {
			paths = append(paths, filepath.Join(dir, name))
			write(t, paths[len(paths)-1], nil)
		}
		return paths
	},
	"sorted tar": func(t *testing.T, dir string, names []string) []string {
		return tarNamed(t, dir, slices.Sorted(slices.Values(names)))
	},
	"tar from a disk": func(t *testing.T, dir string, names []string) []string {
		r := rand.New(rand.NewPCG(1, 2))
		names = slices.Clone(names)
		r.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
		return tarNamed(t, dir, names)
	},
	"tars": func(t *testing.T, dir string, names []string) []string {
		for _, name := range names {
			write(t, filepath.Join(dir, "in", stem(name)+".tar"), tarOf(t, "x.png", "x"))
		}
		return []string{filepath.Join(dir, "in", "*.tar")}
	},
	"listing": func(t *testing.T, dir string, names []string) []string {
		for _, name := range names {
			write(t, filepath.Join(dir, "in", name), nil)
		}
		return []string{listedIn(t, dir, fileorder.Unsaid)}
	},
}

func tarNamed(t *testing.T, dir string, names []string) []string {
	var files []string
	for _, name := range names {
		files = append(files, name, "x")
	}
	path := filepath.Join(dir, "in.tar")
	write(t, path, tarOf(t, files...))
	return []string{path}
}

func listedIn(t *testing.T, dir string, order fileorder.Order) string {
	t.Helper()
	path := filepath.Join(dir, "in.parquet")
	head, rows, _, err := listing.List([]string{filepath.Join(dir, "in")}, listing.ListOptions{Path: func(p string) string { return p }, Order: order})
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := filelist.Write(f, head, rows); err != nil {
		t.Fatal(err)
	}
	return path
}

// nameIn returns the part of an example's name that the naming made.
func nameIn(container, path string) string {
	switch container {
	case "folders":
		return filepath.Base(filepath.Dir(path))
	case "tars":
		return stem(filepath.Dir(path))
	}
	return stem(path)
}

// The rows of an array belong to files by their place. Whatever files are called, their rows are those of the order that the array
// has, or the program asks.
func TestFileOrder(t *testing.T) {
	questions, rows := 0, 0
	for naming, call := range namings {
		names := make([]string, namedFiles)
		for k := range names {
			names[k] = call(k) + ".png"
		}
		for container, makeInput := range containers {
			if strings.Contains(stem(names[1]), ".") && strings.HasSuffix(container, "tar") {
				continue // a tar's examples end at the first dot
			}
			ext, ok := map[string]string{"folders": "", "tars": ".tar"}[container]
			if !ok {
				ext = ".png"
			}
			text, number := sortedStems(names, ext, strings.Compare), sortedStems(names, ext, natural.Compare)
			dir := t.TempDir()
			input := makeInput(t, dir, names)
			inputs := map[string][]string{"labels": input}
			if container != "arguments of a shell" && container != "tars" { // an input of a network is one file or folder
				inputs["record"] = []string{recordOf(t, dir, input[0])}
			}
			for order, want := range map[fileorder.Order][]string{fileorder.Unsaid: text, fileorder.Text: text, fileorder.Number: number} {
				for with, in := range inputs {
					where := fmt.Sprintf("%s, %s, %s, order %q", naming, container, with, order)
					d, err := labelled(t, dir, in, order, with == "record")
					if e := (*fileorder.Error)(nil); errors.As(err, &e) {
						questions++
						if e.Row < 0 || e.Row >= namedFiles || e.Here == e.There || len(e.Hints()) == 0 {
							t.Errorf("%s: %+v", where, e)
						}
						continue
					}
					if err != nil {
						t.Fatalf("%s: %v", where, err)
					}
					rows++
					if order == fileorder.Unsaid && !slices.Equal(text, number) {
						t.Errorf("%s: no question, and text %q differs from numbers %q", where, text, number)
					}
					for i, label := range d.Labels().Classes {
						if got := nameIn(container, d.Name(i)); got != want[label] {
							t.Errorf("%s: row %d is %s, and its label is that of %s", where, i, got, want[label])
							break
						}
					}
				}
			}
		}
	}
	if questions < 200 || rows < 200 {
		t.Errorf("%d questions, and %d inputs without one", questions, rows)
	}
}

// sortedStems sorts names with an extension, and returns them without it.
func sortedStems(names []string, ext string, compare func(a, b string) int) (out []string) {
	for _, name := range names {
		out = append(out, stem(name)+ext)
	}
	slices.SortFunc(out, compare)
	for i, name := range out {
		out[i] = strings.TrimSuffix(name, ext)
	}
	return out
}

// labelled opens an input with labels 0, 1, 2 … in an array.
func labelled(t *testing.T, dir string, input []string, order fileorder.Order, record bool) (Dataset, error) {
	t.Helper()
	labels := make([]float64, namedFiles)
	for k := range labels {
		labels[k] = float64(k)
	}
	path := filepath.Join(dir, "labels.npy")
	write(t, path, npy("<i8", labels, namedFiles))
	opts := small
	opts.Labels, opts.Order = path, order
	if record {
		opts.Shape, opts.Fields = nil, recordFields
	}
	return Open(input, opts)
}

// small are the options for a network that takes small pictures.
var small = Options{Shape: []int64{1, 4, 4}, Preprocess: preprocess.Settings{Image: preprocess.Transform{InputSize: [2]int{4, 4}}}}

var recordFields = []Field{{Name: "image", Shape: []int64{1, 4, 4}, Dims: make([]string, 3), Type: "float32"}, {Name: "x", Shape: []int64{2}, Dims: []string{""}, Type: "float32"}}

// recordOf makes a folder with an array, and the input in place of another one.
func recordOf(t *testing.T, dir, input string) string {
	t.Helper()
	folder := arraysIn(t, filepath.Join(dir, "record"), map[string][]byte{"x": npy("<f4", make([]float64, 2*namedFiles), namedFiles, 2)})
	ext := filepath.Ext(input)
	if ext == ".parquet" || strings.Contains(input, "*") { // not in a record
		ext, input = "", filepath.Join(dir, "in")
	}
	if err := os.Symlink(input, filepath.Join(folder, "image"+ext)); err != nil {
		t.Fatal(err)
	}
	return folder
}

// What has an order or names of its own is not asked about: lists, tars in the order of the numbers, ranges, tables with the names of
// the files, and labels that come with the files.
func TestNoQuestion(t *testing.T) {
	dir := t.TempDir()
	var byNumber, list []string
	for k := range namedFiles {
		name := fmt.Sprintf("%d.png", k)
		byNumber = append(byNumber, name, "x")
		write(t, filepath.Join(dir, "in", name), nil)
		write(t, filepath.Join(dir, "classes", fmt.Sprint(k%3), name), nil)
		list = append(list, filepath.Join("in", name))
	}
	write(t, filepath.Join(dir, "list.txt"), []byte(strings.Join(list, "\n")))
	write(t, filepath.Join(dir, "in.tar"), tarOf(t, byNumber...))
	write(t, filepath.Join(dir, "given.tar"), tarOf(t, slices.Concat(byNumber[8:], byNumber[:8])...))
	at := func(name string) string { return filepath.Join(dir, name) }
	for _, tt := range []struct {
		input string
		order fileorder.Order
		want  int // the label of 3.png
	}{
		{at("list.txt"), "", 3}, {at("in.tar"), "", 3}, {at("in/{0..12}.png"), "", 3}, {at("given.tar"), fileorder.Given, 12},
		{at("given.tar"), fileorder.Number, 3}, {at("given.tar"), fileorder.Text, 6}, {at("in"), fileorder.Text, 6},
	} {
		d, err := labelled(t, dir, []string{tt.input}, tt.order, false)
		if err != nil {
			t.Errorf("%s: %v", tt.input, err)
			continue
		}
		i := 0
		for filepath.Base(d.Name(i)) != "3.png" {
			i++
		}
		if got := d.Labels().Classes[i]; got != tt.want {
			t.Errorf("%s: 3.png has the label %d, want %d", tt.input, got, tt.want)
		}
	}
	if d, err := Open([]string{at("classes")}, small); err != nil || d.Labels().None() {
		t.Errorf("class folders: %v", err)
	}
}

// A table of labels, or of groups, names the files in one of its columns, whatever this is called, and in any order.
func TestTablesOfFiles(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for naming, call := range namings {
		dir := t.TempDir()
		for k := range namedFiles {
			write(t, filepath.Join(dir, "in", call(k)+".png"), nil)
		}
		d, err := Open([]string{filepath.Join(dir, "in")}, small)
		if err != nil {
			t.Fatal(err)
		}
		for column, cell := range map[string]func(k int) string{
			"path":        func(k int) string { return "in/" + call(k) + ".png" },
			"Image Index": func(k int) string { return call(k) + ".png" },
			"isic_id":     call,
			"slide_id":    call,
			"x":           func(k int) string { return "scan " + call(k) }, // no file
		} {
			rows := [][]string{{column, "label", "measured"}}
			for _, k := range r.Perm(namedFiles) {
				rows = append(rows, []string{cell(k), fmt.Sprint(k), fmt.Sprint(r.NormFloat64())})
			}
			path := filepath.Join(dir, "table.csv")
			f, err := os.Create(path)
			if err != nil {
				t.Fatal(err)
			}
			if err := csv.NewWriter(f).WriteAll(rows); err != nil {
				t.Fatal(err)
			}
			f.Close()
			group, groupErr := groups.Parse(path+":label", Keyed(d))
			opts := small
			opts.Labels, opts.Named = path, listing.Columns{Labels: []string{"label"}}
			one, err := Open([]string{filepath.Join(dir, "in")}, opts)
			if column == "x" {
				if err == nil || groupErr == nil {
					t.Errorf("%s: no column names the files: %v, %v", naming, err, groupErr)
				}
				continue
			}
			if err != nil || groupErr != nil {
				t.Errorf("%s, column %s: %v, %v", naming, column, err, groupErr)
				continue
			}
			for i, label := range one.Labels().Classes {
				if want := call(label); stem(one.Name(i)) != want || group(i, one.Name(i)) != fmt.Sprint(label) {
					t.Errorf("%s, column %s: %s has the label of %s, and the group %s", naming, column, one.Name(i), want, group(i, one.Name(i)))
					break
				}
			}
		}
		// Without such a column, rows are matched by place, if the order of the files is known.
		path := filepath.Join(dir, "rows.csv")
		write(t, path, []byte("site\n"+strings.Repeat("A\n", namedFiles)))
		_, err = groups.Parse(path+":site", Keyed(d))
		if isKnown := examplesIn(d).orderDoubt() == nil; (err == nil) != isKnown {
			t.Errorf("%s: the order is known: %v, and groups by row: %v", naming, isKnown, err)
		}
	}
}

// Files of two inputs belong together by their names, or the numbers in them. Else their order must be known.
func TestTogether(t *testing.T) {
	fields := []Field{{Name: "left", Shape: []int64{1, 4, 4}, Dims: make([]string, 3), Type: "float32"}, {Name: "right", Shape: []int64{1, 4, 4}, Dims: make([]string, 3), Type: "float32"}}
	for _, tt := range []struct {
		name, left, right string
		want              string
	}{
		{"equal names", "%d.png", "%d.png", ""},
		{"other extensions", "%d.png", "%d.jpg", ""},
		{"equal numbers", "rgb_%d.png", "depth_%d.png", ""},
		{"padded", "%d.png", "x%04d.png", "order is not known"},
		{"from 0 and padded", "%d.png", "%02d.png", "want their files in one order"},
		{"known", "%03d.png", "a%04d.png", ""},
	} {
		dir := t.TempDir()
		for k := range namedFiles {
			write(t, filepath.Join(dir, "left", fmt.Sprintf(tt.left, k)), nil)
			write(t, filepath.Join(dir, "right", fmt.Sprintf(tt.right, k)), nil)
		}
		_, err := Open([]string{dir}, Options{Fields: fields})
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
	}
	dir := t.TempDir()
	for k := range 3 {
		write(t, filepath.Join(dir, "left", fmt.Sprintf("%d.png", k)), nil)
		write(t, filepath.Join(dir, "right", fmt.Sprintf("%d.png", k+1)), nil)
	}
	if _, err := Open([]string{dir}, Options{Fields: fields}); !errors.Is(err, ErrPairs) {
		t.Errorf("shifted names: %v", err)
	}
}
