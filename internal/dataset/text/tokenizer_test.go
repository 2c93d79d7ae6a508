package text

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/swagwrap/swagwrap/fixtures/testfile"
)

func read(t *testing.T, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// The tokens are those of Hugging Face tokenizers: testdata/make_tokenizers.py. Byte-level BPE without a normaliser and whole
// words also end where those end.
func TestTokenizers(t *testing.T) {
	t.Parallel()
	var all map[string]struct {
		IDs, Ends []int32
		Size      int
	}
	testfile.JSON(t, filepath.Join("testdata", "tokenizers.json"), &all)
	content := read(t, "tokenizers.txt")
	for name, want := range all {
		k, err := NewTokenizer(read(t, name+".json"))
		if err != nil {
			t.Fatal(err)
		}
		got, err := k.Encode(content)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want.IDs, got.IDs); diff != "" || k.Size != want.Size {
			t.Errorf("%s: a vocabulary of %d, want %d; tokens %s", name, k.Size, want.Size, diff)
			continue
		}
		var characters, bytes, apart int32
		for i := range got.IDs {
			characters, bytes = characters+got.Characters[i], bytes+got.Bytes[i]
			if last := i+1 == len(got.IDs); !last && characters != want.Ends[i] {
				apart++
			}
		}
		if int(characters) != utf8.RuneCount(content) || int(bytes) != len(content) {
			t.Errorf("%s: tokens of %d characters, %d bytes, want %d and %d", name, characters, bytes, utf8.RuneCount(content), len(content))
		}
		if name == "level" && apart > 0 {
			t.Errorf("%s: %d of %d tokens end elsewhere", name, apart, len(got.IDs))
		}
		if diff := cmp.Diff([]string{"Robert Boulter", "Second"}, got.Documents); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		if n := len(got.IDs); got.Document[0] != 0 || got.Document[n-1] != 1 {
			t.Errorf("%s: documents %d", name, got.Document)
		}
	}
}

// What is not supported is refused: a text would get other tokens.
func TestTokenizersRefused(t *testing.T) {
	t.Parallel()
	var base map[string]any
	if err := json.Unmarshal(read(t, "level.json"), &base); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		key  string
		with any
		want string
	}{
		{"normalizer", map[string]any{"type": "Prepend"}, `normalizer "Prepend" is not supported`},
		{"pre_tokenizer", map[string]any{"type": "Metaspace"}, `pre_tokenizer "Metaspace" is not supported`},
		{"pre_tokenizer", map[string]any{"type": "Split", "pattern": map[string]any{"Regex": "("}, "behavior": "Isolated"}, `pattern "("`},
		{"model", map[string]any{"type": "Unigram"}, `model "Unigram" is not supported`},
		{"model", map[string]any{"type": "BPE", "byte_fallback": true}, "byte_fallback"},
		{"model", map[string]any{"type": "BPE", "vocab": map[string]int{"a": 0}, "merges": []any{"a b"}}, `merge 0: ["a" "b"] is not in the vocabulary`},
		{"model", map[string]any{"type": "WordPiece", "unk_token": "?", "vocab": map[string]int{"a": 0}}, `unk_token "?" is not in the vocabulary`},
	} {
		changed := maps.Clone(base)
		changed[c.key] = c.with
		b, err := json.Marshal(changed)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := NewTokenizer(b); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %v: error %v, want %q", c.key, c.with, err, c.want)
		}
	}
	if _, err := NewTokenizer([]byte("[]")); err == nil {
		t.Error("a list is a tokenizer")
	}
}
