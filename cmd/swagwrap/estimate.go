package main

import (
	"context"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/console"
	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/ensemble"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/report"
	"github.com/swagwrap/swagwrap/internal/report/text"
	"github.com/swagwrap/swagwrap/weights"
)

type estimate struct {
	Examples int     `json:"examples"`
	Members  int     `json:"members"`
	Threads  int     `json:"threads"`
	Batches  []int   `json:"batch_sizes"`
	Provider string  `json:"provider"`
	Rate     float64 `json:"examples_a_second"`
	Measured float64 `json:"measured_seconds"`
	Start    float64 `json:"start_seconds"` // time before the first batch
	Memory   int64   `json:"memory_bytes"`
	All      float64 `json:"seconds_in_all"`
	Parts    int     `json:"parts_of_an_hour"`
	EachPart int     `json:"examples_a_part"`

	unit string // word for an example
}

const (
	// estimateTime is the minimum time for measuring, in seconds.
	estimateTime = 3
	hour         = 3600
)

// runEstimate scores more and more of the data, and prints the estimate. The additional time of the largest run over a
// run of one block is the time of its additional examples: opening networks and warming up take as long in both.
func (job *scoreJob) runEstimate(ctx context.Context, began time.Time) error {
	e := &estimate{
		unit:     dataset.Unit(job.Data),
		Examples: job.Data.Len(),
		Members:  job.Ensemble.Members(),
		Threads:  job.scorer.Threads(),
		Batches:  job.scorer.BatchSizes(),
		Provider: job.engine.Provider().String(),
	}
	job.scorer.Close() // it only plans
	how := job.engine.Options()
	how.Threads = e.Threads
	own := infer.NewEngine(job.engine.Runtime(), how)
	before := time.Since(began).Seconds()
	block := e.Threads * slices.Max(e.Batches)
	if b := job.Blocks; b != nil {
		block = max(block, b.Examples)
	}
	block = min(block, e.Examples)
	first, _, err := timeRun(ctx, own, job, 0, block)
	if err != nil {
		return console.BadInput(err)
	}
	e.Rate, e.Measured = float64(block)/first, first
	for n, at := block, block; n < e.Examples && e.Measured < estimateTime; at += n {
		if n = min(4*n, e.Examples); at+n > e.Examples {
			at = 0 // reading the same examples again may be faster
		}
		seconds, memory, err := timeRun(ctx, own, job, at, at+n)
		if err != nil {
			return console.BadInput(err)
		}
		if e.Memory, e.Measured = memory, e.Measured+seconds; seconds > first {
			e.Rate = float64(n-block) / (seconds - first)
		}
	}
	e.Start = before + max(0, first-float64(block)/e.Rate)
	e.Memory += peakMemory()
	e.All = e.Start + float64(e.Examples)/e.Rate
	e.EachPart = max(1, int((hour-min(e.Start, hour/2))*e.Rate))
	e.Parts = (e.Examples-1)/e.EachPart + 1
	e.EachPart = (e.Examples-1)/e.Parts + 1
	return job.printEstimate(job.json, e)
}

// timeRun scores the examples in [first, end). It returns the time in seconds, and the memory of a chunk of the whole run in
// addition to a chunk of this one.
func timeRun(ctx context.Context, engine *infer.Engine, job *scoreJob, first, end int) (seconds float64, memory int64, err error) {
	begun := time.Now()
	if err := dataset.Load(job.Data, first, end); err != nil {
		return 0, 0, err
	}
	scoring := job.Scoring
	scoring.Data, scoring.Part = dataset.Part(job.Data, first, end), nil
	s, err := ensemble.NewScorer(ctx, engine, scoring)
	if err != nil {
		return 0, 0, err
	}
	err = s.Run(ctx, 0, nil, func(chunk *infer.Chunk) error {
		for range s.Rows(chunk) { // reading the rows is also work
		}
		return weights.Changed()
	})
	return time.Since(begun).Seconds(), max(0, job.scorer.ChunkBytes()-s.ChunkBytes()), err
}

func (job *scoreJob) printEstimate(asJSON bool, e *estimate) error {
	if asJSON {
		return console.WriteJSON(job.Stdout, e)
	}
	for _, l := range [][2]string{
		{"speed", fmt.Sprintf("%s %ss a second, measured for %s", digits(e.Rate), e.unit, span(e.Measured))},
		{"by", fmt.Sprintf("%s, %s, batches of %s, %s", report.Plural(e.Members, "member"), report.Plural(e.Threads, "thread"),
			strings.Trim(fmt.Sprint(e.Batches), "[]"), e.Provider)},
		{"start", span(e.Start) + " for each part"},
		{"memory", report.Bytes(e.Memory)},
		{"all", fmt.Sprintf("%s in %s on this machine", report.Plural(e.Examples, e.unit), span(e.All))},
		{"parts of an hour", fmt.Sprintf("%d, with %s each", e.Parts, report.Plural(e.EachPart, e.unit))},
	} {
		text.Line(job.Stdout, "%-16s %s", l[0], l[1])
	}
	return nil
}

// digits formats a number with three significant digits.
func digits(x float64) string {
	if x <= 0 || math.IsInf(x, 0) || math.IsNaN(x) {
		return "?"
	}
	if x >= 1000 {
		return report.Thousands(int(math.Round(x)))
	}
	return report.Fixed(x, max(0, 2-int(math.Floor(math.Log10(x)))))
}

// span formats seconds for humans, such as "2.50 hours".
func span(seconds float64) string {
	switch {
	case seconds < 100:
		return digits(max(seconds, 0.01)) + " s"
	case seconds < 2*hour:
		return digits(seconds/60) + " minutes"
	case seconds < 48*hour:
		return digits(seconds/hour) + " hours"
	}
	return digits(seconds/hour/24) + " days"
}

// peakMemory returns the largest memory of this process so far, in bytes.
func peakMemory() int64 {
	b, err := os.ReadFile("/proc/self/status")
	_, rest, ok := strings.Cut(string(b), "VmHWM:")
	if fields := strings.Fields(rest); err == nil && ok && len(fields) > 0 {
		n, _ := strconv.ParseInt(fields[0], 10, 64)
		return n << 10
	}
	var u syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return u.Maxrss // it is in bytes on systems without /proc
}
