package tokenizer

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/swagwrap/swagwrap/fixtures/reliability"
	"github.com/swagwrap/swagwrap/fixtures/testfile"
	"github.com/swagwrap/swagwrap/internal/dataset/text"
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
		k, err := Open(read(t, name+".json"))
		if err != nil {
			t.Fatal(err)
		}
		got, err := k.Encode(content)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want.IDs, got.IDs); diff != "" || k.Size() != want.Size {
			t.Errorf("%s: a vocabulary of %d, want %d; tokens %s", name, k.Size(), want.Size, diff)
			continue
		}
		var characters, bytes, separate int32
		for i := range got.IDs {
			characters, bytes = characters+got.Characters[i], bytes+got.Bytes[i]
			if last := i+1 == len(got.IDs); !last && characters != want.Ends[i] {
				separate++
			}
		}
		if int(characters) != utf8.RuneCount(content) || int(bytes) != len(content) {
			t.Errorf("%s: tokens of %d characters, %d bytes, want %d and %d", name, characters, bytes, utf8.RuneCount(content), len(content))
		}
		if name == "level" && separate > 0 {
			t.Errorf("%s: %d of %d tokens end elsewhere", name, separate, len(got.IDs))
		}
		if diff := cmp.Diff([]string{"Robert Boulter", "Second"}, got.Documents); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		if n := len(got.IDs); got.Document[0] != 0 || got.Document[n-1] != 1 {
			t.Errorf("%s: documents %d", name, got.Document)
		}
	}
}

// Tokenizers of all that is supported, on texts that are hard: testdata/make_hard.py.
func TestHardTexts(t *testing.T) {
	t.Parallel()
	var all []struct {
		File  json.RawMessage
		Cases []struct {
			Text string
			IDs  []int32
		}
	}
	testfile.JSON(t, filepath.Join("testdata", "hard.json"), &all)
	for i, c := range all {
		k, err := Open(c.File)
		if err != nil {
			t.Errorf("tokenizer %d: %v", i, err)
			continue
		}
		for _, of := range c.Cases {
			got, err := k.Encode([]byte(of.Text))
			if err != nil {
				t.Errorf("tokenizer %d, %q: %v", i, of.Text, err)
				continue
			}
			if diff := cmp.Diff(of.IDs, got.IDs); diff != "" {
				t.Errorf("tokenizer %d, %q: %s", i, of.Text, diff)
			}
			if bytes, characters := sums(got); bytes != len(of.Text) || characters != utf8.RuneCountInString(of.Text) {
				t.Errorf("tokenizer %d, %q: tokens of %d bytes and %d characters", i, of.Text, bytes, characters)
			}
		}
	}
}

// sums returns the lengths of all tokens together.
func sums(t *text.Tokens) (bytes, characters int) {
	for i := range t.IDs {
		bytes, characters = bytes+int(t.Bytes[i]), characters+int(t.Characters[i])
	}
	return bytes, characters
}

// base is a tokenizer.json of bytes, without merges, with some keys replaced.
func base(t testing.TB, with map[string]any) []byte {
	t.Helper()
	f := map[string]any{
		"added_tokens":  []any{},
		"pre_tokenizer": bytesOnly,
		"model":         map[string]any{"type": "BPE", "vocab": map[string]any{"a": 0, "b": 1, "Ġ": 2, "Ċ": 3, "!": 4}, "merges": []any{}, "unk_token": "!"},
	}
	maps.Copy(f, with)
	b, err := json.Marshal(f)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

type object = map[string]any

var bytesOnly = object{"type": "ByteLevel", "use_regex": false, "add_prefix_space": false}

// sequence is a normaliser or a pre-tokenizer of several.
func sequence(list string, elements ...any) object { return object{"type": "Sequence", list: elements} }

func splits(pattern string) object {
	return sequence("pretokenizers", object{"type": "Split", "pattern": object{"Regex": pattern}, "behavior": "Isolated"}, bytesOnly)
}

// What is not supported is refused: a text would get other tokens. So are files that would take much time or memory, and
// numbers that are not of use.
func TestTokenizersRefused(t *testing.T) {
	t.Parallel()
	model := func(with object) object {
		m := object{"type": "BPE", "vocab": object{"a": 0, "b": 1}, "merges": []any{}, "unk_token": "a"}
		maps.Copy(m, with)
		return object{"model": m}
	}
	vocab := func(ids ...any) object {
		v := object{}
		for i, id := range ids {
			v[string(rune('a'+i))] = id
		}
		return model(object{"vocab": v})
	}
	added := func(of ...any) object {
		var list []any
		for i := 0; i < len(of); i += 2 {
			list = append(list, object{"id": of[i], "content": of[i+1]})
		}
		return object{"added_tokens": list}
	}
	deep := func(list string, levels int, inner any) any {
		for range levels {
			inner = sequence(list, inner)
		}
		return inner
	}
	times := func(list string, n int, of any) any { return sequence(list, slices.Repeat([]any{of}, n)...) }
	normalizer := func(n any) object { return object{"normalizer": n} }
	pre := func(n any) object { return object{"pre_tokenizer": n} }
	for i, c := range []struct {
		with object
		want string
		kind error
	}{
		{normalizer(object{"type": "Prepend", "prepend": "a"}), `normalizer "Prepend" is not supported`, ErrUnsupported},
		{normalizer(object{"type": "Replace", "pattern": object{"String": ""}, "content": strings.Repeat("x", 1000)}), `normalizer "Replace" is not supported`, ErrUnsupported},
		{normalizer(object{"type": "Precompiled", "precompiled_charsmap": "AA=="}), `normalizer "Precompiled" is not supported`, ErrUnsupported},
		{normalizer(times("normalizers", 3000, object{"type": "Lowercase"})), `normalizer "Lowercase" twice is not supported`, ErrUnsupported},
		{normalizer(sequence("normalizers", object{"type": "NFKD"}, object{"type": "BertNormalizer"}, object{"type": "NFKD"})), `normalizer "NFKD" twice`, ErrUnsupported},
		{normalizer(deep("normalizers", 9, object{"type": "NFC"})), "more than 4 deep", nil},
		{normalizer(deep("normalizers", 3000, object{"type": "NFC"})), "more than 4 deep", nil},
		{normalizer(deep("normalizers", 20_000, object{"type": "NFC"})), "exceeded max depth", nil},
		{normalizer(object{"type": "Sequence"}), "without normalizers", nil},
		{normalizer(object{"type": "Sequence", "normalizers": object{}}), "want a list", nil},
		{normalizer(3), "normalizer: ", nil},
		{normalizer(object{"type": "NFC", "x": strings.Repeat("x", 2<<20)}), "a normalizer of 2097", nil},
		{pre(object{"type": "Metaspace"}), `pre_tokenizer "Metaspace" is not supported`, ErrUnsupported},
		{pre(times("pretokenizers", 2, bytesOnly)), `pre_tokenizer "ByteLevel" twice is not supported`, ErrUnsupported},
		{pre(sequence("pretokenizers", bytesOnly, sequence("pretokenizers", object{"type": "ByteLevel"}))), `pre_tokenizer "ByteLevel" twice is not supported`, ErrUnsupported},
		{pre(times("pretokenizers", 40, object{"type": "Whitespace"})), "more than 32 parts", nil},
		{pre(splits("(")), `pattern "(": a ( without a ): not supported`, ErrUnsupported},
		{pre(splits(`(a*)*`)), `pattern "(a*)*": it repeats what may be empty: not supported`, ErrUnsupported},
		{pre(object{"type": "Split", "pattern": object{"String": "a"}, "behavior": "MergedWithNext"}), `"MergedWithNext" is not supported`, ErrUnsupported},
		{pre(object{"type": "Split", "behavior": "Isolated"}), "Split without a pattern", nil},

		{model(object{"type": "Unigram", "vocab": []any{[]any{"a", -1.5}}}), `model "Unigram" is not supported`, ErrUnsupported},
		{model(object{"byte_fallback": true}), "byte_fallback", ErrUnsupported},
		{model(object{"vocab": object{}, "unk_token": nil}), "without a vocabulary", nil},
		{model(object{"vocab": []any{"a"}, "unk_token": nil}), "without a vocabulary", nil},
		{model(object{"unk_token": "?"}), `unk_token "?" is not in the vocabulary`, nil},
		{model(object{"merges": []any{"a b"}}), `merge 0: ["a" "b"] is not in the vocabulary`, nil},
		{model(object{"merges": []any{"a"}}), `merge 0: ["a"], want two symbols`, nil},
		{model(object{"merges": []any{"a b c"}}), `want two symbols`, nil},
		{model(object{"merges": []any{[]any{"a", "b", "c"}}}), `want two symbols`, nil},
		{model(object{"merges": []any{[]any{"a", []any{"b"}}}}), `merge 0: `, nil},
		{model(object{"merges": []any{7}}), `merge 0: `, nil},
		{model(object{"merges": object{}}), `want a list`, nil},
		{model(object{"type": "WordPiece", "unk_token": "?"}), `unk_token "?" is not in the vocabulary`, nil},
		{model(object{"type": "WordPiece", "unk_token": nil}), `WordPiece without unk_token`, nil},

		{vocab(0, -1), `token "b" has the number -1, want 0 to 2097151`, ErrNumbers},
		{vocab(0, 1.5), `token "b" has the number 1.5`, ErrNumbers},
		{vocab(0, 1e300), `token "b" has the number 1e+300`, ErrNumbers},
		{vocab(0, 1<<31), `token "b" has the number 2147483648, want 0 to`, ErrNumbers},
		{vocab(0, "1"), `token "b" has no number`, ErrNumbers},
		{vocab(0, nil), `token "b" has no number`, ErrNumbers},
		{vocab(0, []any{1}), `token "b" has no number`, ErrNumbers},
		{vocab(0, 1, 1, 1), `tokens "b" and "c" have the same number 1`, ErrNumbers},
		{added(-1, "<x>"), `token "<x>" has the number -1`, ErrNumbers},
		{added(1<<30, "<x>"), `token "<x>" has the number 1073741824`, ErrNumbers},
		{added(1.5, "<x>"), `added token 0: `, nil},
		{added(nil, "<x>"), `token "<x>" has the number -1`, ErrNumbers},
		{added(5, 5), `added token 0: `, nil},
		{added(3, "<x>"), `added token "<x>" has the number 3, and Hugging Face tokenizers gives it 5`, ErrNumbers},
		{added(7, "<x>"), `added token "<x>" has the number 7, and Hugging Face tokenizers gives it 5`, ErrNumbers},
		{added(5, "<x>", 5, "<y>"), `added token "<y>" has the number 5, and Hugging Face tokenizers gives it 6`, ErrNumbers},
		{added(5, "<x>", 6, "<x>"), `added token "<x>" has the number 6, and Hugging Face tokenizers gives it 5`, ErrNumbers},
		{added(5, "a"), `added token "a" has the number 5, and Hugging Face tokenizers gives it 0`, ErrNumbers},
		{object{"added_tokens": object{}}, "want a list", nil},
		{object{"normalizer": object{"type": "NFC"}, "added_tokens": []any{object{"id": 5, "content": "x", "normalized": true}}}, `added token "x", which is looked for in normalised text, is not supported`, ErrUnsupported},
		{added(5, strings.Repeat("x", 9<<20)), "bytes, want at most 8388608", nil},
	} {
		_, err := Open(base(t, c.with))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("case %d: error %.200v, want %q", i, err, c.want)
		}
		if c.kind != nil && !errors.Is(err, c.kind) {
			t.Errorf("case %d: %.200v is no error of the kind %q", i, err, c.kind)
		}
	}
	for _, js := range []string{"[]", "", "null", "7", `{"model":{"type":"BPE","vocab":{"a":0,"a":1}}}`, `{"model":{"type":"BPE","vocab":{"a":0},"Vocab":{"b":1}}}`} {
		if _, err := Open([]byte(js)); err == nil {
			t.Errorf("%s is a tokenizer", js)
		}
	}
}

// Numbers without a token are allowed, as cl100k_base has some. An added token may be one of the vocabulary.
func TestTokenizerSize(t *testing.T) {
	t.Parallel()
	token := func(id int, content string) object { return object{"id": id, "content": content} }
	for _, c := range []struct {
		vocab object
		added []any
		want  int
	}{
		{object{"a": 0, "b": 1}, []any{}, 2},
		{object{"a": 0, "b": 1}, []any{token(1, "b"), token(2, "<x>"), token(2, "<x>"), token(3, "<y>"), token(9, "")}, 4},
		{object{"a": 0, "b": 7}, []any{token(2, "<x>"), token(3, "<y>")}, 8},
	} {
		k, err := Open(base(t, object{"model": object{"type": "WordLevel", "vocab": c.vocab}, "added_tokens": c.added}))
		if err != nil || k.Size() != c.want {
			t.Errorf("%v, %v: %v, want %d numbers", c.vocab, c.added, err, c.want)
		}
	}
}

// Each text would take hours if the time grew with its square, or with the number of tokens.
func TestEncodeIsLinear(t *testing.T) {
	t.Parallel()
	const n = 1 << 19
	reserved := []any{object{"id": 5, "content": "<|end_of_text|>"}}
	for i := range 2000 {
		reserved = append(reserved, object{"id": 6 + i, "content": fmt.Sprintf("<|reserved_special_token_%d|>", i)})
	}
	bpe := object{"type": "BPE", "vocab": object{"a": 0, "aa": 1, "aaaa": 2, "b": 3, "!": 4}, "merges": []any{"a a", "aa aa"}, "unk_token": "!"}
	pieces := object{"type": "WordPiece", "unk_token": "!", "vocab": object{"!": 0, "a": 1, "##a": 2, "##" + strings.Repeat("a", 50_000) + "b": 3}, "max_input_chars_per_word": 1 << 40}
	blank := object{"id": 5, "content": " ", "lstrip": true, "rstrip": true}
	for _, c := range []struct {
		name, text string
		with       object
	}{
		{"reserved tokens", strings.Repeat(strings.Repeat("aba bab aab", 20)+"\n<|end_of_text|>", n/256), object{"added_tokens": reserved}},
		{"nearly reserved tokens", strings.Repeat("<|reserved_special_token_", n/32), object{"added_tokens": reserved}},
		{"a long added token", strings.Repeat("a", n), object{"added_tokens": []any{object{"id": 0, "content": "a"}, object{"id": 5, "content": strings.Repeat("a", 50_000) + "b"}}}},
		{"blank added tokens", strings.Repeat(" ", n), object{"added_tokens": []any{blank}}},
		{"a word of BPE", strings.Repeat("a", n), object{"model": bpe}},
		{"a word of WordPiece", strings.Repeat("a", n), object{"model": pieces, "pre_tokenizer": nil}},
		{"a word of WordPiece that is unknown", strings.Repeat("a", n) + "c", object{"model": pieces, "pre_tokenizer": nil}},
		{"white space", strings.Repeat(" ", n), object{"pre_tokenizer": object{"type": "ByteLevel"}}},
		{"lines", strings.Repeat("\n", n), object{"pre_tokenizer": object{"type": "ByteLevel"}}},
		{"words", strings.Repeat("ab ", n/3), object{"pre_tokenizer": object{"type": "ByteLevel"}}},
		{"normal forms", strings.Repeat("\ufdfa", n/16), object{"normalizer": object{"type": "NFKD"}}},
	} {
		k, err := Open(base(t, c.with))
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		got, err := k.Encode([]byte(c.text))
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if bytes, _ := sums(got); bytes != len(c.text) {
			t.Errorf("%s: tokens of %d bytes, want %d", c.name, bytes, len(c.text))
		}
	}
}

// Llama 3 has 250 reserved tokens. 2,000 documents are 460 kB.
func BenchmarkEncode(b *testing.B) {
	reserved := []any{object{"id": 5, "content": "<|end_of_text|>"}}
	for i := range 250 {
		reserved = append(reserved, object{"id": 6 + i, "content": fmt.Sprintf("<|reserved_special_token_%d|>", i)})
	}
	k, err := Open(base(b, object{"added_tokens": reserved, "pre_tokenizer": object{"type": "ByteLevel"}}))
	if err != nil {
		b.Fatal(err)
	}
	content := []byte(strings.Repeat(strings.Repeat("aba bab aab", 20)+"\n<|end_of_text|>", 2000))
	b.SetBytes(int64(len(content)))
	for b.Loop() {
		if _, err := k.Encode(content); err != nil {
			b.Fatal(err)
		}
	}
}

// What a text cannot have is an error that says so.
func TestEncodeRefused(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		with object
		text string
		want string
	}{
		{nil, "a\xff", "not a text in UTF-8"},
		{nil, "", "an empty text"},
		{object{"pre_tokenizer": splits("(a+)+$")}, strings.Repeat("a", 60) + "b", `pre_tokenizer: pattern "(a+)+$": it takes too many steps for this text: not supported`},
		{nil, strings.Repeat("a", 1<<22+1), "a word of 4194305 characters, which ends at byte 4194305, want at most 4194304"},
		{object{"normalizer": object{"type": "NFC"}}, "xxe" + strings.Repeat("\u0301", 40), "a character with more than 30 marks, which ends after byte 63, is not supported"},
		{object{"model": object{"type": "WordLevel", "vocab": object{"a": 0}}}, "b", `"b" is not in the vocabulary`},
		{object{"model": object{"type": "BPE", "vocab": object{"a": 0}}}, "b", `'b' is not in the vocabulary, and there is no unk_token`},
	} {
		k, err := Open(base(t, c.with))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := k.Encode([]byte(c.text)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.40q: error %v, want %q", c.text, err, c.want)
		}
	}
}

// A file with changed values is refused, or makes tokens that cover the text.
func TestMutatedTokenizers(t *testing.T) {
	t.Parallel()
	content := read(t, "tokenizers.txt")
	for _, name := range []string{"gpt2", "llama3", "bert", "level"} {
		js, r := read(t, name+".json"), rand.New(rand.NewPCG(7, uint64(len(name))))
		for range reliability.Figure(200, 20_000) {
			changed := reliability.Mutate(r, js)
			reliability.Heap(t, len(changed)+20*len(content), func() { checkTokenizer(t, changed, content) })
		}
	}
}

// checkTokenizer fails if a file makes tokens that do not cover a text, or that have no number.
func checkTokenizer(t *testing.T, file, content []byte) {
	t.Helper()
	k, err := Open(file)
	if err != nil {
		return
	}
	got, err := k.Encode(content)
	if err != nil {
		return
	}
	if bytes, characters := sums(got); bytes != len(content) || characters != utf8.RuneCount(content) {
		t.Errorf("tokens of %d bytes and %d characters for %d bytes", bytes, characters, len(content))
	}
	for _, id := range got.IDs {
		if id < 0 || int(id) >= k.Size() {
			t.Errorf("token %d of %d", id, k.Size())
		}
	}
}

// Any file is refused or makes tokens that cover the text, in memory that files and texts bound.
func FuzzTokenizer(f *testing.F) {
	for _, name := range []string{"gpt2", "llama3", "bert", "level"} {
		b, err := os.ReadFile(filepath.Join("testdata", name+".json"))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b, []byte("It's naïve <|end|> 12345 é\n\n日本 hello"))
	}
	f.Add(base(f, object{"pre_tokenizer": splits("(a+)+$")}), []byte("aaaab"))
	f.Add(base(f, object{"added_tokens": []any{object{"id": 5, "content": "ab", "lstrip": true, "rstrip": true, "single_word": true}}}), []byte("  ab ab"))
	f.Fuzz(func(t *testing.T, content, text []byte) {
		reliability.Heap(t, len(content)+20*len(text), func() { checkTokenizer(t, content, text) })
	})
}
