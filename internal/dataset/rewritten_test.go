package dataset

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/swagwrap/swagwrap/internal/dataset/text"
)

// A text of its own documents is the text itself. Other documents are cut in the same way, and their tokens are of the units
// that are given.
func TestRewritten(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	vocabulary := filepath.Join(dir, "vocabulary")
	if err := os.WriteFile(vocabulary, []byte("a\nb\n=\n<unk>\n<eos>\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	open := func(name, content, spec string) Dataset {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o666); err != nil {
			t.Fatal(err)
		}
		how, err := text.ParseCutting(spec + " vocabulary=" + vocabulary)
		if err != nil {
			t.Fatal(err)
		}
		d, err := Open([]string{path}, Options{Text: &how, Fields: []Field{{Name: "x", Shape: []int64{-1}, Type: "int64"}}})
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	var headed strings.Builder
	headed.WriteString("\n before\n")
	for k := range 5 {
		fmt.Fprintf(&headed, " = %d = \n%s\n\n", k, strings.Repeat(" a b", 3+k))
	}
	for _, tt := range []struct {
		name, content, spec string
		documents           int
	}{
		{"documents", headed.String(), "rows=2 bptt=4 reset=documents", 5},
		{"rows", headed.String(), "rows=2 bptt=4", 5},
		{"parts", strings.Repeat("a b\nb\n", 100), "window=7 stride=3", 64},
		{"short", "a b b\n", "window=7 stride=3", 3},
	} {
		d := open(tt.name, tt.content, tt.spec)
		documents, err := Documents(d)
		if err != nil || len(documents) != tt.documents {
			t.Fatalf("%s: %d documents, want %d: %v", tt.name, len(documents), tt.documents, err)
		}
		all, units := "", []int(nil)
		for k, x := range documents {
			if all, units = all+x.Heading+x.Body, append(units, 10+k); tt.documents == 5 && k > 0 && x.Heading != fmt.Sprintf(" = %d = \n", k) {
				t.Errorf("%s: heading %q", tt.name, x.Heading)
			}
		}
		same, err := Rewritten(d, documents, units, "same")
		if err != nil || all != tt.content || !slices.Equal(textOf(same).IDs, textOf(d).IDs) || same.Len() != d.Len() || ID(same) == ID(d) {
			t.Fatalf("%s: not the same text: %v", tt.name, err)
		}
		if own := textOf(d).Document; own != nil {
			for i, unit := range textOf(same).Document {
				if unit != own[i]+10 {
					t.Fatalf("%s: token %d is of unit %d, want %d", tt.name, i, unit, own[i]+10)
				}
			}
		}
		documents[1].Body = "b b b b\n"
		other, err := Rewritten(d, documents[1:2], []int{3}, "other")
		if err != nil {
			t.Fatal(err)
		}
		one := textOf(other)
		if got := one.IDs[len(one.IDs)-5:]; !slices.Equal(got, []int32{1, 1, 1, 1, 4}) || one.Document[0] != 3 || !slices.Equal(other.Shape(), d.Shape()) {
			t.Errorf("%s: tokens %d of shape %d", tt.name, got, other.Shape())
		}
		if err := os.WriteFile(filepath.Join(dir, tt.name), []byte("a"), 0o666); err != nil {
			t.Fatal(err)
		}
		if _, err := Documents(d); err == nil || !strings.Contains(err.Error(), "has changed") {
			t.Errorf("%s: another text in its place: %v", tt.name, err)
		}
	}
}
