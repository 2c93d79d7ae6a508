package predictions

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

// Parameters are an object of JSON, and what differs is told in the order of those
// now, whatever the order in a file.
func TestParameters(t *testing.T) {
	var now, was Parameters
	for name, value := range map[string]any{"data": []int{1}, "a": strings.Repeat("x", 700), "gone": 1} {
		check(t, was.Add(name, value))
	}
	check(t, now.Add("producer", "p"))
	check(t, now.Add("data", []int{1, 2}))
	check(t, now.Add("a", "y"))
	js, err := json.MarshalIndent(was, "", " ") // as a file for people has it
	if err != nil {
		t.Fatal(err)
	}
	var read Parameters
	check(t, json.Unmarshal(js, &read))
	want := []string{`producer was  and is "p"`, "data was [1] and is [1,2]", "a is not what it was"}
	if got := read.Differences(now); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if got := read.Differences(read); got != nil {
		t.Errorf("differs from itself: %q", got)
	}
	if string(now.Get("data")) != "[1,2]" || now.Get("gone") != nil {
		t.Errorf("data %s, gone %s", now.Get("data"), now.Get("gone"))
	}
}

func TestFormat(t *testing.T) {
	for name, want := range map[string]string{"-": ".csv", "a.CSV": ".csv", "b/c.parquet": ".parquet"} {
		if got, err := Format(name); got != want || err != nil {
			t.Errorf("%s: %s, %v", name, got, err)
		}
	}
	_, err := Format("a.txt")
	wantError(t, err, `a.txt: format ".txt": want one of .csv, .jsonl, .parquet or .npz`)
}
