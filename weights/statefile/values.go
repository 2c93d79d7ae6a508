package statefile

import (
	"bytes"
	"fmt"
	"strings"
	"unicode"
)

// The values of a pickle as Go values: nil (None), bool, int64, float64, and these. text, blob and long are parts of
// the file's bytes, not copies.
type (
	text  []byte
	blob  []byte // bytes, bytearray
	long  []byte // an int beyond int64: little-endian, two's complement
	tuple []any

	list struct{ items []any } // list, set, frozenset

	dict struct{ pairs []pair }

	pair struct{ key, value any }

	// A class is a name that Python would look up: a class or a function.
	class struct{ name string } // with its module, such as "collections.OrderedDict"

	// A node is the result of a call that Python would make.
	node struct {
		callee any // usually a *class
		args   any // usually a tuple
		state  any // the argument of BUILD
		list   *list
		dict   *dict // items, if the object is a list or a dict
	}

	// A persistent is a reference to an object outside the pickle.
	persistent struct{ id any }
)

// className returns the name of the function that was called to make v, or "".
func className(v any) string {
	if n, ok := v.(*node); ok {
		if c, ok := n.callee.(*class); ok {
			return c.name
		}
	}
	return ""
}

// entries returns the items of a dict, or of an object that is a dict, in the order of the file.
func entries(v any) []pair {
	switch v := v.(type) {
	case *dict:
		return v.pairs
	case *node:
		if v.dict != nil {
			return v.dict.pairs
		}
	}
	return nil
}

// elements returns the items of a list, set or tuple.
func elements(v any) []any {
	switch v := v.(type) {
	case tuple:
		return v
	case *list:
		return v.items
	case *node:
		switch className(v) {
		case "torch.Size", "builtins.set", "__builtin__.set", "builtins.frozenset", "__builtin__.frozenset":
			if inner := argument(v, 0); inner != any(v) {
				if _, again := inner.(*node); !again {
					return elements(inner)
				}
			}
		}
		if v.list != nil {
			return v.list.items
		}
	}
	return nil
}

// argument returns the i-th argument of n, or nil.
func argument(n *node, i int) any {
	if args, ok := n.args.(tuple); ok && i < len(args) {
		return args[i]
	}
	return nil
}

// lookup returns the value under key in a list of items.
func lookup(pairs []pair, key string) (any, bool) {
	for i := len(pairs) - 1; i >= 0; i-- { // in Python, the last one counts
		if k, ok := pairs[i].key.(text); ok && string(k) == key {
			return pairs[i].value, true
		}
	}
	return nil, false
}

// attributes returns the attributes of an object, from the state that BUILD gave it. The state is a dict, or a tuple
// of a dict and a second one for its slots.
func attributes(n *node) []pair {
	if t, ok := n.state.(tuple); ok && len(t) == 2 {
		return entries(t[0])
	}
	return entries(n.state)
}

// describe describes v in a few words, for lists of ignored entries.
func describe(v any) string {
	switch v := v.(type) {
	case nil:
		return "None"
	case bool, int64, float64:
		return fmt.Sprint(v)
	case long:
		return "a large integer"
	case text:
		return "a text"
	case blob:
		return fmt.Sprintf("%d bytes", len(v))
	case tuple:
		return fmt.Sprintf("a tuple of %d", len(v))
	case *list:
		return fmt.Sprintf("a list of %d", len(v.items))
	case *dict:
		return fmt.Sprintf("a dict of %d", len(v.pairs))
	case *Tensor:
		return "a tensor"
	case *class:
		return "the name " + shorten(v.name)
	case *node:
		name := className(v)
		switch {
		case rebuildName(v) != "":
			return "a tensor"
		case strings.HasSuffix(name, "multiarray._reconstruct"):
			return "a NumPy array"
		case strings.HasSuffix(name, "multiarray.scalar"):
			return "a NumPy number"
		case name != "":
			return "an object of " + shorten(name)
		}
	}
	return "an object"
}

// shorten cuts a text of the file to a length that fits a message, and replaces characters that do not print.
func shorten(s string) string {
	const most = 100
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "…"
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return unicode.ReplacementChar
	}, s)
}

func integer(v any) (int64, bool) {
	switch v := v.(type) {
	case int64:
		return v, true
	case long:
		return v.int64()
	}
	return 0, false
}

// int64 returns the number if it fits.
func (l long) int64() (int64, bool) {
	if len(l) > 8 {
		return 0, false
	}
	var n uint64
	for i := len(l) - 1; i >= 0; i-- {
		n = n<<8 | uint64(l[i])
	}
	if k := len(l); k > 0 && k < 8 && l[k-1]&0x80 != 0 {
		n |= ^uint64(0) << (8 * k)
	}
	return int64(n), true
}

// is reports whether v is the number of these bytes.
func is(v any, number long) bool {
	l, ok := v.(long)
	return ok && bytes.Equal(l, number)
}
