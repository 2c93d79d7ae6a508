package records

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

// Differences are listed in the order of the names.
func TestParameters(t *testing.T) {
	was, err := NewParameters(map[string]any{"data": []int{1}, "a": strings.Repeat("x", 700), "gone": 1})
	check(t, err)
	now, err := NewParameters(map[string]any{"producer": "p", "data": []int{1, 2}, "a": "y"})
	check(t, err)
	js, err := json.MarshalIndent(was, "", " ") // as a file for people has it
	check(t, err)
	var read Parameters
	check(t, json.Unmarshal(js, &read))
	want := []string{"a is not what it was", "data was [1] and is [1,2]", "gone was 1 and is absent", `producer was absent and is "p"`}
	if got := read.Differences(now); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if got := read.Differences(nil); len(got) != 3 {
		t.Errorf("without any now: %q", got)
	}
	if got := read.Differences(was); got != nil {
		t.Errorf("differs from itself: %q", got)
	}
}
