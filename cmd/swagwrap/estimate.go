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
	&cli.BoolFlag{Name: "estimate", Usage: "score some images for a few seconds, write nothing, and say how long all take, how much memory, and how many parts make an hour each"},
	&cli.BoolFlag{Name: "json", Usage: "with --estimate: print JSON instead of text"},
}

// estimate is the output of --estimate.
type estimate struct {
	Images     int     `json:"images"`
	Members    int     `json:"members"`
	Threads    int     `json:"threads"`
	Batches    []int   `json:"batch_sizes"`
	Provider   string  `json:"provider"`
	Rate       float64 `json:"images_a_second"`
	Slowest    float64 `json:"images_a_second_in_the_slowest_piece"`
	Fastest    float64 `json:"images_a_second_in_the_fastest_piece"`
	Pieces     int     `json:"pieces"`
	Measured   float64 `json:"measured_seconds"`
	Reading    float64 `json:"reading_share"` // share of the time
	Start      float64 `json:"start_seconds"` // time before the first batch
	Memory     int64   `json:"memory_bytes"`
	All        float64 `json:"seconds_in_all"`
	Parts      int     `json:"parts_of_an_hour"`
	PartImages int     `json:"images_a_part"`
}

const (
	// estimateTime is the minimum time for measuring reading and running.
	estimateTime = 3 * time.Second
	// estimateRounds is the largest number of rounds, if few images are scored again and again.
	estimateRounds = 100
	estimateMost   = 4096 // largest number of images in a round
	hour           = 3600
)

// runEstimate measures and prints the estimate.
func (a *app) runEstimate(c *cli.Context, job *scoreJob, engine *infer.Engine, scoring ensemble.Scoring, began time.Time) error {
	x := &timing{job: job, scoring: scoring, threads: job.scorer.Threads()}
	own := *engine
	own.Workers = x.threads
	x.engine = &own
	start := time.Since(began)
	// The first batch of each thread warms up the runtime, and is not timed.
	block := x.threads * slices.Max(job.scorer.BatchSizes())
	for round := 0; round < estimateRounds && x.took() < estimateTime; round++ {
		images := 3 * block
		if round > 0 {
			left := (estimateTime - x.took()).Seconds() / x.mean()
			images = block + int(math.Ceil(min(left, estimateMost)/float64(block)))*block
		}
		if err := x.round(c.Context, min(images, max(estimateMost/block, 2)*block, job.data.Len()), block); err != nil {
			return blame(err)
		}
	}
	e := x.result()
	e.Start = start.Seconds() + x.opening.Seconds()
	e.Memory += peakMemory()
	e.All = e.Start + float64(e.Images)/e.Rate
	e.PartImages = max(1, int((hour-min(e.Start, hour/2))*e.Rate))
	e.Parts = (e.Images-1)/e.PartImages + 1
	e.PartImages = (e.Images-1)/e.Parts + 1
	return flags.BadOutput(a.printEstimate(c, job, e))
}

// timing adds up rounds. Each round scores some images.
type timing struct {
	job     *scoreJob
	engine  *infer.Engine
	scoring ensemble.Scoring
	threads int

	read     int // images
	reading  time.Duration
	timed    int // images × members
	networks time.Duration
	pieces   []float64 // seconds per image × member, for stretches of a round
	rounds   []float64 // seconds per image, including reading
	next     int       // the next example to read
	opening  time.Duration
	memory   int64 // of a chunk of the whole run, in addition to a chunk of a round
}

// mark is the time when a number of images × members was done.
type mark struct {
	at   time.Duration
	done int
}

// round reads images, and then scores them. It does not time the first block.
func (x *timing) round(ctx context.Context, images, block int) error {
	if x.next+images > x.job.data.Len() {
		x.next = 0
	}
	if err := dataset.Load(x.job.data, x.next, x.next+images); err != nil {
		return err
	}
	data := dataset.Part(x.job.data, x.next, x.next+images)
	x.next += images // reading the same images again would be faster
	reading, err := x.readAll(ctx, data)
	if err != nil {
		return err
	}
	x.read, x.reading = x.read+images, x.reading+reading
	x.scoring.Data, x.scoring.Part = data, nil
	s, err := ensemble.NewScorer(ctx, x.engine, x.scoring)
	if err != nil {
		return err
	}
	x.memory = max(0, x.job.scorer.ChunkBytes()-s.ChunkBytes())
	var mu sync.Mutex
	var marks []mark
	start := time.Now()
	sum := 0
	x.engine.Progress = func(n int) {
		mu.Lock()
		defer mu.Unlock()
		sum += n
		marks = append(marks, mark{time.Since(start), sum})
	}
	err = s.Run(ctx, 0, func(chunk *infer.Chunk) error {
		for range s.Rows(chunk) { // reading the rows is also work
		}
		return weights.Changed()
	})
	if err != nil {
		return err
	}
	if x.opening == 0 {
		x.opening = max(0, marks[0].at-reading)
	}
	done, took := x.add(marks, block*s.Members())
	x.rounds = append(x.rounds, x.image(reading.Seconds()/float64(images), took.Seconds()/float64(done)))
	return nil
}

// add times the work after the first warm images × members, as a whole and in pieces.
func (x *timing) add(marks []mark, warm int) (done int, took time.Duration) {
	first := 0
	for first < len(marks)/2 && marks[first].done < warm {
		first++
	}
	last, from := marks[len(marks)-1], marks[first]
	if from.done == last.done { // too few marks for a warm-up
		from = mark{}
	}
	marks = marks[first:]
	done, took = last.done-from.done, last.at-from.at
	x.timed, x.networks = x.timed+done, x.networks+took
	const pieces = 10
	each := max(done/pieces, 1)
	for _, m := range marks {
		if m.done-from.done >= each && m.at-from.at >= estimateTime/20 {
			x.pieces = append(x.pieces, (m.at-from.at).Seconds()/float64(m.done-from.done))
			from = m
		}
	}
	return done, took
}

// readAll reads all examples on as many threads as a run uses. It returns the time.
func (x *timing) readAll(ctx context.Context, data dataset.Dataset) (time.Duration, error) {
	size, err := dataset.SizeOf(data)
	if err != nil {
		return 0, err
	}
	start := time.Now()
	var next atomic.Int64
	var g errgroup.Group
	for range x.threads {
		g.Go(weights.Guarded(func() error {
			values, bytes := size.Make(1), make([]byte, size.Floats)
			for i := int(next.Add(1)) - 1; i < data.Len() && ctx.Err() == nil; i = int(next.Add(1)) - 1 {
				var err error
				if b, ok := data.(dataset.Bytes); ok {
					err = b.Pixels(bytes, i)
				} else {
					err = data.Read(values, i)
				}
				if err != nil && (!x.scoring.SkipErrors || dataset.Fatal(err)) {
					return err
				}
			}
			return ctx.Err()
		}))
	}
	err = g.Wait()
	return time.Since(start), err
}

// image returns the time for an image. Reading and networks share the processor's cores, so the times add up.
func (x *timing) image(reading, network float64) float64 {
	return reading + network*float64(x.job.ensemble.Members())
}

// took returns the measured time so far.
func (x *timing) took() time.Duration { return x.reading + x.networks }

// mean returns the mean time for an image, in seconds.
func (x *timing) mean() float64 {
	return x.image(x.reading.Seconds()/float64(x.read), x.networks.Seconds()/float64(x.timed))
}

// result returns the estimate. Its spread is the spread of the rounds, or of pieces if there are few rounds.
func (x *timing) result() *estimate {
	reading := x.reading.Seconds() / float64(x.read)
	mean := x.mean()
	spread := x.rounds
	const few = 5
	if len(spread) < few && len(x.pieces) > len(spread) {
		spread = nil
		for _, network := range x.pieces {
			spread = append(spread, x.image(reading, network))
		}
	}
	return &estimate{Images: x.job.data.Len(), Members: x.job.ensemble.Members(), Threads: x.threads, Batches: x.job.scorer.BatchSizes(), Provider: x.engine.Provider.String(),
		Rate: 1 / mean, Slowest: 1 / slices.Max(spread), Fastest: 1 / slices.Min(spread), Pieces: len(spread),
		Measured: x.took().Seconds(), Reading: reading / mean, Memory: x.memory}
}

func (a *app) printEstimate(c *cli.Context, job *scoreJob, e *estimate) error {
	if c.Bool("json") {
		return flags.WriteJSON(a.Stdout, e)
	}
	spread := ""
	if e.Pieces > 1 {
		spread = fmt.Sprintf(" (%s to %s in %d pieces, %s in all)", digits(e.Slowest), digits(e.Fastest), e.Pieces, span(e.Measured))
	}
	for _, l := range [][2]string{
		{"images a second", digits(e.Rate) + spread},
		{"by", fmt.Sprintf("%s, %s, batches of %s, %s", report.Plural(e.Members, "member"), report.Plural(e.Threads, "thread"), strings.Trim(fmt.Sprint(e.Batches), "[]"), e.Provider)},
		{"reading", report.Percent(e.Reading, 1) + " of the time"},
		{"start", span(e.Start) + " for each part"},
		{"memory", report.Bytes(e.Memory)},
		{"all", fmt.Sprintf("%s in %s on this machine", report.Plural(e.Images, "image"), span(e.All))},
		{"parts of an hour", fmt.Sprintf("%d, with %s each", e.Parts, report.Plural(e.PartImages, "image"))},
	} {
		if err := text.Line(a.Stdout, "%-16s %s", l[0], l[1]); err != nil {
			return err
		}
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
	for _, name := range []string{"part", "montage", "save-batch", "resume"} {
		if c.IsSet(name) {
			return flags.Usagef("", "--estimate and --%s: want one of them", name)
		}
	}
	return nil
}
