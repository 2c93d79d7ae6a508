package word

import (
	"errors"
	"strings"
	"testing"
)

// Distances were counted by hand.
func TestDistance(t *testing.T) {
	for _, tt := range []struct {
		a, b string
		want int
	}{
		{"", "", 0}, {"", "abc", 3}, {"abc", "", 3}, {"abc", "abc", 0},
		{"bndata", "bn-data", 1}, {"comapre", "compare", 1}, {"kitten", "sitting", 3},
		{"flaw", "lawn", 2}, {"ca", "abc", 3}, {"ab", "ba", 1},
	} {
		if got := distance(tt.a, tt.b); got != tt.want {
			t.Errorf("distance(%q, %q) = %d, want %d", tt.a, tt.b, got, tt.want)
		}
		if got := distance(tt.b, tt.a); got != tt.want {
			t.Errorf("distance(%q, %q) = %d, want %d", tt.b, tt.a, got, tt.want)
		}
	}
}

func TestNearest(t *testing.T) {
	commands := []string{"fit", "sample", "score", "compare", "calibrate"}
	for word, want := range map[string]string{
		"comapre": "compare", "SCORE": "score", "smaple": "sample", "fti": "fit",
		"x": "", "": "", "geometry": "", strings.Repeat("score", 20): "",
	} {
		if got := Nearest(word, commands); got != want {
			t.Errorf("Nearest(%q) = %q, want %q", word, got, want)
		}
	}
	if got := Nearest("n", []string{"b"}); got != "" {
		t.Errorf("a word of one letter: got %q: nothing of it was right", got)
	}
}

func TestCheck(t *testing.T) {
	if err := Check("b", "a", "b"); err != nil {
		t.Error(err)
	}
	err := Check("clases", "binary", "classes", "labels")
	if want := `"clases": want one of binary, classes or labels`; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	var u *Unknown
	if !errors.As(err, &u) || u.Meant() != "classes" {
		t.Errorf("got %#v, want classes to be meant", err)
	}
	if got := Check("x", "a", "b").Error(); got != `"x": want a or b` {
		t.Error(got)
	}
}

// The words of other programs mean ours, if the flag has ours.
func TestMeant(t *testing.T) {
	tasks := []string{"binary", "classes", "labels", "regression"}
	for given, want := range map[string]string{"classification": "classes", "Multi-Label": "labels", "image_classification": "classes",
		"regresion": "regression", "causal-lm": "", "detection": ""} {
		if got := (&Unknown{given, tasks}).Meant(); got != want {
			t.Errorf("%s: %q, want %q", given, got, want)
		}
	}
}
