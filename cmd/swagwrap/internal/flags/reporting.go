package flags

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/swagwrap/swagwrap/internal/file"
	"github.com/swagwrap/swagwrap/internal/report"
	"github.com/swagwrap/swagwrap/internal/study"
)

// ReportFlags are the flags of commands with a report.
var ReportFlags = []cli.Flag{
	&cli.StringFlag{Name: "report", Usage: "write a page with tables and figures to `FILE.html`, which needs no other file"},
	&cli.StringFlag{Name: "plots", Usage: "write each figure to `FOLDER`, as SVG and as PNG"},
	&cli.BoolFlag{Name: "force", Usage: "overwrite files that exist"},
}

// Pages are the files of a report.
type Pages struct {
	page   *Output // nil without --report
	folder string  // empty without --plots
	plots  []*Output
	made   bool // this command made the folder
	force  bool
}

// OpenPages checks, before any work, that the report can be written, and that standard output is open for the tables.
func (a *Env) OpenPages(c *cli.Context) (*Pages, error) {
	if err := a.Stdout.Ready(); err != nil && !c.IsSet("part") { // a part prints nothing
		return nil, err
	}
	r := &Pages{folder: c.String("plots"), force: c.Bool("force")}
	if r.folder != "" {
		switch files, err := os.ReadDir(r.folder); {
		case err == nil && len(files) > 0 && !r.force:
			return nil, Usagef("--force overwrites what is in it", "%s: exists already, and is not empty", r.folder)
		case err != nil && !os.IsNotExist(err):
			return nil, Usagef("name a folder", "%s: cannot be a folder for figures", r.folder)
		default:
			for _, f := range files { // figures may replace files of any name
				if err := file.Output(filepath.Join(r.folder, f.Name())); err != nil {
					return nil, err
				}
			}
		}
	}
	path := c.String("report")
	if path == "" {
		return r, nil
	}
	if ext := strings.ToLower(filepath.Ext(path)); ext != ".html" && ext != ".htm" {
		return nil, Usagef("the report is one page: --report report.html", "--report %s: want a name that ends in .html", path)
	}
	var err error
	r.page, err = CreateOutput(path, r.force)
	return r, err
}

// Abort removes unfinished pages and figures. After Show it does nothing.
func (r *Pages) Abort() {
	for _, out := range append(r.plots, r.page) {
		out.Abort()
	}
	if r.made {
		os.Remove(r.folder) // only if it is empty
	}
}

// write writes the page and the figures. It does not put them in their places.
func (r *Pages) write(from *report.Report) error {
	from.Created, from.Program, from.Command = time.Now(), Producer(), study.Shell(append([]string{filepath.Base(os.Args[0])}, os.Args[1:]...)...)
	if r.folder != "" {
		if _, err := os.Lstat(r.folder); err != nil {
			r.made = true
		}
		if err := os.MkdirAll(r.folder, 0o777); err != nil {
			return BadOutput(fmt.Errorf("%s: %w", r.folder, err))
		}
		for _, p := range from.Plots() {
			if err := r.plot(p.Name+".svg", p.WriteSVG); err != nil {
				return err
			}
			if err := r.plot(p.Name+".png", p.WritePNG); err != nil {
				return err
			}
		}
	}
	if r.page == nil {
		return nil
	}
	return BadOutput(from.WriteHTML(r.page))
}

func (r *Pages) plot(name string, draw func(io.Writer) error) error {
	out, err := CreateOutput(filepath.Join(r.folder, name), r.force)
	if err != nil {
		return err
	}
	r.plots = append(r.plots, out)
	return BadOutput(draw(out))
}

// Show writes the page and the figures of a study. On standard output it prints JSON with --json, and otherwise
// warnings, tables, the verdict and the commands to run next. The files appear together with the other outputs of the command.
func (a *Env) Show(c *cli.Context, r *Pages, bn *study.BatchNorm, result study.Result, others ...*Output) error {
	if r.page != nil || r.folder != "" {
		page := result.Page()
		if page.Do = a.typed(page.Do); a.Do != nil {
			page.Do = a.Do(result)
		}
		if err := r.write(page); err != nil {
			return err
		}
	}
	print := func() error {
		if c.Bool("json") {
			return WriteJSON(a.Stdout, result.JSON())
		}
		return study.WriteText(a.Stdout, a.Screen(c), bn.Warnings(), result)
	}
	if err := (Together{Print: print}).Commit(append(append(others, r.plots...), r.page)...); err != nil {
		return err
	}
	if a.Shown != nil {
		a.Shown(result)
	}
	a.Next(c, result.Next()...)
	return nil
}
