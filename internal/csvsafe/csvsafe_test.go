package csvsafe

import (
	"fmt"
	"testing"
)

func TestGuard(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "cat.png": "cat.png", "a=b": "a=b", "'": "'", "''": "''", "'tis.png": "'tis.png", " =x": " =x",
		"=1+1": "'=1+1", "+x": "'+x", "-0.5": "'-0.5", "@x": "'@x", "\tx": "'\tx", "\rx": "'\rx", "\nx": "'\nx",
		"'=x": "''=x", "''@": "'''@", "é": "é", "\xff": "\xff",
	} {
		if got := Guard(text); got != want || Bare(got) != text {
			t.Errorf("%q: %q and back %q, want %q", text, got, Bare(got), want)
		}
	}
	if got := Bare("=x"); got != "=x" { // of a file that others wrote
		t.Errorf("%q", got)
	}
}

func FuzzGuard(f *testing.F) {
	f.Add("'=x")
	f.Fuzz(func(t *testing.T, text string) {
		guarded := Guard(text)
		if Bare(guarded) != text {
			t.Errorf("%q comes back as %q", text, Bare(guarded))
		}
		if guarded != "" && formula(guarded[:1]) {
			t.Errorf("%q begins a formula", guarded)
		}
	})
}

func ExampleGuard() {
	fmt.Println(Guard("=HYPERLINK(0).png"))
	fmt.Println(Bare(Guard("=HYPERLINK(0).png")))
	// Output:
	// '=HYPERLINK(0).png
	// =HYPERLINK(0).png
}
