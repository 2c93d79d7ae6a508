package dataset

import (
	"fmt"
	"strings"
)

// Damaged are test examples that are damaged in several severities: see package shift.
type Damaged struct {
	Corruptions []string
	Severities  []int
	Examples    int // of the test data
	// Each is the number of corruptions of each example. At each severity, row j of the damaged data is example j/Each with
	// corruption j modulo their number.
	Each int
	// Rows has the example of each row, as an index in the test data.
	Rows []int
	// Sets are the damaged data by severity. Those of a text are by severity and then by corruption.
	Sets  []Dataset
	Texts bool // examples are the documents of a text
	// Clean are the examples themselves, for networks that score positions. nil stands for all test data.
	Clean Dataset
}

// Named returns the severities in words.
func (d *Damaged) Named() string {
	first, last := d.Severities[0], d.Severities[len(d.Severities)-1]
	switch n := len(d.Severities); {
	case n == 1:
		return fmt.Sprintf("severity %d", first)
	case last-first == n-1 && n > 2:
		return fmt.Sprintf("severities %d to %d", first, last)
	default:
		return fmt.Sprintf("severities %s and %d", strings.Trim(strings.ReplaceAll(fmt.Sprint(d.Severities[:n-1]), " ", ", "), "[]"), last)
	}
}

// With returns the examples with corruption c, as indexes in the test data.
func (d *Damaged) With(c int) (examples []int) {
	for i := c; i < len(d.Rows); i += len(d.Corruptions) {
		examples = append(examples, d.Rows[i])
	}
	return examples
}

// Unit returns the word for a damaged example: "image", "example", or "document" for a part of a text.
func (d *Damaged) Unit(test Dataset) string {
	if d.Texts {
		return "document"
	}
	return Unit(test)
}

// Chosen returns the damaged examples, as indexes in the test data.
func (d *Damaged) Chosen() (out []int) {
	for j := 0; j < len(d.Rows); j += d.Each {
		out = append(out, d.Rows[j])
	}
	return out
}

// Severity returns the severity of set k−1. Clean examples are set 0 and have severity 0.
func (d *Damaged) Severity(k int) int {
	if k == 0 {
		return 0
	}
	return d.Severities[k-1]
}
