package tokenizer

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// addedToken is a text that is a token wherever it stands.
type addedToken struct {
	ID         int32
	Content    string
	SingleWord bool `json:"single_word"` // not next to a letter or digit
	Left       bool `json:"lstrip"`      // takes the white space before it
	Right      bool `json:"rstrip"`      // takes the white space behind it
	Normalized bool
}

// addedList is the list of added tokens in a tokenizer.json.
type addedList []addedToken

// UnmarshalJSON implements [json.Unmarshaler].
func (l *addedList) UnmarshalJSON(b []byte) error {
	return eachElement(b, func(raw json.RawMessage) error {
		a := addedToken{ID: -1}
		if err := json.Unmarshal(raw, &a); err != nil {
			return fmt.Errorf("added token %d: %w", len(*l), err)
		}
		*l = append(*l, a)
		return checkNumber(a.Content, int64(a.ID))
	})
}

// checkAdded fails if an added token has another number than Hugging Face tokenizers gives it. That is its number in the
// vocabulary, or else the next one. taken says which numbers the vocabulary has. The result also has those of added tokens.
func checkAdded(added []addedToken, vocabulary map[string]int32, taken []bool) ([]bool, error) {
	number, next := map[string]int32{}, int32(len(vocabulary))
	for _, a := range added {
		if a.Content == "" { // tokenizers leaves it out
			continue
		}
		want, known := vocabulary[a.Content]
		if !known {
			want, known = number[a.Content]
		}
		if !known {
			want = next
		}
		if a.ID != want {
			return nil, fmt.Errorf("added token %q has the number %d, and Hugging Face tokenizers gives it %d: %w", a.Content, a.ID,
				want, ErrNumbers)
		}
		if int(want) >= len(taken) {
			taken = append(taken, make([]bool, int(want)+1-len(taken))...)
		} else if !known && taken[want] {
			return nil, fmt.Errorf("added token %q has the number %d of another token: %w", a.Content, a.ID, ErrNumbers)
		}
		taken[want], number[a.Content], next = true, want, max(next, want+1)
	}
	return taken, nil
}

// addedTokens finds added tokens.
type addedTokens struct {
	list  []addedToken
	found *entries
}

func newAddedTokens(list []addedToken) (*addedTokens, error) {
	if len(list) == 0 {
		return nil, nil
	}
	a := &addedTokens{list: list}
	content := make([]string, len(list))
	for i, t := range list {
		content[i] = t.Content
	}
	var err error
	a.found, err = newEntries(content)
	return a, err
}

// cut divides a text into added tokens and what lies between them. It calls add with each in order. token is nil for what
// lies between. Of tokens that overlap, the first counts, and of those at one place the longest. White space that a token
// takes may be another token, too: then that one also counts, as in tokenizers.
func (a *addedTokens) cut(text string, add func(from, to int, token *addedToken) error) error {
	if a == nil {
		return add(0, len(text), nil)
	}
	type match struct{ at, entry int32 }
	var matches []match
	a.found.find(text, func(at int, entry int32) { matches = append(matches, match{int32(at), entry}) })
	// behind is the end of the match before, done that of the token before, and blank that of the last white space.
	behind, done, blank := 0, 0, -1
	for _, m := range slices.Backward(matches) {
		token := &a.list[m.entry]
		from := int(m.at)
		to := from + len(token.Content)
		if from < behind {
			continue
		}
		behind = to
		if token.SingleWord && (endsWithWord(text[:from]) || beginsWithWord(text[to:])) {
			continue
		}
		if token.Left {
			from = done + len(strings.TrimRightFunc(text[done:max(done, from)], unicode.IsSpace))
		}
		if token.Right {
			if blank < to { // no white space is searched twice
				blank = len(text) - len(strings.TrimLeftFunc(text[to:], unicode.IsSpace))
			}
			to = blank
		}
		if done < from {
			if err := add(done, from, nil); err != nil {
				return err
			}
		}
		if from < to {
			if err := add(from, to, token); err != nil {
				return err
			}
		}
		done = to
	}
	if done < len(text) {
		return add(done, len(text), nil)
	}
	return nil
}

func endsWithWord(s string) bool {
	r, n := utf8.DecodeLastRuneInString(s)
	return n > 0 && isWord(r)
}

func beginsWithWord(s string) bool {
	r, n := utf8.DecodeRuneInString(s)
	return n > 0 && isWord(r)
}

// isWord reports what \w means in Rust.
func isWord(r rune) bool {
	return unicode.In(r, unicode.L, unicode.M, unicode.Nd, unicode.Nl, unicode.Pc, unicode.Other_Alphabetic, unicode.Join_Control)
}
