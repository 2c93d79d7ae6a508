package file

import (
	"path/filepath"
	"testing"
)

func TestRelativeTo(t *testing.T) {
	for _, tc := range [][3]string{{"a/b/p", "a/c/ckpt", "../c/ckpt"}, {"p", "ckpt", "ckpt"}} {
		if got := RelativeTo(tc[0], tc[1]); got != tc[2] {
			t.Errorf("%s seen from %s: %s, want %s", tc[1], tc[0], got, tc[2])
		}
	}
	if got := RelativeTo("-", "ckpt"); !filepath.IsAbs(got) {
		t.Errorf("seen from standard output: %s", got)
	}
}
