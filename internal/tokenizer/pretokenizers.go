package tokenizer

import (
	"encoding/json"
	"errors"
	"fmt"
	"unicode"

	"github.com/swagwrap/swagwrap/internal/tokenizer/pattern"
)

// split divides a part, and calls next with each piece in order. Patterns take steps.
type split func(p part, steps *int, next func(part) error) error

// pretokenizers reads the pre-tokenizer of a file.
func pretokenizers(raw json.RawMessage) (splits []split, err error) {
	bytes := false
	err = eachPart("pre_tokenizer", "pretokenizers", raw, func(kind string, raw json.RawMessage) error {
		if kind == "ByteLevel" && bytes { // each one doubles a character
			return fmt.Errorf("pre_tokenizer %q twice is %w", kind, ErrUnsupported)
		}
		bytes = bytes || kind == "ByteLevel"
		more, err := pretokenizer(kind, raw)
		splits = append(splits, more...)
		return err
	})
	return splits, err
}

func pretokenizer(kind string, raw json.RawMessage) ([]split, error) {
	switch kind {
	case "ByteLevel":
		return byteLevel(raw)
	case "Split":
		return splitAt(raw)
	case "Digits":
		return digits(raw)
	case "BertPreTokenizer":
		return []split{classes(func(r rune) int {
			switch {
			case unicode.IsSpace(r):
				return gone
			case r < 0x80 && unicode.In(r, unicode.P, unicode.S), unicode.IsPunct(r):
				return alone
			}
			return 0
		})}, nil
	case "WhitespaceSplit":
		return []split{classes(func(r rune) int {
			if unicode.IsSpace(r) {
				return gone
			}
			return 0
		})}, nil
	case "Whitespace":
		return []split{classes(func(r rune) int {
			switch {
			case isWord(r):
				return 1
			case unicode.IsSpace(r):
				return gone
			}
			return 0
		})}, nil
	}
	return nil, unsupported("pre_tokenizer", kind)
}

// gpt2 is the pattern of GPT-2, which pre-tokenizers of the type ByteLevel have.
const gpt2 = `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`

// byteLevel turns characters into bytes, and shows each byte as a character.
func byteLevel(raw json.RawMessage) (splits []split, err error) {
	var p struct {
		AddPrefixSpace bool  `json:"add_prefix_space"`
		UseRegex       *bool `json:"use_regex"`
	}
	if err := json.Unmarshal(raw, &p); err != nil {
		return nil, fmt.Errorf("pre_tokenizer: %w", err)
	}
	if p.AddPrefixSpace {
		splits = append(splits, func(p part, _ *int, next func(part) error) error {
			if p.characters[0] == ' ' {
				return next(p)
			}
			with := newPart(len(p.ends) + 1)
			with.add(' ', 0)
			return next(part{append(with.characters, p.characters...), append(with.ends, p.ends...)})
		})
	}
	if p.UseRegex == nil || *p.UseRegex {
		words, err := pattern.Compile(gpt2)
		if err != nil {
			return nil, err
		}
		splits = append(splits, matches(gpt2, words, true, true))
	}
	toBytes := mapRunes(func(r rune) (out []rune) {
		for _, b := range []byte(string(r)) {
			out = append(out, byteRunes[b])
		}
		return out
	})
	return append(splits, func(p part, _ *int, next func(part) error) error {
		p, err := toBytes(p)
		if err != nil {
			return err
		}
		return next(p)
	}), nil
}

func digits(raw json.RawMessage) ([]split, error) {
	var p struct {
		Individual bool `json:"individual_digits"`
	}
	if err := json.Unmarshal(raw, &p); err != nil {
		return nil, fmt.Errorf("pre_tokenizer: %w", err)
	}
	return []split{classes(func(r rune) int {
		switch {
		case unicode.IsNumber(r) && p.Individual:
			return alone
		case unicode.IsNumber(r):
			return 1
		}
		return 0
	})}, nil
}

// splitAt splits at a pattern of the file.
func splitAt(raw json.RawMessage) ([]split, error) {
	var p struct {
		Pattern  struct{ Regex, String *string }
		Behavior string
		Invert   bool
	}
	if err := json.Unmarshal(raw, &p); err != nil {
		return nil, fmt.Errorf("pre_tokenizer: %w", err)
	}
	var of *pattern.Pattern
	var stated string
	switch {
	case p.Pattern.Regex != nil:
		var err error
		stated = *p.Pattern.Regex
		if of, err = pattern.Compile(stated); err != nil {
			return nil, fmt.Errorf("pre_tokenizer: %w: %w", err, ErrUnsupported)
		}
	case p.Pattern.String != nil:
		stated = *p.Pattern.String
		of = pattern.Literal(stated)
	default:
		return nil, errors.New("pre_tokenizer Split without a pattern")
	}
	switch p.Behavior {
	case "Isolated":
		return []split{matches(stated, of, true, true)}, nil
	case "Removed":
		return []split{matches(stated, of, p.Invert, !p.Invert)}, nil
	}
	return nil, unsupported("pre_tokenizer Split with behavior", p.Behavior)
}

// Classes of characters, besides others from 0.
const (
	alone = -1 // a piece of its own
	gone  = -2 // the character is in no piece
)

// classes splits where the class of characters changes.
func classes(of func(rune) int) split {
	return func(p part, _ *int, next func(part) error) error {
		from, last := 0, gone // a piece begins at from, unless the last character is gone
		for i, r := range p.characters {
			class := of(r)
			if class == last && class != alone {
				continue
			}
			if last != gone {
				if err := next(p.cut(from, i)); err != nil {
					return err
				}
			}
			from, last = i, class
		}
		if last == gone {
			return nil
		}
		return next(p.cut(from, len(p.characters)))
	}
}

// matches splits at the matches of a pattern. It keeps matches, what lies between them, or both.
func matches(stated string, of *pattern.Pattern, keep, gaps bool) split {
	return func(p part, steps *int, next func(part) error) error {
		err := of.Split(p.characters, steps, func(from, to int, match bool) error {
			if from == to || match && !keep || !match && !gaps {
				return nil
			}
			return next(p.cut(from, to))
		})
		if err == pattern.ErrSteps { // of this pattern, and not of a later one
			return fmt.Errorf("pre_tokenizer: pattern %q: %w: %w", stated, err, ErrUnsupported)
		}
		return err
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
