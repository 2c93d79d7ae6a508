//go:build unix

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

	"github.com/swagwrap/swagwrap/fixtures/promise"
)

// TestKilled kills every command that writes, at random points of its run: its output is not there, or whole, and the next
// run leaves nothing beside it.
func TestKilled(t *testing.T) {
	exe, out, all, want := written(t, 100)
	names := list(t, out)
	kills := promise.Figure(6, 250)
	r := rand.New(rand.NewPCG(1, 12))
	for k, w := range all {
		again := func() {
			os.Remove(w.output)
			os.Remove(w.output + ".meta.json")
		}
		run := func(limit time.Duration) (killed bool) {
			t.Helper()
			c := exec.Command(exe, w.args...)
			var said bytes.Buffer
			c.Stderr = &said
			if err := c.Start(); err != nil {
				t.Fatal(err)
			}
			kill := time.AfterFunc(limit, func() { c.Process.Kill() })
			err := c.Wait()
			kill.Stop()
			if killed = c.ProcessState.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL; err != nil && !killed {
				t.Fatalf("%s: %v: %s", w.args[0], err, &said)
			}
			got, err := os.ReadFile(w.output)
			if !(killed && errors.Is(err, fs.ErrNotExist)) && !bytes.Equal(got, want[k]) {
				t.Fatalf("%s, killed: %v: %d bytes that nobody wanted, %v", w.args[0], killed, len(got), err)
			}
			return killed
		}
		again()
		start := time.Now()
		run(time.Hour)
		whole, struck, traces := time.Since(start), 0, 0
		again()
		before := len(list(t, out))
		for ; struck < kills || traces == 0 && struck < 10*kills; again() { // a short run may be killed before it writes, six times
			if run(time.Duration(r.Float64() * float64(whole))) {
				struck++
			}
			if len(list(t, out)) > before { // the result, or what a killed process leaves until the next one comes
				traces++
			}
		}
		run(time.Hour)
		if left := list(t, out); !slices.Equal(left, names) {
			t.Errorf("%s: files %q, want %q", w.args[0], left, names)
		}
		t.Logf("%s: %d kills in runs of %v", w.args[0], struck, whole)
		if traces == 0 {
			t.Errorf("%s: no kill left a trace: the test shows little", w.args[0])
		}
	}
}
