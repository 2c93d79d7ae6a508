package pattern

// matcher runs a program on a text. It tries one way after the other (backtracking).
type matcher struct {
	program program
	text    []rune
	steps   int     // the number of steps that are still allowed
	stack   []retry // other ways, the next one last
}

// retry is a place at which a match can go on: at, at−1, …, least.
type retry struct{ pc, at, least int }

// match returns where the match that begins at a place of the text ends, or −1. pc is where its program begins.
func (m *matcher) match(pc, at int) (end int, err error) {
	base := len(m.stack)
	defer func() { m.stack = m.stack[:base] }()
	for {
		if m.steps--; m.steps < 0 || len(m.stack) > maxStack {
			return -1, ErrSteps
		}
		i := &m.program[pc]
		ok := true
		switch i.op {
		case done:
			return at, nil
		case char:
			ok = at < len(m.text) && i.set.has(m.text[at])
			at++
		case run:
			n := m.run(i, at)
			if ok = n >= i.min; ok && n > i.min && !i.whole {
				m.stack = append(m.stack, retry{pc + 1, at + n - 1, at + i.min})
			}
			at += n
		case split:
			m.stack = append(m.stack, retry{i.y, at, at})
			pc = i.x - 1
		case jump:
			pc = i.x - 1
		case looks:
			ok, err = m.looks(i, at)
			pc = i.x - 1
		case first:
			at, err = m.match(pc+1, at)
			ok = at >= 0
			pc = i.x - 1
		default:
			ok = m.edge(i.op, at)
		}
		if err != nil {
			return -1, err
		}
		if pc++; ok {
			continue
		}
		if len(m.stack) == base {
			return -1, nil
		}
		next := &m.stack[len(m.stack)-1]
		pc, at = next.pc, next.at
		if next.at--; next.at < next.least {
			m.stack = m.stack[:len(m.stack)-1]
		}
	}
}

// run counts the characters of a class.
func (m *matcher) run(i *instruction, at int) (n int) {
	most := len(m.text) - at
	if i.max >= 0 {
		most = min(most, i.max)
	}
	for n < most && i.set.has(m.text[at+n]) {
		n++
	}
	m.steps -= n
	return n
}

// looks reports whether one of the programs at the places of i matches, or that none does if i.not.
func (m *matcher) looks(i *instruction, at int) (bool, error) {
	for _, p := range i.places {
		if p.before > at {
			continue
		}
		if end, err := m.match(p.at, at-p.before); err != nil || end >= 0 {
			return !i.not, err
		}
	}
	return i.not, nil
}

// edge reports whether a place of the text is the one that an instruction wants. Lines end with \n, and with the text.
func (m *matcher) edge(o op, at int) bool {
	last := at == len(m.text)
	switch o {
	case lineBegin:
		return at == 0 || !last && m.text[at-1] == '\n'
	case lineEnd:
		return last || m.text[at] == '\n'
	case textBegin:
		return at == 0
	case textEnd:
		return last
	case lastLineEnd:
		return last || at == len(m.text)-1 && m.text[at] == '\n'
	}
	isWord := func(at int) bool { return at >= 0 && at < len(m.text) && wordSet().has(m.text[at]) }
	return (isWord(at-1) != isWord(at)) == (o == wordEdge)
}
