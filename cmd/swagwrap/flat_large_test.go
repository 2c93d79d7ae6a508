//go:build large

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
)

// Memory does not grow with the number of images: 9,000 more take less than
// 10 MB more, which is what their names take and what the collector lets lie.
func TestScoreMemoryFlat(t *testing.T) {
	dir := t.TempDir()
	e := pictureEnsemble(t, dir, 30)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	exe := filepath.Join(dir, "swagwrap")
	if err := os.Symlink(self, exe); err != nil {
		t.Fatal(err)
	}
	peak := func(n int, name string) int64 {
		pictures := filepath.Join(dir, name)
		writePictures(t, pictures, n)
		c := exec.Command(exe, "score", "-q", "-o", filepath.Join(dir, name+".parquet"), "--probs", e, pictures)
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		bytes := c.ProcessState.SysUsage().(*syscall.Rusage).Maxrss
		if runtime.GOOS == "linux" {
			bytes <<= 10
		}
		return bytes
	}
	few, many := peak(1000, "few"), peak(10000, "many")
	t.Logf("1,000 images: %d MB; 10,000: %d MB", few>>20, many>>20)
	if many-few > 10<<20 {
		t.Errorf("%d bytes more for 9,000 more images", many-few)
	}
}
