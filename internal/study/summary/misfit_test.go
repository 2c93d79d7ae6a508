package summary

import "testing"

// Exchanged classes are found, and classes that are hard or that a collapsed network mistakes are not.
func TestExchanged(t *testing.T) {
	for name, c := range map[string]struct {
		counts map[[2]int]int
		want   int
	}{
		"right":     {map[[2]int]int{{0, 0}: 20, {1, 1}: 20}, 0},
		"exchanged": {map[[2]int]int{{0, 1}: 18, {0, 0}: 2, {1, 0}: 20, {2, 2}: 20}, 2},
		"moved on":  {map[[2]int]int{{0, 1}: 20, {1, 2}: 20, {2, 0}: 20}, 3},
		"collapsed": {map[[2]int]int{{0, 2}: 20, {1, 2}: 20, {2, 2}: 20}, 0},
		"one class": {map[[2]int]int{{0, 1}: 20}, 0},
		"few":       {map[[2]int]int{{0, 1}: 9, {1, 0}: 9}, 0},
		"guesses":   {map[[2]int]int{{0, 0}: 10, {0, 1}: 11, {1, 0}: 11, {1, 1}: 10}, 0},
	} {
		if got := (&confusion{counts: c.counts}).exchanged(); len(got) != c.want {
			t.Errorf("%s: %v, want %d", name, got, c.want)
		}
	}
}
