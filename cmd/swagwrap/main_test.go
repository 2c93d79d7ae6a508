package main

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/swagwrap/swagwrap/fixtures/promise"
	"github.com/swagwrap/swagwrap/internal/ort"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"swagwrap": mainWithPeak, "mutants": mutants})
}

// TestScripts runs testdata/script: one file a command, and one for what users
// get wrong. In them $FIXTURES is fixtures/mnist, $FEW the same with the first 100
// images of each file, $IMAGES holds pictures, and $T the small
// models that testdata/make.py made. $ENDINGS holds tiny networks whose outputs end in
// every way.
func TestScripts(t *testing.T) {
	t.Parallel()
	runScripts(t, testscript.Params{Dir: filepath.Join("testdata", "script")})
}

// TestReadme runs the shell commands of README.md, as a newcomer would: on all images
// every night, and on few with every change.
func TestReadme(t *testing.T) {
	t.Parallel()
	readme, err := os.ReadFile(filepath.Join("..", "..", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	var script strings.Builder
	for i, block := range strings.Split(string(readme), "```")[1:] {
		commands, ok := strings.CutPrefix(block, "sh\n")
		if i%2 == 0 && ok && strings.HasPrefix(commands, "swagwrap ") {
			script.WriteString(commands)
		}
	}
	if n := strings.Count("\n"+script.String(), "\nswagwrap "); n < 5 {
		t.Fatalf("README.md shows %d commands, want one of each", n)
	}
	dir := t.TempDir()
	all := promise.Figure(0, 1)
	lines := []string{"symlink fixtures -> " + []string{"$FEW", "$FIXTURES"}[all] + "/..", "exec sh -e commands.sh"}
	for _, row := range strings.Split(string(readme), "\n") {
		if all == 1 && strings.HasPrefix(row, "    S") && strings.Contains(row, " T") { // the table on all images
			lines = append(lines, "stdout '"+strings.ReplaceAll(regexp.QuoteMeta(strings.Join(strings.Fields(row), " ")), " ", " +")+"'")
		}
	}
	txtar := strings.Join(append(lines, "-- commands.sh --", script.String()), "\n")
	if err := os.WriteFile(filepath.Join(dir, "readme.txtar"), []byte(txtar), 0o666); err != nil {
		t.Fatal(err)
	}
	runScripts(t, testscript.Params{Dir: dir})
}

func runScripts(t *testing.T, p testscript.Params) {
	t.Helper()
	library, err := ort.Provider{}.Find("")
	if err != nil {
		t.Fatalf("%v (run make setup)", err)
	}
	fixtures := absolute(t, "..", "..", "fixtures", "mnist")
	few := fewImages(t, fixtures, 100)
	p.Setup = func(env *testscript.Env) error {
		env.Setenv("COLUMNS", "500") // tables with all their columns
		env.Setenv(ort.LibraryEnv, library.Path)
		env.Setenv("CACHED", "swagwrap/onnxruntime-"+ort.Version) // the folder of the library in a user's cache
		env.Setenv("FIXTURES", fixtures)
		env.Setenv("FEW", few)
		env.Setenv("T", absolute(t, "testdata"))
		env.Setenv("IMAGES", absolute(t, "..", "..", "fixtures", "images", "files"))
		env.Setenv("ENDINGS", absolute(t, "..", "..", "internal", "infer", "intake", "testdata"))
		return nil
	}
	p.Cmds = map[string]func(*testscript.TestScript, bool, []string){
		"cmpmodel":  cmpModel,
		"exits":     exits,
		"head":      head,
		"next":      next,
		"plausible": plausible,
		"posterior": ofPosterior,
	}
	p.RequireExplicitExec = true
	testscript.Run(t, p)
}

// fewImages makes a folder like that of the fixtures, with so many images in each file.
func fewImages(t *testing.T, fixtures string, rows int) string {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	dir := filepath.Join(t.TempDir(), "mnist")
	must(os.Mkdir(dir, 0o777))
	for _, name := range []string{"checkpoints", "states", "model.onnx"} {
		must(os.Symlink(filepath.Join(fixtures, name), filepath.Join(dir, name)))
	}
	for _, name := range []string{"train.npz", "test.npz", "val.npz"} {
		all, err := zip.OpenReader(filepath.Join(fixtures, name))
		must(err)
		defer all.Close()
		f, err := os.Create(filepath.Join(dir, name))
		must(err)
		defer f.Close()
		some := zip.NewWriter(f)
		for _, entry := range all.File {
			r, err := entry.Open()
			must(err)
			npy, err := io.ReadAll(r)
			must(err)
			w, err := some.Create(entry.Name)
			must(err)
			_, err = w.Write(firstRows(npy, rows))
			must(err)
		}
		must(some.Close())
	}
	return dir
}

var npyShape = regexp.MustCompile(`'shape': \((\d+),`)

// firstRows cuts off the first rows of an array in version 1 of the .npy format. The
// head keeps its length.
func firstRows(npy []byte, rows int) []byte {
	end := 10 + int(binary.LittleEndian.Uint16(npy[8:]))
	head, body := npy[:end], npy[end:]
	shape := npyShape.FindSubmatch(head)
	all, _ := strconv.Atoi(string(shape[1]))
	cut := bytes.Replace(bytes.TrimRight(head, " \n"), shape[0], fmt.Appendf(nil, "'shape': (%d,", rows), 1)
	cut = append(cut, bytes.Repeat([]byte(" "), end-len(cut)-1)...)
	return append(append(cut, '\n'), body[:len(body)/all*rows]...)
}

// plainModel returns the bytes of a model without the metadata that export appends.
func plainModel(model string) string {
	i := strings.Index(model, "swagwrap.")
	if i < 0 {
		return model
	}
	i -= 3 // the last byte of the entry's length. Its tag precedes the length.
	for model[i-1] >= 0x80 {
		i--
	}
	return model[:i-1]
}

// cmpModel compares two models without the metadata that export appends.
func cmpModel(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 2 {
		ts.Fatalf("usage: cmpmodel FILE FILE")
	}
	if (plainModel(ts.ReadFile(args[0])) == plainModel(ts.ReadFile(args[1]))) == neg {
		ts.Fatalf("%s and %s: the same: %v", args[0], args[1], neg)
	}
}

// exits CODE COMMAND ARG... runs a command that must end with the given code.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND ARG...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	var exit *exec.ExitError
	if err := ts.Exec(args[1], args[2:]...); errors.As(err, &exit) {
		got = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

// next [WORD=FILE...] runs the commands that the last command printed as "next: ". It puts files where words such as VAL
// stand.
func next(ts *testscript.TestScript, neg bool, args []string) {
	_, lines, found := strings.Cut("\n"+ts.ReadFile("stderr"), "\nnext: ")
	if neg || !found || strings.ContainsAny(lines, "'") {
		ts.Fatalf("no commands without quotes in %q", ts.ReadFile("stderr"))
	}
	for line := range strings.Lines(lines) {
		words := strings.Fields(line)
		for _, arg := range args {
			word, file, _ := strings.Cut(arg, "=")
			if i := slices.Index(words, word); i >= 0 {
				words[i] = file
			}
		}
		ts.Check(ts.Exec(words[0], words[1:]...))
	}
}

// plausible FROM.csv TO.csv copies predictions that score wrote, with labels that determine a calibration.
func plausible(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: plausible FROM.csv TO.csv")
	}
	text, err := plausibly(ts.ReadFile(args[0]))
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), []byte(text), 0o666))
	ts.Check(os.WriteFile(ts.MkAbs(args[1]+".meta.json"), []byte(ts.ReadFile(args[0]+".meta.json")), 0o666))
}

// plausibly returns predictions with other labels: four of five are as predicted. Each row is there six times. The labels of the
// tiny networks here are chance, and determine no calibration.
func plausibly(predictions string) (string, error) {
	rows, err := csv.NewReader(strings.NewReader(predictions)).ReadAll()
	if err != nil {
		return "", err
	}
	at := func(name string) int { return slices.Index(rows[0], name) }
	type pair struct{ label, prediction, of int } // columns, and the number of classes
	var pairs []pair
	if k := at("label"); k >= 0 {
		classes := 0
		for at(fmt.Sprint("p_", classes)) >= 0 {
			classes++
		}
		pairs = append(pairs, pair{k, at("prediction"), classes})
	}
	for k := 0; at(fmt.Sprint("label_", k)) >= 0; k++ {
		pairs = append(pairs, pair{at(fmt.Sprint("label_", k)), at(fmt.Sprint("probability_", k)), 2})
	}
	out, n := [][]string{rows[0]}, 0
	for range 6 {
		for _, row := range rows[1:] {
			row = slices.Clone(row)
			for _, p := range pairs {
				v, err := strconv.ParseFloat(row[p.prediction], 64)
				if err != nil {
					return "", err
				}
				right := int(math.Round(v))
				if n++; n%5 == 0 {
					right = (right + 1 + n%2%(p.of-1)) % p.of
				}
				row[p.label] = strconv.Itoa(right)
			}
			out = append(out, row)
		}
	}
	var b strings.Builder
	err = csv.NewWriter(&b).WriteAll(out)
	return b.String(), err
}

// head N FROM TO copies the first N bytes of a file.
func head(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: head N FROM TO")
	}
	n, err := strconv.Atoi(args[0])
	ts.Check(err)
	b, err := os.ReadFile(ts.MkAbs(args[1]))
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[2]), b[:min(n, len(b))], 0o666))
}
