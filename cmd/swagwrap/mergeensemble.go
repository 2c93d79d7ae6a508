package main

import (
	"github.com/urfave/cli/v2"

	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/flags"
	"github.com/swagwrap/swagwrap/internal/ensemble"
	"github.com/swagwrap/swagwrap/internal/report"
)

// mergeEnsemble merges parts with some members each into one ensemble.
func (a *app) mergeEnsemble(c *cli.Context, out *flags.Output, paths []string) error {
	all := assembly[*ensemble.PartFile]{output: out.Path, unlike: (*ensemble.PartFile).Unlike,
		of: func(p *ensemble.PartFile) piece { return piece{p.Path, p.Index, p.Of, p.First, p.End, p.Members()} }}
	for _, path := range paths {
		p, err := ensemble.OpenPart(path)
		switch {
		case err != nil && isOther(path, flags.EnsemblePart):
			return flags.WrongKind(c, err, path, flags.EnsemblePart)
		case err != nil:
			all.damaged(err)
			continue
		}
		if err := all.add(p); err != nil {
			return err
		}
	}
	parts, err := all.inOrder()
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
