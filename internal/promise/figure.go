//go:build !large

package promise

// Figure returns the number of trials for a test: change with every commit, night in builds with the tag large.
func Figure(change, night int) int { return change }
