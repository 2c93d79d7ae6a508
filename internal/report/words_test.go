package report

import (
	"regexp"
	"strings"
	"testing"
)

// A word of the glossary leads there where it stands for the first time: the longest
// that fits, and no part of a longer word.
func TestWords(t *testing.T) {
	for text, want := range map[string]string{
		"SWAG is better than SWA, and SWAG wins":         "[SWAG] is better than [SWA], and SWAG wins",
		"NLL − NLL(SWA-Temp)":                            "[NLL] − NLL([SWA-Temp])",
		"better than temperature scaling":                "better than [temperature scaling]",
		"classwise ECE and ECE, equal width":             "[classwise ECE] and [ECE], equal width",
		"each with a 95 % interval":                      "each with a [95 % interval]",
		"[95 %]":                                         "[[95 %]]",
		"Scale it; upscaled, scales":                     "[Scale] it; upscaled, scales",
		"swagwrap sample --scale 0.5 --rank 5, low-rank": "swagwrap sample --scale 0.5 --rank 5, low-rank",
		"asterisk":           "asterisk",
		"at 3 σ":             "at 3 [σ]",
		"ſwag \xff<b>BN</b>": "ſwag �<b>[BN]</b>",
		"":                   "",
	} {
		got := ""
		for _, w := range words(prose(text), map[*term]bool{}) {
			if w.ID != "" {
				got += "[" + w.Text + "]"
			} else {
				got += w.Text
			}
		}
		if got != prose(want) {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// Headers of tables, verdict, findings, settings and explanations lead to the
// glossary, whose meaning shows where the pointer rests; TestReportHTML sees that no
// link leads nowhere.
func TestLinks(t *testing.T) {
	page := string(pageOf(t, sampleReport(12)))
	to := regexp.MustCompile(`<dt id="(word-\d+)">([^<]*)</dt>`).FindAllStringSubmatch(page, -1)
	ids := map[string]string{}
	for _, m := range to {
		ids[m[2]] = m[1]
	}
	for place, word := range map[string]string{`<p class="headline">`: "SWAG", `<th scope="col" class="number">`: "accuracy", `as much as 2.1 `: "independent checkpoints", `<div><dt>`: "members",
		`<p class="lead">`: "confidence"} {
		link := `<a class="word" href="#` + ids[word] + `" title="`
		if ids[word] == "" || !strings.Contains(page, place+link) {
			t.Errorf("%s does not lead to %q", place, word)
		}
	}
}
