package report

import (
	"time"

	"github.com/swagwrap/swagwrap/calibrate"
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
	// Facts are the few settings that the numbers depend on, such as the number of
	// test images, members, scale, rank and seed.
	Facts  []Fact
	Tables []NamedTable

	Differences []Differences
	Methods     []Method        // reliability and risk–coverage
	Entropies   []HistogramPair // of each method: in and out of domain, or right and wrong
	Sweeps      []Curve         // a score over a setting
	Spectrum    *Spectrum
	Lines       []Curve // loss along directions in weight space
	Surfaces    []Surface

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

// NamedTable is a table with a heading and a line of explanation, which may be
// empty. The table's own notes stand below it.
type NamedTable struct {
	Title, Explanation string
	Table              *Table
}

// Differences compares methods with a baseline: a point with an interval for
// each. Lower is better.
type Differences struct {
	Title    string
	Label    string // of the axis, with its unit: "NLL − NLL(SWA-Temp), nats"
	Baseline string // the method that zero stands for
	Rows     []Difference
	Note     string
}

// Difference is that of a method to the baseline, with the ends of its interval.
// Ends that are NaN are not drawn.
type Difference struct {
	Name                string
	Value, Lower, Upper float64
}

// Method holds what is drawn of the predictions of one method. Either may be
// empty.
type Method struct {
	Name string
	// Reliability holds the bins of calibrate.Reliability.
	Reliability []calibrate.ReliabilityBin
	// RiskCoverage is what calibrate.RiskCoverage returns.
	RiskCoverage []calibrate.RiskPoint
}

// HistogramPair holds two histograms, such as the entropies of one method's
// predictions in and out of domain. Each is drawn as shares of its own total, and
// what is below and above its edges at the ends. Edges that are positive and span
// more than two decades give a logarithmic axis.
type HistogramPair struct {
	Name            string // the method
	Label           string // of the axis; empty: predictive entropy, nats
	InName, OutName string // empty: in domain, out of domain
	In, Out         calibrate.Histogram
	Note            string // such as AUROC and symmetrised KL
}

// Curve is a figure of one or more series over the same axes.
type Curve struct {
	Title, XLabel, YLabel string
	LogX, LogY            bool
	// Ticks names places on the x axis instead of numbers, for settings that are
	// not numbers: BN on and off. Nil means numbers.
	Ticks  []Tick
	Series []Series
	Marks  []Tick // vertical lines with a name: the default, the recommendation
	Note   string
}

// Tick is a named place on an axis.
type Tick struct {
	At    float64
	Label string
}

// Series is a line through the points X[i], Y[i], in ascending order of X. Lower
// and Upper hold the ends of intervals, or are nil; what is not finite is left
// out.
type Series struct {
	Name               string
	X, Y, Lower, Upper []float64
}

// Spectrum holds the eigenvalues of the posterior covariance's low-rank part, in
// descending order.
type Spectrum struct {
	Eigenvalues []float64
	Label       string // of the axis; empty: variance along the direction
	Note        string // such as the share of variance in the diagonal part
}

// Surface is a loss over a plane in weight space.
type Surface struct {
	Title, XLabel, YLabel, ZLabel string
	X, Y                          []float64   // ascending
	Z                             [][]float64 // Z[j][i] is the value at X[i], Y[j]; what is not finite stays blank
	Ellipses                      []Ellipse   // contours of the posterior density
	Points                        []PointSet
	Note                          string
}

// Ellipse is the contour of a Gaussian density with a 2×2 covariance at a Radius
// in standard deviations: all p with (p − centre)ᵀ Σ⁻¹ (p − centre) = Radius².
type Ellipse struct {
	X, Y       float64 // centre
	XX, XY, YY float64 // covariance
	Radius     float64
	Label      string // such as "2σ"
}

// PointSet holds marked points of a surface, such as the iterates of SGD.
type PointSet struct {
	Name string
	X, Y []float64
	Path bool // joined in order
}
