package names

import "fmt"

// Class is how messages name a class: by its name in quotes, or by its number if it has no name.
func Class(known []string, c int) string {
	if c < len(known) {
		return fmt.Sprintf("%q", known[c])
	}
	return fmt.Sprintf("class %d", c)
}
