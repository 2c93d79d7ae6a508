// Command swagwrap gives trained networks calibrated, uncertainty-aware
// predictions: see README.md.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/flags"
)

func main() { os.Exit(mainExitCode()) }

func mainExitCode() int {
	ctx, stop := interruptible()
	defer stop()
	return run(ctx, os.Args, os.Stdout, os.Stderr)
}

// patience is how long the work may take to end after a signal. Schedulers kill ten
// seconds after it or more.
const patience = 8 * time.Second

// interruptible returns a context that the first SIGINT, SIGTERM or SIGUSR1 ends,
// which Slurm sends before a job's time is up. Where the work does not end soon,
// since ONNX Runtime is in the midst of something, and after a second signal, the
// process ends without it.
func interruptible() (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGUSR1)
	go func() {
		s, ok := <-signals
		if !ok {
			return
		}
		first := flags.Interrupted{Signal: s.(syscall.Signal)}
		cancel(first)
		select {
		case _, ok = <-signals:
		case <-time.After(patience):
		}
		if ok {
			os.Exit(flags.GiveUp(os.Stderr, first))
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		close(signals)
		cancel(nil)
	}
}
