package pattern

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"sync"
	"unicode"
)

// class is a set of characters: ranges in ascending order that do not touch each other.
type class []span

type span struct{ first, last rune }

func union(all ...class) (out class) {
	spans := slices.Concat(all...)
	slices.SortFunc(spans, func(a, b span) int { return cmp.Compare(a.first, b.first) })
	for _, s := range spans {
		if k := len(out) - 1; k >= 0 && s.first <= out[k].last+1 {
			out[k].last = max(out[k].last, s.last)
		} else {
			out = append(out, s)
		}
	}
	return out
}

func (c class) not() (out class) {
	next := rune(0)
	for _, s := range c {
		if next < s.first {
			out = append(out, span{next, s.first - 1})
		}
		next = s.last + 1
	}
	if next <= unicode.MaxRune {
		out = append(out, span{next, unicode.MaxRune})
	}
	return out
}

func (c class) and(d class) class { return union(c.not(), d.not()).not() }

// just returns the class of one character.
func just(r rune) class { return class{{r, r}} }

// orWithout returns the class, or the characters that are not in it.
func (c class) orWithout(without bool) class {
	if without {
		return c.not()
	}
	return c
}

// cased are all characters that have another case.
var cased = sync.OnceValue(func() (all []rune) {
	for r := range rune(0x1ffff) {
		if unicode.SimpleFold(r) != r {
			all = append(all, r)
		}
	}
	return all
})

// anyCase adds the other cases of all characters.
func (c class) anyCase() class {
	more := class{}
	for _, s := range c {
		from, _ := slices.BinarySearch(cased(), s.first)
		for _, r := range cased()[from:] {
			if r > s.last {
				break
			}
			for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
				more = append(more, span{f, f})
			}
		}
	}
	return union(c, more)
}

func classOf(tables ...*unicode.RangeTable) class {
	all := class{}
	for _, t := range tables {
		for _, r := range t.R16 {
			all = appendRange(all, rune(r.Lo), rune(r.Hi), rune(r.Stride))
		}
		for _, r := range t.R32 {
			all = appendRange(all, rune(r.Lo), rune(r.Hi), rune(r.Stride))
		}
	}
	return union(all)
}

func appendRange(c class, first, last, stride rune) class {
	if stride == 1 {
		return append(c, span{first, last})
	}
	for r := first; r <= last; r += stride {
		c = append(c, span{r, r})
	}
	return c
}

// Classes that have a letter of their own. They are those of Unicode, not of ASCII. Oniguruma counts ²³¹¼½¾ to words, as
// ISO 8859-1 does.
var (
	digits = sync.OnceValue(func() class { return classOf(unicode.Nd) })
	spaces = sync.OnceValue(func() class { return classOf(unicode.White_Space) })
	words  = sync.OnceValue(func() class {
		latin1 := class{{'²', '³'}, {'¹', '¹'}, {'¼', '¾'}}
		return union(classOf(unicode.L, unicode.M, unicode.Nd, unicode.Nl, unicode.Pc, unicode.Other_Alphabetic), latin1)
	})
	hexadecimals = sync.OnceValue(func() class { return class{{'0', '9'}, {'A', 'F'}, {'a', 'f'}} })
)

// wordSet is the set of words, at whose edges \b matches.
var wordSet = sync.OnceValue(func() *set { s := newSet(words()); return &s })

// properties are general categories and scripts, under their short and long names.
var properties = sync.OnceValue(func() map[string]*unicode.RangeTable {
	all := map[string]*unicode.RangeTable{}
	for _, tables := range []map[string]*unicode.RangeTable{unicode.Scripts, unicode.Categories} {
		for name, table := range tables {
			all[plain(name)] = table
		}
	}
	for _, name := range slices.Sorted(maps.Keys(unicode.CategoryAliases)) {
		all[plain(name)] = unicode.Categories[unicode.CategoryAliases[name]]
	}
	return all
})

// plain is a name of a property in one spelling.
func plain(name string) string {
	return strings.NewReplacer(" ", "", "_", "", "-", "").Replace(strings.ToLower(name))
}
