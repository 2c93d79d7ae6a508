package csvsafe

import (
	"bufio"
	"bytes"
	"io"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// UTF8 returns a reader of the text in UTF-8. Spreadsheets also write UTF-16, which a byte order mark shows, or the zero bytes of
// plain letters. Lines that end as on the first Macintosh computers, in \r alone, end in \n then.
func UTF8(r io.Reader) io.Reader {
	in := bufio.NewReaderSize(unwide(r), peeked)
	head, err := in.Peek(peeked)
	if err == nil {
		err = io.EOF
	}
	from := text{in, err}
	if at := bytes.IndexByte(head, '\r'); at >= 0 && at < peeked-1 && bytes.IndexByte(head, '\n') < 0 {
		return macLines{from}
	}
	return from
}

// text reads a text whose beginning was peeked at. end is the error that the peek has found at its end.
type text struct {
	in  *bufio.Reader
	end error
}

func (t text) Read(p []byte) (int, error) {
	n, err := t.in.Read(p)
	if err == io.EOF {
		err = t.end
	}
	return n, err
}

// peeked is the number of bytes that show how lines end.
const peeked = 64 << 10

// macLines reads a text whose lines end in \r.
type macLines struct{ from io.Reader }

func (m macLines) Read(p []byte) (int, error) {
	n, err := m.from.Read(p)
	for i, b := range p[:n] {
		if b == '\r' {
			p[i] = '\n'
		}
	}
	return n, err
}

func unwide(r io.Reader) io.Reader {
	in := bufio.NewReader(r)
	head, _ := in.Peek(len("letters!"))
	plain := func(high int) bool { // all letters are plain, and each has a zero byte
		for i, b := range head {
			if (b == 0) != (i%2 == high) {
				return false
			}
		}
		return len(head) == len("letters!")
	}
	switch {
	case bytes.HasPrefix(head, []byte("\xff\xfe")), plain(1):
		return &wide{in: in, high: 1}
	case bytes.HasPrefix(head, []byte("\xfe\xff")), plain(0):
		return &wide{in: in, high: 0}
	}
	return in
}

// wide reads UTF-16.
type wide struct {
	in   *bufio.Reader
	high int // index of the high byte
	out  []byte
}

func (w *wide) Read(p []byte) (int, error) {
	for len(w.out) == 0 {
		unit, err := w.unit()
		if err != nil {
			return 0, err
		}
		if utf16.IsSurrogate(unit) {
			low, err := w.unit()
			if err != nil && err != io.EOF {
				return 0, err
			}
			unit = utf16.DecodeRune(unit, low)
		}
		w.out = utf8.AppendRune(w.out, unit)
	}
	n := copy(p, w.out)
	w.out = w.out[n:]
	return n, nil
}

// unit reads two bytes.
func (w *wide) unit() (rune, error) {
	var b [2]byte
	if _, err := io.ReadFull(w.in, b[:]); err != nil {
		return 0, err
	}
	return rune(b[w.high])<<8 | rune(b[1-w.high]), nil
}

// Comma returns the sign that separates the cells of a first line: a comma, or a semicolon or a tab in a line without commas.
// Spreadsheets of many countries write semicolons.
func Comma(line string) rune {
	var bare strings.Builder // without quoted texts
	for i, part := range strings.Split(line, `"`) {
		if i%2 == 0 {
			bare.WriteString(part)
		}
	}
	for _, sign := range ",;\t" {
		if strings.ContainsRune(bare.String(), sign) {
			return sign
		}
	}
	return ','
}

// PeekLine returns the first line of a reader that is neither empty nor a comment, as far as its buffer has it. It reads nothing.
// comment is the sign of comments, or 0.
func PeekLine(in *bufio.Reader, comment byte) string {
	b, _ := in.Peek(in.Size())
	for len(b) > 0 {
		line, rest, _ := bytes.Cut(b, []byte("\n"))
		line = bytes.TrimSpace(bytes.TrimPrefix(line, []byte("\ufeff")))
		if len(line) > 0 && (comment == 0 || line[0] != comment) {
			return string(line)
		}
		b = rest
	}
	return ""
}
