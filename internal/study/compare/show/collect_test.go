package show

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestCollected looks for the quoted figures in the tables of docs/results.md.
func TestCollected(t *testing.T) {
	t.Parallel()
	var doc string
	for _, page := range []string{"docs/results.md", "fixtures/results/README.md"} {
		text, err := os.ReadFile("../../../../" + page)
		if err != nil {
			t.Fatal(err)
		}
		doc += string(text)
	}
	quoted := regexp.MustCompile(`\d\.\d{4}`).FindAllString(collected, -1)
	if len(quoted) != 4 {
		t.Fatalf("figures %q, want 4", quoted)
	}
	for i, table := range []string{"MNIST, 1,000 images", "MNIST, 250 images"} {
		_, rest, _ := strings.Cut(doc, "<!-- begin "+table+" -->")
		rows, _, ok := strings.Cut(rest, "<!-- end")
		if !ok {
			t.Fatalf("no table %q", table)
		}
		for k, row := range []string{"SGD, falling rate", "SWA"} {
			if got := cell(rows, row, "NLL"); got != quoted[2*i+k] {
				t.Errorf("%s: the NLL of %s is %q, the verdict quotes %q", table, row, got, quoted[2*i+k])
			}
		}
	}
}

// cell returns the number in a cell of a Markdown table, without its spread.
func cell(table, row, column string) string {
	lines := strings.Split(strings.TrimSpace(table), "\n")
	split := func(line string) (cells []string) {
		for _, c := range strings.Split(strings.Trim(line, "|"), "|") {
			cells = append(cells, strings.TrimSpace(c))
		}
		return cells
	}
	at := slices.Index(split(lines[0]), column)
	for _, line := range lines {
		if cells := split(line); at >= 0 && cells[0] == row {
			number, _, _ := strings.Cut(cells[at], " ")
			return number
		}
	}
	return ""
}
