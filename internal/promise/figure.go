//go:build !large

package promise

// Figure is how often a promise is put to the test: so often with every change, and so often every night, which is
// when tests are built with the tag large.
func Figure(change, night int) int { return change }
