package word

import (
	"slices"
	"testing"
)

// Only finite numbers with commas between are a list.
func TestNumbers(t *testing.T) {
	for s, want := range map[string][]float64{"1": {1}, "0.5, -2,1e3": {0.5, -2, 1000}} {
		if got, ok := Numbers(s); !ok || !slices.Equal(got, want) {
			t.Errorf("%q: %v, %v, want %v", s, got, ok, want)
		}
	}
	for _, s := range []string{"", "1,", "red", "nan", "1,inf", "1;2", "1 2"} {
		if got, ok := Numbers(s); ok {
			t.Errorf("%q: %v", s, got)
		}
	}
}
