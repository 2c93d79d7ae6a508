package csvsafe

import (
	"bufio"
	"encoding/binary"
	"io"
	"strings"
	"testing"
	"unicode/utf16"
)

func TestUTF8(t *testing.T) {
	const text = "path;label\nä 😀.png;3\n"
	encode := func(order binary.AppendByteOrder, mark bool) string {
		var b []byte
		if mark {
			b = order.AppendUint16(b, 0xfeff)
		}
		for _, u := range utf16.Encode([]rune(text)) {
			b = order.AppendUint16(b, u)
		}
		return string(b)
	}
	for name, in := range map[string]string{
		"UTF-8": text, "with a mark": "\ufeff" + text, "little": encode(binary.LittleEndian, true), "big": encode(binary.BigEndian, true),
		"little without a mark": encode(binary.LittleEndian, false), "big without a mark": encode(binary.BigEndian, false),
	} {
		got, err := io.ReadAll(UTF8(strings.NewReader(in)))
		if err != nil || strings.TrimPrefix(string(got), "\ufeff") != text {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	if _, err := io.ReadAll(UTF8(strings.NewReader("\xff\xfea"))); err != io.ErrUnexpectedEOF {
		t.Errorf("half a letter: %v", err)
	}
	for _, short := range []string{"", "a"} {
		if got, err := io.ReadAll(UTF8(strings.NewReader(short))); err != nil || string(got) != short {
			t.Errorf("%q: %q, %v", short, got, err)
		}
	}
}

func TestComma(t *testing.T) {
	for line, want := range map[string]rune{
		"a,b": ',', "a;b": ';', "a\tb": '\t', "a": ',', "": ',', "a;b,c": ',', `"a,b";c`: ';', "a;b\tc": ';',
	} {
		if got := Comma(line); got != want {
			t.Errorf("%q: %q, want %q", line, got, want)
		}
	}
	in := bufio.NewReader(strings.NewReader("\ufeff\n# x;y\n a;b \nc"))
	if got := PeekLine(in, '#'); got != "a;b" {
		t.Errorf("%q", got)
	}
	if got := PeekLine(bufio.NewReader(strings.NewReader("# x")), 0); got != "# x" {
		t.Errorf("%q", got)
	}
	if all, _ := io.ReadAll(in); !strings.HasSuffix(string(all), "\nc") {
		t.Error("the reader was moved")
	}
}
