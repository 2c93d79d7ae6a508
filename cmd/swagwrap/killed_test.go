package main

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/swagwrap/swagwrap/internal/numpy"
	"github.com/swagwrap/swagwrap/internal/records"
	"github.com/swagwrap/swagwrap/internal/step"
)

// TestScoreKilled kills score at the steps of its run, one kill after the other, and resumes it. No row is lost or doubled: the
// result has the bytes of a run that nobody killed.
func TestScoreKilled(t *testing.T) { newVictim(t).killed(t) }

// A run over a text computes the states passed on again when it is resumed.
func TestTextKilled(t *testing.T) { newTextVictim(t).killed(t) }

func (v *victim) killed(t *testing.T) {
	t.Helper()
	run := stepsOf(t, v.command())
	v.check(t)
	// rows returns the rows of the work file.
	rows := func() int {
		_, n, err := records.Look(v.at("out.csv.partial"), records.Unfinished, false)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	for _, at := range []stop{{began, 1}, {step.Begun, 1}, {step.Computed, 1}} {
		at.kill(t, v.command())
	}
	have := rows()
	for left := run.count(step.Rows); left > 0; left /= 2 { // each run adds half of the rows that are missing
		at := stop{step.Rows, (1 + left) / 2}
		at.kill(t, v.command())
		if n := rows(); n <= have {
			t.Errorf("killed at %v: %d rows, and %d before", at, n, have)
		} else {
			have = n
		}
	}
	for _, at := range []stop{{step.Wrote, 1}, {step.Synced, 1}} {
		at.kill(t, v.command())
		if _, err := os.Stat(v.at("out.csv")); err == nil || rows() != have {
			t.Errorf("killed at %v: %v, %d rows, want no output and %d", at, err, rows(), have)
		}
	}
	for n := 1; n <= run.count(step.Named); n++ {
		stop{step.Named, n}.kill(t, v.command())
		if n < run.count(step.Named) && rows() != have {
			t.Errorf("%d rows, want %d", rows(), have)
		}
		os.Remove(v.at("out.csv"))
		os.Remove(v.at("out.csv.meta.json"))
	}
	if out, err := v.command().CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	v.check(t)
}

// A signal stops a run. Its rows are kept, and it says so.
func TestScoreInterrupted(t *testing.T) {
	v := newVictim(t)
	c := v.command()
	printed, err := stop{step.Rows, 1}.strike(c, syscall.SIGTERM)
	if err != nil || c.ProcessState.ExitCode() != 128+int(syscall.SIGTERM) {
		t.Fatalf("%v: %v: %s", c.ProcessState, err, printed)
	}
	for _, want := range []string{"error: stopped by signal: terminated: ", "out.csv.partial keeps ", fmt.Sprintf("of %d rows", victimRows), "hint: ", "--resume goes on from there"} {
		if !strings.Contains(printed, want) {
			t.Errorf("%q says nothing of %q", printed, want)
		}
	}
	if out, err := v.command().CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	v.check(t)
}

// Of many runs for one output, none of which may overwrite it, one writes it. The
// others end before any work, or may be tried again.
func TestRace(t *testing.T) {
	v := newVictim(t)
	checkpoints := filepath.Join("..", "..", "fixtures", "mnist", "checkpoints")
	fit := []string{"fit", "-q", "--task", "classes", "-o", v.at("race"), filepath.Join(checkpoints, "epoch-29.onnx"), filepath.Join(checkpoints, "epoch-30.onnx")}
	score := []string{"score", "-q", "-o", v.at("race.csv"), v.at("e.safetensors"), filepath.Join(checkpoints, "..", "val.npz")}
	for _, args := range [][]string{fit, score} {
		codes := map[int]int{}
		var runs []*exec.Cmd
		for range 8 {
			c := exec.Command(v.at("swagwrap"), args...)
			if err := c.Start(); err != nil {
				t.Fatal(err)
			}
			runs = append(runs, c)
		}
		for _, c := range runs {
			c.Wait()
			codes[c.ProcessState.ExitCode()]++
		}
		if codes[0] != 1 || codes[0]+codes[64]+codes[75] != len(runs) {
			t.Errorf("%s: exit codes %v, want 0 once, and 64 or 75", args[0], codes)
		}
	}
	if left, err := filepath.Glob(v.at(".swagwrap-*")); len(left) > 0 || err != nil {
		t.Errorf("left behind: %q, %v", left, err)
	}
}

// victimRows are few enough for a run of a second, and so many that it can be stopped between them.
const victimRows = 384

// A victim is a run of score in a process of its own.
type victim struct {
	dir  string
	args []string
	want []byte // of out.csv
}

func newVictim(t *testing.T) *victim {
	t.Helper()
	v := &victim{dir: t.TempDir()}
	fixture := fewImages(t, absolute(t, "..", "..", "fixtures", "mnist"), victimRows)
	mustRun(t, "fit", "-q", "--task", "classes", "-o", v.at("p.safetensors"), filepath.Join(fixture, "checkpoints", "epoch-29.onnx"), filepath.Join(fixture, "checkpoints", "epoch-30.onnx"))
	mustRun(t, "sample", "-q", "-n", "3", "--bn-data", filepath.Join(fixture, "train.npz"), "--bn-samples", "128", "-o", v.at("e.safetensors"), v.at("p.safetensors"))
	// So little memory gives many chunks.
	v.scores(t, "-b", "32", "--memory", "500K", "--probs", "--keep-members", v.at("e.safetensors"), filepath.Join(fixture, "val.npz"))
	return v
}

// newTextVictim scores a text with LSTMs whose states pass from window to window.
func newTextVictim(t *testing.T) *victim {
	t.Helper()
	v := &victim{dir: t.TempDir()}
	states := filepath.Join("..", "..", "internal", "infer", "testdata", "states")
	r := rand.New(rand.NewPCG(1, 9))
	ids := numpy.Header("|u1", 2000)
	for range 2000 {
		ids = append(ids, byte(r.IntN(7)))
	}
	if err := os.WriteFile(v.at("ids.npy"), ids, 0o666); err != nil {
		t.Fatal(err)
	}
	mustRun(t, "fit", "-q", "--task", "next-token", "-o", v.at("p.safetensors"), filepath.Join(states, "lstm2-a.onnx"), filepath.Join(states, "lstm2-b.onnx"))
	mustRun(t, "sample", "-q", "-n", "3", "-o", v.at("e.safetensors"), v.at("p.safetensors"))
	v.scores(t, "-b", "2", "--memory", "500K", "--text", "rows=4 bptt=8", v.at("e.safetensors"), v.at("ids.npy"))
	return v
}

func mustRun(t *testing.T, args ...string) {
	t.Helper()
	var stderr strings.Builder
	if code := run(t.Context(), append([]string{"swagwrap"}, args...), &stderr, &stderr); code != 0 {
		t.Fatalf("%q: exit code %d: %s", args, code, stderr.String())
	}
}

// scores sets the arguments of score, and runs it once to the end.
func (v *victim) scores(t *testing.T, args ...string) {
	t.Helper()
	mustRun(t, append([]string{"score", "--force", "-o", v.at("clean.csv")}, args...)...)
	var err error
	if v.want, err = os.ReadFile(v.at("clean.csv")); err != nil {
		t.Fatal(err)
	}
	v.args = append([]string{"score", "--resume", "-o", v.at("out.csv")}, args...)
	executable(t, v.dir)
}

func (v *victim) at(name string) string { return filepath.Join(v.dir, name) }

func (v *victim) command() *exec.Cmd { return exec.Command(v.at("swagwrap"), v.args...) }

// check compares the result, and takes it away.
func (v *victim) check(t *testing.T) {
	t.Helper()
	got, err := os.ReadFile(v.at("out.csv"))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, v.want) {
		t.Fatal("another result than that of a run that nobody stopped")
	}
	if _, err := os.Stat(v.at("out.csv.partial")); err == nil {
		t.Error("the work file is still there")
	}
	os.Remove(v.at("out.csv"))
	os.Remove(v.at("out.csv.meta.json"))
}
