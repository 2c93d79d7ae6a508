package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"

	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/console"
	"github.com/swagwrap/swagwrap/fixtures/reliability"
)

// numberInputs makes small inputs for every command, and returns the path of each by name.
func numberInputs(t *testing.T) (at func(name string) string) {
	t.Helper()
	dir := t.TempDir()
	at = func(name string) string { return filepath.Join(dir, name) }
	var table strings.Builder
	table.WriteString("age,bmi,bp,label\n")
	for i := range 40 {
		fmt.Fprintf(&table, "%g,%g,%g,%d\n", float64(i%7)-2.5, float64(i%5)-1.75, float64(i%3), i%2)
	}
	if err := os.WriteFile(at("table.csv"), []byte(table.String()), 0o666); err != nil {
		t.Fatal(err)
	}
	writePictures(t, at("pictures"), 6)
	data := func(name string) string { return filepath.Join("testdata", name) }
	pixels := filepath.Join("..", "..", "fixtures", "dense", "pixels")
	states := filepath.Join("..", "..", "internal", "infer", "testdata", "states")
	for _, line := range [][]string{
		{"fit", "--task", "classes", "-o", at("p"), data("ckpt-1.onnx"), data("ckpt-2.onnx")},
		{"fit", "--task", "classes", "-o", at("p2"), data("ckpt-1.onnx"), data("ckpt-10.onnx")},
		{"sample", "-n", "2", "--bn-data", data("images.npz"), "-o", at("e"), at("p")},
		{"fit", "--task", "classes", "-o", at("tp"), data("table-1.onnx"), data("table-2.onnx")},
		{"sample", "-n", "6", "-o", at("te"), at("tp")},
		{"score", "--probs", "-o", at("probs.csv"), at("te"), at("table.csv")},
		{"fit", "--task", "binary", "-o", at("bp"), data("binary-1.onnx"), data("binary-2.onnx")},
		{"sample", "-n", "2", "--bn-data", data("images.npz"), "-o", at("be"), at("bp")},
		{"score", "--probs", "-o", at("two.csv"), at("be"), data("two.npz")},
		{"fit", "--task", "regression", "--targets", "head=none mean=20 std=3", "-o", at("rp"), data("binary-1.onnx"), data("binary-2.onnx")},
		{"fit", "--task", "next-token", "--class-names", data("language.vocab"), "-o", at("lp"), data("language-1.onnx"), data("language-2.onnx")},
		{"sample", "-n", "2", "-o", at("le"), at("lp")},
		{"fit", "--task", "next-token", "-o", at("sp"), filepath.Join(states, "lstm2-a.onnx"), filepath.Join(states, "lstm2-b.onnx")},
		{"fit", "--template", filepath.Join(pixels, "model.onnx"), "--task", "classes", "-o", at("dp"), filepath.Join(pixels, "epoch-6.pt"), filepath.Join(pixels, "epoch-7.pt")},
		{"sample", "--method", "iterates", "-o", at("de"), at("dp")},
	} {
		if code, printed := program(t, append(line, "-q")...); code != 0 {
			t.Fatalf("%q: exit code %d: %s", line, code, printed)
		}
	}
	return at
}

// numberBases returns for each command, and for flags that need another one, a command line that works. OUT stands for the
// output.
func numberBases(at func(string) string) map[string][]string {
	data := func(name string) string { return filepath.Join("testdata", name) }
	pixels := filepath.Join("..", "..", "fixtures", "dense", "pixels")
	states := filepath.Join("..", "..", "internal", "infer", "testdata", "states")
	photos := filepath.Join("..", "..", "fixtures", "images", "files")
	fit := []string{"--task", "classes", "-o", "OUT", data("ckpt-1.onnx"), data("ckpt-2.onnx")}
	dense := []string{"--template", filepath.Join(pixels, "model.onnx"), "--task", "classes", "-o", "OUT", filepath.Join(pixels, "epoch-6.pt"), filepath.Join(pixels, "epoch-7.pt")}
	regression := []string{"--task", "regression", "-o", "OUT", data("binary-1.onnx"), data("binary-2.onnx")}
	drawn := []string{"--bn-data", data("images.npz"), "-o", "OUT", at("p")}
	study := []string{"-n", "2", at("tp"), at("table.csv")}
	normed := []string{"-n", "2", "--bn-data", data("images.npz"), at("p"), data("images.npz")}
	language := []string{"-n", "2", at("lp"), data("language.txt")}
	return map[string][]string{
		"fit": fit, "fit class-axis": dense, "fit ignore-index": dense, "fit noise-std": append([]string{"--targets", "head=none mean=1 std=1"}, regression...), "fit targets": regression,
		"fit pad":   {"--task", "classes", "-o", "OUT", data("tokens-1.onnx"), data("tokens-2.onnx")},
		"fit state": {"--task", "next-token", "-o", "OUT", filepath.Join(states, "lstm2-a.onnx"), filepath.Join(states, "lstm2-b.onnx")},
		"sample":    append([]string{"-n", "2"}, drawn...), "sample members": drawn, "sample weights": append([]string{"-n", "2"}, append(drawn, at("p2"))...),
		"sample augment": {"-n", "2", "--preprocess", "input-size=4", "--bn-data", at("pictures"), "-o", "OUT", at("p")}, "sample preprocess": {"-n", "2", "--bn-data", at("pictures"), "--augment", "none", "-o", "OUT", at("p")},
		"sample noise-std": {"-n", "2", "--bn-data", data("images.npz"), "-o", "OUT", at("rp")}, "sample threshold": {"-n", "2", "--bn-data", data("images.npz"), "-o", "OUT", at("bp")},
		"sample part": {"-n", "2", "--store", at("store"), "--bn-data", data("images.npz"), "-o", "OUT", at("p")},
		"export":      {"--member", "0", "--bn-data", data("images.npz"), "-o", "OUT", at("p")}, "export member": {"--bn-data", data("images.npz"), "-o", "OUT", at("p")}, "export members": {"-o", "OUT", at("te")},
		"export threads": {"-o", "OUT", at("te")}, "export memory": {"-o", "OUT", "--check", at("table.csv"), at("te")}, "export batch-size": {"-o", "OUT", "--check", at("table.csv"), at("te")},
		"export augment": {"--preprocess", "input-size=4", "--bn-data", at("pictures"), "-o", "OUT", at("p")}, "export preprocess": {"--augment", "none", "--bn-data", at("pictures"), "-o", "OUT", at("p")},
		"score": {"-o", "OUT", at("te"), at("table.csv")}, "score text": {"-o", "OUT", at("le"), data("language.txt")}, "score tile": {"-o", "OUT", at("de"), filepath.Join(photos, "hopper.jpg")},
		"score preprocess": {"-o", "OUT", at("e"), at("pictures")}, "score threshold": {"-o", "OUT", at("be"), data("two.npz")}, "score groups": {"-o", "OUT", at("e"), "--preprocess", "input-size=4", at("pictures")},
		"compare": study, "compare members": study[2:], "compare bn-samples": normed, "compare augment": normed, "compare preprocess": normed, "compare text": language, "compare max-members": study,
		"compare threshold": {"-n", "2", "--bn-data", data("images.npz"), "--val", data("two.npz"), at("bp"), data("two.npz")}, "compare shift": {"-n", "2", "--val", at("table.csv"), at("tp"), at("table.csv")},
		"compare part": append([]string{"--store", at("store")}, study...), "compare groups": normed,
		"ood": append(study, at("table.csv")), "ood members": append(study[2:], at("table.csv")), "ood text": append(language, data("language.txt")), "ood part": append(append([]string{"--store", at("store")}, study...), at("table.csv")),
		"ood bn-samples": append(normed, data("images.npz")), "ood augment": append(normed, data("images.npz")), "ood preprocess": append(normed, data("images.npz")),
		"sweep": append([]string{"--scale", "1", "--rank", "0"}, study...), "sweep members": append([]string{"--scale", "1", "--rank", "0"}, study[2:]...), "sweep scale": study, "sweep rank": study, "sweep epochs": append([]string{"--val", at("table.csv")}, study...),
		"sweep part": append([]string{"--store", at("store")}, study...), "sweep text": language, "sweep bn-samples": normed, "sweep augment": normed, "sweep preprocess": normed,
		"geometry": append([]string{"--points", "3"}, study[2:]...), "geometry points": study[2:], "geometry text": append([]string{"--points", "3"}, language[2:]...), "geometry bn-samples": append([]string{"--points", "3"}, normed[2:]...),
		"geometry augment": append([]string{"--points", "3"}, normed[2:]...), "geometry preprocess": append([]string{"--points", "3"}, normed[2:]...),
		"calibrate": {"-o", "OUT", at("probs.csv")}, "calibrate threshold": {"--method", "none", "-o", "OUT", at("two.csv")},
		"settle": {"-o", "OUT", at("te"), at("table.csv")}, "settle text": {"-o", "OUT", at("le"), data("language.txt")}, "settle preprocess": {"-o", "OUT", at("e"), at("pictures")},
		"try": {"-n", "2", "--task", "classes", "-o", "OUT", data("table-1.onnx"), data("table-2.onnx"), at("table.csv")},
	}
}

// most are the largest numbers that the test runs where more only mean more work.
var most = map[string]float64{"members": 100, "max-members": 100, "points": 5}

// worst are the numbers that run with every commit, each once for a flag.
var worst = []string{"9223372036854775807", "1e-300", "1e300"}

// worthwhile reports whether the test runs a number that a flag takes.
func worthwhile(flag, value string) bool {
	limit, limited := most[flag]
	n, err := strconv.ParseFloat(value, 64)
	return flag != "device" && (!limited || err != nil || n <= limit)
}

// Numbers that a flag takes lead to a result, or to an error of usage or data: never to a crash, a hang or an output that is
// not complete. Every night each flag of each command runs with each number, in a process with little memory and time.
func TestNumbersRun(t *testing.T) {
	night := reliability.Figure(0, 1) == 1
	at := numberInputs(t)
	bases, d, tried := numberBases(at), newDoor(), map[string]bool{}
	try := program
	if night {
		exe := executable(t, t.TempDir())
		try = func(t *testing.T, args ...string) (int, string) { return limited(t, exe, args...) }
	}
	codes := map[int]int{}
	rows := numberRows(t, func(r *numberRow, f cli.Flag) {
		base := cmp.Or(strings.Join(bases[r.command+" "+r.flag], "\n"), strings.Join(bases[r.command], "\n"))
		switch {
		case base == "": // a command without data, such as inspect
			return
		case !night && r.command == "try": // it runs fit and compare
			return
		case r.flag == "text" && (r.command == "sample" || r.command == "export"): // of networks without batch norm they read no text
			return
		}
		ran := make([]string, len(r.values))
		for i, v := range r.values {
			arg := "--" + r.flag + "=" + r.value(v)
			if !night && (tried[r.flag+r.text+v] || !slices.Contains(worst, v)) {
				continue
			}
			if err := d.open(r.command, arg); err != nil {
				ran[i] = fmt.Sprint(console.ExitCode(t.Context(), err))
				continue
			}
			if !worthwhile(r.flag, v) {
				continue
			}
			tried[r.flag+r.text+v] = true
			code := runNumber(t, try, at, r.command, append(strings.Split(base, "\n"), arg))
			codes[code]++
			ran[i], r.codes = fmt.Sprint(code), ran
		}
	})
	if codes[0] == 0 || codes[64] == 0 {
		t.Errorf("exit codes %v", codes)
	}
	printNumbers(t, rows)
	t.Logf("%v by exit code", codes)
}

// runNumber runs a command with one more argument, and checks how it ends.
func runNumber(t *testing.T, try func(*testing.T, ...string) (int, string), at func(string) string, command string, args []string) (code int) {
	t.Helper()
	for _, folder := range []string{at("out"), at("store")} {
		if err := os.RemoveAll(folder); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(at("out"), 0o777); err != nil {
		t.Fatal(err)
	}
	out := at("out/x.csv")
	if command == "export" {
		out = at("out/x.onnx")
	}
	for i := range args {
		if args[i] == "OUT" {
			args[i] = out
		}
	}
	args = append([]string{command, "-q"}, args...)
	code, printed := try(t, args...)
	if !slices.Contains([]int{0, 64, 65}, code) || code != 0 && !strings.HasPrefix(printed, "error: ") && command != "settle" { // settle shows its table first
		t.Errorf("%q: exit code %d: %.1000s", args, code, printed)
	}
	if left, err := os.ReadDir(at("out")); err != nil || code != 0 && len(left) > 0 {
		t.Errorf("%q: exit code %d, and left %v, %v", args, code, left, err)
	}
	return code
}

// limited runs the program with 3 GB of memory and a minute of the processor.
func limited(t *testing.T, exe string, args ...string) (code int, printed string) {
	t.Helper()
	c := exec.Command("sh", append([]string{"-c", `ulimit -d 3000000; ulimit -t 60; exec "$@"`, "", exe}, args...)...)
	b, err := c.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return c.ProcessState.ExitCode(), string(b)
}
