package dataset

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/swagwrap/swagwrap/internal/dataset/text"
	"github.com/swagwrap/swagwrap/internal/numpy"
)

// aText writes an array of n tokens, which are 0 … n−1 modulo 1000, and opens it.
func aText(t *testing.T, n int, spec string, fields ...Field) (Dataset, error) {
	t.Helper()
	how, err := text.ParseCutting(spec)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "ids.npy")
	b := numpy.Header("<i2", n)
	for i := range n {
		b = append(b, byte(i%1000), byte(i%1000>>8))
	}
	if err := os.WriteFile(path, b, 0o666); err != nil {
		t.Fatal(err)
	}
	if fields == nil {
		fields = []Field{{Name: "x", Shape: []int64{-1}, Dims: []string{"time"}, Type: "int64", Rows: 1000}}
	}
	return Open([]string{path}, Options{Text: &how, Fields: fields})
}

// shown returns the inputs of an example and the tokens that it must predict, without what lies behind its end.
func shown(t *testing.T, d Dataset, i int) (inputs []int64, labels []int) {
	t.Helper()
	size, err := SizeOf(d)
	if err != nil {
		t.Fatal(err)
	}
	v := size.Make(1)
	if err := d.Read(v, i); err != nil {
		t.Fatal(err)
	}
	label, err := d.Labels().Load(i)
	if err != nil {
		t.Fatal(err)
	}
	n := len(label.Classes)
	if l := Length(d, 0, i); l >= 0 {
		n = l
	}
	if slices.ContainsFunc(label.Classes[n:], func(c int) bool { return c >= 0 }) {
		t.Errorf("example %d has labels behind its end: %d", i, label.Classes)
	}
	return v.Ints[:n], label.Classes[:n]
}

// The windows are those of batchify and get_batch in pytorch/examples: the rest of the text is cut off, and the last
// window is shorter.
func TestTextInRows(t *testing.T) {
	t.Parallel()
	const n, rows, bptt = 107, 4, 5
	d, err := aText(t, n, fmt.Sprintf("rows=%d bptt=%d", rows, bptt))
	if err != nil {
		t.Fatal(err)
	}
	each, i, predicted := n/rows, 0, 0
	for at := 0; at < each-1; at += bptt {
		for r := range rows {
			var inputs []int64
			var labels []int
			for p := at; p < min(at+bptt, each-1); p++ {
				inputs, labels = append(inputs, int64(r*each+p)), append(labels, r*each+p+1)
			}
			in, label := shown(t, d, i)
			if !cmp.Equal(inputs, in) || !cmp.Equal(labels, label) {
				t.Errorf("example %d: %d and %d, want %d and %d", i, in, label, inputs, labels)
			}
			if past := d.(*rowed).Past(i); past != at {
				t.Errorf("example %d: %d tokens before it, want %d", i, past, at)
			}
			i, predicted = i+1, predicted+len(labels)
		}
	}
	cut, ok := CutOf(d)
	if d.Len() != i || !ok || cut.Predictions != predicted || predicted != rows*(each-1) || !cut.Stateful || cut.Tokens != n {
		t.Errorf("%d examples, %+v, want %d with %d predictions", d.Len(), cut, i, predicted)
	}
	part := Rows(d, 1, 3)
	if part.Len() != i/2 || part.(*rowed).Rows() != 2 || ID(part) == ID(d) {
		t.Errorf("rows 1 and 2: %d examples of %d rows", part.Len(), part.(*rowed).Rows())
	}
	for k := range part.Len() {
		whole := k/2*rows + 1 + k%2
		in, labels := shown(t, part, k)
		wantIn, wantLabels := shown(t, d, whole)
		if !cmp.Equal(wantIn, in) || !cmp.Equal(wantLabels, labels) || part.Name(k) != d.Name(whole) {
			t.Errorf("example %d of rows 1 and 2 is not %d of all: %d", k, whole, in)
		}
	}
}

// The windows and labels are those of the perplexity guide of transformers: each label is scored once, and the first token
// of the text never.
func TestTextInWindows(t *testing.T) {
	t.Parallel()
	for _, n := range []int{3, 8, 31, 40} {
		for _, stride := range []int{1, 3, 8} {
			const window = 8
			d, err := aText(t, n, fmt.Sprintf("window=%d stride=%d", window, stride))
			if err != nil {
				t.Fatal(err)
			}
			i, scored := 0, 0
			for begin := 0; ; begin += stride {
				end := min(begin+window, n)
				labels := slices.Repeat([]int{-1}, end-begin)
				some := false
				for p := range end - begin - 1 { // the loss of transformers compares scores[:-1] with labels[1:]
					if at := begin + p + 1; at >= end-(end-scored) {
						labels[p], some = at, true
					}
				}
				if some {
					in, label := shown(t, d, i)
					if in[0] != int64(begin) || len(in) != end-begin || !cmp.Equal(labels, label) {
						t.Errorf("n %d, stride %d, window %d: %d and %d, want %d", n, stride, i, in, label, labels)
					}
					i++
				}
				if scored = end; end == n {
					break
				}
			}
			if d.Len() != i {
				t.Errorf("n %d, stride %d: %d windows, want %d", n, stride, d.Len(), i)
			}
			if _, stateful := d.(*rowed); stateful {
				t.Error("windows that overlap continue each other")
			}
		}
	}
}

func TestTextRefused(t *testing.T) {
	t.Parallel()
	ids := Field{Name: "input_ids", Shape: []int64{-1}, Dims: []string{"time"}, Type: "int64", Rows: 500}
	fixed := ids
	fixed.Shape = []int64{16}
	for _, c := range []struct {
		n    int
		spec string
		of   []Field
		want string
	}{
		{15, "rows=8", nil, "a text of 15 tokens, want at least 2 for each of 8 rows"},
		{600, "", []Field{ids}, `token 500 is 500, want 0 to 499: input "input_ids" takes numbers of rows in a table of 500`},
		{100, "bptt=35", []Field{fixed}, "windows of 35 tokens, and the network takes 16: say bptt=16"},
		{100, "reset=documents", nil, "no documents"},
		{100, "", []Field{ids, {Name: "other", Shape: []int64{-1}, Type: "int64"}}, `both "input_ids" and "other" could take the tokens`},
	} {
		if _, err := aText(t, c.n, c.spec, c.of...); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%d tokens, %q: error %v, want %q", c.n, c.spec, err, c.want)
		}
	}
	for _, c := range [][2]string{
		{"rows=0", "rows=0: want a whole number from 1 to 2147483647"}, {"bptt=x", "want a whole number"}, {"size=3", "size"}, {"window=8 rows=2", "want one of them"},
		{"stride=8", "want window=N"}, {"vocabulary=a tokenizer=b", "both"}, {"reset=lines", "reset=lines"},
	} {
		if _, err := text.ParseCutting(c[0]); err == nil || !strings.Contains(err.Error(), c[1]) {
			t.Errorf("%q: error %v, want %q", c[0], err, c[1])
		}
	}
}

// A network of Hugging Face takes a mask and positions too. If the graph fixes the length, windows are filled up.
func TestTextInputs(t *testing.T) {
	t.Parallel()
	of := func(name string) Field { return Field{Name: name, Shape: []int64{6}, Type: "int64"} }
	d, err := aText(t, 9, "window=6 stride=6", of("input_ids"), of("attention_mask"), of("position_ids"), of("token_type_ids"))
	if err != nil {
		t.Fatal(err)
	}
	size, err := SizeOf(d)
	if err != nil {
		t.Fatal(err)
	}
	v := size.Make(1)
	if err := d.Read(v, 1); err != nil {
		t.Fatal(err)
	}
	want := []int64{6, 7, 8, 0, 0, 0, 1, 1, 1, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0}
	if diff := cmp.Diff(want, v.Ints); diff != "" {
		t.Error(diff)
	}
}

// With reset=documents no window holds two documents, each document begins with a fresh state, and rows that have fewer
// windows end with windows of which nothing counts.
func TestTextByDocuments(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	words, vocabulary := filepath.Join(dir, "text"), filepath.Join(dir, "vocabulary")
	var b strings.Builder
	for k := range 7 {
		fmt.Fprintf(&b, " = Title %d = \n%s\n", k, strings.Repeat(" a b", 3+2*k))
	}
	for path, content := range map[string]string{words: b.String(), vocabulary: "a\nb\n=\nTitle\n<unk>\n<eos>\n"} {
		if err := os.WriteFile(path, []byte(content), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	how, err := text.ParseCutting("rows=3 bptt=4 reset=documents vocabulary=" + vocabulary)
	if err != nil {
		t.Fatal(err)
	}
	d, err := Open([]string{words}, Options{Text: &how, Fields: []Field{{Name: "x", Shape: []int64{-1}, Type: "int64"}}})
	if err != nil {
		t.Fatal(err)
	}
	text, predicted := d.(*rowed), 0
	begun := map[int32]bool{}
	for i := range d.Len() {
		in, labels := shown(t, d, i)
		s := text.span(i)
		if s.To == 0 {
			continue
		}
		predicted += len(labels)
		doc := text.Document[s.First]
		if last := text.Document[s.First+len(in)]; last != doc {
			t.Errorf("example %d holds documents %d and %d", i, doc, last)
		}
		begins := s.First == 0 || text.Document[s.First-1] != doc
		if (text.Past(i) == 0) != begins {
			t.Errorf("example %d: %d tokens before it", i, text.Past(i))
		}
		begun[doc] = begun[doc] || begins
	}
	if cut, _ := CutOf(d); len(begun) != 7 || len(cut.Documents) != 7 || predicted != len(text.IDs)-7 || cut.Predictions != predicted || cut.Unknown != 7 {
		t.Errorf("%d documents, %d predictions, %+v", len(begun), predicted, cut)
	}
}

// An array [rows N] has rows of its own.
func TestTextOfRows(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "ids.npy")
	b := append(numpy.Header("|u1", 3, 5), 0, 1, 2, 3, 4, 10, 11, 12, 13, 14, 20, 21, 22, 23, 24)
	if err := os.WriteFile(path, b, 0o666); err != nil {
		t.Fatal(err)
	}
	open := func(spec string) (Dataset, error) {
		how, err := text.ParseCutting(spec)
		if err != nil {
			t.Fatal(err)
		}
		return Open([]string{path}, Options{Text: &how, Fields: []Field{{Name: "x", Shape: []int64{-1}, Type: "int64"}}})
	}
	d, err := open("bptt=3")
	if err != nil {
		t.Fatal(err)
	}
	if in, labels := shown(t, d, 1); d.Len() != 6 || !cmp.Equal(in, []int64{10, 11, 12}) || !cmp.Equal(labels, []int{11, 12, 13}) {
		t.Errorf("%d examples, the second is %d and %d", d.Len(), in, labels)
	}
	for _, spec := range []string{"rows=2", "window=4"} {
		if _, err := open(spec); err == nil || !strings.Contains(err.Error(), "an array of shape [3 5], want") {
			t.Errorf("%s: error %v", spec, err)
		}
	}
}
