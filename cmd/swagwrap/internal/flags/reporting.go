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
	"github.com/swagwrap/swagwrap/weights"
)

// ReportFlags are those of commands that have something to show.
var ReportFlags = []cli.Flag{
	&cli.StringFlag{Name: "report", Usage: "write a page with tables and figures to `FILE.html`, which needs no other file"},
	&cli.StringFlag{Name: "plots", Usage: "write each figure to `FOLDER`, as SVG and as PNG"},
	&cli.BoolFlag{Name: "force", Usage: "overwrite files that exist"},
}

// Pages is where a report goes.
type Pages struct {
	page   *Output // nil without --report
	folder string  // empty without --plots
	force  bool
}

// OpenPages checks, before any work, that the report can be written.
func OpenPages(c *cli.Context) (*Pages, error) {
	r := &Pages{folder: c.String("plots"), force: c.Bool("force")}
	if r.folder != "" {
		switch files, err := os.ReadDir(r.folder); {
		case err == nil && len(files) > 0 && !r.force:
			return nil, Usagef("--force overwrites what is in it", "%s: exists already, and is not empty", r.folder)
		case err != nil && !os.IsNotExist(err):
			return nil, Usagef("name a folder", "%s: cannot be a folder for figures", r.folder)
		default:
			for _, f := range files { // figures of any name may take their place
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

// Abort removes an Unfinished page. After Show it does nothing.
func (r *Pages) Abort() {
	if r.page != nil {
		r.page.Abort()
	}
}

// write writes the page and the figures.
func (r *Pages) write(from *report.Report) error {
	from.Created, from.Program, from.Command = time.Now(), Producer(), commandLine(os.Args)
	if r.folder != "" {
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
	if err := from.WriteHTML(r.page); err != nil {
		return BadOutput(err)
	}
	return r.page.Commit()
}

func (r *Pages) plot(name string, draw func(io.Writer) error) error {
	out, err := CreateOutput(filepath.Join(r.folder, name), r.force)
	if err != nil {
		return err
	}
	defer out.Abort()
	if err := draw(out); err != nil {
		return BadOutput(err)
	}
	return out.Commit()
}

// commandLine writes arguments as a shell takes them.
func commandLine(args []string) string {
	var words []string
	for i, arg := range args {
		if i == 0 {
			arg = filepath.Base(arg)
		}
		if arg == "" || strings.ContainsFunc(arg, func(r rune) bool { return !strings.ContainsRune(plainRunes, r) }) {
			arg = "'" + strings.ReplaceAll(arg, "'", `'\''`) + "'"
		}
		words = append(words, arg)
	}
	return strings.Join(words, " ")
}

// plainRunes need no quotes in a shell.
const plainRunes = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./=,:@%+"

// Show writes a study's result: its page and figures, and on standard output JSON
// with --json, else warnings, tables and the verdict.
func (a *Env) Show(c *cli.Context, r *Pages, bn *study.BatchNorm, result study.Result) error {
	if r.page != nil || r.folder != "" {
		if err := r.write(result.Page()); err != nil {
			return err
		}
	}
	if err := weights.Changed(); err != nil {
		return err
	}
	if c.Bool("json") {
		return BadOutput(WriteJSON(a.Stdout, result.JSON()))
	}
	return BadOutput(study.WriteText(a.Stdout, bn.Warnings(), result))
}
