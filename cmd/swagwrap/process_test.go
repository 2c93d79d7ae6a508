package main

import (
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
)

// executable makes the program that this test is, in dir.
func executable(t *testing.T, dir string) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "swagwrap") // by this name TestMain knows what to be
	if err := os.Symlink(self, path); err != nil {
		t.Fatal(err)
	}
	return path
}

// maxRSS is the most memory that a process had, in bytes.
func maxRSS(p *os.ProcessState) int64 {
	bytes := p.SysUsage().(*syscall.Rusage).Maxrss
	if runtime.GOOS == "linux" {
		bytes <<= 10
	}
	return bytes
}
