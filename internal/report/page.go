package report

import (
	"time"

	"github.com/swagwrap/swagwrap/internal/report/plot"
)

// Report is the content of a page as plain numbers and words. Empty fields are left out of the page, so each command
// fills the fields that it knows. The first screen has the answer, what to do, the lead figure, and the findings about
// the checkpoints. Tables, figures and settings follow.
type Report struct {
	Title string
	// Verdict is the result in plain words. The first sentence is the answer, and the second stands below it, on the
	// first screen; the others follow.
	Verdict []string
	// Do are the commands to run next, in their order, in the syntax of a shell.
	Do []string
	// Code are lines of Python that come after the verdict.
	Code []string
	// Answers are short ones to what a reader asks first. They stand on the first screen.
	Answers []Fact
	// Lead is the figure of the first screen, with all methods and their intervals. It is none of the others.
	Lead *plot.Figure
	// Warnings stand right below the answer. They are not failures, but the reader must see them.
	Warnings []string
	// Findings describe the health of the checkpoints, on which all numbers depend.
	Findings []Finding
	// Facts are the main settings that the numbers depend on, such as the number of test images, members, scale, rank
	// and seed.
	Facts  []Fact
	Tables []NamedTable

	Differences []plot.Differences
	Methods     []plot.Method // the methods in the figures of reliability and risk–coverage
	// Calibrations show how far predicted distributions can be trusted.
	Calibrations []plot.Curve
	Entropies    []plot.HistogramPair // by method: in and out of domain, or right and wrong
	Sweeps       []plot.Curve         // scores over a setting
	Shifts       []plot.Curve         // scores by severity
	Spectrum     []plot.Curve
	Lines        []plot.Curve // loss along directions in weight space
	Surfaces     []plot.Surface

	// Steps shows a picture of what happens between checkpoints and a model.
	Steps bool
	// Command is the exact command line. Program is the name and version of the program.
	Command, Program string
	// Created is the time of creation; the zero time is not shown.
	Created time.Time
	// Provenance lists the other facts that are needed to reproduce the numbers: versions, and the SHA-256 of
	// posterior, checkpoints and data.
	Provenance []Fact
}

// Promote moves the first comparison to the first screen.
func (r *Report) Promote() {
	if figures := plot.DrawDifferences(r.Differences); figures != nil {
		r.Lead, r.Differences = figures[0], r.Differences[1:]
	}
}

// Fact is a name with its value.
type Fact struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Finding is one or two sentences. A serious one must not be overlooked.
type Finding struct {
	Text    string
	Serious bool
}

// NamedTable is a table with a heading and a line of explanation, which may be empty. The table's notes stand below
// it. A Folded table stands behind the figures, hidden until the reader opens it.
type NamedTable struct {
	Title, Explanation string
	Table              *Table
	Folded             bool
}
