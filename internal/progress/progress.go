// Package progress finds the order of training among the checkpoints of a run, by their names.
package progress

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/maruel/natural"
)

// An Order has the paths of checkpoints in the order of training, as far as their names tell it.
type Order struct {
	Paths []string
	// By names the words whose numbers decided, such as "epoch". It is "" if the numbers decided from left to right.
	By string
	// Doubt says why the order may be wrong, or is "".
	Doubt string
}

// Sort returns the checkpoints in the order that their names tell. The number behind a word such as epoch or step decides.
// A metric never decides where another number can, such as the loss in val_loss=0.83-epoch=0.pt. Other names are compared by
// their numbers, from left to right.
func Sort(paths []string) Order {
	plain := slices.Clone(paths)
	slices.SortStableFunc(plain, natural.Compare)
	names := make([]name, len(plain))
	for i, path := range plain {
		names[i] = parse(path)
	}
	for kind := range kinds {
		forgetEqual(names, kind)
	}
	if by := known(names); by != "" {
		return byProgress(by, names, plain)
	}
	return byNumbers(names, plain)
}

// byProgress sorts names that all have a number of progress.
func byProgress(by string, names []name, plain []string) Order {
	slices.SortStableFunc(names, func(a, b name) int {
		return cmp.Or(compareProgress(a, b), natural.Compare(a.rest, b.rest))
	})
	o := Order{Paths: pathsOf(names), By: by}
	twins := 0
	for i := 1; i < len(names); i++ {
		if compareProgress(names[i-1], names[i]) == 0 {
			twins++
			o.Doubt = fmt.Sprintf("%s and %s have the same number behind %s", names[i-1].path, names[i].path, by)
		}
	}
	switch {
	case slices.Equal(o.Paths, plain):
		return Order{Paths: plain}
	case 2*twins >= len(names)-1: // several runs: each stays together
		return Order{
			Paths: plain,
			Doubt: fmt.Sprintf("many have the same number behind %s, so the order is that of all numbers in their names", by),
		}
	case o.Doubt == "" && contradictory(names):
		o.Doubt = "the numbers behind epoch and global_step contradict each other, and epoch decided"
	}
	return o
}

// byNumbers sorts names without a number of progress. Metrics decide only between names that are otherwise equal.
func byNumbers(names []name, plain []string) Order {
	slices.SortStableFunc(names, func(a, b name) int { return natural.Compare(a.rest, b.rest) })
	o := Order{Paths: pathsOf(names)}
	some, metrics, powers, same := 0, true, false, true
	for _, n := range names {
		if n.has(epoch) || n.has(step) {
			some++
		}
		metrics, powers, same = metrics && n.metric, powers || n.power, same && n.rest == names[0].rest
	}
	switch moved := !slices.Equal(o.Paths, plain); {
	case some > 1 && some < len(names):
		without := names[slices.IndexFunc(names, func(n name) bool { return !n.has(epoch) && !n.has(step) })]
		o.Doubt = fmt.Sprintf("%s has no number behind a word such as epoch or step, and others have one", without.path)
	case len(names) > 1 && metrics && same:
		o.Doubt = "only a metric distinguishes their names, which does not tell when they were saved"
	case moved && powers:
		o.Doubt = "numbers such as 1e4 were read as 10000"
	case moved:
		o.Doubt = "a number behind a metric, or one with decimals, was taken for no order"
	}
	return o
}

func pathsOf(names []name) (paths []string) {
	for _, n := range names {
		paths = append(paths, n.path)
	}
	return paths
}

// forgetEqual forgets a kind of progress that is the same in all names, such as the length of the whole training.
func forgetEqual(names []name, kind int) {
	if slices.ContainsFunc(names, func(n name) bool { return n.progress[kind] != names[0].progress[kind] }) {
		return
	}
	for i := range names {
		names[i].progress[kind] = math.NaN()
	}
}

// known returns the kinds of progress that all names have, in words, or "".
func known(names []name) string {
	var by []string
	for kind, word := range kinds {
		if len(names) > 0 && !slices.ContainsFunc(names, func(n name) bool { return !n.has(kind) }) {
			by = append(by, word)
		}
	}
	return strings.Join(by, " and ")
}

// compareProgress compares by the kinds of progress that both names have.
func compareProgress(a, b name) int {
	for kind := range kinds {
		if a.has(kind) && b.has(kind) && a.progress[kind] != b.progress[kind] {
			return cmp.Compare(a.progress[kind], b.progress[kind])
		}
	}
	return 0
}

// contradictory reports whether the steps of the whole training fall where the epochs rise. Steps within an epoch may.
func contradictory(names []name) bool {
	for i := 1; i < len(names); i++ {
		a, b := names[i-1], names[i]
		if a.global && b.global && a.has(epoch) && b.has(epoch) && b.progress[step] < a.progress[step] {
			return true
		}
	}
	return false
}
