//go:build large && unix

package main

import (
	"bytes"
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"syscall"
	"testing"
	"time"
)

// killedWithin kills a command after a random time, if it has not ended before. killed reports whether it was killed.
func killedWithin(t *testing.T, c *exec.Cmd, most time.Duration) (killed bool) {
	t.Helper()
	var printed bytes.Buffer
	c.Stderr = &printed
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	kill := time.AfterFunc(time.Duration(rand.Float64()*float64(most)), func() { c.Process.Kill() })
	err := c.Wait()
	kill.Stop()
	if killed = c.ProcessState.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL; err != nil && !killed {
		t.Fatalf("%q: %v: %s", c.Args, err, &printed)
	}
	return killed
}

// timed runs a command to its end and returns how long it takes.
func timed(t *testing.T, c *exec.Cmd) time.Duration {
	t.Helper()
	start := time.Now()
	if printed, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%q: %v: %s", c.Args, err, printed)
	}
	return time.Since(start)
}

// TestKilledOften is TestKilled at random times, which may lie between the steps or before them. How many kills come in the
// midst of a run is a matter of chance: the steps say what the test shows.
func TestKilledOften(t *testing.T) {
	const kills = 250
	exe, out, all, want := written(t, 100)
	names := list(t, out)
	for k, w := range all {
		again := func() {
			os.Remove(w.output)
			os.Remove(w.output + ".meta.json")
		}
		again()
		whole := timed(t, exec.Command(exe, w.args...))
		for struck := 0; struck < kills; {
			again()
			killed := killedWithin(t, exec.Command(exe, w.args...), whole)
			if killed {
				struck++
			}
			got, err := os.ReadFile(w.output)
			if !(killed && errors.Is(err, fs.ErrNotExist)) && !bytes.Equal(got, want[k]) {
				t.Fatalf("%s, killed: %v: %d bytes that nobody wanted, %v", w.args[0], killed, len(got), err)
			}
		}
		again()
		timed(t, exec.Command(exe, w.args...))
		if left := list(t, out); !slices.Equal(left, names) {
			t.Errorf("%s: files %q, want %q", w.args[0], left, names)
		}
		t.Logf("%s: %d kills in runs of %v", w.args[0], kills, whole)
	}
}

// TestScoreKilledOften is TestScoreKilled at random times.
func TestScoreKilledOften(t *testing.T) {
	const kills, ofTexts = 500, 100
	newVictim(t).killedOften(t, kills)
	newTextVictim(t).killedOften(t, ofTexts)
}

func (v *victim) killedOften(t *testing.T, kills int) {
	t.Helper()
	whole := timed(t, v.command())
	v.check(t)
	for struck := 0; struck < kills; {
		if killedWithin(t, v.command(), whole*6/10) { // a few of them make a whole run
			struck++
			continue
		}
		v.check(t)
	}
	timed(t, v.command())
	v.check(t)
	t.Logf("%d kills in runs of %v", kills, whole)
}

// TestSignalsOften is TestSignals at all steps, and at random times.
func TestSignalsOften(t *testing.T) {
	const signals = 100
	kinds := []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGUSR1}
	for _, s := range newVictim(t).signaled(t) {
		run := stepsOf(t, s.command(t))
		whole := s.left(t)
		for _, at := range run.stops() {
			for _, signal := range kinds {
				s.stopped(t, at, signal, whole)
			}
		}
		took := timed(t, s.command(t))
		for k := range signals {
			signal := kinds[k%len(kinds)]
			c := s.command(t)
			var printed bytes.Buffer
			c.Stderr = &printed
			if err := c.Start(); err != nil {
				t.Fatal(err)
			}
			timer := time.AfterFunc(time.Duration(rand.Float64()*float64(took)), func() { c.Process.Signal(signal) })
			c.Wait()
			timer.Stop()
			code, left := c.ProcessState.ExitCode(), s.left(t)
			switch early := code == -1; { // the program does not catch signals yet
			case early || code == 128+int(signal):
				if len(left) > 0 {
					t.Errorf("%s, %v: exit code %d, files %q: %s", s.args[0], signal, code, left, &printed)
				}
			case code != 0 || !slices.Equal(left, whole):
				t.Errorf("%s, %v: exit code %d, files %q: %s", s.args[0], signal, code, left, &printed)
			}
		}
		t.Logf("%s: %d signals in runs of %v", s.args[0], signals, took)
	}
}
