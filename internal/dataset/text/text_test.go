package text

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/swagwrap/swagwrap/fixtures/testfile"
)

// testdata/words.py has the tokens that Python finds.
func TestWords(t *testing.T) {
	t.Parallel()
	var want struct {
		Vocabulary        []string
		IDs               []int32
		Characters, Bytes int32
	}
	testfile.JSON(t, filepath.Join("testdata", "words.json"), &want)
	content, err := os.ReadFile(filepath.Join("testdata", "words.txt"))
	if err != nil {
		t.Fatal(err)
	}
	got, err := byWords(content, want.Vocabulary)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want.IDs, got.IDs); diff != "" {
		t.Error(diff)
	}
	var characters, bytes int32
	for i := range got.IDs {
		characters, bytes = characters+got.Characters[i], bytes+got.Bytes[i]
	}
	if characters != want.Characters || bytes != want.Bytes {
		t.Errorf("%d characters, %d bytes, want %d and %d", characters, bytes, want.Characters, want.Bytes)
	}
	if diff := cmp.Diff([]string{"Robert", "A = B"}, got.Documents); diff != "" {
		t.Error(diff)
	}
	last := len(got.IDs) - 1
	if got.Document[0] != 0 || got.Document[last] != 1 || got.Document[last-9] != 1 || got.Document[last-10] != 0 {
		t.Errorf("documents %d", got.Document)
	}
	again := FromIDs(got.IDs, want.Vocabulary)
	if diff := cmp.Diff(got.Document, again.Document); diff != "" {
		t.Error(diff)
	}
}

func TestWordsRefused(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text       string
		vocabulary []string
		want       string
	}{
		{"a b\nc\n", []string{"a", "b", "<eos>"}, `line 2: "c" is not in the vocabulary of 3 words, and neither is <unk>`},
		{"a", []string{"a", "b"}, "no <eos>"},
		{"", []string{"<eos>"}, "an empty text"},
		{"a\xff", []string{"a", "<eos>"}, "UTF-8"},
	} {
		if _, err := byWords([]byte(c.text), c.vocabulary); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: error %v, want %q", c.text, err, c.want)
		}
	}
}
