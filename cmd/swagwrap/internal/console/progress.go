package console

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"

	"github.com/swagwrap/swagwrap/internal/open"
	"github.com/swagwrap/swagwrap/internal/report"
	"github.com/swagwrap/swagwrap/internal/step"
)

// Bar is a progress bar on standard error, with an estimate of the remaining time. It shows nothing with -q, or if
// standard error is not a terminal.
type Bar struct {
	bars *mpb.Progress
	bar  *mpb.Bar
}

// Progress starts a bar for work of the given size.
func (a *Env) Progress(ctx context.Context, what string, total int64) open.Progress {
	return a.bar(ctx, what, total, func(done, total int64, _ time.Duration) []string { return nil })
}

// ProgressBytes starts a bar that shows bytes, and bytes per second.
func (a *Env) ProgressBytes(ctx context.Context, what string, total int64) open.Progress {
	return a.bar(ctx, what, total, func(done, total int64, since time.Duration) []string {
		parts := []string{report.Bytes(done) + " of " + report.Bytes(total)}
		if since >= time.Second {
			parts = append(parts, report.Bytes(int64(float64(done)/since.Seconds()))+"/s")
		}
		return parts
	})
}

func (a *Env) bar(ctx context.Context, what string, total int64, more func(done, total int64, since time.Duration) []string) open.Progress {
	if a.Quiet {
		return &Bar{}
	}
	begin, of := time.Now(), new(estimate)
	state := func(s decor.Statistics) string {
		since := time.Since(begin)
		parts := more(s.Current, s.Total, since)
		if since >= time.Second {
			parts = append(parts, since.Round(time.Second).String())
		}
		if left, ok := of.left(since, float64(s.Current)/float64(max(s.Total, 1))); ok {
			parts = append(parts, left.String()+" left")
		}
		return strings.Join(parts, ", ")
	}
	bars := mpb.NewWithContext(ctx, mpb.WithOutput(a.Stderr), mpb.WithWidth(40))
	bar, err := bars.Add(total, mpb.BarStyle().Build(),
		mpb.BarRemoveOnComplete(),
		mpb.PrependDecorators(decor.Name(what+" "), decor.Percentage()),
		mpb.AppendDecorators(decor.Any(state)),
	)
	if err != nil { // a signal came first
		return &Bar{}
	}
	return &Bar{bars, bar}
}

// An estimate tells how long work will still take. Work has phases of other speeds, such as one that waits for a fit. Then an
// estimate from the speed so far jumps, and none is given.
type estimate struct{ seen []doneAt }

type doneAt struct {
	since time.Duration
	share float64
}

// left returns the remaining time at the speed of the last two thirds of the time, rounded to about two digits. share is the finished
// share of the work. ok is false as long as the mean speed differs by more than a quarter from that of a third of the time ago, or by more
// than a factor of two from the speed of the last two thirds.
func (e *estimate) left(since time.Duration, share float64) (left time.Duration, ok bool) {
	e.seen = append(e.seen, doneAt{since, share})
	at := func(t time.Duration) doneAt {
		k, _ := slices.BinarySearchFunc(e.seen, t, func(d doneAt, t time.Duration) int { return cmp.Compare(d.since, t) })
		return e.seen[k]
	}
	first, then := at(since/3), at(since*2/3)
	if since < 2*time.Second || first.share <= 0 || share <= first.share {
		return 0, false
	}
	if whole := float64(since) / share; math.Abs(whole-float64(then.since)/then.share) > whole/4 {
		return 0, false
	}
	left = time.Duration(float64(since-first.since) * (1 - share) / (share - first.share))
	if mean := float64(since) * (1 - share) / share; float64(left) > 2*mean || float64(left) < mean/2 {
		return 0, false
	}
	unit := time.Second
	for _, u := range []time.Duration{10 * time.Second, time.Minute, 10 * time.Minute} {
		if left >= 10*u {
			unit = u
		}
	}
	return left.Round(unit), true
}

// Add adds n to the finished work.
func (p *Bar) Add(n int) {
	if p.bar != nil {
		p.bar.IncrBy(n)
	}
	step.Reached(step.Computed)
}

// Resize changes the size of the work.
func (p *Bar) Resize(total int64) {
	if p.bar != nil {
		p.bar.SetTotal(total, false)
	}
}

// Done removes the bar, whether or not the work is finished.
func (p *Bar) Done() {
	if p.bar != nil {
		p.bar.Abort(true)
		p.bars.Wait()
	}
}
