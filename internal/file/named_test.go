package file

import (
	"encoding/json"
	"testing"
)

// Texts call files by the names that they take later, in JSON too.
func TestNamed(t *testing.T) {
	defer func(before [][2]string) { naming.pairs = before }(naming.pairs)
	Name("some/.x-RANDOM.tmp", `some/"my" <folder>`)
	Name(".y-RANDOM.tmp", "out")
	for text, want := range map[string]string{
		"nothing": "nothing",
		"some/.x-RANDOM.tmp/a: why, and .y-RANDOM.tmp/b":    `some/"my" <folder>/a: why, and out/b`,
		"/here/some/.x-RANDOM.tmp/a, ../some/.x-RANDOM.tmp": `/here/some/"my" <folder>/a, ../some/"my" <folder>`,
		"/other/.x-RANDOM.tmp":                              `/other/"my" <folder>`,
	} {
		if got := Named(text); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
		before, err := json.Marshal(text)
		if err != nil {
			t.Fatal(err)
		}
		var got string
		if err := json.Unmarshal(NamedJSON(before), &got); err != nil || got != want {
			t.Errorf("%s in JSON: %s, want %s, %v", text, got, want, err)
		}
	}
}
