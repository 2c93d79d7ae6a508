package summary

import (
	"fmt"
	"slices"

	"github.com/swagwrap/swagwrap/internal/ensemble"
	"github.com/swagwrap/swagwrap/internal/infer/batchnorm"
	"github.com/swagwrap/swagwrap/internal/names"
	"github.com/swagwrap/swagwrap/internal/predictions"
	"github.com/swagwrap/swagwrap/internal/report"
	"github.com/swagwrap/swagwrap/internal/setting"
	"github.com/swagwrap/swagwrap/internal/task"
)

// Blocks says that statistics were adapted to blocks of the rows, and which of them have mostly one class: adapting harms there.
type Blocks struct {
	Examples int     `json:"examples"` // of a block
	Weight   float64 `json:"weight"`   // the share of a block in its statistics
	Blocks   int     `json:"blocks"`
	OneClass int     `json:"one_class"` // how many blocks have mostly predictions of one class
	// First is the first row of the first such block, Class its class and Share that of the class. They are absent without one.
	First int     `json:"first,omitempty"`
	Class int     `json:"class,omitempty"`
	Share float64 `json:"share,omitempty"`

	watch   task.Watched
	numbers []float64
	usual   []float64
	counts  []int // of the block that begins at row at
	at      int
	rows    int
}

// NewBlocks describes the blocks of so many rows. It returns nil for nil.
func NewBlocks(b *ensemble.Blocks, rows int) *Blocks {
	if b == nil {
		return nil
	}
	return &Blocks{Examples: b.Examples, Weight: b.Weight, Blocks: b.Last(rows)/b.Examples + 1}
}

// begin prepares for rows of a task. d has the usual shares of the classes, or is nil. It returns nil for a task without classes.
func (b *Blocks) begin(t task.Task, columns []task.Column, d *Drift) *Blocks {
	if b == nil {
		return nil
	}
	own := &Blocks{Examples: b.Examples, Weight: b.Weight, Blocks: b.Blocks}
	own.watch = task.Watch(t, columns)
	own.counts = make([]int, own.watch.Classes)
	own.usual = slices.Repeat([]float64{1 / float64(max(1, len(own.counts)))}, len(own.counts))
	if d != nil && d.Validation != nil && len(d.Validation.Classes) == len(own.counts) {
		for c, share := range d.Validation.Shares() {
			own.usual[c] = max(own.usual[c], share)
		}
	}
	return own
}

// add adds a row. Rows come in order.
func (b *Blocks) add(r *predictions.Row) {
	if b == nil || len(b.counts) == 0 {
		return
	}
	if at := min(r.Index/b.Examples, b.Blocks-1) * b.Examples; at != b.at {
		b.end()
		b.at = at
	}
	var class int
	if b.numbers, class = b.watch.Numbers(b.numbers, r.Values); class >= 0 && class < len(b.counts) {
		b.counts[class]++
		b.rows++
	}
}

// end judges the block so far.
func (b *Blocks) end() {
	if b.rows < batchnorm.LeastTarget {
		b.rows = 0
		clear(b.counts)
		return
	}
	shares := make([]float64, len(b.counts))
	for c, n := range b.counts {
		shares[c] = float64(n) / float64(b.rows)
	}
	if c, ok := batchnorm.OneClass(shares, b.usual); ok {
		if b.OneClass++; b.OneClass == 1 {
			b.First, b.Class, b.Share = b.at, c, shares[c]
		}
	}
	b.rows = 0
	clear(b.counts)
}

// finish judges the last block. It does nothing for nil.
func (b *Blocks) finish() *Blocks {
	if b != nil {
		b.end()
	}
	return b
}

// warning says that blocks have mostly one class. It is "" without one.
func (b *Blocks) warning(classNames []string) string {
	if b.finish() == nil || b.OneClass == 0 {
		return ""
	}
	return fmt.Sprintf("%d of %s to which statistics were adapted have mostly one class. The first begins at row %d: %s of its "+
		"predictions are %s. Adapting does harm there. Take larger blocks, or a smaller weight (%s)",
		b.OneClass, report.Plural(b.Blocks, "block"), b.First, report.Percent(b.Share, 0), names.Class(classNames, b.Class),
		setting.AdaptWeight)
}
