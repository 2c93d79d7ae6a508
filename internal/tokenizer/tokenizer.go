// Package tokenizer numbers texts as a tokenizer.json of Hugging Face says.
package tokenizer

import (
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/swagwrap/swagwrap/internal/dataset/text"
)

// tokenizer is a tokenizer.json of Hugging Face: byte-level BPE (GPT-2, Llama 3, Qwen), WordPiece (BERT), or whole words.
// A file with something else is refused, so that no text gets other tokens than in training. Special tokens are not added
// to a text.
//
// Its file comes from a stranger. So time and memory of Encode grow with the text alone, whatever the file says.
type tokenizer struct {
	size    int            // numbers up to the largest one
	added   []*addedTokens // looked for one after the other, in what is left
	changes []change       // normalisers
	splits  []split        // pre-tokenizers
	model   model
	known   map[string][]piece // short words that occurred
}

// model divides a word into tokens.
type model func(word []rune) ([]piece, error)

// piece is a token, with the number of characters of the word that it stands for.
type piece struct{ id, characters int32 }

// part is a part of the text as the tokenizer sees it. Each character has the place in the text where it ends.
type part struct {
	characters []rune
	ends       []int32
}

// newPart returns an empty part with room for n characters.
func newPart(n int) part { return part{make([]rune, 0, n), make([]int32, 0, n)} }

func (p *part) add(r rune, end int32) {
	p.characters, p.ends = append(p.characters, r), append(p.ends, end)
}

// cut returns the characters from … to−1.
func (p part) cut(from, to int) part {
	return part{p.characters[from:to:to], p.ends[from:to:to]}
}

// ErrUnsupported is the error of a tokenizer that does what this package does not.
var ErrUnsupported = errors.New("not supported")

// modelFile is the JSON of a model.
type modelFile struct {
	Type          string
	Vocab         vocabulary
	Merges        merges
	UnkToken      *string `json:"unk_token"`
	Prefix        *string `json:"continuing_subword_prefix"`
	Suffix        *string `json:"end_of_word_suffix"`
	ByteFallback  bool    `json:"byte_fallback"`
	FuseUnk       bool    `json:"fuse_unk"`
	IgnoreMerges  bool    `json:"ignore_merges"`
	Dropout       *float64
	MaxInputChars *int `json:"max_input_chars_per_word"`
}

// Open reads a tokenizer.json. The tokenizer is for one goroutine at a time.
func Open(content []byte) (text.Tokenizer, error) {
	var f struct {
		Added        addedList `json:"added_tokens"`
		Normalizer   json.RawMessage
		PreTokenizer json.RawMessage `json:"pre_tokenizer"`
		Model        modelFile
	}
	if err := json.Unmarshal(content, &f); err != nil {
		if !errors.Is(err, ErrNumbers) {
			err = fmt.Errorf("not a tokenizer.json: %w", err)
		}
		return nil, err
	}
	t := &tokenizer{known: map[string][]piece{}}
	var err error
	if t.changes, err = normalizers(f.Normalizer); err != nil {
		return nil, err
	}
	if t.splits, err = pretokenizers(f.PreTokenizer); err != nil {
		return nil, err
	}
	if t.model, err = newModel(f.Model); err != nil {
		return nil, err
	}
	return t, t.add(f.Added, f.Model.Vocab)
}

func newModel(f modelFile) (model, error) {
	makers := map[string]func(modelFile) (model, error){"BPE": newBPE, "WordPiece": newWordPiece, "WordLevel": newWordLevel}
	maker := makers[f.Type]
	if maker == nil {
		return nil, unsupported("model", f.Type)
	}
	m, err := maker(f)
	if err == nil && len(f.Vocab) == 0 {
		err = fmt.Errorf("a model %s without a vocabulary", f.Type)
	}
	return m, err
}

// add takes the added tokens. Those that are looked for in normalised text come last.
func (t *tokenizer) add(added []addedToken, v vocabulary) error {
	taken, err := v.taken()
	if err != nil {
		return err
	}
	if taken, err = checkAdded(added, v, taken); err != nil {
		return err
	}
	t.size = len(taken)
	var first, last []addedToken
	for _, a := range added {
		switch {
		case !a.Normalized:
			first = append(first, a)
		case t.changes != nil:
			return fmt.Errorf("added token %q, which is looked for in normalised text, is %w", a.Content, ErrUnsupported)
		default:
			last = append(last, a)
		}
	}
	for _, list := range [][]addedToken{first, last} {
		a, err := newAddedTokens(list)
		if err != nil {
			return fmt.Errorf("added tokens: %w", err)
		}
		t.added = append(t.added, a)
	}
	return nil
}

func unsupported(what, name string) error {
	return fmt.Errorf("%s %q is %w", what, name, ErrUnsupported)
}

// Bounds of Encode. Real patterns take about 10 steps for each character.
const (
	stepsEach = 256
	stepsMore = 1 << 20
	maxWord   = 1 << 22 // characters
	maxKnown  = 1 << 16 // words, of at most
	longKnown = 64      // characters
)

// encoder makes the tokens of one text.
type encoder struct {
	*tokenizer
	text  string
	out   text.Tokens
	from  int // where the text begins that has no token yet
	steps int // that patterns may take
}

// Size implements [text.Tokenizer].
func (t *tokenizer) Size() int { return t.size }

// Encode implements [text.Tokenizer].
func (t *tokenizer) Encode(content []byte) (*text.Tokens, error) {
	if !utf8.Valid(content) {
		return nil, text.ErrUTF8
	}
	e := &encoder{tokenizer: t, text: string(content)}
	e.steps = stepsMore + stepsEach*len(e.text)
	if err := e.cut(t.added, 0, len(e.text)); err != nil {
		return nil, err
	}
	out := &e.out
	if len(out.IDs) == 0 {
		return nil, errors.New("an empty text")
	}
	last := len(out.IDs) - 1 // characters that no token stands for belong to the last token
	out.Bytes[last] += int32(len(e.text) - e.from)
	out.Characters[last] += int32(utf8.RuneCountInString(e.text[e.from:]))
	out.FindDocuments(e.text)
	return out, nil
}

// add adds a token that ends at a place of the text.
func (e *encoder) add(id int32, end int) {
	end = max(e.from, end)
	e.out.Add(id, e.text[e.from:end])
	e.from = end
}

// cut looks for added tokens in a part of the text, and encodes the text between them.
func (e *encoder) cut(added []*addedTokens, from, to int) error {
	if len(added) == 0 {
		return e.encode(from, to)
	}
	return added[0].cut(e.text[from:to], func(first, last int, token *addedToken) error {
		if token == nil {
			return e.cut(added[1:], from+first, from+last)
		}
		e.add(token.ID, from+last)
		return nil
	})
}

// encode adds the tokens of a part of the text without added tokens.
func (e *encoder) encode(from, to int) error {
	p := newPart(utf8.RuneCountInString(e.text[from:to]))
	for i, r := range e.text[from:to] {
		p.add(r, int32(from+i+utf8.RuneLen(r)))
	}
	for _, f := range e.changes {
		var err error
		if p, err = f(p); err != nil {
			return err
		}
	}
	return e.split(e.splits, p)
}

// split hands a part to the first pre-tokenizer, and what it makes of it to the others.
func (e *encoder) split(left []split, p part) error {
	if len(p.characters) == 0 {
		return nil
	}
	if len(left) == 0 {
		return e.word(p)
	}
	return left[0](p, &e.steps, func(q part) error { return e.split(left[1:], q) })
}

func (e *encoder) word(p part) error {
	if n := len(p.characters); n > maxWord {
		return fmt.Errorf("a word of %d characters, which ends at byte %d, want at most %d", n, p.ends[n-1], maxWord)
	}
	short := len(p.characters) <= longKnown
	var key string
	if short {
		key = string(p.characters)
	}
	tokens, ok := e.known[key]
	if !ok || !short {
		var err error
		if tokens, err = e.model(p.characters); err != nil {
			return err
		}
		if short && len(e.known) < maxKnown {
			e.known[key] = tokens
		}
	}
	end := int32(0)
	for _, t := range tokens {
		end += t.characters
		e.add(t.id, int(p.ends[end-1]))
	}
	return nil
}
