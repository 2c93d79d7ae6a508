package report

import (
	"time"

	"github.com/swagwrap/swagwrap/internal/report/plot"
)

// Report is everything that a page says and shows: plain numbers and words. What
// is empty is left out of the page, so each command fills what it knows.
type Report struct {
	Title string
	// Verdict says in plain words what was found; the first is the headline.
	Verdict []string
	// Warnings stand right below the verdict: they are not failures, but the
	// reader must see them.
	Warnings []string
	// Findings stand beside the verdict: what is known of the checkpoints that all
	// numbers come from.
	Findings []Finding
	// Facts are the few settings that the numbers depend on, such as the number of
	// test images, members, scale, rank and seed.
	Facts  []Fact
	Tables []NamedTable

	Differences []plot.Differences
	Methods     []plot.Method // reliability and risk–coverage
	// Calibrations show how far predicted distributions can be taken at their word.
	Calibrations []plot.Curve
	Entropies    []plot.HistogramPair // of each method: in and out of domain, or right and wrong
	Sweeps       []plot.Curve         // a score over a setting
	Spectrum     *plot.Spectrum
	Lines        []plot.Curve // loss along directions in weight space
	Surfaces     []plot.Surface

	// Command is the exact command line, Program the name and version of what ran.
	Command, Program string
	// Created is when; the zero time is not shown.
	Created time.Time
	// Provenance is what else is needed to make the numbers again: versions, and
	// the SHA-256 of posterior, checkpoints and data.
	Provenance []Fact
}

// Fact is a name with its value.
type Fact struct{ Name, Value string }

// Finding is a sentence or two. A serious one must not be overlooked.
type Finding struct {
	Text    string
	Serious bool
}

// NamedTable is a table with a heading and a line of explanation, which may be
// empty. The table's own notes stand below it.
type NamedTable struct {
	Title, Explanation string
	Table              *Table
}
