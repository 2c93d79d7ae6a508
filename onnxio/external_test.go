package onnxio

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/swagwrap/swagwrap/weights"
)

// sentinel is what no model may read.
const sentinel = "outside!"

// An attack is a model whose tensor "victim", of two floats, lies where it must
// not. The folder has the model in it, and beside that folder lies the file
// "sentinel".
type attack struct {
	prepare func(folder, sentinel string) error // or nil
	pairs   []string                            // of external_data
	want    string
}

// attacks are named after what other readers let through, CVE-2022-25882,
// CVE-2024-27318, CVE-2026-27489 and CVE-2026-34445 to 34447, and their kin.
var attacks = map[string]attack{
	"parent":             {nil, externalAt("../sentinel"), "not a plain path inside"},
	"nested parent":      {mkdir("a"), externalAt("a/../../sentinel"), "not a plain path inside"},
	"parent of parent":   {nil, externalAt("../../" + "sentinel"), "not a plain path inside"},
	"unclean":            {nil, externalAt("./good.bin"), "not a plain path inside"},
	"doubled slash":      {nil, externalAt("a//good.bin"), "not a plain path inside"},
	"backslash":          {nil, externalAt(`..\sentinel`), "not a plain path inside"},
	"no location":        {nil, []string{"offset", "0"}, "not a plain path inside"},
	"empty location":     {nil, externalAt(""), "not a plain path inside"},
	"the folder":         {nil, externalAt("."), "not a regular file"},
	"a folder":           {mkdir("a"), externalAt("a"), "not a regular file"},
	"a file as folder":   {nil, externalAt("good.bin/x"), ""},
	"NUL":                {nil, externalAt("good.bin\x00x"), ""},
	"missing":            {nil, externalAt("absent.bin"), `"absent.bin": no such file`},
	"symlink":            {symlink("link.bin", "../sentinel"), externalAt("link.bin"), "is, or lies behind, a symbolic link"},
	"symlink inside":     {symlink("link.bin", "good.bin"), externalAt("link.bin"), "is, or lies behind, a symbolic link"},
	"symlinked parent":   {symlink("link", ".."), externalAt("link/sentinel"), "path escapes from parent"},
	"link to a folder":   {symlink("link", "."), externalAt("link/good.bin"), "is, or lies behind, a symbolic link"},
	"dangling symlink":   {symlink("link.bin", "nowhere"), externalAt("link.bin"), "is, or lies behind, a symbolic link"},
	"hard link":          {func(folder, sentinel string) error { return os.Link(sentinel, filepath.Join(folder, "hard.bin")) }, externalAt("hard.bin"), "has several names (hard links)"},
	"negative offset":    {nil, externalAt("good.bin", "offset", "-8"), `"-8" is not a size`},
	"offset beyond":      {nil, externalAt("good.bin", "offset", "9"), `bytes 9 to 17 of "good.bin", which has 16`},
	"huge offset":        {nil, externalAt("good.bin", "offset", "9223372036854775807"), "bytes 9223372036854775807 to"},
	"offset over int64":  {nil, externalAt("good.bin", "offset", "9223372036854775808"), "is not a size"},
	"offset not a size":  {nil, externalAt("good.bin", "offset", "0x8"), `"0x8" is not a size`},
	"negative length":    {nil, externalAt("good.bin", "length", "-1"), `"-1" is not a size`},
	"short length":       {nil, externalAt("good.bin", "length", "4"), "length 4, want 8 for float [2]"},
	"giant length":       {nil, externalAt("good.bin", "length", "9223372036854775807"), "length 9223372036854775807, want 8"},
	"both giant":         {nil, externalAt("good.bin", "offset", "9223372036854775807", "length", "9223372036854775807"), "length 9223372036854775807, want 8"},
	"location twice":     {nil, externalAt("good.bin", "location", "../sentinel"), `"location" is given twice`},
	"offset twice":       {nil, externalAt("good.bin", "offset", "0", "offset", "8"), `"offset" is given twice`},
	"injected attribute": {nil, externalAt("good.bin", "__class__", "os"), `unknown key "__class__"`},
	"empty key":          {nil, externalAt("good.bin", "", ""), `unknown key ""`},
}

func externalAt(location string, more ...string) []string {
	return append([]string{"location", location}, more...)
}

func mkdir(name string) func(folder, sentinel string) error {
	return func(folder, _ string) error { return os.Mkdir(filepath.Join(folder, name), 0o755) }
}

func symlink(name, target string) func(folder, sentinel string) error {
	return func(folder, _ string) error { return os.Symlink(target, filepath.Join(folder, name)) }
}

// watch returns a function that tells whether the file has been read since.
// Systems that can tell replace it.
var watch = func(testing.TB, string) (wasRead func() bool) { return func() bool { return false } }

func TestExternalDataAttacks(t *testing.T) {
	for name, a := range attacks {
		t.Run(name, func(t *testing.T) {
			outer := t.TempDir()
			folder, secret := filepath.Join(outer, "model"), filepath.Join(outer, "sentinel")
			writeFiles(t, outer, map[string]string{"sentinel": sentinel, "model/good.bin": "0123456789abcdef"})
			if a.prepare != nil {
				if err := a.prepare(folder, secret); err != nil {
					t.Fatal(err)
				}
			}
			pairs := slices.Clone(a.pairs)
			for i := range pairs {
				pairs[i] = strings.ReplaceAll(pairs[i], "SENTINEL", secret)
			}
			path := filepath.Join(folder, "m.onnx")
			victim := outside(tensor("victim", Float, []int64{2}, nil), pairs...)
			writeFiles(t, folder, map[string]string{"m.onnx": string(encodeModel(tinyGraph(victim)))})
			wasRead := watch(t, secret)
			m, err := Open(path) // a pipe must not keep it waiting
			var e *Error
			if m != nil || !errors.As(err, &e) || e.Path != path || e.Tensor != "victim" || !strings.Contains(e.Error(), a.want) {
				t.Errorf("error %v, want an *Error on the tensor with %q in it", err, a.want)
			} else if strings.Contains(e.Error(), sentinel) {
				t.Errorf("the sentinel's content is in the error: %v", e)
			}
			if wasRead() {
				t.Error("the sentinel was read")
			}
		})
	}
}

func writeFiles(t testing.TB, folder string, files map[string]string) {
	t.Helper()
	for name, content := range files {
		path := filepath.Join(folder, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(content), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
}

// written returns the files that Write writes, by name; "" is the last.
func written(t testing.TB, tpl *Template, name string, l *weights.Layout, p, s weights.Vector) map[string]string {
	t.Helper()
	open, last := make(map[string]*bytes.Buffer), ""
	err := tpl.Write(name, func(file string) (io.Writer, error) {
		if open[file] != nil {
			t.Errorf("%s: %q is written twice", name, file)
		}
		open[file], last = new(bytes.Buffer), file
		return open[file], nil
	}, l, p, s)
	if err != nil {
		t.Fatal(err)
	}
	if last != name {
		t.Errorf("the last file is %q, want the model, %q", last, name)
	}
	out := make(map[string]string)
	for file, b := range open {
		out[file] = b.String()
	}
	return out
}

// scattered is a model with elements in two data files, in its own, and in none:
// weights, a statistic, constants and integers.
func scattered(t testing.TB, seed int) (folder string) {
	t.Helper()
	w, b, c := render32(replacement(4, seed)), render32(replacement(2, seed+50)), render32(replacement(3, 0))
	data := "<head>" + string(w) + "<gap>" + string(c) + "12345678<tail>"
	offset := map[string]string{"w": "6", "c": "27", "i": "39"}
	nodes := [][]byte{
		node("Constant", "constant", nil, []string{"k"}, tensorAttribute("value", outside(tensor("", Float, []int64{3}, nil), externalAt("m.onnx.data", "offset", offset["c"], "length", "12", "checksum", "?")...))),
		node("BatchNormalization", "bn", []string{"x", "w", "b", "mean", "var"}, []string{"y"}),
	}
	inits := [][]byte{
		outside(tensor("w", Float, []int64{4}, nil), externalAt("m.onnx.data", "offset", offset["w"], "length", "16")...),
		outside(tensor("b", Float, []int64{2}, nil), externalAt("sub/b.bin")...),
		outside(tensor("same", Float, []int64{3}, nil), externalAt("m.onnx.data", "offset", offset["c"])...), // shares k's bytes
		outside(tensor("i", Int64, nil, nil), externalAt("m.onnx.data", "offset", offset["i"])...),
		outside(tensor("none", Float, []int64{0, 2}, nil), externalAt("empty.bin")...),
		tensor("mean", Float, []int64{2}, render32(replacement(2, seed+70))),
		tensor("var", Float, []int64{2}, render32(weights.Slice{1, 2})),
	}
	folder = t.TempDir()
	writeFiles(t, folder, map[string]string{
		"m.onnx": string(encodeModel(graph(nodes, inits, [][]byte{output("y", Float)}))), "m.onnx.data": data, "sub/b.bin": string(b), "empty.bin": "",
	})
	return folder
}

func TestExternalData(t *testing.T) {
	m, other := open(t, filepath.Join(scattered(t, 1), "m.onnx")), open(t, filepath.Join(scattered(t, 2), "m.onnx"))
	l := layoutOf(t, m, other)
	if p, s := tensorNames(l.Role(weights.Parameter)), tensorNames(l.Role(weights.Statistic)); !slices.Equal(p, []string{"w", "b"}) || !slices.Equal(s, []string{"mean", "var"}) {
		t.Errorf("parameters %q, statistics %q", p, s)
	}
	checkRewriting(t, m, l)
	if files := m.Files(); len(files) != 4 || string(files[3]) != string(m.files["sub/b.bin"].Parts[0].Data) || m.Size() != int64(len(files[0])+len(files[2])+8) {
		t.Errorf("%d files of %d bytes", len(files), m.Size())
	}

	// Under a new name, with the weights of another checkpoint, it is that checkpoint.
	p, s := vectors(t, other, l)
	files := written(t, templateOf(t, m, l), "n.onnx", l, p, s)
	for _, name := range []string{"n.onnx", "n.onnx.data", "sub/n.onnx.b.bin", "n.onnx.empty.bin"} {
		if _, ok := files[name]; !ok || len(files) != 4 {
			t.Errorf("%q is missing among %d files", name, len(files))
		}
	}
	folder := t.TempDir()
	writeFiles(t, folder, files)
	sameElements(t, other, open(t, filepath.Join(folder, "n.onnx")))
}

// checkRewriting checks that a model and its data files come back byte for
// byte under their name, and hold the same under another and in one file.
func checkRewriting(t *testing.T, m *Model, l *weights.Layout) {
	t.Helper()
	p, s := vectors(t, m, l)
	tpl, base := templateOf(t, m, l), filepath.Base(m.Path)
	files := written(t, tpl, base, l, p, s)
	if len(files) != len(allBytes(m)) {
		t.Errorf("%d files, want %d", len(files), len(allBytes(m)))
	}
	for name, want := range allBytes(m) {
		if name == "" {
			name = base
		}
		if files[name] != want {
			t.Errorf("%s: %q changed", m.Path, name)
		}
	}
	folder := t.TempDir()
	writeFiles(t, folder, written(t, tpl, "another.onnx", l, p, s))
	sameElements(t, m, open(t, filepath.Join(folder, "another.onnx")))

	whole, err := NewRuntimeTemplate(m, l)
	if err != nil {
		t.Fatal(err)
	}
	one := parse(t, render(t, whole, l, p, s))
	if one.hasExternal() || len(whole.Files()) != 1 {
		t.Errorf("%s: still refers to other files; %q", m.Path, whole.Files())
	}
	m, err = m.Simplified() // for sessions
	if err != nil {
		t.Fatal(err)
	}
	sameElements(t, m, one)
	untouched, err := m.Runtime()
	if err != nil {
		t.Fatal(err)
	}
	sameElements(t, m, parse(t, rendered(t, untouched)))
}

// PyTorch's exporter writes external data unless told not to.
func TestExternalDataOfDynamo(t *testing.T) {
	t.Parallel()
	paths, err := filepath.Glob("../fixtures/exporters/torch-dynamo/*.onnx")
	if err != nil || len(paths) < 2 {
		t.Fatalf("%q, %v", paths, err)
	}
	var models []*Model
	for _, path := range paths {
		models = append(models, open(t, path))
	}
	l := layoutOf(t, models...)
	if !models[0].hasExternal() || l.Len(weights.Parameter) == 0 {
		t.Error("no external data in it, or no parameters")
	}
	for _, m := range models {
		checkRewriting(t, m, l)
	}
}

// Two parameters in the same bytes cannot differ later, and two files of a model
// cannot bear one name.
func TestExternalDataConflicts(t *testing.T) {
	model := func(locations ...string) *Model {
		var inits [][]byte
		given := make(map[string][]byte)
		for i, location := range locations {
			inits = append(inits, outside(tensor(string(rune('a'+i)), Float, []int64{2}, nil), externalAt(location)...))
			given[location] = make([]byte, 8)
		}
		m, err := ParseFiles("m.onnx", encodeModel(tinyGraph(inits...)), given)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	shared := model("w.bin", "w.bin")
	_, err := NewTemplate(shared, layoutOf(t, shared))
	wantError(t, "shared bytes", err, `m.onnx: tensor "b": shares byte 0 of w.bin`, "")
	for name, m := range map[string]*Model{"m.onnx": model("m.onnx"), "n.onnx": model("w", "m.onnx.w")} {
		l := layoutOf(t, m)
		p, s := vectors(t, m, l)
		err := templateOf(t, m, l).Write(name, func(string) (io.Writer, error) { return io.Discard, nil }, l, p, s)
		if err == nil || !strings.Contains(err.Error(), name+": two of its files would be called") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A template from a hostile posterior must not lead out of the folder.
func TestHostileFileNames(t *testing.T) {
	m := fixture(t, "external")
	l := layoutOf(t, m)
	p, s := vectors(t, m, l)
	for _, file := range []string{"../weights.bin", "/weights.bin", "a/../../weights.bin", `..\weights.bin`, ""} {
		tpl := templateOf(t, m, l)
		tpl.files[1].name = file
		err := tpl.Write("external.onnx", func(name string) (io.Writer, error) {
			t.Errorf("%q is written", name)
			return io.Discard, nil
		}, l, p, s)
		wantError(t, file, err, "external.onnx: data file", "")
	}
}

func TestParseFiles(t *testing.T) {
	data := fixture(t, "external").Bytes()
	_, err := ParseFiles("m.onnx", data, nil)
	wantError(t, "not given", err, `m.onnx: tensor "w": external data: "weights.bin": file does not exist`, "in the model's folder")
	_, err = ParseFiles("m.onnx", data, map[string][]byte{"weights.bin": make([]byte, 47)})
	wantError(t, "short", err, `m.onnx: tensor "w": external data: bytes 0 to 48 of "weights.bin", which has 47`, "")
	if _, err = parse(t, data).Runtime(); err == nil {
		t.Error("readied for sessions without its data")
	}
}
