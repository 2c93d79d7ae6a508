package tokenizer

import (
	"encoding/json"
	"fmt"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// change replaces characters. It may add some: a normal form has up to 18 for one.
type change func(part) (part, error)

// Bounds of the normalizer and the pre_tokenizer of a file. DeepSeek's has 5 steps.
const (
	maxPartBytes = 1 << 20
	maxParts     = 32
	maxNested    = 4
)

// eachPart calls add with each normaliser or pre-tokenizer of a file in order. Those of sequences, which may be nested,
// take the place of their sequence. list is the name of the elements of a sequence.
func eachPart(what, list string, raw json.RawMessage, add func(kind string, raw json.RawMessage) error) error {
	if len(raw) > maxPartBytes {
		return fmt.Errorf("a %s of %d bytes, want at most %d", what, len(raw), maxPartBytes)
	}
	count := 0
	var walk func(raw json.RawMessage, depth int) error
	walk = func(raw json.RawMessage, depth int) error {
		var p struct{ Type string }
		if err := json.Unmarshal(raw, &p); err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		if count++; count > maxParts || depth > maxNested {
			return fmt.Errorf("a %s of more than %d parts, or of sequences in sequences more than %d deep", what, maxParts, maxNested)
		}
		if p.Type != "Sequence" {
			return add(p.Type, raw)
		}
		var fields map[string]json.RawMessage
		if err := json.Unmarshal(raw, &fields); err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		if len(fields[list]) == 0 {
			return fmt.Errorf("a %s Sequence without %s", what, list)
		}
		return eachElement(fields[list], func(element json.RawMessage) error { return walk(element, depth+1) })
	}
	if len(raw) == 0 || string(raw) == "null" {
		return nil
	}
	return walk(raw, 0)
}

// normalizers reads the normaliser of a file. Each kind may occur once. A second one would change nothing, or make the
// text longer.
func normalizers(raw json.RawMessage) (changes []change, err error) {
	seen := map[string]bool{}
	err = eachPart("normalizer", "normalizers", raw, func(kind string, raw json.RawMessage) error {
		if seen[kind] {
			return fmt.Errorf("normalizer %q twice is %w", kind, ErrUnsupported)
		}
		seen[kind] = true
		more, err := normalizer(kind, raw)
		changes = append(changes, more...)
		return err
	})
	return changes, err
}

func normalizer(kind string, raw json.RawMessage) ([]change, error) {
	forms := map[string]norm.Form{"NFC": norm.NFC, "NFD": norm.NFD, "NFKC": norm.NFKC, "NFKD": norm.NFKD}
	if f, ok := forms[kind]; ok {
		return []change{form(f)}, nil
	}
	switch kind {
	case "BertNormalizer":
		return bert(raw)
	case "Lowercase":
		return []change{lowercase}, nil
	case "StripAccents":
		return []change{without(unicode.M)}, nil
	}
	return nil, unsupported("normalizer", kind)
}

func bert(raw json.RawMessage) (changes []change, err error) {
	var p struct {
		Clean        bool  `json:"clean_text"`
		Chinese      bool  `json:"handle_chinese_chars"`
		StripAccents *bool `json:"strip_accents"`
		Lowercase    bool
	}
	if err := json.Unmarshal(raw, &p); err != nil {
		return nil, fmt.Errorf("normalizer: %w", err)
	}
	if p.Clean {
		changes = append(changes, cleanText)
	}
	if p.Chinese {
		changes = append(changes, chinese)
	}
	if strip := p.StripAccents; strip != nil && *strip || strip == nil && p.Lowercase {
		changes = append(changes, form(norm.NFD), without(unicode.Mn))
	}
	if p.Lowercase {
		changes = append(changes, lowercase)
	}
	return changes, nil
}

// mapRunes makes a change of a function that replaces one character.
func mapRunes(f func(rune) []rune) change {
	return func(p part) (part, error) {
		out := newPart(len(p.ends))
		for i, c := range p.characters {
			for _, r := range f(c) {
				out.add(r, p.ends[i])
			}
		}
		return out, nil
	}
}

// form is a normal form of Unicode. The library cuts a character after 30 marks, where tokenizers does not.
func form(f norm.Form) change {
	return func(p part) (part, error) {
		s, out := string(p.characters), newPart(len(p.ends))
		for used := 0; s != ""; {
			if used > 0 && f.PropertiesString(s).CCC() > 0 {
				return out, fmt.Errorf("a character with more than 30 marks, which ends after byte %d, is %w", p.ends[used-1],
					ErrUnsupported)
			}
			n := f.NextBoundaryInString(s, true)
			if n < 1 {
				n = len(s)
			}
			used += utf8.RuneCountInString(s[:n])
			for _, r := range f.String(s[:n]) {
				out.add(r, p.ends[used-1])
			}
			s = s[n:]
		}
		return out, nil
	}
}

func one(r rune) []rune { return []rune{r} }

func lower(r rune) []rune {
	if r == 'İ' {
		return []rune{'i', '\u0307'}
	}
	return one(unicode.ToLower(r))
}

var lowercase = mapRunes(lower)

// without removes the characters of a table.
func without(table *unicode.RangeTable) change {
	return mapRunes(func(r rune) []rune {
		if unicode.Is(table, r) {
			return nil
		}
		return one(r)
	})
}

// cleanText makes white space blank, and removes control characters. Characters without a name stay.
var cleanText = mapRunes(func(r rune) []rune {
	switch {
	case r == '\t', r == '\n', r == '\r':
		return one(' ')
	case r == 0, r == unicode.ReplacementChar, unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co):
		return nil
	case unicode.IsSpace(r):
		return one(' ')
	}
	return one(r)
})

// chinese puts spaces around the characters that BERT takes for Chinese.
var chinese = mapRunes(func(r rune) []rune {
	for _, block := range [][2]rune{{0x4e00, 0x9fff}, {0x3400, 0x4dbf}, {0x20000, 0x2a6df}, {0x2a700, 0x2b73f}, {0x2b740, 0x2b81f},
		{0x2b920, 0x2ceaf}, {0xf900, 0xfaff}, {0x2f800, 0x2fa1f}} {
		if r >= block[0] && r <= block[1] {
			return []rune{' ', r, ' '}
		}
	}
	return one(r)
})
