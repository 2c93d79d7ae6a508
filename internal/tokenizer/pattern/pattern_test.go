package pattern

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/swagwrap/swagwrap/fixtures/reliability"
	"github.com/swagwrap/swagwrap/fixtures/testfile"
)

// ends returns where the pieces of a text end.
func ends(p *Pattern, text string, steps int) (list []int, err error) {
	err = p.Split([]rune(text), &steps, func(from, to int, _ bool) error {
		if from < to {
			list = append(list, to)
		}
		return nil
	})
	return list, err
}

// The pieces are those of Hugging Face tokenizers: testdata/make.py. Most of the random patterns are not refused.
func TestAsTokenizers(t *testing.T) {
	t.Parallel()
	var all []struct {
		Pattern string
		Texts   []struct {
			Text string
			Ends []int
		}
	}
	testfile.JSON(t, filepath.Join("testdata", "patterns.json"), &all)
	const chosen = 65 // the others are random
	refused := 0
	for k, c := range all {
		p, err := Compile(c.Pattern)
		if err != nil {
			if refused++; k < chosen {
				t.Error(err)
			}
			continue
		}
		for _, of := range c.Texts {
			if got, err := ends(p, of.Text, 1<<20); err != nil || !slices.Equal(got, of.Ends) {
				t.Errorf("%q: %q ends at %d, want %d (%v)", c.Pattern, of.Text, got, of.Ends, err)
			}
		}
	}
	if refused*3 > len(all) {
		t.Errorf("%d of %d patterns are refused", refused, len(all))
	}
}

// A pattern is a text of its own where a tokenizer.json says so.
func TestLiteral(t *testing.T) {
	t.Parallel()
	if got, err := ends(Literal("a.b"), "xa.ba.b axb", 1000); err != nil || !slices.Equal(got, []int{1, 4, 7, 11}) {
		t.Error(got, err)
	}
}

func TestRefused(t *testing.T) {
	t.Parallel()
	for expression, want := range map[string]string{
		`(`: "a ( without a )", `a)`: "a ) without a (", `*a`: "repeats nothing", `[a`: "it ends too early", `\`: "it ends too early", `\p{Foo}`: `\p{Foo}`,
		`\pL`: "braces", `(a)\1`: `\1`, `\K`: `\K`, `\R`: `\R`, `[[:alpha:]]`: "[:alpha:]", `(?x:a)`: "(?x", `(?im:a)`: "options other than i",
		`(a*)*`: "repeats what may be empty", `(|a)+`: "repeats what may be empty", `(){100000}`: "repeats what may be empty", `(?=a)*`: "repeats what may be empty",
		`((a{100}b){100}c){100}`: "too large", `a{100001}`: "times", `a{3,2}`: "times", `(?<=a+)b`: "several lengths", `(?i:ss)`: "(?i)", `(?i)[é]`: "(?i)", `\x{110000}`: `\x`,
		`\xff`: `\x`, `[z-a]`: "a range", `[\d-x`: "it ends too early", strings.Repeat("(", 60): "50 deep", strings.Repeat("[", 60): "50 deep", strings.Repeat("a", 5000): "4096",
	} {
		if _, err := Compile(expression); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60s: error %v, want %q", expression, err, want)
		}
	}
}

// Patterns whose time would grow exponentially, or with the square of the text, use up their steps: at the same place in
// each run. What patterns of real tokenizers need grows with the text.
func TestSteps(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a", 40_000)
	for _, c := range []struct{ pattern, text string }{
		{`(a+)+$`, strings.Repeat("a", 60) + "b"}, {`(a|aa)+$`, strings.Repeat("a", 60) + "b"}, {`(a|a)*$`, strings.Repeat("a", 60) + "b"}, {`(\w+\s?)+!`, strings.Repeat("ab ", 30)},
		{`(?=(a+)+b)a`, long}, {`a*a*a*b`, long}, {`.*b`, long}, {`a(?=a*$)`, long}, {`(?:a+?)+?b`, long}, {`(?:a|b)*c`, long},
	} {
		p, err := Compile(c.pattern)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := ends(p, c.text, 256*len(c.text)+1<<20); !errors.Is(err, ErrSteps) {
			t.Errorf("%q: error %v", c.pattern, err)
		}
	}
	var known []struct{ Pattern string }
	testfile.JSON(t, filepath.Join("testdata", "patterns.json"), &known)
	hard := strings.Repeat(" ", 2000) + strings.Repeat("\n", 2000) + strings.Repeat("ab1 -", 1000) + strings.Repeat("日本A", 1000) + strings.Repeat("!", 2000) + strings.Repeat("7", 2000)
	for _, c := range known[:8] {
		p, err := Compile(c.Pattern)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := ends(p, hard, 32*len([]rune(hard))); err != nil {
			t.Errorf("%q: %v", c.Pattern, err)
		}
	}
}

// Memory grows with neither the counts of a pattern nor with the ways that a match may take.
func FuzzCompile(f *testing.F) {
	var known []struct{ Pattern string }
	testfile.JSON(f, filepath.Join("testdata", "patterns.json"), &known)
	for _, c := range known {
		f.Add(c.Pattern, "ab 12\né")
	}
	f.Add(`((a{100}){100}){100}`, "a")
	f.Fuzz(func(t *testing.T, expression, text string) {
		reliability.Heap(t, len(expression)+len(text), func() {
			p, err := Compile(expression)
			if err != nil {
				return
			}
			at, runes, steps := 0, []rune(text), 1<<16
			err = p.Split(runes, &steps, func(from, to int, match bool) error {
				if from != at || to < from || to > len(runes) {
					t.Errorf("%q: a piece %d to %d behind %d", expression, from, to, at)
				}
				at = to
				return nil
			})
			if err == nil && at != len(runes) {
				t.Errorf("%q: the pieces end at %d of %d", expression, at, len(runes))
			}
		})
	})
}
