package text

import (
	"cmp"
	"container/heap"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/dlclark/regexp2"
	"golang.org/x/text/unicode/norm"
)

// Tokenizer is a tokenizer.json of Hugging Face: byte-level BPE (GPT-2, Llama 3, Qwen), WordPiece (BERT), or whole words.
// A file with something else is refused, so that no text gets other tokens than in training. Special tokens are not added
// to a text.
type Tokenizer struct {
	Size   int // numbers up to the largest one
	added  []addedToken
	before []step // normalisers
	pieces []step // pre-tokenizers
	model  func(word []glyph) ([]piece, error)
	known  map[string][]piece // words that occurred
}

type addedToken struct {
	ID                         int32
	Content                    string
	SingleWord, LStrip, RStrip bool `json:"-"`
	Single                     bool `json:"single_word"`
	Left                       bool `json:"lstrip"`
	Right                      bool `json:"rstrip"`
	Normalized                 bool
}

// glyph is a character of the text as the tokenizer sees it, with the place in the text where it ends.
type glyph struct {
	r   rune
	end int
}

// piece is a token, with the number of glyphs that it stands for.
type piece struct {
	id     int32
	glyphs int
}

// step changes a part of a text, or splits it.
type step func(part []glyph) [][]glyph

// part is the JSON of a normaliser, a pre-tokenizer or a model.
type part struct {
	Type string

	Normalizers      []part
	Pretokenizers    []part
	CleanText        *bool `json:"clean_text"`
	Chinese          *bool `json:"handle_chinese_chars"`
	StripAccents     *bool `json:"strip_accents"`
	Lowercase        *bool
	AddPrefixSpace   bool  `json:"add_prefix_space"`
	UseRegex         *bool `json:"use_regex"`
	IndividualDigits bool  `json:"individual_digits"`
	Pattern          struct{ Regex, String *string }
	Behavior         string
	Invert           bool

	Vocab         map[string]int32
	Merges        []json.RawMessage
	UnkToken      *string `json:"unk_token"`
	Prefix        *string `json:"continuing_subword_prefix"`
	Suffix        *string `json:"end_of_word_suffix"`
	ByteFallback  bool    `json:"byte_fallback"`
	FuseUnk       bool    `json:"fuse_unk"`
	IgnoreMerges  bool    `json:"ignore_merges"`
	Dropout       *float64
	MaxInputChars int `json:"max_input_chars_per_word"`
}

// NewTokenizer reads a tokenizer.json.
func NewTokenizer(content []byte) (*Tokenizer, error) {
	var f struct {
		Added        []addedToken `json:"added_tokens"`
		Normalizer   *part
		PreTokenizer *part `json:"pre_tokenizer"`
		Model        part
	}
	if err := json.Unmarshal(content, &f); err != nil {
		return nil, fmt.Errorf("not a tokenizer.json: %w", err)
	}
	t := &Tokenizer{added: f.Added, known: map[string][]piece{}}
	slices.SortStableFunc(t.added, func(a, b addedToken) int { return cmp.Compare(len(b.Content), len(a.Content)) })
	var err error
	if f.Normalizer != nil {
		if t.before, err = normalizers(*f.Normalizer); err != nil {
			return nil, err
		}
	}
	if f.PreTokenizer != nil {
		if t.pieces, err = pretokenizers(*f.PreTokenizer); err != nil {
			return nil, err
		}
	}
	for _, a := range f.Added {
		t.Size = max(t.Size, int(a.ID)+1)
		if a.Normalized && t.before != nil {
			return nil, fmt.Errorf("added token %q: is looked for in normalised text, which is not supported", a.Content)
		}
	}
	for _, id := range f.Model.Vocab {
		t.Size = max(t.Size, int(id)+1)
	}
	switch f.Model.Type {
	case "BPE":
		t.model, err = newBPE(f.Model)
	case "WordPiece":
		t.model, err = newWordPiece(f.Model)
	case "WordLevel":
		t.model, err = newWordLevel(f.Model)
	default:
		err = unsupported("model", f.Model.Type)
	}
	return t, err
}

func unsupported(what, name string) error {
	return fmt.Errorf("%s %q is not supported: make the numbers of the tokens in Python, and give them as an .npy file", what, name)
}

// Encode returns the tokens of a text.
func (t *Tokenizer) Encode(content []byte) (*Tokens, error) {
	if !utf8.Valid(content) {
		return nil, errors.New("not a text in UTF-8")
	}
	out, rest, at, text := &Tokens{}, string(content), 0, string(content)
	from := 0 // where the text begins that has no token yet
	add := func(id int32, end int) {
		out.add(id, text[from:max(from, end)])
		from = max(from, end)
	}
	for rest != "" {
		next, token := t.nextAdded(rest)
		if next > 0 {
			if err := t.encode(rest[:next], at, add); err != nil {
				return nil, err
			}
		}
		if token == nil {
			break
		}
		if token.Single || token.Left || token.Right {
			return nil, fmt.Errorf("the text holds the added token %q, which takes its surroundings (single_word, lstrip, rstrip): not supported", token.Content)
		}
		next += len(token.Content)
		add(token.ID, at+next)
		at, rest = at+next, rest[next:]
	}
	if len(out.IDs) == 0 {
		return nil, errors.New("an empty text")
	}
	last := len(out.IDs) - 1 // characters that no token stands for belong to the last token
	out.Bytes[last] += int32(len(text) - from)
	out.Characters[last] += int32(utf8.RuneCountInString(text[from:]))
	docs, token, begin := &documents{}, 0, int32(0)
	for line, left, place := "", text, 0; left != ""; place += len(line) {
		line, left = cutLine(left)
		for token < len(out.IDs) && int(begin+out.Bytes[token]) <= place {
			begin += out.Bytes[token]
			token++
		}
		docs.line(line, token)
	}
	docs.number(out)
	return out, nil
}

// nextAdded returns the first added token in a text, the longest one at its place, and the text before it.
func (t *Tokenizer) nextAdded(s string) (at int, token *addedToken) {
	at = len(s)
	for k := range t.added {
		if i := strings.Index(s[:min(len(s), at+len(t.added[k].Content))], t.added[k].Content); i >= 0 && i < at && t.added[k].Content != "" {
			at, token = i, &t.added[k]
		}
	}
	return at, token
}

// encode adds the tokens of a text without added tokens, which begins at the given place.
func (t *Tokenizer) encode(s string, at int, add func(id int32, end int)) error {
	parts := [][]glyph{nil}
	for i, r := range s {
		parts[0] = append(parts[0], glyph{r, at + i + utf8.RuneLen(r)})
	}
	for _, f := range slices.Concat(t.before, t.pieces) {
		var next [][]glyph
		for _, p := range parts {
			next = append(next, f(p)...)
		}
		parts = next
	}
	for _, word := range parts {
		if len(word) == 0 {
			continue
		}
		key := string(runes(word))
		tokens, ok := t.known[key]
		if !ok {
			var err error
			if tokens, err = t.model(word); err != nil {
				return err
			}
			t.known[key] = tokens
		}
		end := 0
		for _, p := range tokens {
			end += p.glyphs
			add(p.id, word[end-1].end)
		}
	}
	return nil
}

func runes(part []glyph) []rune {
	out := make([]rune, len(part))
	for i, g := range part {
		out[i] = g.r
	}
	return out
}

// each makes a step of a function that replaces one character.
func each(f func(rune) []rune) step {
	return func(part []glyph) [][]glyph {
		out := make([]glyph, 0, len(part))
		for _, g := range part {
			for _, r := range f(g.r) {
				out = append(out, glyph{r, g.end})
			}
		}
		return [][]glyph{out}
	}
}

// form is a normal form of Unicode.
func form(f norm.Form) step {
	return func(part []glyph) [][]glyph {
		s := string(runes(part))
		var out []glyph
		for used := 0; s != ""; {
			n := f.NextBoundaryInString(s, true)
			if n < 1 {
				n = len(s)
			}
			used += utf8.RuneCountInString(s[:n])
			for _, r := range f.String(s[:n]) {
				out = append(out, glyph{r, part[used-1].end})
			}
			s = s[n:]
		}
		return [][]glyph{out}
	}
}

func one(r rune) []rune { return []rune{r} }

func lower(r rune) []rune {
	if r == 'İ' {
		return []rune{'i', '\u0307'}
	}
	return one(unicode.ToLower(r))
}

var lowercase = each(lower)

var stripAccents = each(func(r rune) []rune {
	if unicode.Is(unicode.Mn, r) {
		return nil
	}
	return one(r)
})

var cleanText = each(func(r rune) []rune {
	switch {
	case r == '\t', r == '\n', r == '\r', unicode.IsSpace(r):
		return one(' ')
	case r == 0, r == unicode.ReplacementChar, unicode.Is(unicode.C, r):
		return nil
	}
	return one(r)
})

// chinese puts spaces around the characters that BERT takes for Chinese.
var chinese = each(func(r rune) []rune {
	for _, block := range [][2]rune{{0x4e00, 0x9fff}, {0x3400, 0x4dbf}, {0x20000, 0x2a6df}, {0x2a700, 0x2b73f}, {0x2b740, 0x2b81f}, {0x2b920, 0x2ceaf}, {0xf900, 0xfaff}, {0x2f800, 0x2fa1f}} {
		if r >= block[0] && r <= block[1] {
			return []rune{' ', r, ' '}
		}
	}
	return one(r)
})

func normalizers(p part) (steps []step, err error) {
	is := func(b *bool) bool { return b != nil && *b }
	switch p.Type {
	case "Sequence":
		for _, q := range p.Normalizers {
			more, err := normalizers(q)
			if err != nil {
				return nil, err
			}
			steps = append(steps, more...)
		}
	case "BertNormalizer":
		if is(p.CleanText) {
			steps = append(steps, cleanText)
		}
		if is(p.Chinese) {
			steps = append(steps, chinese)
		}
		if is(p.StripAccents) || p.StripAccents == nil && is(p.Lowercase) {
			steps = append(steps, form(norm.NFD), stripAccents)
		}
		if is(p.Lowercase) {
			steps = append(steps, lowercase)
		}
	case "Lowercase":
		steps = append(steps, lowercase)
	case "StripAccents":
		steps = append(steps, stripAccents)
	case "NFC", "NFD", "NFKC", "NFKD":
		steps = append(steps, form(map[string]norm.Form{"NFC": norm.NFC, "NFD": norm.NFD, "NFKC": norm.NFKC, "NFKD": norm.NFKD}[p.Type]))
	default:
		return nil, unsupported("normalizer", p.Type)
	}
	return steps, nil
}

// gpt2 is the pattern of GPT-2, which pre-tokenizers of the type ByteLevel have.
const gpt2 = `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`

func pretokenizers(p part) (steps []step, err error) {
	pattern := func(expression string, keep, gaps bool) error {
		re, err := regexp2.Compile(expression, regexp2.None)
		if err != nil {
			return fmt.Errorf("pre_tokenizer: pattern %q: %w", expression, err)
		}
		steps = append(steps, split(re, keep, gaps))
		return nil
	}
	switch p.Type {
	case "Sequence":
		for _, q := range p.Pretokenizers {
			more, err := pretokenizers(q)
			if err != nil {
				return nil, err
			}
			steps = append(steps, more...)
		}
	case "ByteLevel":
		if p.AddPrefixSpace {
			steps = append(steps, func(part []glyph) [][]glyph {
				if len(part) > 0 && part[0].r != ' ' {
					part = slices.Insert(slices.Clone(part), 0, glyph{' ', 0})
				}
				return [][]glyph{part}
			})
		}
		if p.UseRegex == nil || *p.UseRegex {
			err = pattern(gpt2, true, true)
		}
		steps = append(steps, each(func(r rune) (out []rune) {
			for _, b := range []byte(string(r)) {
				out = append(out, byteRunes[b])
			}
			return out
		}))
	case "BertPreTokenizer":
		steps = append(steps, classes(func(r rune) int {
			switch {
			case unicode.IsSpace(r):
				return gone
			case r < 0x80 && unicode.In(r, unicode.P, unicode.S), unicode.IsPunct(r):
				return alone
			}
			return 0
		}))
	case "WhitespaceSplit":
		steps = append(steps, classes(func(r rune) int {
			if unicode.IsSpace(r) {
				return gone
			}
			return 0
		}))
	case "Whitespace":
		steps = append(steps, classes(func(r rune) int {
			switch {
			case unicode.In(r, unicode.L, unicode.M, unicode.Nd, unicode.Nl, unicode.Pc, unicode.Other_Alphabetic, unicode.Join_Control):
				return 1
			case unicode.IsSpace(r):
				return gone
			}
			return 0
		}))
	case "Digits":
		steps = append(steps, classes(func(r rune) int {
			switch {
			case unicode.IsNumber(r) && p.IndividualDigits:
				return alone
			case unicode.IsNumber(r):
				return 1
			}
			return 0
		}))
	case "Split":
		expression := ""
		switch {
		case p.Pattern.Regex != nil:
			expression = *p.Pattern.Regex
		case p.Pattern.String != nil:
			expression = regexp2.Escape(*p.Pattern.String)
		}
		switch p.Behavior {
		case "Isolated":
			err = pattern(expression, true, true)
		case "Removed":
			err = pattern(expression, p.Invert, !p.Invert)
		default:
			err = unsupported("pre_tokenizer Split with behavior", p.Behavior)
		}
	default:
		err = unsupported("pre_tokenizer", p.Type)
	}
	return steps, err
}

// Classes of characters, besides others from 0.
const (
	alone = -1 // a piece of its own
	gone  = -2 // the character is in no piece
)

// classes splits where the class of characters changes.
func classes(of func(rune) int) step {
	return func(part []glyph) (out [][]glyph) {
		last := gone
		for i, g := range part {
			class := of(g.r)
			switch {
			case class == gone:
			case class == alone || class != last:
				out = append(out, part[i:i+1:i+1])
			default:
				k := len(out) - 1
				out[k] = part[i-len(out[k]) : i+1 : i+1]
			}
			last = class
		}
		return out
	}
}

// split splits at matches of a pattern. It keeps matches, what lies between them, or both.
func split(re *regexp2.Regexp, keep, gaps bool) step {
	return func(part []glyph) (out [][]glyph) {
		add := func(from, to int, use bool) {
			if use && from < to {
				out = append(out, part[from:to:to])
			}
		}
		at := 0
		for m, _ := re.FindRunesMatch(runes(part)); m != nil; m, _ = re.FindNextMatch(m) {
			add(at, m.Index, gaps)
			at = m.Index + m.Length
			add(m.Index, at, keep)
		}
		add(at, len(part), gaps)
		return out
	}
}

// byteRunes are the characters by which byte-level BPE shows bytes: printable ones show themselves.
var byteRunes = func() (table [256]rune) {
	next := rune(256)
	for b := range table {
		r := rune(b)
		if r >= '!' && r <= '~' || r >= '¡' && r <= '¬' || r >= '®' {
			table[b] = r
		} else {
			table[b] = next
			next++
		}
	}
	return table
}()

// bpe merges pairs of symbols in the order of training (Sennrich et al. 2016).
type bpe struct {
	part
	merges map[[2]int32]merge
	unk    int32 // −1 for none
}

type merge struct {
	rank int
	id   int32
}

func newBPE(p part) (func([]glyph) ([]piece, error), error) {
	if p.ByteFallback || p.Dropout != nil && *p.Dropout > 0 || p.Prefix != nil && *p.Prefix != "" || p.Suffix != nil && *p.Suffix != "" {
		return nil, unsupported("model", "BPE with byte_fallback, dropout, a prefix or a suffix")
	}
	b := &bpe{part: p, merges: map[[2]int32]merge{}, unk: -1}
	for rank, raw := range p.Merges {
		var pair []string
		if err := json.Unmarshal(raw, &pair); err != nil {
			var both string
			if err := json.Unmarshal(raw, &both); err != nil {
				return nil, fmt.Errorf("merge %d: %w", rank, err)
			}
			pair = strings.Split(both, " ")
		}
		if len(pair) != 2 {
			return nil, fmt.Errorf("merge %d: %q, want two symbols", rank, pair)
		}
		left, ok1 := p.Vocab[pair[0]]
		right, ok2 := p.Vocab[pair[1]]
		id, ok3 := p.Vocab[pair[0]+pair[1]]
		if !ok1 || !ok2 || !ok3 {
			return nil, fmt.Errorf("merge %d: %q is not in the vocabulary", rank, pair)
		}
		b.merges[[2]int32{left, right}] = merge{rank, id}
	}
	if p.UnkToken != nil {
		var ok bool
		if b.unk, ok = p.Vocab[*p.UnkToken]; !ok {
			return nil, fmt.Errorf("unk_token %q is not in the vocabulary", *p.UnkToken)
		}
	}
	return b.encode, nil
}

// symbol is an element of a list. It is merged into the one before if it has no glyphs.
type symbol struct {
	piece
	before, next int // −1 at the ends
}

// candidates is a heap of pairs of symbols that may be merged, by rank and then by place.
type candidates []candidate

type candidate struct {
	merge
	at int // the left symbol
}

func (c candidates) Len() int { return len(c) }
func (c candidates) Less(i, j int) bool {
	return c[i].rank < c[j].rank || c[i].rank == c[j].rank && c[i].at < c[j].at
}
func (c candidates) Swap(i, j int) { c[i], c[j] = c[j], c[i] }
func (c *candidates) Push(x any)   { *c = append(*c, x.(candidate)) }
func (c *candidates) Pop() any {
	last := (*c)[len(*c)-1]
	*c = (*c)[:len(*c)-1]
	return last
}

func (b *bpe) encode(word []glyph) ([]piece, error) {
	if b.IgnoreMerges {
		if id, ok := b.Vocab[string(runes(word))]; ok {
			return []piece{{id, len(word)}}, nil
		}
	}
	var list []symbol
	for _, g := range word {
		id, ok := b.Vocab[string(g.r)]
		switch last := len(list) - 1; {
		case !ok && b.unk < 0:
			return nil, fmt.Errorf("%q is not in the vocabulary, and there is no unk_token", g.r)
		case !ok && b.FuseUnk && last >= 0 && list[last].id == b.unk:
			list[last].glyphs++
			continue
		case !ok:
			id = b.unk
		}
		list = append(list, symbol{piece{id, 1}, len(list) - 1, len(list) + 1})
	}
	list[len(list)-1].next = -1
	queue := &candidates{}
	offer := func(at int) {
		if at < 0 || list[at].next < 0 {
			return
		}
		if m, ok := b.merges[[2]int32{list[at].id, list[list[at].next].id}]; ok {
			heap.Push(queue, candidate{m, at})
		}
	}
	for i := range list {
		offer(i)
	}
	for queue.Len() > 0 {
		c := heap.Pop(queue).(candidate)
		left := &list[c.at]
		if left.glyphs == 0 || left.next < 0 {
			continue
		}
		right := &list[left.next]
		if m, ok := b.merges[[2]int32{left.id, right.id}]; !ok || m != c.merge {
			continue // one of them has changed since
		}
		left.piece = piece{c.id, left.glyphs + right.glyphs}
		right.glyphs = 0
		if left.next = right.next; left.next >= 0 {
			list[left.next].before = c.at
		}
		offer(left.before)
		offer(c.at)
	}
	var out []piece
	for at := 0; at >= 0; at = list[at].next {
		out = append(out, list[at].piece)
	}
	return out, nil
}

// newWordPiece returns the longest prefixes first (Devlin et al. 2019).
func newWordPiece(p part) (func([]glyph) ([]piece, error), error) {
	if p.UnkToken == nil {
		return nil, errors.New("WordPiece without unk_token")
	}
	unk, ok := p.Vocab[*p.UnkToken]
	if !ok {
		return nil, fmt.Errorf("unk_token %q is not in the vocabulary", *p.UnkToken)
	}
	prefix, most, longest := "##", cmp.Or(p.MaxInputChars, 100), 0
	if p.Prefix != nil {
		prefix = *p.Prefix
	}
	for w := range p.Vocab {
		longest = max(longest, utf8.RuneCountInString(w))
	}
	return func(word []glyph) (out []piece, _ error) {
		whole := []piece{{unk, len(word)}}
		if len(word) > most {
			return whole, nil
		}
		all := runes(word)
		for from := 0; from < len(all); {
			to := min(len(all), from+longest)
			for ; to > from; to-- {
				s := string(all[from:to])
				if from > 0 {
					s = prefix + s
				}
				if id, ok := p.Vocab[s]; ok {
					out = append(out, piece{id, to - from})
					break
				}
			}
			if to == from {
				return whole, nil
			}
			from = to
		}
		return out, nil
	}, nil
}

func newWordLevel(p part) (func([]glyph) ([]piece, error), error) {
	return func(word []glyph) ([]piece, error) {
		id, ok := p.Vocab[string(runes(word))]
		if !ok && p.UnkToken != nil {
			id, ok = p.Vocab[*p.UnkToken]
		}
		if !ok {
			return nil, fmt.Errorf("%q is not in the vocabulary", string(runes(word)))
		}
		return []piece{{id, len(word)}}, nil
	}, nil
}
