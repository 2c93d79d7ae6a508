package augment

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"

	"go.starlark.net/syntax"
)

type value struct {
	kind   byte // 'n'umber, 'w'ord, 's'tring or 'l'ist
	number float64
	word   string
	list   []value
}

func (v value) String() string {
	switch v.kind {
	case 'n':
		return number(v.number)
	case 'l':
		var in []string
		for _, x := range v.list {
			in = append(in, x.String())
		}
		return "(" + strings.Join(in, ", ") + ")"
	}
	return fmt.Sprintf("%.40s", v.word)
}

var (
	comment = regexp.MustCompile(`#[^\n]*`)
	// lineEnd is the end of a line that has no comma. In lists of transforms and in Python's printed forms, the end of
	// the line stands for a comma.
	lineEnd = regexp.MustCompile(`([^\s,(\[=])\s*\n`)
)

// maxDepth bounds the nesting of brackets.
const maxDepth = 10

// expressions parses a list of Python's expressions. They are separated by commas or line ends. Starlark's syntax is
// that of Python here.
func expressions(text string) ([]syntax.Expr, error) {
	depth := 0
	for _, c := range text {
		switch c {
		case '(', '[':
			depth++
		case ')', ']':
			depth--
		}
		if depth > maxDepth || depth < 0 {
			return nil, errors.New("brackets too deep, or one too many")
		}
	}
	text = lineEnd.ReplaceAllString(comment.ReplaceAllString(text+"\n", ""), "$1,\n")
	e, err := (&syntax.FileOptions{}).ParseExpr("", "f("+text+")", 0)
	if wrong, ok := errors.AsType[syntax.Error](err); ok {
		return nil, fmt.Errorf("line %d: %s: want transforms with commas or line ends between", wrong.Pos.Line, wrong.Msg)
	}
	call, ok := e.(*syntax.CallExpr)
	if err != nil || !ok {
		return nil, errors.Join(err, errors.New("want transforms with commas or line ends between"))
	}
	return call.Args, nil
}

// nameOf returns a name with its dots, such as transforms.v2.RandomCrop, or "".
func nameOf(e syntax.Expr) string {
	switch e := e.(type) {
	case *syntax.Ident:
		return e.Name
	case *syntax.DotExpr:
		if of := nameOf(e.X); of != "" {
			return of + "." + e.Name.Name
		}
	}
	return ""
}

// argument splits name=value. The name is "" for another expression.
func argument(e syntax.Expr) (name string, of syntax.Expr) {
	if b, ok := e.(*syntax.BinaryExpr); ok && b.Op == syntax.EQ {
		return nameOf(b.X), b.Y
	}
	return "", e
}

// set stores the arguments of a call.
func (a *arguments) set(list []syntax.Expr) error {
	a.named = map[string]value{}
	for _, e := range list {
		name, of := argument(e)
		v, err := valueOf(of)
		_, twice := a.named[name]
		switch {
		case err != nil:
			return fmt.Errorf("%s: %w", name, err)
		case twice:
			return fmt.Errorf("%s given twice", name)
		case name != "":
			a.named[name] = v
		case len(a.named) > 0:
			return errors.New("want a named argument after the first such")
		default:
			a.places = append(a.places, v)
		}
	}
	return nil
}

// valueOf returns the value of an expression without variables.
func valueOf(e syntax.Expr) (v value, err error) {
	switch e := e.(type) {
	case *syntax.Literal:
		if text, ok := e.Value.(string); ok {
			return value{kind: 's', word: text}, nil
		}
		v.kind = 'n'
		v.number, err = strconv.ParseFloat(e.Raw, 64)
		return v, err
	case *syntax.ParenExpr:
		return valueOf(e.X)
	case *syntax.TupleExpr:
		return listOf(e.List)
	case *syntax.ListExpr:
		return listOf(e.List)
	case *syntax.CallExpr:
		if name := nameOf(e.Fn); name != "tensor" && name != "torch.tensor" || len(e.Args) != 1 {
			return v, fmt.Errorf("%.40s(...), want a value", name)
		}
		return valueOf(e.Args[0])
	case *syntax.UnaryExpr:
		if v, err = valueOf(e.X); err == nil && v.kind == 'n' && e.Op == syntax.MINUS {
			v.number = -v.number
			return v, nil
		}
	case *syntax.BinaryExpr:
		return quotient(e)
	case *syntax.Ident, *syntax.DotExpr:
		if name := nameOf(e); name != "" {
			return value{kind: 'w', word: name}, nil
		}
	}
	return v, errors.New("want a number, a word or brackets")
}

func listOf(list []syntax.Expr) (value, error) {
	v := value{kind: 'l'}
	for _, e := range list {
		x, err := valueOf(e)
		if err != nil {
			return v, err
		}
		v.list = append(v.list, x)
	}
	return v, nil
}

// quotient returns the value of 3/4, or of a word with a hyphen such as nearest-exact.
func quotient(e *syntax.BinaryExpr) (value, error) {
	x, err := valueOf(e.X)
	y, wrong := valueOf(e.Y)
	switch err = errors.Join(err, wrong); {
	case err != nil:
		return x, err
	case e.Op == syntax.MINUS && x.kind == 'w' && y.kind == 'w':
		x.word += "-" + y.word
	case e.Op != syntax.SLASH || x.kind != 'n' || y.kind != 'n':
		return x, errors.New("want a number, a word or brackets")
	default:
		if x.number /= y.number; math.IsNaN(x.number) || math.IsInf(x.number, 0) {
			return x, errors.New("division by zero")
		}
	}
	return x, nil
}
