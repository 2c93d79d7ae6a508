package batchnorm

import (
	"context"

	"github.com/swagwrap/swagwrap/bnupdate"
	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/tally"
)

// The check of the images takes at most a tenth of the images that the command's own passes take, and at most
// mostChecked together. It leaves chosenImages of them if the number of images must be chosen, and intakeImages for the
// other checks.
const (
	checkShare   = 10
	mostChecked  = 2000
	chosenImages = 2 * 2 * lossSplits * lossExamples
	intakeImages = 16
)

// Numbers of images for [bnupdate.Plan.Check] at each checkpoint. Several checkpoints with few images show more than one
// with many, because the checkpoints show the scatter. A small job looks at few, and then confirms an alarm with more.
const (
	leastChecked  = 64 // images that the data must have
	largeChecked  = 8 * 128
	confirmed     = 192
	fewestChecked = 2 * fewestBatch
	fewestBatch   = 8
)

// extent is how much of the images and of the checkpoints a check looks at.
type extent struct{ checkpoints, images int }

// extentOf divides a number of runs among the checkpoints that a posterior holds.
func extentOf(runs, held int) extent {
	some := min(held, max(2, runs/fewestChecked))
	return extent{some, min(max(runs/some, fewestChecked), largeChecked)}
}

// check compares the images with the statistics that the checkpoints store. open says that passes choose the number of
// images, too.
func (s *sizing) check(ctx context.Context, open bool) (err error) {
	ctx = tally.For(ctx, tally.Check("batch norm against checkpoints"))
	images, runs := s.data.Images(), mostChecked
	if open {
		images, runs = s.images(memberBatches), runs-chosenImages
	}
	if s.how.Passes > 0 {
		runs = min(runs, s.how.Passes*images/checkShare)
	}
	runs -= intakeImages
	held := len(s.n.Posterior.Recent(bnupdate.Compared))
	of := extentOf(runs, held)
	if s.checked = of.checkpoints * min(of.images, s.data.Images()); s.how.Resize != nil {
		s.how.Resize(int64(s.checked))
	}
	if s.record.Check, s.record.MoreExamples, err = check(ctx, s.run, s.n, s.data, s.size, of); err != nil || s.record.Check == nil {
		return err
	}
	// An alarm that chance may explain is looked at again.
	if few := of.checkpoints < held || of.images < leastChecked; few && doubtful(s.record.Check) {
		s.record.Check, s.record.MoreExamples, err = check(ctx, s.run, s.n, s.data, s.size, extent{held, confirmed})
	}
	return err
}

// doubtful reports whether a check found something that a few images may show by chance.
func doubtful(c *bnupdate.Check) bool {
	const safe = 5 // twice the score of an alarm
	worst := 0.0
	for _, i := range c.Off() {
		worst = max(worst, c.Score(i))
	}
	return worst > 0 && worst < safe
}

// check takes the images in random order, even with --bn-samples ordered. The record's warnings say whether file order
// is random. If there are too few images, check returns how many more it needs, and a nil Check.
func check(ctx context.Context, run infer.Run, n *infer.Network, data Training, size int, of extent) (c *bnupdate.Check, more int, err error) {
	images := data.Images()
	if fixed := n.Passes.Batch; fixed > 0 {
		if more = 2*size - images; more > 0 {
			return nil, more, nil
		}
		of.images = max(of.images, 2*size)
	}
	if more = leastChecked - images; more > 0 {
		return nil, more, nil
	}
	of.images = min(of.images, images)
	if n.Passes.Batch == 0 {
		data.batch = max(min(leastBatch, of.images/2), min(size, of.images/4))
	}
	size = max(data.batchSize(run.Engine), n.Passes.Batch)
	if !data.Order.Shuffle {
		data.Data = dataset.Subset(data.Data, data.Order)
		data.Order = dataset.Order{Shuffle: true, Seed: data.Order.Seed}
	}
	data.Order.Limit = of.images / size * size
	var fresh []bnupdate.Result
	for _, theta := range n.Posterior.Recent(of.checkpoints) {
		r, err := extend(ctx, run, n, theta, data, bnupdate.Result{})
		if err != nil {
			return nil, 0, err
		}
		fresh = append(fresh, r)
	}
	return n.Passes.Plan.Check(n.Posterior.StoredStatistics, fresh), 0, nil
}
