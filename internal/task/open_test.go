package task

import (
	"strings"
	"testing"
)

// Scores whose form only values tell are not called logits, until a form was decided.
func TestOpenForm(t *testing.T) {
	for want, s := range map[string]OutputSpec{
		"a score for each":       {Output: "y", Count: 3, Open: true},
		"a probability for each": {Output: "y", Count: 3, Open: true, Form: Probabilities},
		"a logit for each":       {Output: "y", Count: 3},
	} {
		got, err := New("classes", s)
		if err != nil || !strings.HasSuffix(got.About().Meaning, want) {
			t.Errorf("%v, %v, want %q", got, err, want)
		}
	}
}
