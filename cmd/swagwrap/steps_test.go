package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/swagwrap/swagwrap/internal/step"
)

// These variables make the program, as the tests start it, stop at a step or tell its steps.
const (
	stopVariable  = "SWAGWRAP_TEST_STOP"  // a stop
	stuckVariable = "SWAGWRAP_TEST_STUCK" // the program's patience: a signal does not end the stop
	stepsVariable = "SWAGWRAP_TEST_STEPS" // the name of a file that gets the steps, one in a line
)

// These steps are of the tests alone: before the command line is read, and when a signal has ended a stop.
const (
	began    = "began"
	released = "released"
)

// twoCores lets a run come to the same steps, and take the same memory, on all machines.
const twoCores = "GOMAXPROCS=2"

// stopFile is the file descriptor on which the program says that it is at its stop.
const stopFile = 3

// watchSteps makes a program that follows the variables above. At its stop it stands still until it is killed, or until a
// signal ends its context. Other goroutines go on.
func watchSteps(program func(context.Context) int) func(context.Context) int {
	stuck := os.Getenv(stuckVariable)
	if stuck != "" {
		patience, _ = time.ParseDuration(stuck)
	}
	var at stop
	fmt.Sscan(os.Getenv(stopVariable), &at.step, &at.n)
	list, _ := os.OpenFile(os.Getenv(stepsVariable), os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o666) // nil without a name
	var mu sync.Mutex
	seen := map[string]int{}
	reached := func(name string) stop {
		mu.Lock()
		defer mu.Unlock()
		seen[name]++
		if list != nil {
			fmt.Fprintln(list, name)
		}
		return stop{name, seen[name]}
	}
	return func(ctx context.Context) int {
		wait := ctx.Done()
		if stuck != "" {
			wait = nil
		}
		step.Reached = func(name string) {
			if reached(name) == at {
				os.NewFile(stopFile, "").Write([]byte{'.'})
				<-wait
				reached(released)
			}
		}
		step.Reached(began)
		return program(ctx)
	}
}

// A stop is the moment at which a run comes to a step for the nth time.
type stop struct {
	step string
	n    int
}

func (s stop) String() string { return fmt.Sprint(s.step, " ", s.n) }

// start starts a command and returns when it is at the stop. If the command does not come there, start returns false when
// it has ended.
func (s stop) start(c *exec.Cmd) (there bool, err error) {
	r, w, err := os.Pipe()
	if err != nil {
		return false, err
	}
	defer r.Close()
	c.Env, c.ExtraFiles = append(c.Environ(), twoCores, stopVariable+"="+s.String()), []*os.File{w}
	err = c.Start()
	w.Close()
	if err != nil {
		return false, err
	}
	if _, err := r.Read(make([]byte, 1)); err == nil {
		return true, nil
	}
	c.Wait() // it has closed the pipe
	return false, nil
}

// strike sends a command a signal at the stop, and waits for its end. It fails if the command does not come to the stop. It
// returns what the command writes to standard error.
func (s stop) strike(c *exec.Cmd, signal os.Signal) (printed string, err error) {
	var stderr bytes.Buffer
	c.Stderr = &stderr
	there, err := s.start(c)
	if err == nil && !there {
		err = fmt.Errorf("%q does not come to %v: %v: %s", c.Args, s, c.ProcessState, &stderr)
	}
	if err != nil {
		return "", err
	}
	err = c.Process.Signal(signal)
	c.Wait()
	return stderr.String(), err
}

// kill kills a command at the stop. A command that does not come there fails the test.
func (s stop) kill(t *testing.T, c *exec.Cmd) {
	t.Helper()
	if _, err := s.strike(c, os.Kill); err != nil {
		t.Fatal(err)
	}
}

// steps are those of a run, in their order. Steps of different goroutines may change places from run to run.
type steps []string

// stepsOf runs a command to its end.
func stepsOf(t *testing.T, c *exec.Cmd) (all steps) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "steps")
	c.Env = append(c.Environ(), twoCores, stepsVariable+"="+path)
	if printed, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%q: %v: %s", c.Args, err, printed)
	}
	return readSteps(t, path)
}

func readSteps(t *testing.T, path string) steps {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Fields(string(b))
}

// count returns how often a run comes to a step.
func (s steps) count(name string) (n int) {
	for _, x := range s {
		if x == name {
			n++
		}
	}
	return n
}

// stops are the first, the middle and the last time of each step.
func (s steps) stops() (stops []stop) {
	for _, name := range slices.Compact(slices.Sorted(slices.Values(s))) {
		last := s.count(name)
		for _, n := range slices.Compact([]int{1, (1 + last) / 2, last}) {
			stops = append(stops, stop{name, n})
		}
	}
	return stops
}

// index returns the place of a stop in the run.
func (s steps) index(of stop) int {
	for i, name := range s {
		if name == of.step {
			if of.n--; of.n == 0 {
				return i
			}
		}
	}
	return -1
}

// absent reports whether a run that was killed at the stop has no output: no file has its name yet.
func (s steps) absent(at stop) bool { return s.index(at) < s.index(stop{step.Named, 1}) }

// whole reports whether it has all outputs: the last file has its name.
func (s steps) whole(at stop) bool {
	return s.index(at) >= s.index(stop{step.Named, s.count(step.Named)})
}

// leavesTrace reports whether a run that was killed at the stop leaves a file.
func (s stop) leavesTrace() bool { return s.step != began && s.step != step.Computed }
