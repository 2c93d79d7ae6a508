package main

import (
	"github.com/urfave/cli/v2"
	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
)

// progress is a bar on standard error with an estimate of the time left. Off a
// terminal, and with -q, it shows nothing.
type progress struct {
	bars *mpb.Progress
	bar  *mpb.Bar
}

// progress starts a bar for work of the given size.
func (a *app) progress(c *cli.Context, what string, total int64) *progress {
	return a.bar(c, what, total)
}

// progressBytes starts a bar that shows bytes, and how many a second.
func (a *app) progressBytes(c *cli.Context, what string, total int64) *progress {
	return a.bar(c, what, total, decor.CountersKibiByte("% .1f of % .1f, "), decor.AverageSpeed(decor.SizeB1024(0), "% .0f, "))
}

func (a *app) bar(c *cli.Context, what string, total int64, more ...decor.Decorator) *progress {
	if c.Bool("quiet") {
		return &progress{}
	}
	bars := mpb.NewWithContext(c.Context, mpb.WithOutput(a.stderr), mpb.WithWidth(40))
	return &progress{bars, bars.AddBar(total,
		mpb.BarRemoveOnComplete(),
		mpb.PrependDecorators(decor.Name(what+" "), decor.Percentage()),
		mpb.AppendDecorators(append(more, decor.Elapsed(decor.ET_STYLE_GO), decor.Name(", left "), decor.AverageETA(decor.ET_STYLE_GO))...),
	)}
}

func (p *progress) add(n int) {
	if p.bar != nil {
		p.bar.IncrBy(n)
	}
}

// resize changes the size of the work.
func (p *progress) resize(total int64) {
	if p.bar != nil {
		p.bar.SetTotal(total, false)
	}
}

// done takes the bar away, finished or not.
func (p *progress) done() {
	if p.bar != nil {
		p.bar.Abort(true)
		p.bars.Wait()
	}
}
