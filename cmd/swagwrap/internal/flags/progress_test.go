package flags

import (
	"context"
	"flag"
	"io"
	"testing"

	"github.com/urfave/cli/v2"
)

// A signal that comes just before a bar begins ends the command as it does at any other time.
func TestProgressAfterSignal(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	c := cli.NewContext(cli.NewApp(), flag.NewFlagSet("", flag.ContinueOnError), nil)
	c.Context = ctx
	for range 100 {
		bar := (&Env{Stderr: io.Discard}).Progress(c, "score", 10)
		bar.Add(1)
		bar.Resize(20)
		bar.Done()
	}
}
