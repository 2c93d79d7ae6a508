package pattern

import "errors"

// op is what an instruction does.
type op uint8

const (
	done  op = iota // a match ends here
	char            // one character of the class
	run             // min to max characters of the class, as many as possible
	split           // go to x, and later to y
	jump            // go to x
	looks           // one of the programs at the places matches
	first           // the first match of the program at x
	lineBegin
	lineEnd
	textBegin
	textEnd
	lastLineEnd
	wordEdge
	noWordEdge
)

// instruction is a step of a program. The next one follows it, except after a jump.
type instruction struct {
	op       op
	set      set
	min, max int
	whole    bool // a run gives nothing back
	x, y     int
	not      bool
	places   []place
}

// place is a program inside a program, which begins some characters before the current one.
type place struct{ at, before int }

// set is a class with a table of its ASCII characters.
type set struct {
	ascii [2]uint64
	class class
}

func newSet(c class) (s set) {
	s.class = c
	for r := range rune(0x80) {
		if s.search(r) {
			s.ascii[r>>6] |= 1 << (r & 63)
		}
	}
	return s
}

func (s *set) has(r rune) bool {
	if r < 0x80 {
		return s.ascii[r>>6]>>(r&63)&1 == 1
	}
	return s.search(r)
}

func (s *set) search(r rune) bool {
	from, to := 0, len(s.class)
	for from < to {
		if k := (from + to) / 2; s.class[k].last < r {
			from = k + 1
		} else {
			to = k
		}
	}
	return from < len(s.class) && s.class[from].first <= r
}

// maxProgram bounds the instructions. Counted repetitions are copied, and each may hold others.
const maxProgram = 10_000

var errLarge = errors.New("its counts make it too large")

// program is what a tree was translated to.
type program []instruction

// add appends an instruction and returns its place.
func (p *program) add(i instruction) int {
	*p = append(*p, i)
	return len(*p) - 1
}

// append translates a tree.
func (p *program) append(n node) error {
	if len(*p) > maxProgram {
		return errLarge
	}
	switch n.kind {
	case one:
		p.add(instruction{op: char, set: newSet(n.chars)})
	case chain:
		for _, part := range n.parts {
			if err := p.append(part); err != nil {
				return err
			}
		}
	case choice:
		return p.choice(n.parts)
	case repeat:
		if c, ok := n.class(); ok && !n.lazy {
			p.add(instruction{op: run, set: newSet(c), min: n.min, max: n.max})
			return nil
		}
		return p.repeat(n)
	case whole:
		if r := n.parts[0]; r.kind == repeat && !r.lazy {
			if c, ok := r.class(); ok {
				p.add(instruction{op: run, set: newSet(c), min: r.min, max: r.max, whole: true})
				return nil
			}
		}
		return p.inner(instruction{op: first}, n.parts, false)
	case look:
		if n.behind {
			return p.inner(instruction{op: looks, not: n.not}, n.parts[0].parts, true)
		}
		return p.inner(instruction{op: looks, not: n.not}, n.parts, false)
	case edge:
		p.add(instruction{op: n.edge})
	}
	return nil
}

// class returns the class of a repeated character.
func (n node) class() (class, bool) {
	return n.parts[0].chars, n.parts[0].kind == one
}

// choice translates alternatives: each but the last begins with a split.
func (p *program) choice(parts []node) error {
	var ends []int
	for i, part := range parts {
		fork := -1
		if i < len(parts)-1 {
			fork = p.add(instruction{op: split, x: len(*p) + 1})
		}
		if err := p.append(part); err != nil {
			return err
		}
		if fork >= 0 {
			ends = append(ends, p.add(instruction{op: jump}))
			(*p)[fork].y = len(*p)
		}
	}
	for _, e := range ends {
		(*p)[e].x = len(*p)
	}
	return nil
}

// repeat copies a part min times. Further copies are options, or a loop.
func (p *program) repeat(n node) error {
	for range n.min {
		if err := p.append(n.parts[0]); err != nil {
			return err
		}
	}
	var forks []int
	for range max(1, n.max-n.min) {
		if n.min == n.max {
			break
		}
		forks = append(forks, p.add(instruction{op: split, x: len(*p) + 1}))
		if err := p.append(n.parts[0]); err != nil {
			return err
		}
	}
	if n.max < 0 {
		p.add(instruction{op: jump, x: forks[0]})
	}
	for _, f := range forks {
		(*p)[f].y = len(*p)
		if i := &(*p)[f]; n.lazy {
			i.x, i.y = i.y, i.x
		}
	}
	return nil
}

// inner translates programs inside the program. i is the instruction that runs them.
func (p *program) inner(i instruction, parts []node, behind bool) error {
	at := p.add(i)
	for _, part := range parts {
		from := place{at: len(*p)}
		if behind {
			from.before, _ = part.width()
		}
		(*p)[at].places = append((*p)[at].places, from)
		if err := p.append(part); err != nil {
			return err
		}
		p.add(instruction{op: done})
	}
	(*p)[at].x = len(*p)
	return nil
}
