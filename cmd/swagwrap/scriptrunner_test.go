package main

import (
	"bytes"
	"context"
	"encoding/gob"
	"errors"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/swagwrap/swagwrap/internal/ort"
)

// Half of the time of a short command is the start of its process and of ONNX Runtime. So each script has one process that runs its
// commands in turn, the runner: "exec swagwrap" and "exits CODE swagwrap" go there. Commands that a shell starts, and those of
// [startsAlone], are processes of their own.

// A scriptCommand is what a runner runs. It has the arguments, the folder and the environment of the script at this moment.
type scriptCommand struct {
	Args, Env []string
	Folder    string
}

// A scriptResult is what became of a command.
type scriptResult struct {
	Code           int
	Stdout, Stderr []byte
}

// A scriptRunner is the process of one script. It starts with the first command.
type scriptRunner struct {
	process *exec.Cmd
	send    *gob.Encoder
	receive *gob.Decoder
	close   io.Closer
	crash   bytes.Buffer

	variables []string // of the environment: testscript tells no more than the value of a name
	library   string   // ONNX Runtime
}

// runnerKey is that of the runner among the values of a script.
type runnerKey struct{}

// newScriptRunner gives a script its runner. The script sets these variables besides those that it has.
func newScriptRunner(env *testscript.Env, set []string) {
	r := &scriptRunner{variables: set, library: env.Getenv(ort.LibraryEnv)}
	for _, v := range env.Vars {
		name, _, _ := strings.Cut(v, "=")
		r.variables = append(r.variables[:len(r.variables):len(r.variables)], name)
	}
	env.Values[runnerKey{}] = r
	env.Defer(func() {
		if r.process != nil {
			r.close.Close()
			r.process.Wait()
		}
	})
}

// runScriptCommands is main of the runner.
func runScriptCommands() {
	debug.SetGCPercent(400) // there is little to keep
	commands, results := gob.NewDecoder(os.Stdin), gob.NewEncoder(os.Stdout)
	for {
		var c scriptCommand
		if err := commands.Decode(&c); err != nil {
			return // the script has ended
		}
		os.Clearenv()
		for _, v := range c.Env {
			name, value, _ := strings.Cut(v, "=")
			os.Setenv(name, value)
		}
		if err := os.Chdir(c.Folder); err != nil {
			panic(err)
		}
		os.Args = c.Args
		var stdout, stderr lockedBuffer
		code := run(context.Background(), c.Args, &stdout, &stderr)
		if err := results.Encode(scriptResult{code, stdout.Bytes(), stderr.Bytes()}); err != nil {
			panic(err)
		}
	}
}

// A lockedBuffer takes what goroutines write, as a pipe does.
type lockedBuffer struct {
	sync.Mutex
	bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.Lock()
	defer b.Unlock()
	return b.Buffer.Write(p)
}

// start starts the process for a first command.
func (r *scriptRunner) start(first scriptCommand) error {
	program, err := exec.LookPath("swagwrap") // of which os.Executable tells the commands, as in a process of their own
	if err != nil {
		return err
	}
	r.process = &exec.Cmd{Path: program, Args: []string{runnerName}, Dir: first.Folder, Env: first.Env, Stderr: &r.crash}
	in, err0 := r.process.StdinPipe()
	out, err1 := r.process.StdoutPipe()
	if err := errors.Join(err0, err1, r.process.Start()); err != nil {
		return err
	}
	r.send, r.receive, r.close = gob.NewEncoder(in), gob.NewDecoder(out), in
	return nil
}

// runnerName is the name by which TestMain knows that it is a runner.
const runnerName = "script-commands"

// runInScript runs a command as testscript's exec does, and returns its exit code.
func runInScript(ts *testscript.TestScript, args []string) (code int) {
	r := ts.Value(runnerKey{}).(*scriptRunner)
	if r.startsAlone(ts, args) {
		err := ts.Exec(args[0], args[1:]...)
		if args[0] == "swagwrap" {
			faultsOf(ts, checkHints(args, ts.MkAbs("."), ts.ReadFile("stderr"), nil))
		}
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			return exit.ExitCode()
		}
		ts.Check(err)
		return 0
	}
	c := scriptCommand{Args: args, Folder: ts.MkAbs(".")}
	c.Env = append(c.Env, "PWD="+c.Folder)
	for _, name := range r.variables {
		if value := ts.Getenv(name); value != "" {
			c.Env = append(c.Env, name+"="+value)
		}
	}
	if r.process == nil {
		ts.Check(r.start(c))
	}
	result := r.run(ts, c)
	ts.Stdout().Write(result.Stdout)
	ts.Stderr().Write(result.Stderr)
	r.checkHints(ts, c, result)
	return result.Code
}

// run runs a command in the process of the script.
func (r *scriptRunner) run(ts *testscript.TestScript, c scriptCommand) (result scriptResult) {
	if err := errors.Join(r.send.Encode(c), r.receive.Decode(&result)); err != nil {
		r.close.Close()
		ts.Fatalf("the process that runs the commands of the script has ended: %v, %v\n%s", err, r.process.Wait(), r.crash.Bytes())
	}
	return result
}

// checkHints ends a script if a hint of a command is wrong. What hints show after an error runs in a copy of the script's folder.
func (r *scriptRunner) checkHints(ts *testscript.TestScript, c scriptCommand, result scriptResult) {
	var try func([]string) int
	if result.Code != 0 {
		try = func(words []string) int { return r.tryHint(ts, c, words) }
	}
	faultsOf(ts, checkHints(c.Args, c.Folder, string(result.Stderr), try))
}

// tryHint runs what a hint of a command shows, in a copy of the script's folder, and returns its exit code. Commands that need a process
// of their own are not run: setup would fetch files.
func (r *scriptRunner) tryHint(ts *testscript.TestScript, c scriptCommand, words []string) int {
	if r.startsAlone(ts, words) {
		return notRun
	}
	parent, err := os.MkdirTemp("", "hints")
	ts.Check(err)
	defer os.RemoveAll(parent)
	work, to := ts.Getenv("WORK"), filepath.Join(parent, "work")
	ts.Check(os.CopyFS(to, os.DirFS(work)))
	moved := scriptCommand{Folder: strings.Replace(c.Folder, work, to, 1)}
	for _, word := range words {
		moved.Args = append(moved.Args, strings.ReplaceAll(word, work, to))
	}
	if i := slices.Index(moved.Args, "-o"); i >= 0 && i+1 < len(moved.Args) { // the script may have made this file before
		output := moved.Args[i+1]
		if !filepath.IsAbs(output) {
			output = filepath.Join(moved.Folder, output)
		}
		if strings.HasPrefix(output, to) {
			ts.Check(os.RemoveAll(output))
		}
	}
	for _, v := range c.Env {
		moved.Env = append(moved.Env, strings.ReplaceAll(v, work, to))
	}
	return r.run(ts, moved).Code
}

// notRun stands for the exit code of a command that did not run.
const notRun = -1

// faultsOf ends a script if hints are wrong.
func faultsOf(ts *testscript.TestScript, faults []string) {
	if faults != nil {
		ts.Fatalf("%s", strings.Join(faults, "\n"))
	}
}

// ownProcess are words of commands that concern their process: which ONNX Runtime it loads, and its files 0, 1 and 2. TMPDIR may be in
// /dev/shm.
var ownProcess = regexp.MustCompile(`^(doctor|setup|--ort-lib.*|--provider.*|.*/dev/([^s]|s[^h]).*|.*/proc/.*)$`)

// startsAlone reports whether a command needs a process of its own.
func (r *scriptRunner) startsAlone(ts *testscript.TestScript, args []string) bool {
	return args[0] != "swagwrap" || slices.ContainsFunc(args[1:], ownProcess.MatchString) || ts.Getenv(simulatedGPU) != "" || ts.Getenv(ort.LibraryEnv) != r.library
}

// execs matches the commands of a script that start the program.
var execs = regexp.MustCompile(`(?m)^((?:\[!?\w+\] )?(?:! )?)exec (swagwrap .*[^&\n])$`)

// sharing copies the scripts of a folder. In the copies "exec swagwrap" is "within swagwrap", which goes to the script's runner, for
// testscript's own exec cannot be replaced. It returns the names of all variables that they set.
func sharing(t *testing.T, dir string) (copies string, variables []string) {
	t.Helper()
	copies = t.TempDir()
	scripts, err := filepath.Glob(filepath.Join(dir, "*.txtar"))
	if err != nil || scripts == nil {
		t.Fatalf("%s: %d scripts, %v", dir, len(scripts), err)
	}
	set := map[string]bool{}
	for _, path := range scripts {
		script, files, _ := strings.Cut(readFile(t, path), "\n-- ")
		for _, v := range assigned.FindAllStringSubmatch(script, -1) {
			set[v[1]] = true
		}
		script = execs.ReplaceAllString(script, "${1}within $2")
		if files != "" {
			files = "\n-- " + files
		}
		if err := os.WriteFile(filepath.Join(copies, filepath.Base(path)), []byte(script+files), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return copies, slices.Sorted(maps.Keys(set))
}

// assigned matches a script's assignment to a variable.
var assigned = regexp.MustCompile(`(?m)^env '?(\w+)=`)

// within COMMAND ARG... is exec in the script's runner.
func within(ts *testscript.TestScript, neg bool, args []string) {
	if code := runInScript(ts, args); (code == 0) == neg {
		ts.Fatalf("exit code %d", code)
	}
}
