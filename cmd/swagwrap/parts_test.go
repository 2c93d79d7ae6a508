package main

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/swagwrap/swagwrap/fixtures/reliability"
	"github.com/swagwrap/swagwrap/internal/predictions"
	"github.com/swagwrap/swagwrap/internal/records"
	"github.com/swagwrap/swagwrap/internal/step"
)

// part is the command for a part of the victim's rows.
func (v *victim) part(index, of int) *exec.Cmd {
	c := v.command()
	c.Args = append(c.Args, "--part", fmt.Sprintf("%d/%d", index, of))
	return c
}

// merge merges what there is.
func (v *victim) merge() ([]byte, int) {
	c := exec.Command(v.at("swagwrap"), "merge", "-o", v.at("out.csv"))
	out, _ := c.CombinedOutput()
	return out, c.ProcessState.ExitCode()
}

// TestParts scores parts, two at a time. Their processes are killed and started again, as a scheduler does. merge makes of
// the parts what one run writes. It is killed too, and leaves a whole result or none.
func TestParts(t *testing.T) { newVictim(t).parts(t, reliability.Figure(6, 50)) }

// The parts of a text are rows.
func TestTextParts(t *testing.T) { newTextVictim(t).parts(t, 2) }

func (v *victim) parts(t *testing.T, of int) {
	t.Helper()
	kills := []string{step.Begun, step.Computed, step.Rows, step.Synced, step.Named}
	var g errgroup.Group
	g.SetLimit(2)
	for index := range of {
		g.Go(func() error {
			for _, name := range kills[index%len(kills):] {
				if _, err := (stop{name, 1}).strike(v.part(index, of), os.Kill); err != nil {
					return err
				}
			}
			if printed, err := v.part(index, of).CombinedOutput(); err != nil {
				return fmt.Errorf("part %d: %v: %s", index, err, printed)
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	merge := exec.Command(v.at("swagwrap"), "merge", "-q", "-o", v.at("out.csv"))
	run := stepsOf(t, merge)
	v.check(t)
	for _, at := range run.stops() {
		at.kill(t, exec.Command(merge.Path, merge.Args[1:]...))
		got, err := os.ReadFile(v.at("out.csv"))
		if there := err == nil; there && !bytes.Equal(got, v.want) || there && run.absent(at) || !there && run.whole(at) {
			t.Errorf("merge, killed at %v: %d bytes that nobody wanted, %v", at, len(got), err)
		}
		os.Remove(v.at("out.csv"))
		os.Remove(v.at("out.csv.meta.json"))
	}
	if printed, code := v.merge(); code != 0 {
		t.Fatalf("merge: exit code %d: %s", code, printed)
	}
	v.check(t)
}

// Of two jobs of one index one scores the part, and the other finds it done or is to be
// tried again.
func TestPartTwice(t *testing.T) {
	v := newVictim(t)
	for round := range reliability.Figure(2, 100) {
		a, b := v.part(0, 2), v.part(0, 2)
		for _, c := range []*exec.Cmd{a, b} {
			if err := c.Start(); err != nil {
				t.Fatal(err)
			}
		}
		a.Wait()
		b.Wait()
		codes := map[int]int{}
		codes[a.ProcessState.ExitCode()]++
		codes[b.ProcessState.ExitCode()]++
		if codes[0] == 0 || codes[0]+codes[75] != 2 {
			t.Errorf("round %d: exit codes %v, want 0, and 0 or 75", round, codes)
		}
		name := records.PartName(v.at("out.csv"), 0, 2)
		if p, err := predictions.ReadPart(name); err != nil || p.Part.End != victimRows/2 {
			t.Fatalf("round %d: %+v, %v", round, p, err)
		}
		if left, _ := filepath.Glob(v.at("out.csv.part*.partial")); left != nil {
			t.Errorf("round %d: left behind: %q", round, left)
		}
		os.Remove(name)
	}
}

// A part that is cut short or has a flipped bit counts as missing, wherever it is damaged, and
// nothing is written.
func TestDamagedPart(t *testing.T) {
	t.Parallel()
	v := newVictim(t)
	for i := range 2 {
		if printed, err := v.part(i, 2).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, printed)
		}
	}
	name := records.PartName(v.at("out.csv"), 1, 2)
	whole, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(1, 8))
	cuts, flips := reliability.Figure(8, 64), reliability.Figure(24, 200)
	for k := range cuts + flips {
		b := bytes.Clone(whole)
		if k < cuts {
			b = b[:len(b)*k/cuts]
		} else {
			b[r.IntN(len(b))] ^= 1 << r.IntN(8)
		}
		if err := os.WriteFile(name, b, 0o666); err != nil {
			t.Fatal(err)
		}
		code, printed := program(t, "merge", "-o", v.at("out.csv"))
		if code != 4 || !bytes.Contains([]byte(printed), []byte("--array=1 (")) {
			t.Errorf("damage %d: exit code %d: %s", k, code, printed)
		}
		if made, _ := filepath.Glob(v.at("out.csv*")); len(made) != 2 {
			t.Fatalf("damage %d: files %q", k, made)
		}
	}
	// The job of that index mends it.
	if printed, err := v.part(1, 2).CombinedOutput(); err != nil || !bytes.Contains(printed, []byte("it is scored again")) {
		t.Fatalf("%v: %s", err, printed)
	}
	if printed, code := v.merge(); code != 0 {
		t.Fatalf("exit code %d: %s", code, printed)
	}
	v.check(t)
}
