package records

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// Parts tile the examples, in whole batches, as evenly as batches allow.
func TestPartRange(t *testing.T) {
	for _, examples := range []int{1, 2, 9, 10, 64, 65, 1000} {
		for _, unit := range []int{1, 2, 16, 64} {
			batches := (examples + unit - 1) / unit
			for of := 1; of <= 70; of++ {
				at, least, most := 0, batches, 0
				for i := range of {
					p := Part{Index: i, Of: of}
					p.Range(examples, unit)
					first, end := p.First, p.End
					if first != at || end < first || first%unit != 0 && first != examples || end%unit != 0 && end != examples {
						t.Fatalf("part %d of %d: %d to %d of %d in batches of %d, want from %d", i, of, first, end, examples, unit, at)
					}
					at = end
					n := (end - first + unit - 1) / unit
					least, most = min(least, n), max(most, n)
				}
				if at != examples || most-least > 1 {
					t.Fatalf("%d parts of %d in batches of %d end at %d, with %d to %d batches", of, examples, unit, at, least, most)
				}
			}
		}
	}
}

func TestPartNames(t *testing.T) {
	dir := t.TempDir()
	base := filepath.Join(dir, "a.csv")
	for _, name := range []string{"a.csv.part-0001-of-0003", "a.csv.part-0000-of-0003", "a.csv.part-12345-of-20000", "a.csv.part-0002-of-0003.partial", "a.csv.part-1-of-3", "b.csv.part-0000-of-0003", "a.csv"} {
		check(t, os.WriteFile(filepath.Join(dir, name), nil, 0o666))
	}
	got, err := PartNames(base)
	want := []string{PartName(base, 0, 3), PartName(base, 1, 3), PartName(base, 12345, 20000)}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%q, %v, want %q", got, err, want)
	}
	t.Chdir(dir)
	if got, err := PartNames("a.csv"); err != nil || len(got) != 3 || got[0] != "a.csv.part-0000-of-0003" {
		t.Errorf("here: %q, %v", got, err)
	}
}
