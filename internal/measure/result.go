package measure

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/swagwrap/swagwrap/internal/report"
)

// A Row is all measurements of one piece of work, which become a line of a table.
type Row struct {
	Name    string
	Threads int
	PyTorch *Row // the reference's row, to compare with, or nil
	Parts   []Part
}

// Add adds a measurement. What was computed must be what every other measurement
// of the row computed.
func (r *Row) Add(p Part) error {
	if len(r.Parts) > 0 && r.Parts[0].Checksum != p.Checksum {
		return fmt.Errorf("%s, threads %d: checksum %#x, want %#x as in the first round", r.Name, r.Threads, p.Checksum, r.Parts[0].Checksum)
	}
	r.Parts = append(r.Parts, p)
	return nil
}

// Seconds is the median of the wall.
func (r *Row) Seconds() float64 { return r.median(func(p Part) float64 { return p.Seconds }) }

func (r *Row) median(figure func(Part) float64) float64 {
	var all []float64
	for _, p := range r.Parts {
		all = append(all, figure(p))
	}
	return Median(all)
}

// A Timing is what a row's measurements say.
type Timing struct {
	Seconds float64   `json:"seconds"` // the median
	Least   float64   `json:"least_seconds"`
	CPU     float64   `json:"cpu_seconds"`             // user and system time, the median
	PyTorch float64   `json:"pytorch_over_this"`       // of medians: how many times as fast as the reference; 0 without one
	PeakRSS int64     `json:"peak_rss"`                // the highest, in bytes
	Runs    []float64 `json:"all_seconds"`             // in the order of the rounds
	Drawn   int       `json:"members_drawn,omitempty"` // where the time is scaled up from these
}

// Timing works out the figures of a row, which must be measured.
func (r *Row) Timing() Timing {
	t := Timing{Seconds: r.Seconds(), CPU: r.median(func(p Part) float64 { return p.CPU })}
	for _, p := range r.Parts {
		t.Runs = append(t.Runs, p.Seconds)
		t.PeakRSS, t.Drawn = max(t.PeakRSS, p.PeakRSS), max(t.Drawn, p.Drawn)
	}
	t.Least = slices.Min(t.Runs)
	if r.PyTorch != nil {
		t.PyTorch = r.PyTorch.Seconds() / t.Seconds
	}
	return t
}

// A Result is everything that a benchmark found; L is a line of its table.
type Result[L any] struct {
	Machine Machine  `json:"machine"`
	Job     string   `json:"job"` // what was measured, above the table
	Lines   []L      `json:"lines"`
	Notes   []string `json:"notes"`
}

// Options are the command line that all benchmarks have.
type Options struct {
	Swagwrap string // the program
	Python   string // an interpreter with torch, or ""
	Dir      string // where the temporary folder goes
	JSON     string // also write all figures to this file, or ""
	Repeat   int    // how often everything is measured
}

// Bench measures in a new folder, of which nothing stays behind whatever
// happens. It writes the result between its job and its notes as a table with the
// given columns, of which row makes the cells of a line.
func Bench[L any](o Options, w io.Writer, measured func(dir string) (*Result[L], error), columns []report.Column, row func(L) []string) (err error) {
	if _, err := os.Stat(o.Swagwrap); err != nil {
		return fmt.Errorf("%w: build it first (make build)", err)
	}
	dir, err := os.MkdirTemp(o.Dir, "swagwrap-bench-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	r, err := measured(dir)
	if err != nil {
		return err
	}
	if o.JSON != "" {
		b, err := json.MarshalIndent(r, "", "  ")
		if err := errors.Join(err, os.WriteFile(o.JSON, append(b, '\n'), 0o666)); err != nil {
			return err
		}
	}
	t := report.NewTable(columns...)
	for _, l := range r.Lines {
		t.Row(row(l)...)
	}
	for _, n := range append(r.Notes, r.Machine.String()) {
		t.Note(n)
	}
	if _, err := fmt.Fprintf(w, "%s\n\n", r.Job); err != nil {
		return err
	}
	return t.WriteText(w)
}

// Columns are those of a table with text first, and figures behind it.
func Columns(text string, figures ...string) []report.Column {
	columns := []report.Column{{Header: text}}
	for _, f := range figures {
		columns = append(columns, report.Column{Header: f, Align: report.Decimal})
	}
	return columns
}
