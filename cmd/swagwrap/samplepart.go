package main

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/flags"
	"github.com/swagwrap/swagwrap/internal/ensemble"
	"github.com/swagwrap/swagwrap/internal/predictions"
)

// samplePart returns the members to draw, and the path of the output. done reports whether the output already exists,
// is complete, and has the requested parameters.
func (a *app) samplePart(c *cli.Context, e *ensemble.Ensemble) (p ensemble.Part, path string, done bool, err error) {
	i, n, err := partOf(c)
	switch {
	case err != nil:
		return p, "", false, err
	case n == 0:
		return e.PartOf(0, 1), e.Path, false, nil
	case e.Sampling.Covariance == ensemble.Iterates:
		return p, "", false, flags.Usagef("nothing is computed for checkpoints", "--part is not for --method iterates")
	}
	p, path = e.PartOf(i, n), predictions.PartName(e.Path, i, n)
	if c.Bool("force") {
		return p, path, false, nil
	}
	was, err := ensemble.OpenPart(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return p, path, false, nil
	case err != nil:
		a.Warnf(c, "%v: it is drawn again", err)
		return p, path, false, nil
	case !slices.Equal(was.Asked, asked(c)) || was.Part != p:
		return p, path, false, flags.BadInput(fmt.Errorf("%s: was drawn with other settings: %s", path, strings.Join(was.Asked, " ")), "--force draws it anew")
	}
	a.Logf(c, "%s: is complete", path)
	return p, path, true, nil
}

// asked returns the arguments and flags that the result depends on.
func asked(c *cli.Context) []string {
	all := c.Args().Slice()
	for _, f := range c.Command.Flags {
		switch name := f.Names()[0]; name {
		case "part", "output", "force", "quiet", "verbose", "threads", "memory", "ort-lib":
		default:
			if c.IsSet(name) {
				all = append(all, fmt.Sprintf("--%s=%v", name, c.Value(name)))
			}
		}
	}
	return all
}
