package inputs

import (
	"fmt"

	"github.com/urfave/cli/v2"

	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/flags"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/infer/intake"
)

// checkBatches checks whether the scores of an example depend on its batch. If they do, the user must choose the batch
// size.
func (a *Env) checkBatches(c *cli.Context, e *infer.Engine, run *intake.Runner, in Intake, sample *intake.Sample, report *intake.Report) error {
	d, err := run.Dependence(c.Context, sample)
	if d == nil || err != nil {
		return err
	}
	report.Depends = d
	if d.Padding > 0 && e.BatchSize == 1 {
		return nil
	}
	if d.Padding > 0 {
		report.Warn(fmt.Sprintf("a score changes by %s of its range when an example is filled up to the length of a longer one in its batch. The network has no mask, or does not use it: predictions depend on the batch size and on the order of the examples. Give the mask as an input of the network, or run one example at a time (--batch-size 1)", percent(d.Padding)))
		return nil
	}
	path := run.Posterior.Path
	what := fmt.Sprintf("a score changes by %s of its range with the other examples in the batch", percent(d.Batch))
	cause := "The network mixes the examples of a batch"
	if nodes := run.Skeleton().AcrossBatch(); len(nodes) > 0 {
		cause = "The cause may be the node " + nodes[0].Node
		if nodes[0].Certain {
			cause = fmt.Sprintf("The cause is the node %s: batch norm without running statistics", nodes[0].Node)
		}
	}
	fixed := int(max(run.Input.Shape[0], 0))
	if e.BatchSize == 0 && fixed == 0 {
		return flags.BadInput(fmt.Errorf("%s: %s: %s. %s", path, in.Path, what, cause),
			"export a network whose examples do not depend on each other. For batch norm in PyTorch: train with track_running_stats=True, the default",
			"--batch-size N runs it in batches of N examples all the same: give the batch size of training. Predictions then depend on the order of the examples, which must be random")
	}
	report.BatchSize = max(e.BatchSize, fixed)
	report.Warn(fmt.Sprintf("%s. %s. Predictions hold for batches of %d in this order only: sorted examples are predicted worse, and so is a short last batch", what, cause, report.BatchSize))
	return nil
}

// percent formats a share as a percentage.
func percent(share float64) string { return fmt.Sprintf("%.2g %%", 100*share) }
