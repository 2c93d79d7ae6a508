package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/swagwrap/swagwrap/internal/ort"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"swagwrap": main})
}

// TestScripts runs testdata/script: one file a command, and one for what users
// get wrong. In them $FIXTURES is fixtures/mnist, $IMAGES holds pictures, and $T
// the small models that testdata/make.py made.
func TestScripts(t *testing.T) {
	runScripts(t, testscript.Params{Dir: filepath.Join("testdata", "script")})
}

// TestReadme runs the shell commands of README.md, as a newcomer would.
func TestReadme(t *testing.T) {
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
	txtar := strings.Join([]string{"symlink fixtures -> $FIXTURES/..", "exec sh -e commands.sh", "-- commands.sh --", script.String()}, "\n")
	if err := os.WriteFile(filepath.Join(dir, "readme.txtar"), []byte(txtar), 0o666); err != nil {
		t.Fatal(err)
	}
	runScripts(t, testscript.Params{Dir: dir})
}

func runScripts(t *testing.T, p testscript.Params) {
	t.Helper()
	library, err := ort.Locate("")
	if err != nil {
		t.Fatalf("%v (run make setup)", err)
	}
	absolute := func(elem ...string) string {
		path, err := filepath.Abs(filepath.Join(elem...))
		if err != nil {
			t.Fatal(err)
		}
		return path
	}
	p.Setup = func(env *testscript.Env) error {
		env.Setenv(ort.LibraryEnv, library)
		env.Setenv("FIXTURES", absolute("..", "..", "fixtures", "mnist"))
		env.Setenv("T", absolute("testdata"))
		env.Setenv("IMAGES", absolute("..", "..", "fixtures", "images", "files"))
		return nil
	}
	p.Cmds = map[string]func(*testscript.TestScript, bool, []string){
		"exits": exits,
		"head":  head,
	}
	p.RequireExplicitExec = true
	testscript.Run(t, p)
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
