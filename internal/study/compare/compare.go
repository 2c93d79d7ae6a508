// Package compare compares SWAG with its alternatives on labelled data: section 5 of Maddox et al. 2019.
//
// # Invariants
//
// Differences are between methods on the same examples. An interval is for the difference of the same networks on new
// examples: the seed makes these networks again, so their draws are no source of chance. How other draws would differ is
// a separate figure. Every method is also shown at its own temperature, so that none wins by a temperature alone
// (Ashukha et al. 2020).
package compare

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/swagwrap/swagwrap/calibrate/detect"
	"github.com/swagwrap/swagwrap/internal/baseline"
	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/setting"
	"github.com/swagwrap/swagwrap/internal/study"
	"github.com/swagwrap/swagwrap/internal/task"
)

// Comparison describes the methods and the data of a comparison.
type Comparison struct {
	baseline.Inputs
	// Validation is the data for fitting temperatures, vector scaling and the prior of Laplace. Without it each is
	// fitted on one random half of the test data and applied to the other half.
	Validation dataset.Dataset
	Test       dataset.Dataset
	TestPath   string // as the user named it
	Measured   string // what the user's own evaluation printed, with the same numbers of the last checkpoint, or ""
	// Threshold is the threshold of all methods of a [task.Decided]. If By is set instead, each method has the
	// threshold that By chooses on the validation data. Zero means the default.
	Threshold float64
	By        detect.Criterion
	// Scalings requests an evaluation of every method with its own scalings. AllMetrics requests the further tables.
	Scalings, AllMetrics bool
	// Tuned describes how the settings of baseline.Inputs.Tuned were chosen, or is "". Settings is the file that will
	// contain them.
	Tuned, Settings string
	// Averages says what the validation data found about other averages of the checkpoints, or is "".
	Averages string
	// MaxMembers, if above the number of members, is the limit to which members of SWAG are drawn until their error is
	// below half of that of the test data.
	MaxMembers int
	// Spell shows what to do next in the program's words.
	Spell study.Spell
	// Folder is the folder for the files of the commands to run next. "" means the current one.
	Folder string
	// Between is the folder in it for the files that the result needs no longer. "" means the same one.
	Between string
	task.Grouping
	// EachRun says that the posteriors are runs of training in which the methods are compared, besides their ensembles.
	EachRun   bool
	oneOfRuns bool // made by ofRun
	// Shift, if not nil, is the change of the test data that the methods are also evaluated on.
	Shift  *dataset.Damaged
	unitOf []string // of the test examples; nil until they are needed
	// Save, if not nil, is called with the outcomes of each method, n×width, while they are in memory.
	Save func(key string, outcomes []float64, width int) error
	// Scored, if not nil, is called with each method as soon as it has its scores. Differences come at the end.
	Scored func(*Method)
}

func (c *Comparison) targets() baseline.Targets {
	data := []dataset.Dataset{c.Test}
	if c.Shift != nil {
		if data = append(data, c.Shift.Sets...); c.Shift.Clean != nil {
			data = append(data, c.Shift.Clean)
		}
	}
	return baseline.Targets{
		Data:       data,
		Validation: c.Validation,
		Units:      c.unitNumbers(),
		FitsAll:    c.fitsAll(),
		Noise:      !c.Runs[0].Network.Large() && !c.oneOfRuns,
		Members:    c.Runs[0].Network.Traits().Targets,
		Leaves:     c.leaves,
	} // of other tasks the average suffices
}

// leaves reports whether the calibration of a method is not for the task or the data, and why.
func (c *Comparison) leaves(p *baseline.Predicted, t task.Task) (out bool, why string) {
	if p.By == "" || t == nil {
		return false, ""
	}
	_, found := task.Find(t, p.By)
	switch {
	case !found:
		why = fmt.Sprintf("%s is left out: %s scaling is not for the task %s", p.Name, p.By, t.About().Name)
	case c.tries(p.Key) && (c.Validation == nil || c.EachRun || c.oneOfRuns || c.heavy(t)):
		return true, ""
	case task.Large(t) && c.Validation == nil:
		return true, "methods with a temperature are left out: it needs labelled examples other than those of the test (" +
			setting.Val.String() + ")"
	case p.By == task.OneNumber && task.Missing(t) != nil:
		name := strings.TrimSuffix(p.Name, "-Temp")
		why = fmt.Sprintf("%s-%s is left out: the noise of %s is fitted on the same data and takes its place", name,
			t.Calibrators()[0].Name, name)
	default:
		return false, ""
	}
	if !slices.Contains(c.Asked, p.Key) {
		why = ""
	}
	return true, why
}

// heavy reports whether a matrix for all classes takes longer to fit than to run networks.
func (c *Comparison) heavy(t task.Task) bool {
	k := float64(t.About().Classes)
	return float64(c.Validation.Len())*k*k > mostTried
}

// fitsAll reports whether something is fitted to the validation data for every method: a scaling, a threshold, or noise that
// the networks do not predict.
func (c *Comparison) fitsAll() bool {
	n := c.Runs[0].Network
	lacks := n.Traits().Targets // before the first run
	if t := n.Known(); t != nil {
		lacks = task.Missing(t) != nil
	}
	return lacks || c.Scalings || c.By != detect.Criterion{}
}

// Images returns about how many images Run sends through networks.
func (c *Comparison) Images() int64 {
	n := c.Inputs.Images(c.targets())
	c.eachOther(func(_ int, one *Comparison) error {
		n += one.Images()
		return nil
	})
	return n
}

// Fill runs a shard of the methods' networks and puts their outputs into the run's store.
func (c *Comparison) Fill(ctx context.Context, run infer.Run, shard *infer.Shard) error {
	if err := baseline.Fill(ctx, run, shard, &c.Inputs, c.targets()); err != nil {
		return err
	}
	return c.eachOther(func(_ int, one *Comparison) error { return one.Fill(ctx, run, shard) })
}

// Left returns about how many images Run, or Fill of a shard, still sends through networks: damaged images of the shift,
// and others. The run's store has the outputs for the rest.
func (c *Comparison) Left(ctx context.Context, run infer.Run, shard *infer.Shard) (damaged, others int64, err error) {
	ids := map[string]bool{}
	for _, d := range c.Shift.Sets {
		ids[dataset.ID(d)] = true
	}
	run.Store, run.Progress = run.Store.Again(), nil
	own := infer.Shard{Of: 1} // all networks, one after the other
	if shard != nil {
		own = *shard
	}
	var mu sync.Mutex
	err = c.left(ctx, run, &own, func(data dataset.Dataset, images int) {
		mu.Lock()
		defer mu.Unlock()
		if ids[dataset.ID(data)] {
			damaged += int64(images)
		} else {
			others += int64(images)
		}
	})
	return damaged, others, err
}

func (c *Comparison) left(ctx context.Context, run infer.Run, shard *infer.Shard, missing func(data dataset.Dataset, images int)) error {
	if err := baseline.Left(ctx, run, shard, &c.Inputs, c.targets(), missing); err != nil {
		return err
	}
	return c.eachOther(func(_ int, one *Comparison) error { return one.left(ctx, run, shard, missing) })
}

// Run evaluates the methods. The baseline of the differences is SWA with temperature scaling. If that is missing, or its
// temperature is not determined, it is SWA, or the last checkpoint with temperature scaling, or else the first method.
func (c *Comparison) Run(ctx context.Context, run infer.Run) (*Result, error) {
	b := &builder{Comparison: c, run: run, shared: map[*infer.Model]*shared{}}
	targets := c.targets()
	if c.MaxMembers > c.Members {
		targets.More = b.more
	}
	notes, err := baseline.Predict(ctx, run, &c.Inputs, targets, func(p *baseline.Predicted) error { return b.add(ctx, p) })
	if err != nil {
		return nil, err
	}
	r, err := b.result(notes)
	if err != nil {
		return nil, err
	}
	return r, r.overRuns(ctx, run)
}
