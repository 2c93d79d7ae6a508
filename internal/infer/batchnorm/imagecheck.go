package batchnorm

import (
	"context"

	"github.com/swagwrap/swagwrap/bnupdate"
	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/tally"
	"github.com/swagwrap/swagwrap/swag"
	"github.com/swagwrap/swagwrap/weights"
)

// The check of the images is the same for all commands, so they may share it. A few images at each checkpoint and at SWA
// cost little, and a pass of SWA over many images removes their noise: see [bnupdate.Wide]. Most commands need that pass
// anyway.
const (
	checkShare   = 10 // the few images take at most a tenth of the images of a pass
	probedImages = 16 // that other checks take
	leastChecked = 64 // images that the data must have
	confirmed    = 192
	// Images at each checkpoint, and in SWA's pass.
	fewestChecked = 14
	mostChecked   = 64
	wideImages    = 512
)

// check compares the images with the statistics that the checkpoints store. open says that passes choose the number of
// images, too.
func (s *sizing) check(ctx context.Context, open bool) (err error) {
	images := s.data.Images()
	if open {
		images = s.images(memberBatches)
	}
	held := len(s.n.Posterior.Recent(bnupdate.Compared))
	few := min(max((images/checkShare-probedImages)/(held+1), fewestChecked), mostChecked)
	if s.checked = (held + 1) * min(few, s.data.Images()); s.how.Resize != nil {
		s.how.Resize(int64(s.checked))
	}
	if s.record.Check, s.record.MoreExamples, err = s.compare(ctx, held, few, open); err != nil || s.record.Check == nil {
		return err
	}
	if doubtful(s.record.Check) { // chance may explain the alarm
		s.record.Check, s.record.MoreExamples, err = s.compare(ctx, held, confirmed, open)
	}
	return err
}

// doubtful reports whether a check found something that a few images may show by chance.
func doubtful(c *bnupdate.Check) bool {
	const safe = 10 // four times the score of an alarm
	worst := 0.0
	for _, i := range c.Off() {
		worst = max(worst, c.Score(i))
	}
	return worst > 0 && worst < safe
}

// compare takes the images in random order, even with --bn-samples ordered. The record's warnings say whether file order
// is random. If there are too few images, compare returns how many more it needs, and a nil Check.
func (s *sizing) compare(ctx context.Context, checkpoints, few int, open bool) (c *bnupdate.Check, more int, err error) {
	checks := tally.For(ctx, checking)
	data, size, images := s.data, s.size, s.data.Images()
	if fixed := s.n.Passes.Batch; fixed > 0 {
		if more = 2*size - images; more > 0 {
			return nil, more, nil
		}
		few = max(few, 2*size)
	}
	if more = leastChecked - images; more > 0 {
		return nil, more, nil
	}
	few = min(few, images)
	if s.n.Passes.Batch == 0 {
		data.batch = max(min(leastBatch, few/2), min(size, few/4))
	}
	size = max(data.batchSize(s.run.Engine), s.n.Passes.Batch)
	if !data.Order.Shuffle {
		data.Data = dataset.Subset(data.Data, data.Order)
		data.Order = dataset.Order{Shuffle: true, Seed: data.Order.Seed}
	}
	data.Order.Limit = few / size * size
	var fresh []bnupdate.Result
	for _, theta := range s.n.Posterior.Recent(checkpoints) {
		r, err := extend(checks, s.run, s.n, theta, data, bnupdate.Result{})
		if err != nil {
			return nil, 0, err
		}
		fresh = append(fresh, r)
	}
	var wide *bnupdate.Wide
	if images > data.Order.Limit {
		if wide, err = s.wide(ctx, data, open); err != nil {
			return nil, 0, err
		}
	}
	return s.n.Passes.Plan.Counted(s.n.Posterior.Card.Updates).Check(s.n.Posterior.StoredStatistics, fresh, wide), 0, nil
}

// checking is the purpose of passes that compare the images with the checkpoints.
var checking = tally.Check("batch norm against checkpoints")

// wide makes SWA's passes: over the few images of a check, and over many. The choice of the number of images goes on with
// the latter, or SWA's own pass.
func (s *sizing) wide(ctx context.Context, few Training, open bool) (w *bnupdate.Wide, err error) {
	w = &bnupdate.Wide{}
	checks := tally.For(ctx, checking)
	err = s.first(ctx, swag.SampleOptions{}, func(swa weights.Vector) error {
		if w.Some, err = extend(checks, s.run, s.n, swa, few, bnupdate.Result{}); err != nil {
			return err
		}
		if w.All = s.swa; s.swa.Batches() > 0 {
			return nil
		}
		many := few // in random order
		many.batch = s.data.batch
		if many.Order.Limit = s.images(lossBatches); !open {
			many.Order.Limit = max(wideImages/s.size, 2) * s.size
		}
		many.Order.Limit = min(many.Order.Limit, s.data.Images())
		if !s.data.Order.Shuffle {
			w.All, err = extend(checks, s.run, s.n, swa, many, bnupdate.Result{})
			return err
		}
		s.swa, err = extend(s.later(ctx), s.run, s.n, swa, many, bnupdate.Result{})
		w.All = s.swa
		return err
	})
	return w, err
}
