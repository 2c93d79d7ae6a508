package baseline

import (
	"cmp"
	"context"
	"fmt"

	"github.com/swagwrap/swagwrap/internal/ensemble"
	"github.com/swagwrap/swagwrap/internal/setting"
	"github.com/swagwrap/swagwrap/internal/task"
	"github.com/swagwrap/swagwrap/swag"
)

// swagTuned is SWAG with a temperature, and with the scale, rank and covariance that validation data chose.
var swagTuned = &Method{
	Key:  SWAGTuned,
	Fits: true,
	Name: func(in *Inputs) string {
		switch how := in.Tuned; {
		case in.TunedScale:
			return fmt.Sprintf("SWAG, scale %g", how.Scale)
		case how.Scale == 0:
			return "SWAG, tuned: SWA"
		case how.Covariance == swag.Diagonal:
			return fmt.Sprintf("SWAG, tuned: diagonal, scale %g", how.Scale)
		default:
			return fmt.Sprintf("SWAG, tuned: scale %g, rank %d", how.Scale, cmp.Or(how.Rank, in.Runs[0].Network.Posterior.Options.Columns))
		}
	},
	Needs: func(in *Inputs) string {
		if in.Tuned == nil {
			return "settings that validation data has chosen (" + setting.Val.String() + ", or " + setting.Tune.String() + ")"
		}
		return needsSpread(in)
	},
	Cost: func(in *Inputs, c Cost) int64 {
		if in.Tuned.Scale == 0 {
			return c.Data + c.Orders
		}
		return eachMember(in, c)
	},
	Deploy: func(in *Inputs) *ensemble.Settings { return in.drawn(*in.Tuned) },
	Run: func(ctx context.Context, w *work) error {
		begin := w.sampled(*w.Tuned)
		if w.Tuned.Scale == 0 {
			begin = w.swaOf
		}
		return w.scaled(ctx, begin, task.OneNumber)
	},
}
