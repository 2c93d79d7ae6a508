package main

import (
	"context"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"
	"golang.org/x/sync/errgroup"

	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/flags"
	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/ensemble"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/report"
	"github.com/swagwrap/swagwrap/internal/report/text"
	"github.com/swagwrap/swagwrap/weights"
)

var estimateFlags = []cli.Flag{
	&cli.BoolFlag{Name: "estimate", Usage: "score some of the data for a few seconds, write nothing, and say how long all take, how much memory, and how many parts make an hour each"},
	&cli.BoolFlag{Name: "json", Usage: "with --estimate: print JSON instead of text"},
}

// estimate is the output of --estimate.
type estimate struct {
	Examples int     `json:"examples"`
	Members  int     `json:"members"`
	Threads  int     `json:"threads"`
	Batches  []int   `json:"batch_sizes"`
	Provider string  `json:"provider"`
	Rate     float64 `json:"examples_a_second"`
	Slowest  float64 `json:"examples_a_second_in_the_slowest_piece"`
	Fastest  float64 `json:"examples_a_second_in_the_fastest_piece"`
	Pieces   int     `json:"pieces"`
	Measured float64 `json:"measured_seconds"`
	Reading  float64 `json:"reading_share"` // share of the time
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
	// estimatePieces is the largest number of pieces, if few examples are scored again and again.
	estimatePieces = 100
	estimateMost   = 4096 // largest number of examples in a piece
	hour           = 3600
)

// runEstimate scores pieces of the data, and prints the estimate. Reading and networks share the processor's cores, so
// their times add up.
func (a *app) runEstimate(c *cli.Context, job *scoreJob, engine *infer.Engine, scoring ensemble.Scoring, began time.Time) error {
	e := &estimate{unit: dataset.Unit(job.data), Examples: job.data.Len(), Members: job.ensemble.Members(), Threads: job.scorer.Threads(), Batches: job.scorer.BatchSizes(), Provider: engine.Provider.String(), Slowest: math.Inf(1)}
	own := *engine
	own.Workers = e.Threads
	before := time.Since(began).Seconds()
	block := e.Threads * slices.Max(e.Batches)
	var sum timed
	for at := 0; e.Pieces < estimatePieces && e.Measured < estimateTime; e.Pieces++ {
		n := 3 * block
		if e.Pieces > 0 {
			left := (estimateTime - e.Measured) / sum.seconds()
			n = block + int(math.Ceil(min(left, estimateMost)/float64(block)))*block
		}
		n = min(n, max(estimateMost/block, 2)*block, e.Examples)
		if at+n > e.Examples {
			at = 0
		}
		p, err := timePiece(c.Context, &own, job, scoring, at, at+n, block)
		if err != nil {
			return blame(err)
		}
		at += n // reading the same examples again would be faster
		if e.Pieces == 0 {
			e.Start = before + p.opening
		}
		sum.add(p)
		e.Measured = sum.reading + sum.networks
		e.Slowest, e.Fastest = min(e.Slowest, 1/p.seconds()), max(e.Fastest, 1/p.seconds())
		e.Memory = p.memory
	}
	e.Rate, e.Reading = 1/sum.seconds(), sum.reading/sum.read/sum.seconds()
	e.Memory += peakMemory()
	e.All = e.Start + float64(e.Examples)/e.Rate
	e.EachPart = max(1, int((hour-min(e.Start, hour/2))*e.Rate))
	e.Parts = (e.Examples-1)/e.EachPart + 1
	e.EachPart = (e.Examples-1)/e.Parts + 1
	return a.printEstimate(c, e)
}

// timed is the time that some examples took, in seconds.
type timed struct {
	read, reading  float64 // examples, and the time for reading them
	done, networks float64 // examples that all members have seen, and the time for that
	opening        float64 // of the networks
	memory         int64   // of a chunk of the whole run, in addition to a chunk of these examples
}

// seconds returns the time for an example.
func (t timed) seconds() float64 { return t.reading/t.read + t.networks/t.done }

func (t *timed) add(more timed) {
	t.read, t.reading, t.done, t.networks = t.read+more.read, t.reading+more.reading, t.done+more.done, t.networks+more.networks
}

// timePiece reads the examples in [first, end), and then scores them. The first block of them warms up the runtime, and
// its networks are not timed.
func timePiece(ctx context.Context, engine *infer.Engine, job *scoreJob, scoring ensemble.Scoring, first, end, block int) (t timed, err error) {
	if err := dataset.Load(job.data, first, end); err != nil {
		return t, err
	}
	scoring.Data, scoring.Part = dataset.Part(job.data, first, end), nil
	t.read = float64(end - first)
	if t.reading, err = readAll(ctx, scoring, engine.Workers); err != nil {
		return t, err
	}
	s, err := ensemble.NewScorer(ctx, engine, scoring)
	if err != nil {
		return t, err
	}
	t.memory = max(0, job.scorer.ChunkBytes()-s.ChunkBytes())
	var mu sync.Mutex
	var at []float64 // seconds until so many images and members were done
	var done []int
	start, sum := time.Now(), 0
	engine.Progress = func(n int) {
		mu.Lock()
		defer mu.Unlock()
		sum += n
		at, done = append(at, time.Since(start).Seconds()), append(done, sum)
	}
	err = s.Run(ctx, 0, func(chunk *infer.Chunk) error {
		for range s.Rows(chunk) { // reading the rows is also work
		}
		return weights.Changed()
	})
	if err != nil {
		return t, err
	}
	t.opening = max(0, at[0]-t.reading)
	warm, last := 0, len(at)-1
	for warm < len(at)/2 && done[warm] < block*s.Members() {
		warm++
	}
	t.done, t.networks = float64(done[last]), at[last]
	if done[warm] < done[last] { // else there are too few steps for a warm-up
		t.done, t.networks = t.done-float64(done[warm]), t.networks-at[warm]
	}
	t.done /= float64(s.Members())
	return t, nil
}

// readAll reads all examples on as many threads as a run uses. It returns the time in seconds.
func readAll(ctx context.Context, scoring ensemble.Scoring, threads int) (float64, error) {
	data := scoring.Data
	size, err := dataset.SizeOf(data)
	if err != nil {
		return 0, err
	}
	start := time.Now()
	var next atomic.Int64
	var g errgroup.Group
	for range threads {
		g.Go(weights.Guarded(func() error {
			values, bytes := size.Make(1), make([]byte, size.Floats)
			for i := int(next.Add(1)) - 1; i < data.Len() && ctx.Err() == nil; i = int(next.Add(1)) - 1 {
				var err error
				if b, ok := data.(dataset.Bytes); ok {
					err = b.Pixels(bytes, i)
				} else {
					err = data.Read(values, i)
				}
				if err != nil && (!scoring.SkipErrors || dataset.Fatal(err)) {
					return err
				}
			}
			return ctx.Err()
		}))
	}
	err = g.Wait()
	return time.Since(start).Seconds(), err
}

func (a *app) printEstimate(c *cli.Context, e *estimate) error {
	if c.Bool("json") {
		return flags.WriteJSON(a.Stdout, e)
	}
	spread := ""
	if e.Pieces > 1 {
		spread = fmt.Sprintf(" (%s to %s in %d pieces, %s in all)", digits(e.Slowest), digits(e.Fastest), e.Pieces, span(e.Measured))
	}
	for _, l := range [][2]string{
		{"speed", digits(e.Rate) + " " + e.unit + "s a second" + spread},
		{"by", fmt.Sprintf("%s, %s, batches of %s, %s", report.Plural(e.Members, "member"), report.Plural(e.Threads, "thread"), strings.Trim(fmt.Sprint(e.Batches), "[]"), e.Provider)},
		{"reading", report.Percent(e.Reading, 1) + " of the time"},
		{"start", span(e.Start) + " for each part"},
		{"memory", report.Bytes(e.Memory)},
		{"all", fmt.Sprintf("%s in %s on this machine", report.Plural(e.Examples, e.unit), span(e.All))},
		{"parts of an hour", fmt.Sprintf("%d, with %s each", e.Parts, report.Plural(e.EachPart, e.unit))},
	} {
		text.Line(a.Stdout, "%-16s %s", l[0], l[1])
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

// checkEstimate refuses flags that conflict with --estimate.
func checkEstimate(c *cli.Context) error {
	if !c.Bool("estimate") {
		if c.Bool("json") {
			return flags.Usagef("the extension says the format: -o predictions.jsonl", "--json is for --estimate")
		}
		return nil
	}
	return flags.Refuse(c, "", "--estimate and --*: want one of them", "part", "montage", "save-batch", "resume")
}
