package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/swagwrap/swagwrap/internal/step"
)

// A signaled command writes into a folder of its own, and temporary files into another one.
type signaled struct {
	exe, out, temp string
	args           []string
}

// signaled returns the commands that signals stop.
func (v *victim) signaled(t *testing.T) (all []signaled) {
	t.Helper()
	mnist := fewImages(t, absolute(t, "..", "..", "fixtures", "mnist"), 100)
	checkpoints, err := filepath.Glob(filepath.Join(mnist, "checkpoints", "*.onnx"))
	if err != nil {
		t.Fatal(err)
	}
	train := []string{"--bn-data", filepath.Join(mnist, "train.npz"), "--bn-samples", "256"}
	out := v.at("signals")
	for _, args := range [][]string{
		append([]string{"fit", "-q", "--task", "classes", "-o", filepath.Join(out, "p.safetensors")}, checkpoints...),
		append(append([]string{"sample", "-q", "-n", "10", "-o", filepath.Join(out, "e.safetensors")}, train...), v.at("p.safetensors")),
		{"score", "-q", "-b", "32", "--memory", "500K", "-o", filepath.Join(out, "o.csv"), v.at("e.safetensors"), filepath.Join(mnist, "val.npz")},
		append(append([]string{"compare", "-q", "-n", "2", "--methods", "sgd,swa-temp,swag", "--report", filepath.Join(out, "r.html")}, train...), v.at("p.safetensors"), filepath.Join(mnist, "val.npz")),
		append(append([]string{"export", "-q", "-o", filepath.Join(out, "swa.onnx")}, train...), v.at("p.safetensors")),
		{"export", "-q", "-o", filepath.Join(out, "e.onnx"), "--storage", "external", "--check", filepath.Join(mnist, "val.npz"), v.at("e.safetensors")},
	} {
		all = append(all, signaled{v.at("swagwrap"), out, v.at("temp"), args})
	}
	return all
}

// command returns the command, with empty folders for what it writes.
func (s signaled) command(t *testing.T) *exec.Cmd {
	t.Helper()
	for _, dir := range []string{s.out, s.temp} {
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
		if err := os.Mkdir(dir, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	c := exec.Command(s.exe, s.args...)
	c.Env = append(os.Environ(), "TMPDIR="+s.temp)
	return c
}

// left are the files that a command has left, without what --resume goes on from.
func (s signaled) left(t *testing.T) []string {
	t.Helper()
	isWork := func(name string) bool { return strings.HasSuffix(name, ".partial") }
	return append(slices.DeleteFunc(list(t, s.out), isWork), list(t, s.temp)...)
}

// TestSignals stops commands by the signals of schedulers, each at its begin, in its first work and when its outputs are
// written. TestSignalsOften stops them at all steps.
func TestSignals(t *testing.T) {
	for _, s := range newVictim(t).signaled(t) {
		run := stepsOf(t, s.command(t))
		whole := s.left(t)
		first := step.Computed
		if run.count(first) == 0 {
			first = step.Made
		}
		s.stopped(t, stop{began, 1}, syscall.SIGTERM, nil)
		s.stopped(t, stop{first, 1}, syscall.SIGINT, nil)
		s.stopped(t, stop{step.Synced, 1}, syscall.SIGUSR1, whole)
	}
}

// stopped stops the command at a step by a signal. The command ends with the signal's exit code, and leaves no file but
// those that --resume goes on from. A signal may also come too late: then all outputs are there. They are whole.
func (s signaled) stopped(t *testing.T, at stop, signal syscall.Signal, whole []string) {
	t.Helper()
	c, path := s.command(t), filepath.Join(t.TempDir(), "steps")
	c.Env = append(c.Env, stepsVariable+"="+path)
	printed, err := at.strike(c, signal)
	if err != nil {
		t.Fatal(err)
	}
	code, left := c.ProcessState.ExitCode(), s.left(t)
	ended := code == 128+int(signal) && strings.HasPrefix(printed, "error: stopped by signal: ") && !strings.Contains(printed, givenUp) && len(left) == 0
	if late := code == 0 && whole != nil && slices.Equal(left, whole); !ended && !late {
		t.Errorf("%s, %v at %v: exit code %d, files %q: %s", s.args[0], signal, at, code, left, printed)
	}
	all := readSteps(t, path)
	if i := all.index(stop{released, 1}); ended && i >= 0 && all[i:].count(step.Computed) > 2 { // what both cores were at
		t.Errorf("%s, %v at %v: steps after the signal: %v", s.args[0], signal, at, all[i:])
	}
}

// givenUp is what a command says whose work does not end.
const givenUp = "what was under way is given up"

// A command that does not notice a signal, because ONNX Runtime does not return, ends all the same: after some time, or at once
// with a second signal. It takes its temporary files away.
func TestPatience(t *testing.T) {
	if most := 10 * time.Second; patience >= most { // schedulers kill the process then
		t.Errorf("the work has %v to end after a signal, want less than %v", patience, most)
	}
	s := newVictim(t).signaled(t)[1]
	for wait, signals := range map[string][]os.Signal{"1ms": {syscall.SIGTERM}, "1h": {syscall.SIGTERM, syscall.SIGINT}} {
		c := s.command(t)
		c.Env = append(c.Env, stuckVariable+"="+wait)
		var printed bytes.Buffer
		c.Stderr = &printed
		if there, err := (stop{step.Wrote, 1}).start(c); !there || err != nil {
			t.Fatalf("%v, %v: %s", c.ProcessState, err, &printed)
		}
		for _, signal := range signals {
			if err := c.Process.Signal(signal); err != nil {
				t.Fatal(err)
			}
		}
		c.Wait()
		code := c.ProcessState.ExitCode()
		first := slices.ContainsFunc(signals, func(s os.Signal) bool { return code == 128+int(s.(syscall.Signal)) }) // of two at once either may be the first
		if left := s.left(t); !first || !strings.Contains(printed.String(), givenUp) || len(left) > 0 {
			t.Errorf("after %v: exit code %d, files %q: %s", signals, code, left, &printed)
		}
	}
}

func absolute(t *testing.T, elem ...string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join(elem...))
	if err != nil {
		t.Fatal(err)
	}
	return path
}
