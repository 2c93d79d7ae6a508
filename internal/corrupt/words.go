package corrupt

import (
	"strings"
	"unicode"
)

// Text damages the words of a text. A word is what stands between white space. Words in angle brackets, such as <unk>, get
// no typing errors.
func (c Corruption) Text(text string, severity int, seed uint64) string {
	r, out := &random{seed: seed}, strings.Builder{}
	var letters []rune // the letters that occur in the text
	for _, l := range text {
		if unicode.IsLetter(l) {
			letters = append(letters, l)
		}
	}
	for text != "" {
		from := indexOrEnd(text, func(r rune) bool { return !unicode.IsSpace(r) })
		out.WriteString(text[:from])
		text = text[from:]
		to := indexOrEnd(text, unicode.IsSpace)
		if to == 0 {
			break
		}
		w := c.word(text[:to], sizes[severity-1], letters, r)
		out.WriteString(w)
		if text = text[to:]; w == "" { // the blanks behind it go, too
			text = text[indexOrEnd(text, func(r rune) bool { return !unicode.IsSpace(r) || r == '\n' || r == '\r' }):]
		}
	}
	return out.String()
}

func indexOrEnd(s string, f func(rune) bool) int {
	if i := strings.IndexFunc(s, f); i >= 0 {
		return i
	}
	return len(s)
}

// dropWords leaves out a share of the words.
func dropWords(w string, share float64, _ []rune, r *random) string {
	if r.uniform() < share {
		return ""
	}
	return w
}

// typos makes a typing error in a share of the words. It swaps two letters that are neighbours, leaves out the first of
// them, or puts any letter of the text in its place.
func typos(w string, share float64, letters []rune, r *random) string {
	if strings.HasPrefix(w, "<") && strings.HasSuffix(w, ">") {
		return w
	}
	runes, pairs := []rune(w), []int(nil)
	for i := range len(runes) - 1 {
		if unicode.IsLetter(runes[i]) && unicode.IsLetter(runes[i+1]) {
			pairs = append(pairs, i)
		}
	}
	if pairs == nil || r.uniform() >= share {
		return w
	}
	at := pairs[r.below(len(pairs))]
	switch r.below(3) {
	case 0:
		runes[at], runes[at+1] = runes[at+1], runes[at]
	case 1:
		runes = append(runes[:at], runes[at+1:]...)
	default:
		runes[at] = letters[r.below(len(letters))]
	}
	return string(runes)
}

// List returns where each token of a damaged list of n tokens comes from: its place in the list, or −1 for any token of the
// data. The first and the last token stay, because many networks mark the ends of a text there.
func (c Corruption) List(n, severity int, seed uint64) []int {
	return c.token(n, sizes[severity-1], &random{seed: seed})
}

// dropTokens leaves out a share of the tokens.
func dropTokens(n int, share float64, r *random) (from []int) {
	for i := range n {
		if r.uniform() >= share || i == 0 || i == n-1 {
			from = append(from, i)
		}
	}
	return from
}

// replaceTokens replaces a share of the tokens, as typing errors do.
func replaceTokens(n int, share float64, r *random) (from []int) {
	for i := range n {
		if r.uniform() < share && i > 0 && i < n-1 {
			i = -1
		}
		from = append(from, i)
	}
	return from
}

// swapTokens exchanges a share of the tokens with the next one.
func swapTokens(n int, share float64, r *random) (from []int) {
	for i := range n {
		from = append(from, i)
	}
	for i := 1; i+2 < n; i++ {
		if r.uniform() < share {
			from[i], from[i+1] = from[i+1], from[i]
			i++
		}
	}
	return from
}
