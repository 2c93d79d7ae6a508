//go:build large

package main

import "testing"

// TestScoreKilledOften is TestScoreKilled with as many kills as the promise
// names.
func TestScoreKilledOften(t *testing.T) { killed(t, 500) }
