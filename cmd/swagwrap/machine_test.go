package main

import (
	"bytes"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"github.com/swagwrap/swagwrap/fixtures/reliability"
	"github.com/swagwrap/swagwrap/internal/predictions"
	"github.com/swagwrap/swagwrap/internal/records"
	"github.com/swagwrap/swagwrap/internal/step"
)

// machineParts is the number of parts of the machines below.
const machineParts = 3

// drive runs a machine: so many sequences of so many random steps. They are the same in every run, but for the nightly one, so
// that luck does not decide whether a test fails.
func drive(t *testing.T, sequences, steps int, check func(*rapid.T)) {
	t.Helper()
	seed := reliability.Figure(1, 0) // 0 stands for a random one
	for name, value := range map[string]string{"rapid.seed": strconv.Itoa(seed), "rapid.checks": strconv.Itoa(sequences), "rapid.steps": strconv.Itoa(steps), "rapid.shrinktime": "20s", "rapid.nofailfile": "true"} {
		if err := flag.Set(name, value); err != nil {
			t.Fatal(err)
		}
	}
	rapid.Check(t, check)
}

// scoreMachine runs score and merge in random order, kills them, and damages their files. Its
// model is small: the parts that are whole, and the bytes of a run that nobody stopped.
type scoreMachine struct {
	*victim
	done map[int]bool
}

// TestScoreMachine checks that no order of runs, kills, damage and merges gives other bytes
// than one run, and that merge knows which parts are missing.
func TestScoreMachine(t *testing.T) {
	v := newVictim(t)
	drive(t, reliability.Figure(4, 60), reliability.Figure(15, 30), func(t *rapid.T) {
		m := &scoreMachine{v, map[int]bool{}}
		m.clear(t)
		t.Repeat(map[string]func(*rapid.T){
			"":             m.consistent,
			"part":         func(t *rapid.T) { m.part(t, anyPart(t)) },
			"part, killed": func(t *rapid.T) { m.killed(t, m.victim.part(anyPart(t), machineParts)) },
			"whole":        m.whole,
			"whole, killed": func(t *rapid.T) {
				m.killed(t, m.command())
			},
			"merge":       m.merge,
			"damage":      m.damage,
			"damage work": m.damageWork,
			"delete":      m.delete,
		})
		for i := range machineParts {
			m.part(t, i)
		}
		m.merge(t)
	})
}

func anyPart(t *rapid.T) int { return rapid.IntRange(0, machineParts-1).Draw(t, "part") }

func (m *scoreMachine) name(part int) string {
	return records.PartName(m.at("out.csv"), part, machineParts)
}

// clear takes away what an earlier sequence left.
func (m *scoreMachine) clear(t *rapid.T) {
	for _, path := range m.files(t, "out.csv*") {
		os.Remove(path)
	}
}

func (m *scoreMachine) files(t *rapid.T, pattern string) []string {
	found, err := filepath.Glob(m.at(pattern))
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// run runs a command to its end, which must be one of the exit codes.
func (m *scoreMachine) run(t *rapid.T, c *exec.Cmd, want ...int) int {
	printed, _ := c.CombinedOutput()
	code := c.ProcessState.ExitCode()
	for _, w := range want {
		if code == w {
			return code
		}
	}
	t.Fatalf("%q: exit code %d, want one of %v: %s", c.Args[1:], code, want, printed)
	return code
}

// part scores a part. It is whole then, whatever its files were before.
func (m *scoreMachine) part(t *rapid.T, part int) {
	m.finish(t, func() *exec.Cmd { return m.victim.part(part, machineParts) }, m.name(part)+".partial")
	m.done[part] = true
}

// whole scores all rows.
func (m *scoreMachine) whole(t *rapid.T) { m.finish(t, m.command, m.at("out.csv.partial")) }

// finish runs a command to a good end. It may refuse a work file whose first bytes are
// damaged, which could be anybody's file.
func (m *scoreMachine) finish(t *rapid.T, c func() *exec.Cmd, work string) {
	if m.run(t, c(), 0, 64, 65, 75) == 0 {
		return
	}
	b, err := os.ReadFile(work)
	for _, magic := range []string{"swagwrap part of scores 4\n", "swagwrap unfinished scores 4\n"} {
		if err != nil || bytes.HasPrefix(b, []byte(magic)) {
			t.Fatalf("%s was refused (%v), and begins well: %.30q", work, err, b)
		}
	}
	os.Remove(work)
	m.run(t, c(), 0)
}

// killed kills a run at a step. A run that does not come there ends.
func (m *scoreMachine) killed(t *rapid.T, c *exec.Cmd) {
	names := []string{began, step.Begun, step.Computed, step.Rows, step.Made, step.Wrote, step.Synced, step.Named}
	at := stop{rapid.SampledFrom(names).Draw(t, "step"), rapid.IntRange(1, 3).Draw(t, "time")}
	there, err := at.start(c)
	if err != nil {
		t.Fatal(err)
	}
	if there {
		c.Process.Kill()
		c.Wait()
	}
	m.look()
}

// look learns from the files which parts are whole: a killed run may have ended before.
func (m *scoreMachine) look() {
	for part := range machineParts {
		_, err := predictions.ReadPart(m.name(part))
		m.done[part] = err == nil
	}
}

// merge gives the bytes of one run where all parts are whole. Otherwise it writes nothing.
func (m *scoreMachine) merge(t *rapid.T) {
	os.Remove(m.at("out.csv"))
	os.Remove(m.at("out.csv.meta.json"))
	whole := 0
	for part := range machineParts {
		if m.done[part] {
			whole++
		}
	}
	want := 4
	switch {
	case whole == machineParts:
		want = 0
	case whole > 0:
	case len(m.files(t, "out.csv.part-*-of-????")) > 0:
		want = 65 // all that is there is damaged
	default:
		want = 64 // nothing says how many parts there are
	}
	m.run(t, exec.Command(m.at("swagwrap"), "merge", "-o", m.at("out.csv")), want)
	if _, err := os.Stat(m.at("out.csv")); (err == nil) != (want == 0) {
		t.Fatalf("merge: exit code %d, and its output: %v", want, err)
	}
}

// damage flips a bit of a part, or cuts it short. The part is missing then.
func (m *scoreMachine) damage(t *rapid.T) {
	part := anyPart(t)
	if !m.done[part] {
		return
	}
	m.spoil(t, m.name(part))
	m.done[part] = false
}

// damageWork damages a work file, which no run may then go on with.
func (m *scoreMachine) damageWork(t *rapid.T) {
	for _, path := range m.files(t, "out.csv*.partial") {
		m.spoil(t, path)
	}
}

func (m *scoreMachine) spoil(t *rapid.T, path string) {
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if len(b) == 0 {
		return
	}
	r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "where"), 0))
	if at := r.IntN(len(b)); rapid.Bool().Draw(t, "cut") {
		b = b[:at]
	} else {
		b[at] ^= 1 << r.IntN(8)
	}
	if err := os.WriteFile(path, b, 0o666); err != nil {
		t.Fatal(err)
	}
}

// delete takes a part or the result away.
func (m *scoreMachine) delete(t *rapid.T) {
	part := rapid.IntRange(0, machineParts).Draw(t, "file")
	if part == machineParts {
		os.Remove(m.at("out.csv"))
		os.Remove(m.at("out.csv.meta.json"))
		return
	}
	os.Remove(m.name(part))
	m.done[part] = false
}

// consistent holds after every step: a result is that of one run, or is not there.
func (m *scoreMachine) consistent(t *rapid.T) {
	got, err := os.ReadFile(m.at("out.csv"))
	if err == nil && !bytes.Equal(got, m.want) {
		t.Fatal("a result with other bytes than that of a run that nobody stopped")
	}
}

// storeMachine runs a study whose jobs share a store.
type storeMachine struct {
	*victim
	args []string
}

// TestStoreMachine checks that a study gives the same table whatever its jobs put into the
// store, however often they were killed, and whatever happened to its entries since.
func TestStoreMachine(t *testing.T) {
	v := newVictim(t)
	m := &storeMachine{v, []string{"compare", "-q", "-n", "2", "--methods", "sgd,swa,swag", "--bn-samples", "128",
		"--bn-data", filepath.Join(filepath.Dir(v.args[len(v.args)-1]), "train.npz"), v.at("p.safetensors"), v.args[len(v.args)-1]}}
	var err error
	if m.want, err = m.study("--json").Output(); err != nil {
		t.Fatal(err)
	}
	drive(t, reliability.Figure(2, 30), reliability.Figure(8, 20), func(t *rapid.T) {
		os.RemoveAll(m.at("store"))
		t.Repeat(map[string]func(*rapid.T){
			"part": func(t *rapid.T) {
				if printed, err := m.share(anyPart(t)).CombinedOutput(); err != nil {
					t.Fatalf("%v: %s", err, printed)
				}
			},
			"part, killed": func(t *rapid.T) {
				(&scoreMachine{victim: m.victim, done: map[int]bool{}}).killed(t, m.share(anyPart(t)))
			},
			"damage": m.damage,
			"table":  m.table,
		})
		m.table(t)
	})
}

func (m *storeMachine) study(more ...string) *exec.Cmd {
	return exec.Command(m.at("swagwrap"), slices.Concat(m.args[:1], more, m.args[1:])...)
}

func (m *storeMachine) share(part int) *exec.Cmd {
	return m.study("--store", m.at("store"), "--part", fmt.Sprintf("%d/%d", part, machineParts))
}

// table is that of a study without a store.
func (m *storeMachine) table(t *rapid.T) {
	c := m.study("--json", "--store", m.at("store"))
	var printed bytes.Buffer
	c.Stderr = &printed
	got, err := c.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, printed.String())
	}
	if !bytes.Equal(got, m.want) {
		t.Fatalf("another result than without a store: %s\nwant %s", got, m.want)
	}
}

// damage spoils or deletes an entry, if there is one.
func (m *storeMachine) damage(t *rapid.T) {
	entries, err := filepath.Glob(filepath.Join(m.at("store"), "*"))
	if err != nil || len(entries) == 0 {
		return
	}
	path := entries[rapid.IntRange(0, len(entries)-1).Draw(t, "entry")]
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
		return
	}
	if rapid.Bool().Draw(t, "delete") {
		os.Remove(path)
		return
	}
	(&scoreMachine{victim: m.victim}).spoil(t, path)
}
