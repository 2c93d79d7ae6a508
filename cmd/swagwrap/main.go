// Command swagwrap gives trained networks calibrated, uncertainty-aware predictions. See README.md.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/console"
)

func main() {
	os.Exit(withSignals(func(ctx context.Context) int { return run(ctx, os.Args, os.Stdout, os.Stderr) }))
}

// withSignals calls the program with a context that a signal ends, and returns its exit code. Signals stay caught until the
// process ends: a signal that comes after the results are complete does not change the exit code.
func withSignals(program func(context.Context) int) int {
	// With SIGPIPE caught, a write to a closed pipe returns an error, and the command cleans up before it ends.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	return program(interruptible())
}

// patience is the time that the work has to end after a signal. Schedulers kill the process ten seconds after the
// signal, or later.
var patience = 8 * time.Second

// interruptible returns a context that ends with the first SIGINT, SIGTERM or SIGUSR1. Slurm sends SIGUSR1 before a
// job's time is up. If the work does not end soon, because ONNX Runtime is running, the process ends without it. It
// also does so after a second signal.
func interruptible() context.Context {
	ctx, cancel := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGUSR1)
	go func() {
		first := console.Interrupted{Signal: (<-signals).(syscall.Signal)}
		cancel(first)
		select {
		case <-signals:
		case <-time.After(patience):
		}
		os.Exit(console.GiveUp(os.Stderr, first))
	}()
	return ctx
}
