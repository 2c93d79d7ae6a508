//go:build unix

package main

import (
	"bytes"
	"os"
	"os/exec"
	"slices"
	"testing"
)

// TestKilled kills every command that writes, at each step of its run. No output is there before the first file has its
// name. The output is whole when the last file has its name. The next run removes what the killed one left.
func TestKilled(t *testing.T) {
	exe, out, all, want := written(t, 100)
	temp := t.TempDir()
	left := func() []string { return append(list(t, out), list(t, temp)...) }
	names := left()
	for k, w := range all {
		command := func() *exec.Cmd {
			c := exec.Command(exe, w.args...)
			c.Env = append(os.Environ(), "TMPDIR="+temp)
			return c
		}
		again := func() {
			for _, suffix := range []string{"", ".meta.json", ".partial"} {
				os.Remove(w.output + suffix)
			}
		}
		again()
		run := stepsOf(t, command())
		again()
		stops := run.stops()
		for _, at := range stops {
			before := left()
			at.kill(t, command())
			got, err := os.ReadFile(w.output)
			if there := err == nil; there && !bytes.Equal(got, want[k]) || there && run.absent(at) || !there && run.whole(at) {
				t.Errorf("%s, killed at %v: %d bytes that nobody wanted, %v", w.args[0], at, len(got), err)
			}
			isNew := func(name string) bool { return !slices.Contains(before, name) }
			if at.leavesTrace() && !slices.ContainsFunc(left(), isNew) {
				t.Errorf("%s, killed at %v: left no file: the test shows little", w.args[0], at)
			}
			again()
		}
		if printed, err := command().CombinedOutput(); err != nil {
			t.Errorf("%s: %v: %s", w.args[0], err, printed)
		}
		if got, err := os.ReadFile(w.output); err != nil || !bytes.Equal(got, want[k]) {
			t.Errorf("%s, after %d kills: other bytes, %v", w.args[0], len(stops), err)
		}
		if left := left(); !slices.Equal(left, names) {
			t.Errorf("%s: files %q, want %q", w.args[0], left, names)
		}
		t.Logf("%s: killed at %v", w.args[0], stops)
	}
}
