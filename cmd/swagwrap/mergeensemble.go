package main

import (
	"github.com/urfave/cli/v2"

	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/flags"
	"github.com/swagwrap/swagwrap/internal/ensemble"
	"github.com/swagwrap/swagwrap/internal/report"
)

// mergeEnsemble makes one ensemble of parts with some members each.
func (a *app) mergeEnsemble(c *cli.Context, out *flags.Output, paths []string) error {
	var parts []*ensemble.PartFile
	var broken []error
	for _, path := range paths {
		if p, err := ensemble.OpenPart(path); err != nil {
			broken = append(broken, err)
		} else {
			parts = append(parts, p)
		}
	}
	err := inOrder(out.Path, parts, broken,
		func(p *ensemble.PartFile) piece { return piece{p.Path, p.Index, p.Of, p.First, p.End, p.Members()} },
		func(a, b *ensemble.PartFile) []string { return a.Differences(b) })
	if err != nil {
		return err
	}
	e := parts[0].Ensemble
	for _, p := range parts[1:] {
		e.Take(p)
	}
	if err := e.Write(out, parts[0].Producer); err != nil {
		return flags.BadOutput(err)
	}
	if err := out.Commit(); err != nil {
		return err
	}
	a.Logf(c, "%s: %s of %s", out.Path, report.Plural(e.Members(), "member"), report.Plural(len(parts), "part"))
	return nil
}
