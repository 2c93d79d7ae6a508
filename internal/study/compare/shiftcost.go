package compare

import (
	"context"
	"math"
	"syscall"
	"time"

	"github.com/swagwrap/swagwrap/internal/baseline"
	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/task"
	"github.com/swagwrap/swagwrap/swag"
)

// ShiftSeconds returns about how much CPU time the shift takes, if networks see that many damaged examples. It runs the
// first network on a few of them.
func (c *Comparison) ShiftSeconds(ctx context.Context, e *infer.Engine, seen int64) (float64, error) {
	run, n := infer.Run{Engine: e}, c.Runs[0].Network
	average, err := swag.NewSampler(n.Posterior, swag.SampleOptions{})
	if err != nil {
		return 0, err
	}
	weights := average.Vector(ctx, 0)
	state, err := n.State(weights)
	if err != nil {
		return 0, err
	}
	m, err := n.Model("SWA", weights, state)
	if err != nil {
		return 0, err
	}
	m, closeSession := m.Keep()
	defer closeSession()
	data := c.Shift.Sets[len(c.Shift.Sets)-1]
	predict := func(part dataset.Dataset) error {
		return baseline.Stream(ctx, run, []infer.Model{m}, part, infer.Options{}, func(task.Task, int, task.Average) error { return nil })
	}
	block := max(1, min(64, data.Len()/2))
	var took [3]float64 // seconds to warm up, to damage and predict, and to predict again
	for i := range took {
		first := block * min(i, 1, data.Len()/block-1)
		before := CPUSeconds()
		if err := predict(dataset.Part(data, first, first+block)); err != nil {
			return 0, err
		}
		took[i] = (CPUSeconds() - before) / float64(block)
	}
	each := float64(data.Len())
	rows := each * float64(len(c.Shift.Sets))
	damage := rows
	if room, ok := dataset.Room(data); ok && room < data.Len() { // the others are damaged for every network
		damage += max(0, float64(seen)-rows) * (1 - float64(room)/each)
	} else if !ok {
		damage = float64(seen)
	}
	return float64(seen)*took[2] + damage*max(0, took[1]-took[2]), nil
}

// CPUSeconds returns the CPU time that this process has used.
func CPUSeconds() float64 {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return math.NaN()
	}
	return (time.Duration(u.Utime.Nano()) + time.Duration(u.Stime.Nano())).Seconds()
}
