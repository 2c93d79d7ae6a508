// Package text turns texts into the numbers of tokens that language models take, and cuts them into windows.
//
// A text is split into words of a vocabulary, as pytorch/examples does, into its characters, as nanoGPT does, or by a
// [Tokenizer]. Documents are found by the headings of WikiText.
package text

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Tokens is a text as numbers of tokens, and what is known of each.
type Tokens struct {
	IDs []int32
	// Characters and Bytes are the lengths of each token in the text, with the white space behind. They are nil if the
	// text is not known. The sums are those of the whole text.
	Characters, Bytes []int32
	// Document is the document of each token, in ascending order. Documents has their names. Both are nil without
	// documents.
	Document  []int32
	Documents []string
	Unknown   int // words that are not in the vocabulary
}

// A Tokenizer numbers texts as a file of a tokenizer says.
type Tokenizer interface {
	Encode(content []byte) (*Tokens, error)
	Size() int // numbers up to the largest one
}

// Words that every vocabulary for a text has: the end of a line, and what stands for a word that is not in it.
const (
	EndOfLine   = "<eos>"
	UnknownWord = "<unk>"
)

// Encoder returns the function that numbers texts by a vocabulary of words, or of characters. A vocabulary that has an entry
// twice is an error.
func Encoder(vocabulary []string) (func(content []byte) (*Tokens, error), error) {
	number := places(vocabulary)
	for i, w := range vocabulary {
		if last := number[w]; int(last) != i {
			return nil, fmt.Errorf("%q is entry %d and entry %d, want each entry once", w, i, last)
		}
	}
	of := byWords
	if IsCharacters(vocabulary) {
		of = byCharacters
	}
	return func(content []byte) (*Tokens, error) { return of(content, vocabulary) }, nil
}

// byWords splits a text at white space, and adds <eos> to every line, as the word-level language model of pytorch/examples
// does. The number of a word is its place in the vocabulary. Other words are <unk>. Without <unk> they are an error.
func byWords(content []byte, vocabulary []string) (*Tokens, error) {
	if !utf8.Valid(content) {
		return nil, ErrUTF8
	}
	number := places(vocabulary)
	end, known := number[EndOfLine]
	if !known {
		return nil, fmt.Errorf("the vocabulary of %d words has no %s, which ends each line", len(vocabulary), EndOfLine)
	}
	missing := func(w string) error { return lacks(strconv.Quote(w), len(vocabulary), "words") }
	return numbered(string(content), number, missing, func(t *Tokens, line string, add func(w, of string)) {
		left := line
		for left != "" {
			from := strings.IndexFunc(left, func(r rune) bool { return !space(r) })
			if from < 0 {
				break
			}
			// The white space before the first word counts to it.
			length := from + indexOr(left[from:], space)
			w := left[from:length]
			length += indexOr(left[length:], func(r rune) bool { return !space(r) })
			if length == len(left) { // the line end counts to <eos>
				length = from + len(w)
			}
			add(w, left[:length])
			left = left[length:]
		}
		t.Add(end, left)
	})
}

// IsCharacters reports whether a vocabulary holds characters: every entry is one, except <unk>.
func IsCharacters(vocabulary []string) bool {
	return len(vocabulary) > 1 && !slices.ContainsFunc(vocabulary, func(w string) bool {
		return w != UnknownWord && utf8.RuneCountInString(w) != 1
	})
}

// byCharacters splits a text into its characters, line ends among them, as nanoGPT does. The number of a character is its
// place in the vocabulary. Other characters are <unk>. Without <unk> they are an error. All line ends are \n, as in text
// files that Python reads, unless the vocabulary has \r.
func byCharacters(content []byte, vocabulary []string) (*Tokens, error) {
	if !utf8.Valid(content) {
		return nil, ErrUTF8
	}
	all, number := string(content), places(vocabulary)
	if _, ok := number["\r"]; !ok {
		all = strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(all)
	}
	missing := func(w string) error {
		r, _ := utf8.DecodeRuneInString(w)
		return lacks(strconv.QuoteRune(r), len(vocabulary), "characters")
	}
	return numbered(all, number, missing, func(_ *Tokens, line string, add func(w, of string)) {
		for line != "" {
			_, n := utf8.DecodeRuneInString(line)
			add(line[:n], line[:n])
			line = line[n:]
		}
	})
}

// ErrUTF8 is the error of a file that is no text.
var ErrUTF8 = errors.New("not a text in UTF-8")

// places returns the place of each entry of a vocabulary.
func places(vocabulary []string) map[string]int32 {
	number := make(map[string]int32, len(vocabulary))
	for i, w := range vocabulary {
		number[w] = int32(i)
	}
	return number
}

func lacks(quoted string, entries int, kind string) error {
	return fmt.Errorf("%s is not in the vocabulary of %d %s, and neither is %s", quoted, entries, kind, UnknownWord)
}

// numbered numbers the pieces of a text line by line. pieces calls add with each piece of a line, and with the text that the
// piece stands for. missing is the error of a piece without a number, if the vocabulary has no <unk>.
func numbered(all string, number map[string]int32, missing func(w string) error,
	pieces func(t *Tokens, line string, add func(w, of string))) (*Tokens, error) {
	unknown, replace := number[UnknownWord]
	t, docs := &Tokens{}, &documents{}
	var failed error
	add := func(w, of string) {
		id, ok := number[w]
		switch {
		case ok:
		case replace:
			id = unknown
			t.Unknown++
		case failed == nil:
			failed = missing(w)
		}
		t.Add(id, of)
	}
	for line, rest, n := "", all, 1; rest != ""; n++ {
		line, rest = cutLine(rest)
		docs.line(line, len(t.IDs))
		if pieces(t, line, add); failed != nil {
			return nil, fmt.Errorf("line %d: %w", n, failed)
		}
	}
	if len(t.IDs) == 0 {
		return nil, errors.New("an empty text")
	}
	docs.number(t)
	return t, nil
}

// Add adds a token, and the text that it stands for.
func (t *Tokens) Add(id int32, of string) {
	t.IDs = append(t.IDs, id)
	t.Characters, t.Bytes = append(t.Characters, int32(utf8.RuneCountInString(of))), append(t.Bytes, int32(len(of)))
}

// cutLine cuts a text after its first line end, which is one of those that Python knows in text files.
func cutLine(s string) (line, rest string) {
	i := strings.IndexAny(s, "\r\n")
	switch {
	case i < 0:
		return s, ""
	case strings.HasPrefix(s[i:], "\r\n"):
		i++
	}
	return s[:i+1], s[i+1:]
}

// space reports what Python's str.split takes for white space.
func space(r rune) bool { return unicode.IsSpace(r) || r >= 0x1c && r <= 0x1f }

func indexOr(s string, f func(rune) bool) int {
	if i := strings.IndexFunc(s, f); i >= 0 {
		return i
	}
	return len(s)
}

// documents notes where documents begin: at the lines " = Title = " of WikiText.
type documents struct {
	names []string
	first []int // token
}

func (d *documents) line(line string, token int) {
	if name, ok := heading(line); ok {
		d.names, d.first = append(d.names, name), append(d.first, token)
	}
}

// Parts returns the documents of a text. A text without documents is divided into up to n parts of about equal length. The
// parts are the whole text together.
func Parts(content string, n int) (parts []string) {
	docs, rest := &documents{}, content
	for line := ""; rest != ""; {
		at := len(content) - len(rest)
		line, rest = cutLine(rest)
		docs.line(line, at)
	}
	ends := docs.first
	if len(ends) < 2 {
		ends = []int{0}
		for k := range n - 1 {
			at := (k + 1) * len(content) / n
			ends = append(ends, at+indexOr(content[at:], space))
		}
	}
	ends[0] = 0 // what stands before the first heading belongs to it
	for k, at := range ends {
		to := len(content)
		if k+1 < len(ends) {
			to = ends[k+1]
		}
		if strings.TrimFunc(content[at:to], space) != "" {
			parts = append(parts, content[at:to])
		} else if len(parts) > 0 {
			parts[len(parts)-1] += content[at:to]
		}
	}
	return parts
}

// CutHeading cuts a document after the line with its heading, if it begins with one.
func CutHeading(document string) (line, body string) {
	if line, body = cutLine(document); line != "" {
		if _, ok := heading(line); ok {
			return line, body
		}
	}
	return "", document
}

func heading(line string) (name string, ok bool) {
	line = strings.TrimFunc(line, space)
	name, begins := strings.CutPrefix(line, "= ")
	name, ends := strings.CutSuffix(name, " =")
	return name, begins && ends && name != "" && !strings.HasPrefix(name, "= ") && !strings.HasSuffix(name, " =")
}

// number numbers the documents. Tokens before the first heading belong to the first document.
func (d *documents) number(t *Tokens) {
	if len(d.names) < 2 {
		return
	}
	t.Documents, t.Document = d.names, make([]int32, len(t.IDs))
	for k := range d.first {
		end := len(t.IDs)
		if k+1 < len(d.first) {
			end = d.first[k+1]
		}
		for i := d.first[k]; i < end; i++ {
			t.Document[i] = int32(k)
		}
	}
}

// FindDocuments finds the documents of a text whose tokens are known.
func (t *Tokens) FindDocuments(content string) {
	docs, token, begin := &documents{}, 0, int32(0)
	for line, left, place := "", content, 0; left != ""; place += len(line) {
		line, left = cutLine(left)
		for token < len(t.IDs) && int(begin+t.Bytes[token]) <= place {
			begin += t.Bytes[token]
			token++
		}
		docs.line(line, token)
	}
	docs.number(t)
}

// FromIDs finds the documents of a text that is known as numbers of words or characters of a vocabulary only.
func FromIDs(ids []int32, vocabulary []string) *Tokens {
	if t := fromCharacters(ids, vocabulary); t != nil {
		return t
	}
	t, docs := &Tokens{IDs: ids}, &documents{}
	end := int32(slices.Index(vocabulary, EndOfLine))
	var line bytes.Buffer
	for i, from := 0, 0; end >= 0 && i < len(ids); i++ {
		if id := ids[i]; id != end {
			if line.Len() < 1<<10 && int(id) < len(vocabulary) {
				line.WriteString(vocabulary[id] + " ")
			}
			continue
		}
		docs.line(line.String(), from)
		line.Reset()
		from = i + 1
	}
	docs.number(t)
	return t
}

// fromCharacters returns the text that the numbers of characters stand for, or nil if they do not say it.
func fromCharacters(ids []int32, vocabulary []string) *Tokens {
	if !IsCharacters(vocabulary) {
		return nil
	}
	var all bytes.Buffer
	for _, id := range ids {
		if int(id) >= len(vocabulary) || vocabulary[id] == UnknownWord {
			return nil
		}
		all.WriteString(vocabulary[id])
	}
	t, err := byCharacters(all.Bytes(), vocabulary)
	if err != nil || !slices.Equal(t.IDs, ids) {
		return nil
	}
	return t
}
