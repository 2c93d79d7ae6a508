package ensemble

import (
	"cmp"
	"slices"

	"github.com/swagwrap/swagwrap/calibrate/chance"
	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/task"
)

// Enough decides how many antithetic members are enough, while they are drawn: the smallest even number whose average is as near
// to that of very many as the average of Of independent members. It needs no labels. Every command that finds the number of
// members does so.
type Enough struct {
	Of    int // 0 stands for DefaultMembers
	pairs *chance.Antithetic
	added int
}

// mostJudged bounds the numbers of a member's outcomes that are judged. Of more, some are left out.
const mostJudged = 1 << 22

// Add adds the outcomes of the next member, for the same examples.
func (e *Enough) Add(member *infer.Sums) {
	outcomes := member.Outcome
	width := member.Task.About().Width / task.Positions(member.Task)
	if step := (len(outcomes)/width + mostJudged/width - 1) / (mostJudged / width); step > 1 {
		var some []float64
		for at := range slices.Chunk(outcomes, step*width) {
			some = append(some, at[:width]...)
		}
		outcomes = some
	}
	if e.pairs == nil {
		e.pairs = chance.NewAntithetic(width, member.Task.About().Classes == 0)
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

// judgedPictures is the number of examples that decide for pixels, whose outcomes are not kept.
const judgedPictures = 2

// Judged returns the examples whose outcomes decide, of a network whose outcomes are not kept. It returns nil for a text, whose
// windows continue each other: then nothing decides.
func Judged(d dataset.Dataset) dataset.Dataset {
	if _, text := dataset.CutOf(d); text {
		return nil
	}
	return dataset.Part(d, 0, min(judgedPictures, d.Len()))
}
