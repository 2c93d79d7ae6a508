package pattern

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// kind is what a node of an expression does.
type kind uint8

const (
	one    kind = iota // one character of a class
	chain              // all parts, one after the other
	choice             // the first part that leads to a match
	repeat             // the part min to max times
	look               // the part matches here, and stands for nothing
	whole              // the part, with its first match only
	edge               // a place, such as the end of a line
)

// node is an expression as a tree.
type node struct {
	kind     kind
	chars    class
	parts    []node
	min, max int  // max −1 is any number
	lazy     bool // as few times as possible
	behind   bool // look at what stands before
	not      bool
	edge     op
}

// Bounds of an expression. That of GPT-4o has 400 characters.
const (
	maxLength = 4096
	maxDepth  = 50
	maxCount  = 100_000 // that of Oniguruma
)

// parser reads an expression. Its errors name the unsupported part.
type parser struct {
	rest    []rune
	anyCase bool
	letter  rune // the literal before, if case is ignored
	depth   int
}

var errEnd = errors.New("it ends too early")

func parse(expression string) (n node, err error) {
	p := &parser{rest: []rune(expression)}
	if len(p.rest) > maxLength {
		return n, fmt.Errorf("%d characters, want at most %d", len(p.rest), maxLength)
	}
	n, err = p.choice()
	if err == nil && len(p.rest) > 0 {
		err = errors.New("a ) without a (")
	}
	return n, err
}

// take reads a prefix, if the rest begins with it.
func (p *parser) take(prefix string) bool {
	r := []rune(prefix)
	if len(p.rest) < len(r) || !slices.Equal(p.rest[:len(r)], r) {
		return false
	}
	p.rest = p.rest[len(r):]
	return true
}

// next reads one character, or returns 0 at the end.
func (p *parser) next() rune {
	if len(p.rest) == 0 {
		return 0
	}
	r := p.rest[0]
	p.rest = p.rest[1:]
	return r
}

func (p *parser) at(r rune) bool { return len(p.rest) > 0 && p.rest[0] == r }

// choice reads alternatives up to a closing parenthesis.
func (p *parser) choice() (n node, err error) {
	if p.depth++; p.depth > maxDepth {
		return n, fmt.Errorf("groups in groups, more than %d deep", maxDepth)
	}
	defer func() { p.depth-- }()
	n.kind = choice
	for {
		c := node{kind: chain}
		for len(p.rest) > 0 && !p.at('|') && !p.at(')') {
			part, err := p.repeated()
			if err != nil {
				return n, err
			}
			c.parts = append(c.parts, part)
		}
		n.parts = append(n.parts, c)
		if !p.take("|") {
			return n, nil
		}
	}
}

// repeated reads an atom and the quantifiers behind it.
func (p *parser) repeated() (node, error) {
	n, err := p.atom()
	for err == nil {
		r := node{kind: repeat, parts: []node{n}}
		plain := true // a suffix changes it
		switch {
		case p.take("?"):
			r.max = 1
		case p.take("*"):
			r.max = -1
		case p.take("+"):
			r.min, r.max = 1, -1
		case p.at('{'):
			var ok bool
			if r.min, r.max, ok = p.counts(); !ok {
				return n, nil
			}
			plain = r.min != r.max && !p.at('+') // {n}? is an option, and {n,m}+ is repeated
		default:
			return n, nil
		}
		if r.max != 1 && n.nullable() { // then every copy makes an instruction, and every loop makes progress
			return n, errors.New("it repeats what may be empty")
		}
		if r.max > maxCount || r.min > maxCount || r.max >= 0 && r.min > r.max {
			return n, fmt.Errorf("a part %d to %d times", r.min, r.max)
		}
		n = r
		switch {
		case !plain:
		case p.take("?"):
			n.lazy = true
		case p.take("+"):
			n = node{kind: whole, parts: []node{r}}
		}
	}
	return n, err
}

// counts reads {n}, {n,}, {,m} or {n,m}. Braces with something else stand for themselves.
func (p *parser) counts() (least, most int, ok bool) {
	end := slices.Index(p.rest, '}')
	if end < 0 {
		return 0, 0, false
	}
	first, second, two := strings.Cut(string(p.rest[1:end]), ",")
	if !two {
		second = first
	}
	number := func(s string, empty int) int {
		n, err := strconv.ParseUint(s, 10, 31)
		switch {
		case s == "" && two:
			return empty
		case errors.Is(err, strconv.ErrRange):
			return maxCount + 1
		case err != nil || s[0] == '+':
			ok = false
		}
		return int(n)
	}
	ok = first+second != ""
	least, most = number(first, 0), number(second, -1)
	if ok {
		p.rest = p.rest[end+1:]
	}
	return least, most, ok
}

// group reads what follows an opening parenthesis.
func (p *parser) group() (n node, err error) {
	outer := p.anyCase
	defer func() { p.anyCase = outer }()
	n.kind = chain
	switch {
	case !p.take("?"), p.take(":"):
	case p.take("="):
		n.kind = look
	case p.take("!"):
		n.kind, n.not = look, true
	case p.take("<="):
		n.kind, n.behind = look, true
	case p.take("<!"):
		n.kind, n.behind, n.not = look, true, true
	case p.take(">"):
		n.kind = whole
	case p.take("<"): // a name
		end := slices.Index(p.rest, '>')
		if end < 0 {
			return n, errEnd
		}
		p.rest = p.rest[end+1:]
	default:
		if p.take("-i") {
			p.anyCase = false
		} else if p.take("i") {
			p.anyCase = true
		} else {
			return n, fmt.Errorf("a group (?%s", string(p.rest[:min(1, len(p.rest))]))
		}
		if p.at(')') { // the rest of the group around it, with its alternatives
			p.next()
			rest, err := p.choice()
			return rest, err
		}
		if !p.take(":") {
			return n, errors.New("options other than i")
		}
	}
	inner, err := p.choice()
	if err == nil && !p.take(")") {
		err = errors.New("a ( without a )")
	}
	n.parts = []node{inner}
	for _, alternative := range inner.parts {
		if _, ok := alternative.width(); n.behind && !ok && err == nil {
			err = errors.New("it looks behind at parts of several lengths")
		}
	}
	return n, err
}

// atom reads what a quantifier repeats.
func (p *parser) atom() (node, error) {
	switch r := p.next(); r {
	case '(':
		return p.group()
	case '[':
		c, err := p.class()
		return node{chars: c}, err
	case '.':
		return node{chars: just('\n').not()}, nil
	case '^':
		return node{kind: edge, edge: lineBegin}, nil
	case '$':
		return node{kind: edge, edge: lineEnd}, nil
	case '\\':
		edges := map[rune]op{'A': textBegin, 'z': textEnd, 'Z': lastLineEnd, 'b': wordEdge, 'B': noWordEdge}
		if len(p.rest) > 0 && edges[p.rest[0]] != 0 {
			return node{kind: edge, edge: edges[p.next()]}, nil
		}
		c, single, err := p.escape()
		if single && err == nil {
			return p.literal(c[0].first)
		}
		return node{chars: c}, err
	case '*', '+', '?':
		return node{}, fmt.Errorf("a %c that repeats nothing", r)
	default:
		return p.literal(r)
	}
}

// literal returns a character that stands for itself. Oniguruma also compares ß with ss if it ignores case, and so on for
// ligatures: what may be compared so is refused.
func (p *parser) literal(r rune) (node, error) {
	if !p.anyCase {
		return node{chars: just(r)}, nil
	}
	r = unicode.ToLower(r)
	pair := string(p.letter) + string(r)
	p.letter = r
	if r >= 0x80 || strings.Contains("ss ff fi fl st", pair) ||
		strings.ContainsRune("sf", r) && len(p.rest) > 0 && strings.ContainsRune("{+*", p.rest[0]) {
		return node{}, fmt.Errorf("(?i) with %q", r)
	}
	return node{chars: just(r).anyCase()}, nil
}

// class reads a class after its opening bracket. && is the intersection.
func (p *parser) class() (c class, err error) {
	if p.depth++; p.depth > maxDepth {
		return nil, fmt.Errorf("classes in classes, more than %d deep", maxDepth)
	}
	defer func() { p.depth-- }()
	not := p.take("^")
	all, simple := class(nil).not(), true // all is what stands before &&
	var items []class
	if p.take("]") {
		items = append(items, just(']'))
	}
	for !p.take("]") {
		switch {
		case len(p.rest) == 0:
			return nil, errEnd
		case p.take("&&"):
			all, items, simple = all.and(union(items...)), nil, false
		case len(p.rest) > 1 && p.at('[') && p.rest[1] == ':':
			return nil, errors.New("a class such as [:alpha:]")
		case p.take("["):
			c, err := p.class()
			if err != nil {
				return nil, err
			}
			items, simple = append(items, c), false
		default:
			item, err := p.item()
			if err != nil {
				return nil, err
			}
			items = append(items, item)
		}
	}
	c = all.and(union(items...))
	if p.anyCase {
		if !simple || !not && len(c.and(class{{0x80, unicode.MaxRune}})) > 0 {
			return nil, errors.New("(?i) with a class of other characters than ASCII")
		}
		c = c.anyCase()
	}
	return c.orWithout(not), nil
}

// item reads a character, a range or an escape of a class.
func (p *parser) item() (class, error) {
	c, single, err := p.character()
	if err != nil || !single || len(p.rest) < 2 || !p.at('-') || p.rest[1] == ']' {
		return c, err
	}
	p.next()
	if p.at('[') {
		return nil, errors.New("a range that ends with a class")
	}
	d, single, err := p.character()
	switch {
	case err != nil:
		return nil, err
	case !single:
		return nil, errors.New("a range that ends with a class")
	case d[0].first < c[0].first:
		return nil, fmt.Errorf("a range %c-%c", c[0].first, d[0].first)
	}
	return class{{c[0].first, d[0].first}}, nil
}

// character reads one character of a class, or an escape. single reports whether it is one character.
func (p *parser) character() (c class, single bool, err error) {
	switch r := p.next(); {
	case r == '\\' && p.take("b"):
		return just('\b'), true, nil
	case r == '\\':
		return p.escape()
	default:
		return just(r), true, nil
	}
}

// escape reads what follows a backslash. single reports whether it is one character.
func (p *parser) escape() (c class, single bool, err error) {
	if len(p.rest) == 0 {
		return nil, false, errEnd
	}
	named := map[rune]func() class{'d': digits, 's': spaces, 'w': words, 'h': hexadecimals}
	controls := map[rune]rune{'t': '\t', 'n': '\n', 'r': '\r', 'f': '\f', 'v': '\v', 'a': '\a', 'e': 0x1b}
	switch r := p.next(); {
	case named[r|0x20] != nil:
		return named[r|0x20]().orWithout(r < 'a'), false, nil
	case controls[r] != 0:
		return just(controls[r]), true, nil
	case r == 'p' || r == 'P':
		c, err = p.property()
		return c.orWithout(r == 'P'), false, err
	case r == 'x' || r == 'u':
		r, err = p.code(r)
		return just(r), true, err
	case r < 0x80 && (r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'):
		return nil, false, fmt.Errorf(`\%c`, r)
	default:
		return just(r), true, nil
	}
}

// property reads {L} or {^Han}.
func (p *parser) property() (class, error) {
	end := slices.Index(p.rest, '}')
	if !p.take("{") || end < 0 {
		return nil, errors.New(`\p without a name in braces`)
	}
	name := string(p.rest[:end-1])
	p.rest = p.rest[end:]
	name, not := strings.CutPrefix(name, "^")
	table := properties()[plain(name)]
	if table == nil {
		return nil, fmt.Errorf(`\p{%s}`, name)
	}
	return classOf(table).orWithout(not), nil
}

// code reads 41, {1F600} or 0041 after \x or \u.
func (p *parser) code(of rune) (rune, error) {
	length, braces := 2, of == 'x' && p.take("{")
	switch {
	case braces:
		length = slices.Index(p.rest, '}')
	case of == 'u':
		length = 4
	}
	if length < 1 || length > len(p.rest) {
		return 0, errEnd
	}
	n, err := strconv.ParseUint(string(p.rest[:length]), 16, 21)
	if err != nil || n > 0x10ffff || length == 2 && n > 0x7f && !braces {
		return 0, fmt.Errorf(`\%c%s`, of, string(p.rest[:length]))
	}
	p.rest = p.rest[length:]
	if braces {
		p.next()
	}
	return rune(n), nil
}

// nullable reports whether an expression may match no character.
func (n node) nullable() bool {
	switch n.kind {
	case one:
		return false
	case chain:
		return !slices.ContainsFunc(n.parts, func(p node) bool { return !p.nullable() })
	case choice:
		return slices.ContainsFunc(n.parts, node.nullable)
	case repeat:
		return n.min == 0 || n.parts[0].nullable()
	case whole:
		return n.parts[0].nullable()
	}
	return true
}

// width returns the number of characters that an expression matches, if it is always the same.
func (n node) width() (sum int, ok bool) {
	switch n.kind {
	case one:
		return 1, true
	case look, edge:
		return 0, true
	case repeat:
		w, ok := n.parts[0].width()
		return w * n.min, ok && n.min == n.max
	}
	for i, p := range n.parts {
		w, ok := p.width()
		if !ok || n.kind == choice && i > 0 && w != sum {
			return 0, false
		}
		if n.kind == choice {
			sum = w
		} else {
			sum += w
		}
	}
	return sum, true
}
