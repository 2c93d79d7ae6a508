package tokenizer

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"
)

// wordPiece takes the longest token that a word begins with, and goes on with the rest of the word (Devlin et al. 2019).
type wordPiece struct {
	first, later *entries // tokens that begin a word, and tokens that continue one, without their prefix
	ids, more    []int32
	unk          int32
	most         int // characters of a word
}

func newWordPiece(f modelFile) (model, error) {
	if f.UnkToken == nil {
		return nil, errors.New("WordPiece without unk_token")
	}
	w := &wordPiece{most: 100}
	var ok bool
	if w.unk, ok = f.Vocab[*f.UnkToken]; !ok {
		return nil, fmt.Errorf("unk_token %q is not in the vocabulary", *f.UnkToken)
	}
	if f.MaxInputChars != nil {
		w.most = *f.MaxInputChars
	}
	prefix := "##"
	if f.Prefix != nil {
		prefix = *f.Prefix
	}
	var begins, continues []string
	for _, token := range slices.Sorted(maps.Keys(f.Vocab)) {
		begins, w.ids = append(begins, token), append(w.ids, f.Vocab[token])
		if rest, ok := strings.CutPrefix(token, prefix); ok {
			continues, w.more = append(continues, rest), append(w.more, f.Vocab[token])
		}
	}
	var err error
	if w.first, err = newEntries(begins); err == nil {
		w.later, err = newEntries(continues)
	}
	return w.encode, err
}

func (w *wordPiece) encode(word []rune) (out []piece, _ error) {
	whole := []piece{{w.unk, int32(len(word))}}
	if len(word) > w.most {
		return whole, nil
	}
	text := string(word)
	longest := make([]piece, len(text)) // the token that continues the word at each byte, and its length in bytes
	w.later.find(text, func(at int, entry int32) { longest[at] = piece{w.more[entry], int32(len(w.later.list[entry]))} })
	longest[0] = piece{}
	w.first.find(text, func(at int, entry int32) {
		if at == 0 {
			longest[0] = piece{w.ids[entry], int32(len(w.first.list[entry]))}
		}
	})
	for at := 0; at < len(text); {
		p := longest[at]
		if p.characters == 0 {
			return whole, nil
		}
		next := at + int(p.characters)
		out = append(out, piece{p.id, int32(utf8.RuneCountInString(text[at:next]))})
		at = next
	}
	return out, nil
}

func newWordLevel(f modelFile) (model, error) {
	unk, ok := int32(0), false
	if f.UnkToken != nil {
		unk, ok = f.Vocab[*f.UnkToken]
	}
	return func(word []rune) ([]piece, error) {
		id, known := f.Vocab[string(word)]
		switch {
		case !known && !ok:
			return nil, fmt.Errorf("%q is not in the vocabulary", string(word))
		case !known:
			id = unk
		}
		return []piece{{id, int32(len(word))}}, nil
	}, nil
}
