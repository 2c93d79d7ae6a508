package printed

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/swagwrap/swagwrap/internal/baseline"
	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/tally"
	"github.com/swagwrap/swagwrap/internal/target"
	"github.com/swagwrap/swagwrap/internal/task"
)

// A Check runs the last checkpoint over labelled data, and holds its figures against numbers.
type Check struct {
	*Numbers
	Network *infer.Network
	Data    dataset.Dataset
	Run     infer.Run
	// Others are other weights that the numbers may be of.
	Others []Other

	kept []float64 // outcomes of the last checkpoint, or nil if they do not fit into memory
	task task.Task
	most int // bounds kept; 0 for mostKept
}

// Other is other weights of the network.
type Other struct {
	Words string // what they are
	Open  func(ctx context.Context) (infer.Model, error)
}

// A Result says whether all numbers agree.
type Result struct {
	Equal bool
	Lines []string // each number with what the last checkpoint gives
	// Cause explains a difference, or is nil.
	Cause *Cause
}

// String lists the numbers.
func (r *Result) String() string { return strings.Join(r.Lines, "; ") }

// A Cause is a change with which all numbers agree.
type Cause struct {
	Words string
	Hints []string
}

// ErrUnlabelled says that there is nothing to evaluate.
var ErrUnlabelled = errors.New("no example has a label")

// A MetricError says that the task has no such metric.
type MetricError struct {
	Name, Task string
	Has        []string // the metrics of the task
}

func (e *MetricError) Error() string {
	return fmt.Sprintf("%s: is no metric of the task %s", e.Name, e.Task)
}

// mostKept bounds the numbers of outcomes that are kept.
const mostKept = 1 << 26

// Do runs the check. If a number differs, it looks for the cause.
func (c *Check) Do(ctx context.Context) (*Result, error) {
	ctx = tally.For(ctx, tally.Check("the numbers of your evaluation"))
	last, err := c.Network.LastCheckpoint()
	if err != nil {
		return nil, err
	}
	base := &plainly{of: c}
	if err := c.pass(ctx, c.Run, last, true, base); err != nil {
		return nil, err
	}
	if base.examples == 0 {
		return nil, ErrUnlabelled
	}
	f := base.figures()
	for i := range c.List {
		if x := &c.List[i]; len(x.metric.of(f)) == 0 {
			return nil, &MetricError{x.Name, c.task.About().Name, f.names()}
		}
	}
	r := &Result{}
	r.Lines, r.Equal = c.says(f)
	if line, equal := c.counted(f); line != "" {
		r.Lines, r.Equal = append(r.Lines, line), r.Equal && equal
	}
	if !r.Equal {
		s := &search{Check: c, base: f, last: last}
		r.Cause, err = s.cause(ctx)
	}
	return r, err
}

// further reports whether a number is not among the main measures of a task.
func (x *Numbers) further() bool {
	return slices.ContainsFunc(x.List, func(n Number) bool { return n.metric.is(further) })
}

// counted compares the numbers of examples. Of texts the evaluation may count tokens.
func (x *Numbers) counted(f *figures) (line string, equal bool) {
	if x.Examples == 0 {
		return "", true
	}
	if line = fmt.Sprintf("n %d", f.examples); x.Examples == f.examples || x.Examples == f.positions {
		return fmt.Sprintf("n %d", x.Examples), true
	}
	return fmt.Sprintf("%s, and you have %d", line, x.Examples), false
}

// pass gives the outcomes and labels of a network to tallies. It keeps the outcomes if they are those of the last checkpoint.
func (c *Check) pass(ctx context.Context, run infer.Run, m infer.Model, keep bool, to ...counter) error {
	keep = keep && !c.Network.Large()
	labels := c.Data.Labels()
	n := 0
	return baseline.Stream(ctx, run, []infer.Model{m}, c.Data, infer.Options{}, func(t task.Task, i int, a task.Average) error {
		c.task = t
		if keep && n == 0 && c.Data.Len()*t.About().Width > cmp.Or(c.most, mostKept) {
			keep = false
		}
		n++
		if keep {
			c.kept = append(c.kept, a.Outcome...)
		}
		return c.give(t, i, a.Outcome, labels, to)
	})
}

func (c *Check) give(t task.Task, i int, outcome []float64, labels target.Target, to []counter) error {
	label, err := labels.Load(i)
	if err == nil && !label.Known() {
		return nil
	}
	if err == nil {
		err = t.CheckLabel(label)
	}
	for _, one := range to {
		if err == nil {
			err = one.add(t, outcome, label)
		}
	}
	if err != nil {
		return fmt.Errorf("%s: %w", c.Data.Name(i), err)
	}
	return nil
}

// again gives the outcomes of the last checkpoint to tallies.
func (c *Check) again(ctx context.Context, last infer.Model, to ...counter) error {
	if c.kept == nil {
		return c.pass(ctx, c.Run, last, false, to...)
	}
	labels, width := c.Data.Labels(), c.task.About().Width
	for i := range len(c.kept) / width {
		if err := c.give(c.task, i, slices.Clone(c.kept[i*width:][:width]), labels, to); err != nil {
			return err
		}
	}
	return ctx.Err()
}
