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

// A Row holds all measurements of one piece of work. It becomes a line of a table.
type Row struct {
	Name    string
	Threads int
	PyTorch *Row // the reference to compare with, or nil
	Parts   []Part
}

// Add adds a measurement. Its checksum must be that of the other measurements of the row.
func (r *Row) Add(p Part) error {
	if len(r.Parts) > 0 && r.Parts[0].Checksum != p.Checksum {
		return fmt.Errorf("%s, threads %d: checksum %#x, want %#x as in the first round", r.Name, r.Threads, p.Checksum, r.Parts[0].Checksum)
	}
	r.Parts = append(r.Parts, p)
	return nil
}

// Seconds returns the median wall time.
func (r *Row) Seconds() float64 { return r.median(func(p Part) float64 { return p.Seconds }) }

func (r *Row) median(figure func(Part) float64) float64 {
	var all []float64
	for _, p := range r.Parts {
		all = append(all, figure(p))
	}
	return Median(all)
}

// A Timing summarises the measurements of a row.
type Timing struct {
	Seconds float64   `json:"seconds"` // median wall time
	Least   float64   `json:"least_seconds"`
	CPU     float64   `json:"cpu_seconds"`             // user and system time, median
	PyTorch float64   `json:"pytorch_over_this"`       // the reference's median time over this one; 0 without a reference
	PeakRSS int64     `json:"peak_rss"`                // greatest, in bytes
	Runs    []float64 `json:"all_seconds"`             // in the order of the rounds
	Drawn   int       `json:"members_drawn,omitempty"` // members drawn, if the time is scaled up from fewer than asked for
}

// Timing computes the summary of a row that has measurements.
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

// A Result is the outcome of a benchmark; L is a line of its table.
type Result[L any] struct {
	Machine Machine  `json:"machine"`
	Job     string   `json:"job"` // what was measured; it stands above the table
	Lines   []L      `json:"lines"`
	Notes   []string `json:"notes"`
}

// Options are the command-line flags that all benchmarks have.
type Options struct {
	Swagwrap string // the program
	Python   string // an interpreter with torch, or ""
	Dir      string // parent of the temporary folder
	JSON     string // also write the result to this file, unless ""
	Repeat   int    // number of rounds
}

// Bench calls measured with a new temporary folder, which it always removes. It writes the job, a table and the
// notes. row returns the cells of a line in the given columns.
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

// Columns returns the columns of a table whose first column is text and whose others are numbers.
func Columns(text string, figures ...string) []report.Column {
	columns := []report.Column{{Header: text}}
	for _, f := range figures {
		columns = append(columns, report.Column{Header: f, Align: report.Decimal})
	}
	return columns
}
