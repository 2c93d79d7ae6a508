package console

import (
	"context"
	"io"
	"testing"
)

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
