package corrupt

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
)

// Texts are those of testdata/words.py. Their random numbers are the same, so they are equal.
func TestText(t *testing.T) {
	content, err := os.ReadFile("testdata/words.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		Corruption, Text, Want string
		Severity               int
		Seed                   uint64
	}
	if err := json.Unmarshal(content, &cases); err != nil {
		t.Fatal(err)
	}
	changed := 0
	for _, x := range cases {
		c, err := Parse(x.Corruption, Words)
		if err != nil {
			t.Fatal(err)
		}
		if got := c[0].Text(x.Text, x.Severity, x.Seed); got != x.Want {
			t.Errorf("%s of %q at severity %d: %q, want %q", x.Corruption, x.Text, x.Severity, got, x.Want)
		}
		if x.Want != x.Text {
			changed++
		}
	}
	if changed < 10 {
		t.Errorf("only %d texts of %d changed", changed, len(cases))
	}
	// A share of the words is dropped, within three standard errors.
	const n = 20000
	drop, _ := Parse("drop_words", Words)
	for k, share := range sizes {
		left := float64(len(strings.Fields(drop[0].Text(strings.Repeat("word ", n), k+1, 5)))) / n
		if d := left - (1 - share); d*d > 9*share*(1-share)/n {
			t.Errorf("severity %d: a share of %.4f is left, want %.2f", k+1, left, 1-share)
		}
	}
}
