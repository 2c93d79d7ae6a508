package console

import (
	"context"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"

	"github.com/swagwrap/swagwrap/internal/open"
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
	return a.bar(ctx, what, total)
}

// ProgressBytes starts a bar that shows bytes, and bytes per second.
func (a *Env) ProgressBytes(ctx context.Context, what string, total int64) open.Progress {
	return a.bar(ctx, what, total, decor.CountersKibiByte("% .1f of % .1f, "), decor.AverageSpeed(decor.SizeB1024(0), "% .0f, "))
}

func (a *Env) bar(ctx context.Context, what string, total int64, more ...decor.Decorator) open.Progress {
	if a.Quiet {
		return &Bar{}
	}
	bars := mpb.NewWithContext(ctx, mpb.WithOutput(a.Stderr), mpb.WithWidth(40))
	bar, err := bars.Add(total, mpb.BarStyle().Build(),
		mpb.BarRemoveOnComplete(),
		mpb.PrependDecorators(decor.Name(what+" "), decor.Percentage()),
		mpb.AppendDecorators(append(more, decor.Elapsed(decor.ET_STYLE_GO), decor.Name(", left "), decor.AverageETA(decor.ET_STYLE_GO))...),
	)
	if err != nil { // a signal came first
		return &Bar{}
	}
	return &Bar{bars, bar}
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
