// Package pattern finds the regular expressions of a tokenizer.json in a text. It knows the syntax of Oniguruma that
// tokenizers use, and gives the matches that Hugging Face tokenizers finds with it.
//
// # Bounds
//
// Expressions come from files of strangers. A matcher with lookahead may need a time that grows exponentially with the
// text. So [Pattern.Split] counts steps, and fails when they are used up: on each machine at the same place. The steps of
// real tokenizers grow with the text alone, at about 10 for each character.
package pattern

import (
	"errors"
	"fmt"
)

// Pattern is a regular expression. Any number of goroutines may use it.
type Pattern struct{ program program }

// Compile reads an expression. Some constructs are refused, because real tokenizers do not use them. They are references to
// groups, options other than i, classes such as [:alpha:], and repetitions of an expression that may be empty.
func Compile(expression string) (*Pattern, error) {
	tree, err := parse(expression)
	p := &Pattern{}
	if err == nil {
		err = p.program.append(tree)
	}
	if err != nil {
		return nil, fmt.Errorf("pattern %q: %w", expression, err)
	}
	p.program.add(instruction{op: done})
	return p, nil
}

// Literal returns the pattern of a text that stands for itself.
func Literal(text string) *Pattern {
	p := &Pattern{}
	for _, r := range text {
		p.program.add(instruction{op: char, set: newSet(just(r))})
	}
	p.program.add(instruction{op: done})
	return p
}

// ErrSteps is the error of a pattern that needs more steps than there are.
var ErrSteps = errors.New("it takes too many steps for this text")

// maxStack bounds the places at which a match can go on in another way. They take 24 bytes each.
const maxStack = 1 << 20

// Split calls add with each match and with what lies between two matches, in the order of the text. Matches may be empty.
// Each step lowers *steps by one. Split fails with [ErrSteps] when none is left, or with the error of add.
func (p *Pattern) Split(text []rune, steps *int, add func(from, to int, match bool) error) error {
	m := &matcher{program: p.program, text: text, steps: *steps}
	defer func() { *steps = m.steps }()
	at, last := 0, -1 // last is the end of the match before
	for start := 0; start <= len(text); {
		end, err := m.match(0, start)
		switch {
		case err != nil:
			return err
		case end < 0 || end == start && end == last: // an empty match does not follow another one
			start++
			continue
		}
		if err := add(at, start, false); err != nil {
			return err
		}
		if err := add(start, end, true); err != nil {
			return err
		}
		at, start, last = end, end, end
	}
	return add(at, len(text), false)
}
