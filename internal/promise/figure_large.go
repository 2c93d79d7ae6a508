//go:build large

package promise

// Figure returns how much a test tries: change with every commit, night in builds with the tag large.
func Figure[T any](change, night T) T { return night }
