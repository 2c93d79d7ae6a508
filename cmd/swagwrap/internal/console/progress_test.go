package console

import (
	"context"
	"io"
	"testing"
	"time"
)

// The time that is left is told while the speed is steady: not during a phase that finishes nothing, and soon after it.
func TestEstimate(t *testing.T) {
	var e estimate
	told := map[int]time.Duration{}
	for i := 1; i <= 400; i++ { // tenths of a second: 2 s of work, 4 s without any, and then the rest
		share := float64(i) / 360
		if i > 20 {
			share = float64(max(20, i-40)) / 360
		}
		if left, ok := e.left(time.Duration(i)*time.Second/10, share); ok {
			told[i] = left
		}
	}
	for i := 30; i < 60; i++ {
		if left, ok := told[i]; ok {
			t.Errorf("%d: %v left, of a phase without progress", i, left)
		}
	}
	for i := 150; i <= 400; i++ {
		want := time.Duration(400-i) * time.Second / 10
		if left, ok := told[i]; !ok || (left-want).Abs() > want*3/20+time.Second {
			t.Errorf("%d: %v left, %v, want about %v", i, left, ok, want)
		}
	}
}

// A first percent that was done at once, and then slow work: the few steps of the slow work tell nothing yet.
func TestEstimateOfSlowStart(t *testing.T) {
	var e estimate
	for i := 1; i <= 120; i++ {
		share := 0.012 + float64(i)*1e-5
		if left, ok := e.left(time.Duration(i)*time.Second/10, share); ok {
			t.Errorf("%d: %v left", i, left)
		}
	}
}

// A signal that comes just before a bar begins ends the command as it does at any other time.
func TestProgressAfterSignal(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for range 100 {
		bar := (&Env{Stderr: io.Discard}).Progress(ctx, "score", 10)
		bar.Add(1)
		bar.Resize(20)
		bar.Done()
	}
}
