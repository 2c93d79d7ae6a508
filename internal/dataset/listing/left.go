package listing

import (
	"fmt"
	"maps"
	"slices"

	"github.com/swagwrap/swagwrap/internal/numpy"
)

// leftOut counts what inputs hold and no example has.
type leftOut struct {
	kinds []string // in the order in which they were met
	names map[string][]string
	count map[string]int
}

// leave counts things of a kind that are left out.
func (l *Listing) leave(kind string, all ...string) { l.leaveSome(kind, len(all), all) }

// leaveSome is like leave, for n things. all has some of their names.
func (l *Listing) leaveSome(kind string, n int, all []string) {
	const shown = 3
	if n == 0 {
		return
	}
	if l.left.count == nil {
		l.left.names, l.left.count = map[string][]string{}, map[string]int{}
	}
	if l.left.count[kind] == 0 {
		l.left.kinds = append(l.left.kinds, kind)
	}
	l.left.count[kind] += n
	for _, name := range all {
		if len(l.left.names[kind]) < shown {
			l.left.names[kind] = append(l.left.names[kind], name)
		}
	}
}

// leaveKinds counts things that are left out, by their kind.
func (l *Listing) leaveKinds(kinds map[string][]string) {
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		l.leave(kind, kinds[kind]...)
	}
}

// LeftOut says what the inputs hold and no example has, one sentence for each kind.
func (l *Listing) LeftOut() (out []string) {
	for _, kind := range l.left.kinds {
		names, n := l.left.names[kind], l.left.count[kind]
		out = append(out, fmt.Sprintf("left out: %s, %d in all: such as %s", kind, n, numpy.Quote(names)))
	}
	return out
}

// Targets returns the names of the columns of labels in lists, in their order, or nil.
func (l *Listing) Targets() []string { return l.targets.Known }

// Rules says by what columns of labels were ordered, where it is not the order of the file.
func (l *Listing) Rules() (out []string) {
	for _, rule := range l.rules {
		if rule != "" {
			out = append(out, rule)
		}
	}
	return out
}
