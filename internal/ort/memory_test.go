package ort

import (
	"runtime"
	"syscall"
	"testing"
)

// peakMemory returns the process's largest resident set so far, in bytes.
func peakMemory(t *testing.T) int64 {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	if runtime.GOOS == "darwin" {
		return u.Maxrss
	}
	return u.Maxrss << 10
}
