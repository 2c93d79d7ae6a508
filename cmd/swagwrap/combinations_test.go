package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/swagwrap/swagwrap/fixtures/reliability"
	"github.com/swagwrap/swagwrap/internal/ort"
)

var (
	seedFlag = flag.Uint64("combinations.seed", 1, "seed of the command lines that TestCombinations draws")
	caseFlag = flag.Int("combinations.case", -1, "run this line alone, and keep its folder")
	manyFlag = flag.Int("combinations.lines", 0, "draw so many lines")
)

// A lineVerdict is what the worker says of a line: before it runs, and when it has ended.
type lineVerdict struct {
	Case    int
	Line    string
	Ended   bool
	Code    int
	Printed string // on standard error
	Faults  []string
	Runs    int
}

// TestCombinations draws command lines with two to five flags over all commands, tasks and formats. It checks each line:
//
//   - Files that were there are unchanged, but for outputs of the program that a flag lets it replace.
//   - The exit code is a documented one, with one error, and messages are words.
//   - All outputs are there, or none.
//   - It ends.
//   - What an ensemble guarantees is seen in all places that guaranteedPlaces lists.
//   - The result is that of the plain command where the flags guarantee that, and the commands to run next work.
//
// A crash ends a process, so lines run in others: the worker, this program again.
func TestCombinations(t *testing.T) {
	t.Parallel()
	if missing := newDrawer(0).missing(); missing != nil {
		t.Fatalf("flags without values in the table flagValues: %q", missing)
	}
	n := reliability.Figure(100, 20_000)
	if *manyFlag > 0 {
		n = *manyFlag
	}
	from, processes := 0, min(runtime.NumCPU(), 1+n/1000)
	if *caseFlag >= 0 {
		from, n, processes = *caseFlag, *caseFlag+1, 1
	}
	c := &combining{T: t, codes: map[int]int{}}
	var wg sync.WaitGroup
	for k := range processes {
		wg.Go(func() { c.work(from+k*(n-from)/processes, from+(k+1)*(n-from)/processes) })
	}
	wg.Wait()
	c.report(n)
}

// combining collects what workers say.
type combining struct {
	*testing.T
	sync.Mutex
	codes  map[int]int
	failed int
	runs   int
}

// work has processes run lines from … end-1. If one dies, the next goes on behind the line.
func (c *combining) work(from, end int) {
	for from < end {
		dir := c.TempDir()
		if *caseFlag >= 0 {
			dir, _ = os.MkdirTemp("", "combination-")
			c.Logf("cd %s/world", dir)
		}
		self, err := os.Executable()
		exe := filepath.Join(dir, "combinations") // by this name TestMain knows what to be
		if err := errors.Join(err, os.Symlink(self, exe)); err != nil {
			c.Error(err)
			return
		}
		last, died := c.process(exec.Command(exe, dir, fmt.Sprint(*seedFlag), strconv.Itoa(from), strconv.Itoa(end)))
		if died == "" {
			return
		}
		if last.Line == "" {
			c.Error(died)
			return
		}
		last.Faults = []string{"end: " + died}
		c.add(last)
		from = last.Case + 1
	}
}

// process runs a worker, and returns its last line if it dies.
func (c *combining) process(cmd *exec.Cmd) (last lineVerdict, died string) {
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return last, err.Error()
	}
	if deadline, ok := c.Deadline(); ok { // a line that waits for ever is named before the test's own time is over
		defer time.AfterFunc(time.Until(deadline)-time.Minute, func() { cmd.Process.Signal(syscall.SIGQUIT) }).Stop()
	}
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		var v lineVerdict
		if err := json.Unmarshal(lines.Bytes(), &v); err != nil {
			return last, "says " + lines.Text()
		}
		if last = v; v.Ended {
			c.add(v)
		}
	}
	if err := cmd.Wait(); err != nil {
		printed := stderr.String()
		return last, fmt.Sprintf("%v: %s", err, printed[:min(len(printed), 3000)])
	}
	return last, ""
}

func (c *combining) add(v lineVerdict) {
	c.Lock()
	defer c.Unlock()
	c.codes[v.Code]++
	c.runs += v.Runs
	if len(v.Faults) > 0 {
		c.failed++
		c.Errorf("%s\n%s\nexit code %d: %s\nonly this: go test -run 'TestCombinations$' ./cmd/swagwrap -combinations.seed %d -combinations.case %d", v.Line, strings.Join(v.Faults, "\n"), v.Code, v.Printed, *seedFlag, v.Case)
	} else if *caseFlag >= 0 {
		c.Logf("%s\nexit code %d: %s", v.Line, v.Code, v.Printed)
	}
}

// report says what was drawn. Lines that are refused show little, so a third of the lines must succeed.
func (c *combining) report(n int) {
	if *caseFlag >= 0 {
		return
	}
	d := newDrawer(*seedFlag)
	for range n {
		d.next()
	}
	drawn := 0
	for _, times := range d.drawn {
		drawn += min(times, 1)
	}
	c.Logf("%d lines, %d runs with those that they were compared with; %d with faults; exit codes %v; %d of %d pairs of flags", n, c.runs, c.failed, c.codes, drawn, len(d.drawn))
	if c.codes[0]+c.codes[3] < n/3 {
		c.Errorf("only %d of %d lines succeed: the test shows little", c.codes[0]+c.codes[3], n)
	}
}

// combinations is the worker. Its arguments are a folder for its files, the seed, the first line and the one behind the last.
func combinations() {
	if err := runCombinations(os.Args[1], os.Args[2], os.Args[3], os.Args[4]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func runCombinations(dir, seedText, first, last string) error {
	seed, err0 := strconv.ParseUint(seedText, 10, 64)
	from, err1 := strconv.Atoi(first)
	end, err2 := strconv.Atoi(last)
	if err := errors.Join(err0, err1, err2, enter(dir)); err != nil {
		return err
	}
	w, err := newWorld(filepath.Join(dir, "temporary"))
	if err != nil {
		return err
	}
	debug.SetGCPercent(400) // there is little to keep
	d, out := newDrawer(seed), json.NewEncoder(os.Stdout)
	if from == 0 { // once, in the first process
		if err := w.seenGuarantees(func(v lineVerdict) error { return out.Encode(v) }); err != nil {
			return err
		}
	}
	for i := range end {
		l := d.next()
		if i < from {
			continue
		}
		v := lineVerdict{Case: i, Line: l.String()}
		if err := out.Encode(v); err != nil {
			return err
		}
		before := w.runs
		o, faults, err := w.check(l)
		if err != nil {
			return err
		}
		v.Ended, v.Code, v.Printed, v.Faults, v.Runs = true, o.code, o.stderr, faults, w.runs-before
		if err := out.Encode(v); err != nil {
			return err
		}
	}
	return nil
}

// repository is the root of the repository.
var repository string

// enter makes a folder the working folder. There the program finds ONNX Runtime, and cannot fetch anything.
func enter(dir string) error {
	library, err := ort.Provider{}.Find("")
	if err != nil {
		return fmt.Errorf("%w (run make setup)", err)
	}
	if repository, err = filepath.Abs("../.."); err != nil {
		return err
	}
	place := func(name string) string { return filepath.Join(dir, name) }
	for _, name := range []string{"world", "temporary", "cache"} {
		err = errors.Join(err, os.Mkdir(place(name), 0o777))
	}
	for name, value := range map[string]string{"TMPDIR": place("temporary"), "XDG_CACHE_HOME": place("cache"), ort.LibraryEnv: library.Path, "PATH": place("none"), "COLUMNS": "300"} {
		err = errors.Join(err, os.Setenv(name, value))
	}
	return errors.Join(err, os.Chdir(place("world")), os.Symlink(library.Path, "ort.so"))
}
