package report

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// A word is a part of a text of the page. With an ID it is a term of the glossary and links there.
type word struct{ Text, ID, Meaning string }

// spelling returns the terms by their spellings, and what matches these, the longest first. Most commands write no page.
var spelling = sync.OnceValues(func() (map[string]*term, *regexp.Regexp) {
	of := map[string]*term{}
	var all []string
	for i := range glossary {
		for _, s := range append(glossary[i].Also, glossary[i].Name) {
			s = strings.ToLower(prose(s))
			of[s], all = &glossary[i], append(all, regexp.QuoteMeta(s))
		}
	}
	slices.SortFunc(all, func(a, b string) int { return cmp.Or(len(b)-len(a), cmp.Compare(a, b)) })
	return of, regexp.MustCompile("(?i)" + strings.Join(all, "|"))
})

// words splits a text where it names a term for the first time. The map seen holds the terms that were named before.
// It may be nil if repetition does not matter.
func words(s string, seen map[*term]bool) (out []word) {
	spellings, spelt := spelling()
	plain := 0 // start of the text that has not been output yet
	for at := 0; at < len(s); {
		found := spelt.FindStringIndex(s[at:])
		if found == nil {
			break
		}
		from, to := at+found[0], at+found[1]
		before, _ := utf8.DecodeLastRuneInString(s[:from])
		after, _ := utf8.DecodeRuneInString(s[to:])
		t := spellings[strings.ToLower(s[from:to])]
		switch {
		case t == nil || joins(before) || joins(after): // part of a longer word
			_, size := utf8.DecodeRuneInString(s[from:])
			at = from + size
			continue
		case !seen[t]:
			if plain < from {
				out = append(out, word{Text: s[plain:from]})
			}
			out, plain = append(out, word{s[from:to], t.ID(), t.Meaning}), to
			if seen != nil {
				seen[t] = true
			}
		}
		at = to
	}
	if plain < len(s) {
		out = append(out, word{Text: s[plain:]})
	}
	return out
}

func joins(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) || r == '-' }

// ID returns the ID of the term's line in the page.
func (t term) ID() string {
	return fmt.Sprintf("word-%d", slices.IndexFunc(glossary, func(g term) bool { return g.Name == t.Name }))
}

func (r *Report) glossaryOf(parts []part) []term {
	seen := map[*term]bool{}
	say := func(texts ...string) {
		for _, s := range texts {
			words(prose(s), seen)
		}
	}
	say(r.Verdict...)
	if r.Lead != nil {
		say(r.Lead.Words()...)
	}
	for _, f := range r.Findings {
		say(f.Text)
	}
	for _, t := range r.Tables {
		say(t.Title, t.Explanation)
		if t.Table == nil {
			continue
		}
		for _, c := range t.Table.filled() {
			say(t.Table.cols[c].Header)
		}
		for _, row := range t.Table.rows {
			say(row[0])
		}
		say(t.Table.warnings...)
		say(t.Table.notes...)
	}
	for _, f := range r.Facts {
		say(f.Name)
	}
	for _, p := range parts {
		say(p.Heading, p.Lead)
		for _, f := range p.Figures {
			say(f.Words()...)
		}
	}
	var terms []term
	for i := range glossary {
		if seen[&glossary[i]] {
			terms = append(terms, glossary[i])
		}
	}
	return terms
}
