// Command swagwrap gives trained networks calibrated, uncertainty-aware
// predictions: see README.md.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() { os.Exit(mainExitCode()) }

func mainExitCode() int {
	ctx, stop := interruptible()
	defer stop()
	return run(ctx, os.Args, os.Stdout, os.Stderr)
}

// interrupted is the cause of a context that a signal ended.
type interrupted struct{ signal syscall.Signal }

func (i interrupted) Error() string { return "stopped by signal: " + i.signal.String() }

// interruptible returns a context that the first SIGINT or SIGTERM ends, so
// that unfinished files are removed; the second kills the process at once.
func interruptible() (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	go func() {
		if s, ok := <-signals; ok {
			signal.Stop(signals)
			cancel(interrupted{s.(syscall.Signal)})
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		close(signals)
		cancel(nil)
	}
}
