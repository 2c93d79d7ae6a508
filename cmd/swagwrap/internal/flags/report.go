package flags

import (
	"github.com/urfave/cli/v2"

	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/console"
)

// ReportFlags are the flags of commands with a report.
var ReportFlags = []cli.Flag{
	&cli.StringFlag{Name: "report", Usage: "write a page with tables and figures to `FILE.html`, which needs no other file"},
	&cli.StringFlag{Name: "plots", Usage: "write each figure to `FOLDER`, as SVG and as PNG"},
	&cli.BoolFlag{Name: "force", Usage: "replace existing files that swagwrap wrote"},
}

// Report reads the flags of a report.
func Report(c *cli.Context) console.Report {
	return console.Report{Page: c.String("report"), Plots: c.String("plots"), JSON: c.Bool("json"), Force: c.Bool("force")}
}
