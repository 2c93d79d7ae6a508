package text

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/swagwrap/swagwrap/internal/word"
)

// Cutting says how a text becomes windows of tokens. The labels of a window are the tokens that follow.
//
// There are two ways. As pytorch/examples does, the text is cut into Rows rows of equal length, and each row into windows of
// BPTT tokens. The next window of a row continues the one before. As in the perplexity guide of Hugging Face transformers,
// windows of Window tokens overlap, each Stride behind the one before. Each scores the tokens that no window before has
// scored.
type Cutting struct {
	Rows       int    `json:"rows,omitempty"`
	BPTT       int    `json:"bptt,omitempty"`
	Window     int    `json:"window,omitempty"`
	Stride     int    `json:"stride,omitempty"`
	Reset      bool   `json:"reset,omitempty"`   // states are zero at the beginning of each document
	Fresh      bool   `json:"fresh,omitempty"`   // states are zero at the beginning of each window
	Context    int    `json:"context,omitempty"` // states hold no more tokens than that; 0 for any number
	Vocabulary string `json:"vocabulary,omitempty"`
	Tokenizer  string `json:"tokenizer,omitempty"`
	Key        string `json:"key,omitempty"` // name of the array in an .npz file
	// Given says that the user asked for it. Otherwise arrays of examples are no text.
	Given bool `json:"-"`
	// Classes is the number of scores of a position, or 0 if it is not known.
	Classes int `json:"-"`
	// Grows says that states grow with each token. Then the context must be known.
	Grows bool `json:"-"`
	// Open reads the file Tokenizer.
	Open func(content []byte) (Tokenizer, error) `json:"-"`
}

// ParseCutting parses words such as "rows=10 bptt=35 vocabulary=vocab.txt". See docs/reference.md.
func ParseCutting(spec string) (c Cutting, err error) {
	c.Given = spec != ""
	numbers := map[string]*int{"rows": &c.Rows, "bptt": &c.BPTT, "window": &c.Window, "stride": &c.Stride, "context": &c.Context}
	names := map[string]*string{"vocabulary": &c.Vocabulary, "tokenizer": &c.Tokenizer, "array": &c.Key}
	for _, w := range strings.Fields(spec) {
		key, value, _ := strings.Cut(w, "=")
		switch number, name := numbers[key], names[key]; {
		case number != nil:
			if *number, err = strconv.Atoi(value); err != nil || *number < 1 || *number > MaxTokens {
				err = fmt.Errorf("want a whole number from 1 to %d", MaxTokens)
			}
		case name != nil:
			*name = value
		case key == "reset":
			c.Reset, c.Fresh = value == "documents", value == "windows"
			err = word.Check(value, "documents", "windows")
		default:
			err = word.Check(key, "rows", "bptt", "window", "stride", "context", "vocabulary", "tokenizer", "array", "reset")
		}
		if err != nil {
			return c, fmt.Errorf("%s: %w", w, err)
		}
	}
	switch {
	case c.Window > 0 && (c.Rows > 0 || c.BPTT > 0 || c.Context > 0 || c.Reset || c.Fresh):
		return c, errors.New("window and stride cut a text for transformers, rows, bptt and context for networks with states: want one " +
			"of them")
	case c.Stride > 0 && c.Window == 0, c.Stride > c.Window:
		return c, errors.New("stride is how far a window lies behind the one before: want window=N stride=M, M up to N")
	case c.Vocabulary != "" && c.Tokenizer != "":
		return c, errors.New("both a vocabulary and a tokenizer, want one of them")
	}
	return c, nil
}

// Bounds of a text and its windows. No sum or product of such numbers exceeds 63 bits.
const (
	// MaxTokens is the largest number of tokens of a text, and of bytes.
	MaxTokens = 1<<31 - 1
	// MaxWindow is the largest number of tokens of a window. Each has a score for every token of the vocabulary.
	MaxWindow = 1 << 20
	// maxWindows bounds the windows of a text. They take 40 bytes each.
	maxWindows = 1 << 24
	// Rows of documents may be filled up to maxEmpty times as many windows, if these are more than fewWindows.
	maxEmpty   = 64
	fewWindows = 1 << 16
)

// Defaults of pytorch/examples: its batch for validation and test, and its sequence length.
const (
	defaultRows = 10
	defaultBPTT = 35
)

// Preset fills in what was not given. fixed is the number of tokens that the network takes, or 0 for any number.
func (c *Cutting) Preset(fixed int) {
	if c.Window == 0 {
		c.Rows, c.BPTT = cmp.Or(c.Rows, defaultRows), cmp.Or(c.BPTT, fixed, defaultBPTT)
	} else {
		c.Stride = cmp.Or(c.Stride, c.Window)
	}
}

// Longest returns the number of tokens of a whole window.
func (c *Cutting) Longest() int { return c.BPTT + c.Window }

// Window is N tokens from the given one on. Labels are those of its positions From … To−1. Past is the number of tokens
// behind the states before it, since they were last zero.
type Window struct{ First, N, From, To, Past int }

// CutError is the error of a text that cannot be cut as a [Cutting] says.
type CutError struct{ error }

// CutErrorf returns a [CutError].
func CutErrorf(format string, args ...any) error { return CutError{fmt.Errorf(format, args...)} }

// Cut cuts a text into the windows of each row, equally many, of at most longest tokens.
func (c *Cutting) Cut(t *Tokens, longest int) (rows [][]Window, err error) {
	n := len(t.IDs)
	if longest > MaxTokens {
		return nil, CutErrorf("windows of %d tokens, want at most %d", longest, MaxTokens)
	}
	few := CutErrorf("a text of %d tokens, want at least 2 for each of %d rows: say rows=N", n, max(1, c.Rows))
	switch {
	case c.Window == 0 && n/2 < c.Rows:
		return nil, few
	case c.Window > 0:
		if count := n / c.Stride; count > maxWindows {
			return nil, c.many(count)
		}
		rows = [][]Window{c.slide(n, longest)}
	case c.Reset && t.Document == nil:
		return nil, CutErrorf("no documents, which begin with a line = Title =: leave out reset=documents")
	case c.Reset:
		rows, err = c.documents(t, longest)
	default:
		each := n / c.Rows
		if count := c.Rows * windows(each, longest); count > maxWindows {
			return nil, c.many(count)
		}
		for r := range c.Rows {
			rows = append(rows, c.windows(nil, r*each, (r+1)*each, longest))
		}
	}
	if err != nil {
		return nil, err
	}
	for _, row := range rows {
		if len(row) > 0 {
			return rows, nil
		}
	}
	return nil, few
}

// many is the error of a text that has too many windows.
func (c *Cutting) many(windows int) error {
	smaller := "fewer rows or a larger bptt"
	if c.Window > 0 {
		smaller = "a larger stride"
	}
	return CutErrorf("%d windows, want at most %d: say %s", windows, maxWindows, smaller)
}

// windows returns the number of windows of n tokens. The first token of all is not predicted.
func windows(n, longest int) int { return (max(1, n) - 1 + longest - 1) / longest }

// windows appends the windows of the tokens from … to−1 to a row. The last one is shorter. States that would hold more than
// the context are zeros again.
func (c *Cutting) windows(row []Window, from, to, longest int) []Window {
	past := 0
	for at := from; at+1 < to; at += longest {
		n := min(longest, to-1-at)
		if c.Fresh || c.Context > 0 && past+n > c.Context {
			past = 0
		}
		row = append(row, Window{at, n, 0, n, past})
		past += n
	}
	return row
}

// documents divides the documents among the rows, in their order. Rows with fewer windows end with empty windows, which
// count nowhere.
func (c *Cutting) documents(t *Tokens, longest int) ([][]Window, error) {
	of := make([]int, c.Rows) // windows of each row
	each := func(document func(row, from, to int)) {
		for from := 0; from < len(t.IDs); {
			to := from
			for to < len(t.IDs) && t.Document[to] == t.Document[from] {
				to++
			}
			document(from*c.Rows/len(t.IDs), from, to)
			from = to
		}
	}
	all := 0
	each(func(row, from, to int) {
		of[row] += windows(to-from, longest)
		all += windows(to-from, longest)
	})
	most := slices.Max(of)
	switch count := most * c.Rows; {
	case count > maxWindows:
		return nil, c.many(count)
	case count > fewWindows && count > maxEmpty*all:
		return nil, CutErrorf("%d windows, of which %d are empty, because one row has %d: say fewer rows", count, count-all, most)
	}
	rows := make([][]Window, c.Rows)
	for r := range rows {
		rows[r] = make([]Window, 0, most)
	}
	each(func(row, from, to int) { rows[row] = c.windows(rows[row], from, to, longest) })
	for r := range rows {
		for len(rows[r]) < most {
			rows[r] = append(rows[r], Window{0, 1, 0, 0, 0})
		}
	}
	return rows, nil
}

// slide makes windows that overlap. A window has labels for the tokens that it shows, as a causal model of transformers
// has, which moves them by one.
func (c *Cutting) slide(n, longest int) (row []Window) {
	scored := 0
	for at := 0; scored < n; at += c.Stride {
		end := min(at+longest, n)
		if s := (Window{at, end - at, max(0, scored-at-1), end - at - 1, 0}); s.From < s.To {
			row = append(row, s)
		}
		scored = end
	}
	return row
}

// A Cut describes how a text was cut.
type Cut struct {
	Cutting
	Tokens, Predictions, Windows int
	Characters                   bool     // the vocabulary has characters, and each token is one
	Unknown                      int      // words or characters that are not in the vocabulary
	Documents                    []string // their names, or nil
	Stateful                     bool     // windows continue each other
}

// Count returns the number of predicted tokens in words. of is "test" or "validation".
func (c Cut) Count(of string) string {
	s := fmt.Sprintf("%d %s tokens", c.Predictions, of)
	if c.Documents != nil {
		s += fmt.Sprintf(" of %d documents", len(c.Documents))
	}
	return s
}

// String says what figures of the text depend on.
func (c Cut) String() string {
	var b strings.Builder
	each, words := "tokens", "words"
	if c.Characters {
		each, words = "characters", "characters"
	}
	fmt.Fprintf(&b, "%d %s", c.Tokens, each)
	if c.Classes > 0 {
		fmt.Fprintf(&b, ", a vocabulary of %d", c.Classes)
	}
	if c.Documents != nil {
		fmt.Fprintf(&b, ", %d documents", len(c.Documents))
	}
	if c.Unknown > 0 {
		fmt.Fprintf(&b, ", %d %s that are not in it count as %s", c.Unknown, words, UnknownWord)
	}
	return fmt.Sprintf("%s; %d predictions in %s", b.String(), c.Predictions, c.How())
}

// How says in which windows the tokens are predicted.
func (c Cut) How() string {
	var b strings.Builder
	if c.Window > 0 {
		fmt.Fprintf(&b, "%d windows of %d, each %d after the one before", c.Windows, c.Window, c.Stride)
	} else {
		fmt.Fprintf(&b, "%d rows, windows of %d, states are %s", c.Rows, c.BPTT,
			map[bool]string{true: "carried", false: "zero at each"}[c.Stateful])
	}
	if c.Reset {
		b.WriteString(", and zero at each document")
	}
	if c.Context > 0 {
		fmt.Fprintf(&b, ", and zero again before they would hold more than %d tokens", c.Context)
	}
	return b.String()
}
