package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/report"
)

// reportFlags are those of commands that have something to show.
var reportFlags = []cli.Flag{
	&cli.StringFlag{Name: "report", Usage: "write a page with tables and figures to `FILE.html`, which needs no other file"},
	&cli.StringFlag{Name: "plots", Usage: "write each figure to `FOLDER`, as SVG and as PNG"},
	&cli.BoolFlag{Name: "force", Usage: "overwrite files that exist"},
}

// reporting is where a report goes.
type reporting struct {
	page   *output // nil without --report
	folder string  // empty without --plots
	force  bool
}

// openReporting checks, before any work, that the report can be written.
func openReporting(c *cli.Context, inputs ...string) (*reporting, error) {
	r := &reporting{folder: c.String("plots"), force: c.Bool("force")}
	if r.folder != "" {
		switch files, err := os.ReadDir(r.folder); {
		case err == nil && len(files) > 0 && !r.force:
			return nil, usagef("--force overwrites what is in it", "%s: exists already, and is not empty", r.folder)
		case err != nil && !os.IsNotExist(err):
			return nil, usagef("name a folder", "%s: cannot be a folder for figures", r.folder)
		}
	}
	path := c.String("report")
	if path == "" {
		return r, nil
	}
	if ext := strings.ToLower(filepath.Ext(path)); ext != ".html" && ext != ".htm" {
		return nil, usagef("the report is one page: --report report.html", "--report %s: want a name that ends in .html", path)
	}
	var err error
	r.page, err = createOutput(path, r.force, inputs...)
	return r, err
}

// wanted reports whether anything is to be written.
func (r *reporting) wanted() bool { return r.page != nil || r.folder != "" }

// abort removes an unfinished page. After write it does nothing.
func (r *reporting) abort() {
	if r.page != nil {
		r.page.abort()
	}
}

// write writes the page and the figures.
func (r *reporting) write(from *report.Report) error {
	from.Created, from.Program, from.Command = time.Now(), producer(), commandLine(os.Args)
	if r.folder != "" {
		if err := os.MkdirAll(r.folder, 0o777); err != nil {
			return badOutput(fmt.Errorf("%s: %w", r.folder, err))
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
		return badOutput(err)
	}
	return r.page.commit()
}

func (r *reporting) plot(name string, draw func(io.Writer) error) error {
	out, err := createOutput(filepath.Join(r.folder, name), r.force)
	if err != nil {
		return err
	}
	defer out.abort()
	if err := draw(out); err != nil {
		return badOutput(err)
	}
	return out.commit()
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

// sourceFacts lists the SHA-256 of what data came from.
func sourceFacts(what string, d dataset.Dataset) []report.Fact {
	if d == nil {
		return nil
	}
	var facts []report.Fact
	for _, s := range d.Sources() {
		name := what + " " + s.Path
		if s.Kind != "" {
			name += " (" + s.Kind + ")"
		}
		facts = append(facts, report.Fact{Name: name, Value: s.SHA256})
	}
	return facts
}
