package main

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/text/unicode/norm"

	"github.com/swagwrap/swagwrap/fixtures/reliability"
)

// namedWorld has the same labelled pictures in several formats, under several names of the classes.
type namedWorld struct {
	dir      string
	pictures [][]byte
	classes  []int // of each picture
}

// className has the order of the classes in the form NFC, and another one in the form NFD.
var className = []string{"aigle", "zèbre", "école"}

func (w *namedWorld) write(t *testing.T, name string, b []byte) {
	t.Helper()
	path := filepath.Join(w.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, b, 0o666); err != nil {
		t.Fatal(err)
	}
}

// newNamedWorld makes pictures with labels at random. Another numbering of the classes then gives other figures.
func newNamedWorld(t *testing.T) *namedWorld {
	w := &namedWorld{dir: t.TempDir()}
	r := rand.New(rand.NewPCG(4, 7))
	for range 60 {
		img := image.NewGray(image.Rect(0, 0, 4, 4))
		for p := range 16 {
			img.SetGray(p%4, p/4, color.Gray{Y: uint8(r.IntN(256))})
		}
		var b bytes.Buffer
		if err := png.Encode(&b, img); err != nil {
			t.Fatal(err)
		}
		w.pictures = append(w.pictures, b.Bytes())
	}
	for i, b := range w.pictures {
		w.write(t, fmt.Sprintf("all/%02d.png", i), b)
	}
	for _, args := range [][]string{
		{"fit", "-q", "--task", "classes", "-o", w.at("p.safetensors"), "testdata/ckpt-1.onnx", "testdata/ckpt-2.onnx", "testdata/ckpt-10.onnx"},
		{"sample", "-q", "-n", "2", "--bn", "keep", "-o", w.at("e.safetensors"), w.at("p.safetensors")},
	} {
		if code, printed := program(t, args...); code != 0 {
			t.Fatalf("%q: exit code %d: %s", args, code, printed)
		}
	}
	for range w.pictures {
		w.classes = append(w.classes, r.IntN(3))
	}
	return w
}

func (w *namedWorld) at(name string) string { return filepath.Join(w.dir, name) }

// folder, list and tar write the pictures with labels that name returns. The order of the rows and the names of the files are
// drawn by the seed. A label "" leaves a picture out.
func (w *namedWorld) folder(t *testing.T, to string, seed uint64, name func(class int) string) {
	for i, k := range w.order(seed) {
		if class := name(w.classes[k]); class != "" {
			w.write(t, filepath.Join(to, class, fmt.Sprintf("%02d.png", i)), w.pictures[k])
		}
	}
}

func (w *namedWorld) list(t *testing.T, to string, seed uint64, name func(class int) string) {
	sep := map[string]string{".csv": ",", ".tsv": "\t"}[filepath.Ext(to)]
	text := strings.Join([]string{"label", "path"}, sep) + "\n"
	if seed%2 == 0 {
		text = strings.Join([]string{"path", "label"}, sep) + "\n"
	}
	for _, k := range w.order(seed) {
		row := []string{name(w.classes[k]), fmt.Sprintf("all/%02d.png", k)}
		if row[0] == "" {
			continue
		}
		if seed%2 == 0 {
			slices.Reverse(row)
		}
		text += strings.Join(row, sep) + "\n"
	}
	w.write(t, to, []byte(text))
}

func (w *namedWorld) tar(t *testing.T, to string, seed uint64, name func(class int) string) {
	var b bytes.Buffer
	z := tar.NewWriter(&b)
	add := func(name string, content []byte) {
		if err := z.WriteHeader(&tar.Header{Name: name, Size: int64(len(content)), Mode: 0o644}); err != nil {
			t.Fatal(err)
		}
		z.Write(content)
	}
	for i, k := range w.order(seed) {
		class := name(w.classes[k])
		if class == "" {
			continue
		}
		if seed%2 == 0 {
			add(fmt.Sprintf("%02d.cls", i), []byte(class))
		} else {
			js, _ := json.Marshal(map[string]string{"label": class})
			add(fmt.Sprintf("%02d.json", i), js)
		}
		add(fmt.Sprintf("%02d.png", i), w.pictures[k])
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	w.write(t, to, b.Bytes())
}

func (w *namedWorld) order(seed uint64) []int {
	return rand.New(rand.NewPCG(seed, seed)).Perm(len(w.pictures))
}

// figures returns the numbers of a result that depend on the numbers of the classes. The order of the rows changes only their
// last digits, which are cut off.
func figures(t *testing.T, js string) (out []string) {
	var result any
	if err := json.Unmarshal([]byte(js), &result); err != nil {
		t.Fatalf("%v: %.200s", err, js)
	}
	var walk func(parent, key string, v any)
	walk = func(parent, key string, v any) {
		switch v := v.(type) {
		case map[string]any:
			for _, k := range slices.Sorted(maps.Keys(v)) {
				walk(key, k, v[k])
			}
		case []any:
			for _, x := range v {
				walk(parent, key, x)
			}
		case float64:
			if key == "auroc" || slices.Contains([]string{"", "methods", "without_temperature", "points"}, parent) && slices.Contains([]string{"nll", "accuracy", "loss"}, key) {
				out = append(out, fmt.Sprintf("%s %.4g", key, v))
			}
		}
	}
	walk("", "", result)
	if len(out) == 0 && strings.Contains(js, "methods") {
		t.Fatalf("no figures: %.300s", js)
	}
	return out
}

// namedCommands read labelled data. {} stands for the variant, and plain for the pictures with numbers.
var namedCommands = []struct {
	name string
	args []string
}{
	{"score", []string{"score", "-q", "-o", "out.jsonl", "--force", "e.safetensors", "{}"}},
	{"compare", []string{"compare", "-q", "--json", "--bn", "keep", "-n", "2", "--methods", "sgd,swa,swag", "p.safetensors", "{}"}},
	{"compare --val", []string{"compare", "-q", "--json", "--bn", "keep", "-n", "2", "--methods", "swa,swa-temp", "--val", "{}", "p.safetensors", "plain.csv"}},
	{"sweep", []string{"sweep", "-q", "--json", "--bn", "keep", "-n", "2", "--scale", "1", "--rank", "0", "p.safetensors", "{}"}},
	{"geometry", []string{"geometry", "-q", "--json", "--bn", "keep", "--points", "3", "p.safetensors", "{}"}},
	{"ood --val", []string{"ood", "-q", "--json", "--bn", "keep", "-n", "2", "--methods", "swa,swa-temp", "--val", "{}", "p.safetensors", "plain.csv", "all"}},
}

// Names of classes mean the same in each format and command: the figures are those of the numbers, or the command refuses the
// data. No cell of this table is wrong in silence.
func TestNames(t *testing.T) {
	t.Parallel()
	w := newNamedWorld(t)
	named := func(class int) string { return className[class] }
	decomposed := func(class int) string { return norm.NFD.String(className[class]) }
	without := func(class int) string { return []string{"aigle", "", "école"}[class] }
	other := func(class int) string { return []string{"aigle", "zebra", "école"}[class] }
	w.list(t, "plain.csv", 0, func(class int) string { return fmt.Sprint(class) })
	variants := []struct {
		name  string
		make  func(to string, name func(int) string)
		label func(class int) string
		known bool // --val, or an ensemble's card, says the names
		want  string
	}{
		{"folder", func(to string, n func(int) string) { w.folder(t, to, 1, n) }, named, false, "right"},
		{"folder-nfd", func(to string, n func(int) string) { w.folder(t, to, 2, n) }, decomposed, false, "right"},
		{"list.csv", func(to string, n func(int) string) { w.list(t, to, 3, n) }, named, false, "right"},
		{"nfd.tsv", func(to string, n func(int) string) { w.list(t, to, 4, n) }, decomposed, false, "right"},
		{"floats.csv", func(to string, n func(int) string) { w.list(t, to, 5, n) }, func(class int) string { return fmt.Sprintf("%d.0", class) }, false, "right"},
		{"zeros.tar", func(to string, n func(int) string) { w.tar(t, to, 6, n) }, func(class int) string { return fmt.Sprintf("0%d", class) }, false, "right"},
		{"named.tar", func(to string, n func(int) string) { w.tar(t, to, 7, n) }, decomposed, false, "right"},
		{"folder-without", func(to string, n func(int) string) { w.folder(t, to, 8, n) }, without, false, "refused"},
		{"without.csv", func(to string, n func(int) string) { w.list(t, to, 9, n) }, without, false, "refused"},
		{"without.tar", func(to string, n func(int) string) { w.tar(t, to, 10, n) }, without, false, "refused"},
		{"known-without.csv", func(to string, n func(int) string) { w.list(t, to, 11, n) }, without, true, "right"},
		{"known-without", func(to string, n func(int) string) { w.folder(t, to, 12, n) }, without, true, "right"},
		{"known-nfd.tar", func(to string, n func(int) string) { w.tar(t, to, 13, n) }, decomposed, true, "right"},
		{"known-other.csv", func(to string, n func(int) string) { w.list(t, to, 14, n) }, other, true, "refused"},
		{"known-other", func(to string, n func(int) string) { w.folder(t, to, 15, n) }, other, true, "refused"},
	}
	w.write(t, "names.txt", []byte(strings.Join(className, "\n")))
	if code, printed := program(t, "fit", "-q", "--task", "classes", "--class-names", w.at("names.txt"), "-o", w.at("known.safetensors"), "testdata/ckpt-1.onnx", "testdata/ckpt-2.onnx", "testdata/ckpt-10.onnx"); code != 0 {
		t.Fatal(printed)
	}
	if code, printed := program(t, "sample", "-q", "-n", "2", "--bn", "keep", "-o", w.at("known-e.safetensors"), w.at("known.safetensors")); code != 0 {
		t.Fatal(printed)
	}
	every := reliability.Figure(7, 1)
	for i, v := range variants {
		for j, c := range namedCommands {
			if (i+j)%every != 0 {
				continue
			}
			to := w.at(v.name)
			if _, err := os.Stat(to); err != nil {
				v.make(v.name, v.label)
			}
			// The same rows in the same order, with numbers.
			reference := "number-" + strings.TrimSuffix(v.name, filepath.Ext(v.name)) + ".csv"
			w.list(t, reference, uint64(i+1), func(class int) string {
				if v.label(class) == "" {
					return ""
				}
				return fmt.Sprint(class)
			})
			want, code := w.run(t, c.args, reference, v.known)
			if code != 0 {
				t.Fatalf("%s with numbers: exit code %d: %s", c.name, code, want)
			}
			got, code := w.run(t, c.args, v.name, v.known)
			refused := code == 64 || code == 65
			labelsLeftOut := c.name == "score" && code == 0 && !strings.Contains(got, `"label"`)
			switch {
			case v.want == "right" && (code != 0 || !slices.Equal(figures(t, got), figures(t, want))):
				t.Errorf("%s, %s: exit code %d: %v\nwant %v", c.name, v.name, code, short(got), figures(t, want))
			case v.want == "refused" && !refused && !labelsLeftOut:
				t.Errorf("%s, %s: exit code %d, want a refusal: %s", c.name, v.name, code, short(got))
			}
		}
	}
}

func short(s string) string { return s[:min(len(s), 600)] }

// run runs a command on a variant, and returns its result.
func (w *namedWorld) run(t *testing.T, args []string, variant string, known bool) (string, int) {
	args = slices.Clone(args)
	for i, a := range args {
		if a == "{}" {
			a = variant
		}
		if known {
			a = map[string]string{"p.safetensors": "known.safetensors", "e.safetensors": "known-e.safetensors"}[a] + strings.Repeat(a, map[bool]int{true: 0, false: 1}[a == "p.safetensors" || a == "e.safetensors"])
		}
		if args[i] == "{}" || strings.Contains(a, ".") || a == "all" {
			a = w.at(a)
		}
		args[i] = a
	}
	var out, errs bytes.Buffer
	code := run(t.Context(), append([]string{"swagwrap"}, args...), &out, &errs)
	if code != 0 {
		return errs.String(), code
	}
	if args[0] == "score" {
		return w.accuracy(t), 0
	}
	return out.String(), 0
}

// accuracy returns the share of right predictions in the rows of score, as JSON.
func (w *namedWorld) accuracy(t *testing.T) string {
	b, err := os.ReadFile(w.at("out.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	n, right := 0, 0
	labelled := false
	for line := range strings.Lines(string(b)) {
		var row struct {
			Label      *int
			Prediction int
		}
		if err := json.Unmarshal([]byte(line), &row); err != nil {
			t.Fatal(err)
		}
		n++
		if row.Label != nil {
			labelled = true
			if *row.Label == row.Prediction {
				right++
			}
		}
	}
	if !labelled {
		return "{}"
	}
	return fmt.Sprintf(`{"accuracy": %v, "label": true}`, float64(right)/float64(n))
}
