//go:build large

package main

import (
	"strings"
	"testing"
)

// TestScoreBombsOften: where memory allows it, they are pictures like others, and are
// decoded one after the other.
func TestScoreBombsOften(t *testing.T) {
	peak, rows := scoreBombs(t, 32, 10000, "--memory", "1G")
	t.Logf("%d MB", peak>>20)
	if strings.Contains(rows, "MiB") {
		t.Errorf("%s", rows)
	}
	if peak > 1500<<20 {
		t.Errorf("%d MB, want less than 1,500", peak>>20)
	}
}
