//go:build !linux

package tempfile

import "errors"

// Exchange is for Linux.
func Exchange(a, b string) error { return errors.ErrUnsupported }

// IsMount is for Linux. Elsewhere the attempt to rename the folder tells.
func IsMount(path string) bool { return false }
