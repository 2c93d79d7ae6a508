//go:build webgpu || cuda

package ort

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/swagwrap/swagwrap/internal/memory"
)

// Many sessions at a time wait for each other, and leave no memory behind.
func TestGPUSessions(t *testing.T) {
	p, r := tested, rt
	round := func() {
		var wait sync.WaitGroup
		failed := make(chan error, 4)
		for range 4 {
			wait.Go(func() { failed <- r.try(context.Background(), p) })
		}
		wait.Wait()
		close(failed)
		for err := range failed {
			if err != nil {
				t.Error(err)
			}
		}
	}
	round()
	before := memory.Resident()
	for range 25 { // 100 sessions
		round()
	}
	if grown := memory.Resident() - before; grown > 20<<20 {
		t.Errorf("100 sessions leave %d MB", grown>>20)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := p.enter(ctx); err != nil && !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
