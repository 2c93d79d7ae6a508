// Command swagwrap gives trained networks calibrated, uncertainty-aware
// predictions: see README.md.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/flags"
)

func main() { os.Exit(mainExitCode()) }

func mainExitCode() int {
	ctx, stop := interruptible()
	defer stop()
	return run(ctx, os.Args, os.Stdout, os.Stderr)
}

// interruptible returns a context that the first SIGINT or SIGTERM ends, so
// that unfinished files are removed; the second kills the process at once.
func interruptible() (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	go func() {
		if s, ok := <-signals; ok {
			signal.Stop(signals)
			cancel(flags.Interrupted{Signal: s.(syscall.Signal)})
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		close(signals)
		cancel(nil)
	}
}
