//go:build !unix

package file

// nonblock is for Unix: see there.
const nonblock = 0
