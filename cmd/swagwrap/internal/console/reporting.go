package console

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/swagwrap/swagwrap/internal/report"
	"github.com/swagwrap/swagwrap/internal/study"
)

// Pages are the files of a report.
type Pages struct {
	page   *Output // nil without --report
	folder string  // empty without --plots
	plots  []*Output
	begun  bool // the folder has its marker
	made   bool // this command made the folder
	force  bool
	json   bool
	spell  study.Spell
}

// Report says where the report of a study goes.
type Report struct {
	Page  string // the name of an .html file, or ""
	Plots string // the folder of figures, or ""
	JSON  bool   // JSON on standard output, in place of tables
	Force bool
	Spell study.Spell // shows the steps after the study
}

// OpenPages checks, before any work, that the report can be written, and that standard output is open for the tables.
// prints is false for a part of a study, which prints no tables.
func (a *Env) OpenPages(to Report, prints bool) (*Pages, error) {
	if err := a.Stdout.Ready(); err != nil && prints {
		return nil, err
	}
	r := &Pages{folder: to.Plots, force: to.Force, json: to.JSON, spell: to.Spell}
	if r.folder != "" {
		if err := CheckFilled(r.folder, r.force); err != nil {
			return nil, err
		}
	}
	path := to.Page
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
	if r.begun {
		unclaim(r.folder, r.made)
	}
}

// write writes the page and the figures. It does not put them in their places.
func (r *Pages) write(from *report.Report) (err error) {
	from.Created, from.Program, from.Command = time.Now(), Producer(), Shell(append([]string{filepath.Base(os.Args[0])}, os.Args[1:]...)...)
	if r.folder != "" {
		if r.made, err = claim(r.folder); err != nil {
			return err
		}
		r.begun = true
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
// [Env.Shown] gets the result even if the page cannot be written.
func (a *Env) Show(r *Pages, bn *study.BatchNorm, result *study.Document, others ...*Output) error {
	var failed error
	next := r.spell.Lines(result.Next)
	if r.page != nil || r.folder != "" {
		page := result.Page()
		if page.Do = a.typed(next); a.Do != nil {
			page.Do = a.Do(result)
		}
		if failed = r.write(page); failed != nil && a.Shown == nil {
			return failed
		}
	}
	files := others
	if failed == nil {
		files = append(append(files, r.plots...), r.page)
	}
	show := func() error {
		if r.json {
			return WriteJSON(a.Stdout, result.JSON)
		}
		s := a.Screen()
		if s.Rest = a.Rest; s.Terminal && s.Rest == "" {
			s.Rest = "-v, or --report FILE.html"
		}
		if s.Verbose || len(result.Short.Rows) == 0 {
			s.Rest = ""
		}
		return study.WriteText(a.Stdout, s, bn.Warnings(), result)
	}
	if err := (Together{Print: show}).Commit(files...); err != nil {
		return err
	}
	if a.Shown != nil {
		a.Shown(result)
	}
	a.Next(next...)
	return failed
}
