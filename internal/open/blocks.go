package open

import (
	"math"

	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/ensemble"
	"github.com/swagwrap/swagwrap/internal/setting"
)

// BlockAdaptation is the adaptation of an ensemble to blocks of the data that it scores.
type BlockAdaptation struct {
	ensemble.Blocks
	opener      *Opener
	path        string
	unit        string
	run         int     // blocks
	least, most float64 // how far blocks move the first layer
}

// AdaptBlocks makes a job adapt to blocks of its data, from the statistics of training. path is the data's name.
func AdaptBlocks(a *Opener, job *ensemble.Scoring, o AdaptOptions, path string) (*BlockAdaptation, error) {
	networks, err := adapting(job.Networks, o.Weight)
	if err != nil {
		return nil, err
	}
	rows, _ := dataset.RowsOf(job.Data)
	if _, tiles := job.Data.(*dataset.Tiles); tiles || rows > 0 {
		return nil, Usagef(setting.Adapt.With("TARGET")+" adapts to all of a target",
			"%s: blocks would separate tiles of a picture, or windows of a text", setting.Adapt)
	}
	if err := RefuseFew(path, job.Data.Len(), dataset.Unit(job.Data)); err != nil {
		return nil, err
	}
	for _, c := range job.Ensemble.Components {
		if c.Probe != nil && c.Probe.BatchSize > 1 && o.Blocks%c.Probe.BatchSize > 0 {
			return nil, Usagef("", "%s: blocks of %d examples, want a multiple of the batches of %d, whose examples depend on each other",
				setting.Adapt, o.Blocks, c.Probe.BatchSize)
		}
	}
	job.Ensemble.GoBack()
	b := &BlockAdaptation{opener: a, path: path, unit: dataset.Unit(job.Data), least: math.Inf(1)}
	b.Blocks = ensemble.Blocks{Examples: o.Blocks, Weight: o.Weight, Networks: networks, Told: func(moved float64) {
		b.run++
		b.least, b.most = min(b.least, moved), max(b.most, moved)
	}}
	job.Blocks = &b.Blocks
	return b, nil
}

// Tell says what adapting changed.
func (b *BlockAdaptation) Tell() {
	if b == nil || b.run == 0 {
		return
	}
	b.opener.Logf("adapted to each %d %ss of %s (weight %g): means at the first layer move by %.2g to %.2g standard deviations",
		b.Examples, b.unit, b.path, b.Weight, b.Weight*b.least, b.Weight*b.most)
}
