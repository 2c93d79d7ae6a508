package text

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Characters are numbered as nanoGPT does it, by a table of all of them.
func TestCharacters(t *testing.T) {
	t.Parallel()
	vocabulary := []string{"\n", " ", "=", "a", "b", "é"}
	const content = "ab é\r\n = a =\nbé\n = b =\r\n"
	want := []int32{3, 4, 1, 5, 0, 1, 2, 1, 3, 1, 2, 0, 4, 5, 0, 1, 2, 1, 4, 1, 2, 0}
	got, err := byCharacters([]byte(content), vocabulary)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got.IDs); diff != "" {
		t.Error(diff)
	}
	var characters, bytes int32
	for i := range got.IDs {
		characters, bytes = characters+got.Characters[i], bytes+got.Bytes[i]
	}
	if characters != 22 || bytes != 24 {
		t.Errorf("%d characters, %d bytes, want 22 and 24", characters, bytes)
	}
	if diff := cmp.Diff([]string{"a", "b"}, got.Documents); diff != "" || got.Document[14] != 0 || got.Document[15] != 1 {
		t.Error(diff, got.Document)
	}
	if diff := cmp.Diff(got, FromIDs(want, vocabulary)); diff != "" {
		t.Error(diff)
	}
	if _, err := byCharacters([]byte("a\nbx"), vocabulary); err == nil || !strings.Contains(err.Error(), "line 2: 'x' is not in the vocabulary of 6 characters") {
		t.Error(err)
	}
	if got, err := byCharacters([]byte("ax"), append(vocabulary, UnknownWord)); err != nil || got.Unknown != 1 || got.IDs[1] != 6 {
		t.Error(got, err)
	}
	for _, words := range [][]string{nil, {"a", "b", EndOfLine}, {"a", "bc"}, {UnknownWord}} {
		if IsCharacters(words) {
			t.Errorf("%q are taken for characters", words)
		}
	}
}
