package augment

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
)

// scanner reads the part of Python's syntax that transforms need, token by token.
type scanner struct {
	rest  string // text from the token on
	token token
	text  string // of the token
	line  bool   // a line end comes before the token
}

// token is a kind of token: one of the constants, or the character itself.
type token byte

const (
	end     token = 0
	word    token = 'w' // a name that may contain dots and hyphens, such as nearest-exact
	digits  token = 'n'
	quoted  token = 's'
	unknown token = '?'
)

var (
	space  = regexp.MustCompile(`^(?:\s|#[^\n]*)*`)
	tokens = regexp.MustCompile(`^(?:([A-Za-z_][\w.-]*)|([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)|('[^'\\\n]*'|"[^"\\\n]*")|([()\[\],=/]))`)
)

func newScanner(text string) *scanner {
	s := &scanner{rest: text}
	s.next()
	return s
}

// next moves to the next token. It returns the text of the previous one.
func (s *scanner) next() string {
	before := s.text
	s.rest = s.rest[len(before):]
	blank := space.FindString(s.rest)
	s.rest, s.line = s.rest[len(blank):], strings.ContainsAny(blank, "\r\n")
	s.token, s.text = end, ""
	if s.rest == "" {
		return before
	}
	s.token = unknown
	if m := tokens.FindStringSubmatch(s.rest); m != nil {
		s.text = m[0]
		switch {
		case m[1] != "":
			s.token = word
		case m[2] != "":
			s.token = digits
		case m[3] != "":
			s.token = quoted
		default:
			s.token = token(m[4][0])
		}
	}
	return before
}

// take moves on if the token is t, and reports whether it was.
func (s *scanner) take(t token) bool {
	if s.token != t {
		return false
	}
	s.next()
	return true
}

// maxDepth bounds the nesting of brackets.
const maxDepth = 10

var errDeep = errors.New("brackets too deep")

// list reads arguments up to the closing bracket: first those without a name, then those with one. It reports whether
// a comma follows the last argument.
func (s *scanner) list(closing token, depth int) (places []value, named map[string]value, comma bool, err error) {
	named = map[string]value{}
	for !s.take(closing) {
		at := s.rest
		name, v, err := s.argument(depth)
		if err != nil {
			return nil, nil, false, err
		}
		_, twice := named[name]
		switch {
		case twice:
			return nil, nil, false, fmt.Errorf("%s given twice", name)
		case name != "":
			named[name] = v
		case len(named) > 0:
			return nil, nil, false, fmt.Errorf("at %.20q, want a named argument after the first such", at)
		default:
			places = append(places, v)
		}
		if comma = s.take(','); !comma && s.token != closing {
			return nil, nil, false, fmt.Errorf("at %.20q, want a comma or a closing bracket", s.rest)
		}
	}
	return places, named, comma, nil
}

func (s *scanner) argument(depth int) (name string, v value, err error) {
	if s.token != word {
		v, err = s.value(depth)
		return "", v, err
	}
	name = s.next()
	if !s.take('=') {
		v, err = s.named(name, depth)
		return "", v, err
	}
	if v, err = s.value(depth); err != nil {
		err = fmt.Errorf("%s: %w", name, err)
	}
	return name, v, err
}

// value reads the value of an argument.
func (s *scanner) value(depth int) (value, error) {
	if depth > maxDepth {
		return value{}, errDeep
	}
	switch s.token {
	case end:
		return value{}, errors.New("the text ends, want a value")
	case '(', '[':
		return s.sequence(s.next(), depth)
	case quoted:
		text := s.next()
		return value{kind: 's', word: text[1 : len(text)-1]}, nil
	case word:
		return s.named(s.next(), depth)
	}
	x, err := s.number()
	if err == nil && s.take('/') { // 3/4
		var y float64
		if y, err = s.number(); err == nil {
			if x /= y; math.IsNaN(x) || math.IsInf(x, 0) {
				err = errors.New("division by zero")
			}
		}
	}
	return value{kind: 'n', number: x}, err
}

// sequence reads a tuple or a list up to its end. As in Python, (5) is a number and (5,) is a tuple.
func (s *scanner) sequence(open string, depth int) (value, error) {
	closing := map[string]token{"(": ')', "[": ']'}[open]
	list, named, comma, err := s.list(closing, depth+1)
	if err == nil && len(named) > 0 {
		err = errors.New("a name within brackets, want values")
	}
	if open == "(" && len(list) == 1 && !comma {
		return list[0], err
	}
	return value{kind: 'l', list: list}, err
}

// named reads the rest of a value that begins with a word, such as tensor([0.5]) or timm's "bilinear bicubic".
func (s *scanner) named(name string, depth int) (value, error) {
	if s.take('(') {
		if name != "tensor" && name != "torch.tensor" {
			return value{}, fmt.Errorf("%.40s(...), want a value", name)
		}
		v, err := s.value(depth + 1)
		if err == nil && !s.take(')') {
			err = fmt.Errorf("at %.20q, want the end of tensor", s.rest)
		}
		return v, err
	}
	if s.token == word {
		name += " " + s.next()
	}
	return value{kind: 'w', word: name}, nil
}

func (s *scanner) number() (float64, error) {
	x, err := strconv.ParseFloat(s.text, 64)
	if s.token != digits || err != nil {
		return 0, fmt.Errorf("at %.20q, want a number, a word or brackets", s.rest)
	}
	s.next()
	return x, nil
}
