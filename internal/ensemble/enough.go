package ensemble

import (
	"cmp"

	"github.com/swagwrap/swagwrap/calibrate/chance"
	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/infer/probe"
	"github.com/swagwrap/swagwrap/internal/task"
)

// Enough decides how many antithetic members are enough, while they are drawn: the smallest even number whose average is as near
// to that of very many as the average of Of independent members. It needs no labels. Every command that finds the number of
// members does so.
type Enough struct {
	Of     int   // 0 stands for DefaultMembers
	Judged []int // examples among those of the outcomes that decide, as of [Judged]; nil for all
	pairs  *chance.Antithetic
	added  int
}

// Add adds the outcomes of the next member, for the same examples.
func (e *Enough) Add(member *infer.Sums) {
	outcomes, width := member.Outcome, member.Task.About().Width
	if e.Judged != nil {
		outcomes = nil
		for _, i := range e.Judged {
			outcomes = append(outcomes, member.Outcome[i*width:][:width]...)
		}
	}
	if e.pairs == nil {
		e.pairs = chance.NewAntithetic(width/task.Positions(member.Task), member.Task.About().Classes == 0)
	}
	e.pairs.Add(outcomes)
	e.added++
}

// Reached reports whether there are enough members.
func (e *Enough) Reached() bool {
	if e.pairs == nil {
		return false
	}
	_, ok := e.pairs.Pairs(cmp.Or(e.Of, DefaultMembers))
	return ok && e.added%2 == 0
}

// judgedExamples is the number of examples that decide: more change the number of members hardly, since all examples share the few
// pairs (fixtures/bench/pairs.py auto). judgedPictures is their number for pixels.
const judgedExamples, judgedPictures = 128, 2

// Judged returns the indices of the examples whose outcomes decide, from all over the data. large stands for a network with scores for
// each pixel or position. Judged returns nil for a text, whose windows continue each other: then nothing decides.
func Judged(d dataset.Dataset, large bool) []int {
	if _, text := dataset.CutOf(d); text {
		return nil
	}
	n := judgedExamples
	if large {
		n = judgedPictures
	}
	return probe.Spread(n, d.Len())
}
