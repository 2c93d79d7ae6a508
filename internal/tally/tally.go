// Package tally counts the examples that go through networks, by the purpose of the pass.
//
// A command puts a [Tally] into its context by [Start]. A check says by [For] what its passes are for. A session counts
// its runs by [Add]. Passes without a purpose are [Wanted].
//
// # Invariants
//
// The outer purpose counts: a pass of a check stays a pass of that check, whatever the called function says.
//
// # Concurrency
//
// All functions may be called from several goroutines.
package tally

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
)

// Unit is what is counted: an example in one run of one network. Rows that fill up a batch count too.
const Unit = "examples through one network"

// A Purpose is the reason of a pass. The zero value is [Wanted].
type Purpose struct {
	kind  kind
	check string // what is checked
}

type kind int

const (
	wanted kind = iota
	check
	plan
	rounding
	kinds
)

var (
	// Wanted passes give the results that the user asked for.
	Wanted = Purpose{}
	// Plan passes measure memory and time, or which nodes a GPU takes.
	Plan = Purpose{kind: plan}
	// Rounding passes measure what a precision changes.
	Rounding = Purpose{kind: rounding}
)

// Check returns the purpose of a check. what names it in a few words.
func Check(what string) Purpose { return Purpose{check, what} }

// A Tally holds the counts of one command.
type Tally struct {
	mu     sync.Mutex
	counts [kinds]int64
	checks map[string]int64
}

type tallyKey struct{}
type purposeKey struct{}

// Start returns a context with a new Tally, which counts the passes below it.
func Start(ctx context.Context) (context.Context, *Tally) {
	t := &Tally{checks: map[string]int64{}}
	return context.WithValue(ctx, tallyKey{}, t), t
}

// From returns the Tally of a context, or nil.
func From(ctx context.Context) *Tally {
	t, _ := ctx.Value(tallyKey{}).(*Tally)
	return t
}

// For returns a context whose passes have a purpose, unless the context has one already.
func For(ctx context.Context, p Purpose) context.Context {
	if _, ok := ctx.Value(purposeKey{}).(Purpose); ok {
		return ctx
	}
	return context.WithValue(ctx, purposeKey{}, p)
}

// Add counts examples of a pass.
func Add(ctx context.Context, examples int) {
	t := From(ctx)
	if t == nil {
		return
	}
	p, _ := ctx.Value(purposeKey{}).(Purpose)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.counts[p.kind] += int64(examples)
	if p.kind == check {
		t.checks[p.check] += int64(examples)
	}
}

// Used counts examples of passes with a purpose as wanted: their results became those that the user asked for. No check's do.
func Used(ctx context.Context, p Purpose, examples int) {
	t := From(ctx)
	if _, ok := ctx.Value(purposeKey{}).(Purpose); ok || t == nil {
		return // the passes counted for the outer purpose
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.counts[p.kind] -= int64(examples)
	t.counts[wanted] += int64(examples)
}

// Later returns a context for passes whose purpose shows only afterwards. The caller must call settle, which counts them.
func Later(ctx context.Context) (later context.Context, settle func(Purpose)) {
	later, own := Start(ctx)
	return later, func(p Purpose) {
		c := own.Counts()
		Add(For(ctx, p), int(c.Wanted+c.Hidden()))
	}
}

// Counts are the examples of a Tally, by purpose.
type Counts struct {
	Unit     string `json:"unit"`
	Wanted   int64  `json:"wanted"`
	Checks   int64  `json:"checks"`
	Plan     int64  `json:"plan"`
	Rounding int64  `json:"rounding"`
	// Checked divides Checks by what was checked.
	Checked map[string]int64 `json:"checked,omitempty"`
}

// Counts returns the counts so far, or nil of a nil Tally.
func (t *Tally) Counts() *Counts {
	if t == nil {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return &Counts{Unit, t.counts[wanted], t.counts[check], t.counts[plan], t.counts[rounding], maps.Clone(t.checks)}
}

// Hidden returns the number of passes that are not wanted.
func (c *Counts) Hidden() int64 { return c.Checks + c.Plan + c.Rounding }

// String describes the counts in one line.
func (c *Counts) String() string {
	s := fmt.Sprintf("%d wanted, %d checks", c.Wanted, c.Checks)
	if len(c.Checked) > 0 {
		var each []string
		for _, what := range slices.Sorted(maps.Keys(c.Checked)) {
			each = append(each, fmt.Sprintf("%s %d", what, c.Checked[what]))
		}
		s += " (" + strings.Join(each, ", ") + ")"
	}
	return s + fmt.Sprintf(", %d plan, %d rounding (%s)", c.Plan, c.Rounding, Unit)
}
