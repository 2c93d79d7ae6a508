// Package word checks a word that a user typed against a list of allowed words, and
// finds the allowed word that was probably meant.
package word

import (
	"fmt"
	"slices"
	"strings"
)

// Unknown is the error of a word that is not in its list.
type Unknown struct {
	Word string
	Want []string
}

func (u *Unknown) Error() string { return fmt.Sprintf("%q: want %s", u.Word, Either(u.Want)) }

// Meant is the allowed word that was probably meant, or "".
func (u *Unknown) Meant() string {
	plain := strings.NewReplacer("-", "", "_", "", " ", "").Replace(strings.ToLower(u.Word))
	if meant := elsewhere[plain]; slices.Contains(u.Want, meant) {
		return meant
	}
	return Nearest(u.Word, u.Want)
}

// elsewhere has the words of other programs, without hyphens, with ours for the same thing.
var elsewhere = map[string]string{
	"classification":           "classes",
	"classify":                 "classes",
	"multiclass":               "classes",
	"multiclassclassification": "classes",
	"imageclassification":      "classes",
	"segmentation":             "classes",
	"semanticsegmentation":     "classes",
	"softmax":                  "classes",
	"crossentropy":             "classes",
	"binaryclassification":     "binary",
	"sigmoid":                  "binary",
	"multilabel":               "labels",
	"multilabelclassification": "labels",
	"regressor":                "regression",
	"mse":                      "regression",
	"languagemodel":            "next-token",
	"languagemodeling":         "next-token",
	"causallm":                 "next-token",
	"lm":                       "next-token",
	"textgeneration":           "next-token",
	"detection":                "none",
	"objectdetection":          "none",
	"embedding":                "none",
	"embeddings":               "none",
}

// Check returns an [*Unknown] error if word is not one of want.
func Check(word string, want ...string) error {
	if slices.Contains(want, word) {
		return nil
	}
	return &Unknown{word, want}
}

// Either joins words: "a", "a or b", "one of a, b or c".
func Either(words []string) string {
	switch n := len(words); {
	case n < 2:
		return strings.Join(words, "")
	case n == 2:
		return words[0] + " or " + words[1]
	default:
		return "one of " + strings.Join(words[:n-1], ", ") + " or " + words[n-1]
	}
}

// longest is the largest length in bytes of words that are compared. The running time of distance grows with the
// product of the two lengths.
const longest = 64

// Nearest returns the known word with the smallest [distance] to word. If several are equally near, it returns the
// first. It returns "" if more than a third of the letters are wrong, because a suggestion would only confuse.
func Nearest(word string, known []string) string {
	if len(word) > longest {
		return ""
	}
	best, least := "", 1+max(1, len(word)/3)
	for _, k := range known {
		if d := distance(strings.ToLower(word), strings.ToLower(k)); d < least && d < len(k) {
			best, least = k, d
		}
	}
	return best
}

// distance returns the smallest number of edits that turn a into b. An edit inserts, removes or replaces a byte, or
// swaps two neighbours (optimal string alignment: Damerau 1964, Levenshtein 1966).
func distance(a, b string) int {
	if len(b) > longest {
		return len(b)
	}
	older, old, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		older, old, row = old, row, older
		row[0] = i
		for j := 1; j <= len(b); j++ {
			replaced := old[j-1]
			if a[i-1] != b[j-1] {
				replaced++
			}
			row[j] = min(replaced, old[j]+1, row[j-1]+1)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], older[j-2]+1)
			}
		}
	}
	return row[len(b)]
}
