package main

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/swagwrap/swagwrap/fixtures/promise"
	"github.com/swagwrap/swagwrap/internal/predictions"
	"github.com/swagwrap/swagwrap/internal/records"
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

// TestParts has parts scored by processes of which some are killed at random points, two at a
// time, as a scheduler does that starts them again. merge makes of them what one run writes;
// it is killed too, and leaves a whole result or none.
func TestParts(t *testing.T) {
	newVictim(t).parts(t, promise.Figure(6, 50), promise.Figure(3, 100))
}

// The parts of a text are rows.
func TestTextParts(t *testing.T) { newTextVictim(t).parts(t, 2, promise.Figure(2, 50)) }

func (v *victim) parts(t *testing.T, of, kills int) {
	r := rand.New(rand.NewPCG(1, 7))
	doomed := make(chan time.Duration, kills)
	for range kills {
		doomed <- time.Duration(r.Float64() * float64(400*time.Millisecond))
	}
	var g errgroup.Group
	g.SetLimit(2)
	for index := range of {
		g.Go(func() error {
			for {
				c := v.part(index, of)
				var said bytes.Buffer
				c.Stderr = &said
				if err := c.Start(); err != nil {
					return err
				}
				select {
				case after := <-doomed:
					defer time.AfterFunc(after, func() { c.Process.Kill() }).Stop()
				default:
				}
				switch c.Wait(); c.ProcessState.ExitCode() {
				case 0:
					return nil
				case -1: // killed
				default:
					return fmt.Errorf("part %d: %v: %s", index, c.ProcessState, said.String())
				}
			}
		})
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	for range promise.Figure(3, 100) {
		c := exec.Command(v.at("swagwrap"), "merge", "-q", "-o", v.at("out.csv"))
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		kill := time.AfterFunc(time.Duration(r.Float64()*float64(80*time.Millisecond)), func() { c.Process.Kill() })
		c.Wait()
		kill.Stop()
		if got, err := os.ReadFile(v.at("out.csv")); err == nil {
			if !bytes.Equal(got, v.want) {
				t.Fatal("merge was killed, and its result is not whole")
			}
			os.Remove(v.at("out.csv"))
		}
	}
	os.Remove(v.at("out.csv.meta.json"))
	if said, code := v.merge(); code != 0 {
		t.Fatalf("merge: exit code %d: %s", code, said)
	}
	v.check(t)
}

// Of two jobs of one index one scores the part, and the other finds it done or is to be
// tried again.
func TestPartTwice(t *testing.T) {
	v := newVictim(t)
	for round := range promise.Figure(2, 100) {
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
		if said, err := v.part(i, 2).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, said)
		}
	}
	name := records.PartName(v.at("out.csv"), 1, 2)
	whole, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(1, 8))
	cuts, flips := promise.Figure(8, 64), promise.Figure(24, 200)
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
		code, said := program(t, "merge", "-o", v.at("out.csv"))
		if code != 4 || !bytes.Contains([]byte(said), []byte("--array=1 (")) {
			t.Errorf("damage %d: exit code %d: %s", k, code, said)
		}
		if made, _ := filepath.Glob(v.at("out.csv*")); len(made) != 2 {
			t.Fatalf("damage %d: files %q", k, made)
		}
	}
	// The job of that index mends it.
	if said, err := v.part(1, 2).CombinedOutput(); err != nil || !bytes.Contains(said, []byte("it is scored again")) {
		t.Fatalf("%v: %s", err, said)
	}
	if said, code := v.merge(); code != 0 {
		t.Fatalf("exit code %d: %s", code, said)
	}
	v.check(t)
}
