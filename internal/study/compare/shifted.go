package compare

import (
	"context"
	"fmt"
	"math"
	"syscall"
	"time"

	"gonum.org/v1/gonum/floats"

	"github.com/swagwrap/swagwrap/calibrate/chance"
	"github.com/swagwrap/swagwrap/internal/baseline"
	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/task"
	"github.com/swagwrap/swagwrap/swag"
)

// Shifted holds what the [dataset.Damaged] does to a method. What was fitted on clean data stays.
type Shifted struct {
	Steps []*task.Evaluation // on clean examples, and then by severity
	// losses holds the losses by their key: at all severities together, and then by severity. They are of examples, or of units
	// of chance where the losses of the task are. Corruptions of one example are averaged.
	losses []map[string][]float64
	// corrupted holds the first loss of the examples with each corruption: the mean over the severities. It is nil for a
	// corruption that no example has.
	corrupted [][]float64
}

// ByCorruption returns the first loss of the examples with corruption c, or nil if no example has it.
func (s *Shifted) ByCorruption(c int) []float64 { return s.corrupted[c] }

// ShiftLoss returns a loss of the method at severity k of the shift, or at all severities together if k is 0.
func (m *Method) ShiftLoss(key string, k int) []float64 { return m.Shifted.losses[k][key] }

// ShiftDifference compares two methods at severity k of the shift, or on all severities together if k is 0. An example with
// all its corruptions belongs to one unit of chance. The temperatures are those that were fitted.
func (r *Result) ShiftDifference(m, base *Method, key string, k int) Difference {
	each := difference(m.ShiftLoss(key, k), base.ShiftLoss(key, k))
	return Difference{chance.NewDifference(r.Clustered(each, r.Shift.Chosen()), 0), math.NaN()}
}

// CorruptionDifference compares two methods in the first loss on the examples with corruption c.
func (r *Result) CorruptionDifference(m, base *Method, c int) chance.Interval {
	each := difference(m.Shifted.ByCorruption(c), base.Shifted.ByCorruption(c))
	return chance.NewDifference(r.Clustered(each, r.Shift.With(c)), 0).Interval
}

// damage evaluates the variants of a method on the clean examples of the shift, and then at each severity.
func (b *builder) damage(ctx context.Context, p *baseline.Predicted, variants []*variant) error {
	d := &damaged{builder: b, variants: variants, units: task.LossesOfUnits(b.task)}
	if err := d.clean(ctx, p); err != nil {
		return err
	}
	// Losses of units are not of single rows. So each corruption has its own evaluator.
	parts := 1
	if d.units {
		parts = len(b.Shift.Corruptions)
	}
	each, together := d.several(parts), d.several(1)
	for k := range b.Shift.Severities {
		own := d.several(parts)
		if err := d.severity(ctx, p, k, own); err != nil {
			return err
		}
		for v, evaluators := range own {
			all := evaluators[0]
			if d.units {
				all = d.merged(evaluators, each[v])
				together[v][0].Merge(all)
			}
			variants[v].shifted.Steps = append(variants[v].shifted.Steps, all.Evaluation())
		}
	}
	for v, of := range variants {
		if d.units {
			of.shifted.ofUnits(together[v][0], each[v])
		} else {
			of.shifted.ofExamples(b.Shift)
		}
	}
	return nil
}

// damaged evaluates the variants of a method on the data of the shift.
type damaged struct {
	*builder
	variants []*variant
	units    bool // losses are of units of chance
}

// several returns n evaluators of each variant.
func (d *damaged) several(n int) [][]*task.Evaluator {
	list := make([][]*task.Evaluator, len(d.variants))
	for v, of := range d.variants {
		opts := of.opts
		opts.MainOnly, opts.NoIntervals = true, d.units // nothing shows the intervals of units, and they take long
		opts.Expected = 0
		for range n {
			list[v] = append(list[v], task.NewEvaluator(d.task, opts))
		}
	}
	return list
}

// pass adds the examples of a source to evaluators, each to that of its part.
func (d *damaged) pass(s source, into [][]*task.Evaluator, part func(i int) int) error {
	return addExamples(s, d.variants, func(_ task.Task, v, i int) []*task.Evaluator {
		e := into[v][part(i)%len(into[v])]
		if !d.Shift.Texts {
			e.Unit(d.unitOfShift(s.row(i)))
		}
		return []*task.Evaluator{e}
	})
}

// unitOfShift names the unit of chance of a test example.
func (b *builder) unitOfShift(i int) string {
	if units := b.unitNames(); units != nil && units[i] != "" {
		return "unit " + units[i]
	}
	return fmt.Sprint("example ", i)
}

// clean evaluates the examples of the shift without damage. Outcomes that are kept are there already.
func (d *damaged) clean(ctx context.Context, p *baseline.Predicted) error {
	chosen, set := d.Shift.Chosen(), 1+len(d.Shift.Sets)
	var s source
	switch {
	case p.Kept():
		s = source{d.Test, func(f baseline.EachOutcome) error { return p.Some(chosen, f) }, same}
	case d.Shift.Clean != nil:
		s = d.outcomes(ctx, p, set, d.Shift.Clean, func(i int) int { return chosen[min(i, len(chosen)-1)] })
	default: // they are all of the test data
		for _, v := range d.variants {
			v.shifted = &Shifted{Steps: []*task.Evaluation{v.Evaluation}}
		}
		return nil
	}
	into := d.several(1)
	if err := d.pass(s, into, same); err != nil {
		return err
	}
	for v, of := range d.variants {
		of.shifted = &Shifted{Steps: []*task.Evaluation{into[v][0].Evaluation()}}
	}
	return nil
}

// severity evaluates the examples at severity k. Texts have a data set for each corruption.
func (d *damaged) severity(ctx context.Context, p *baseline.Predicted, k int, into [][]*task.Evaluator) error {
	if !d.Shift.Texts {
		row := func(i int) int { return d.Shift.Rows[i] }
		return d.pass(d.outcomes(ctx, p, 1+k, d.Shift.Sets[k], row), into, same)
	}
	n := len(d.Shift.Corruptions)
	for c := range n {
		set := k*n + c
		first := func(int) int { return 0 } // what is fitted for texts is fitted for all examples
		if err := d.pass(d.outcomes(ctx, p, 1+set, d.Shift.Sets[set], first), into, func(int) int { return c }); err != nil {
			return err
		}
	}
	return nil
}

// merged returns an evaluator of all corruptions. It adds that of each corruption to each.
func (d *damaged) merged(evaluators, each []*task.Evaluator) *task.Evaluator {
	all := d.several(1)[0][0]
	for c, e := range evaluators {
		all.Merge(e)
		each[c].Merge(e)
	}
	return all
}

// ofUnits takes the losses of units of chance.
func (s *Shifted) ofUnits(together *task.Evaluator, each []*task.Evaluator) {
	s.losses = append(s.losses, byKey(together.Losses()))
	for _, e := range s.Steps[1:] {
		s.losses = append(s.losses, byKey(e.Losses))
	}
	for _, e := range each {
		s.corrupted = append(s.corrupted, append([]float64(nil), e.Losses()[0].Values...))
	}
}

func byKey(losses []task.Loss) map[string][]float64 {
	out := map[string][]float64{}
	for _, l := range losses {
		out[l.Key] = l.Values
	}
	return out
}

// ofExamples averages the losses of damaged rows.
func (s *Shifted) ofExamples(damaged *dataset.Damaged) {
	severe := s.Steps[1:]
	for k := range s.Steps {
		of := severe
		if k > 0 {
			of = severe[k-1 : k]
		}
		losses := map[string][]float64{}
		for _, l := range severe[0].Losses {
			losses[l.Key] = averaged(of, l.Key, damaged)
		}
		s.losses = append(s.losses, losses)
	}
	first := severe[0].Losses[0].Key
	for c := range damaged.Corruptions {
		var each []float64
		for i := c; i < len(damaged.Rows); i += len(damaged.Corruptions) {
			sum := 0.0
			for _, e := range severe {
				sum += e.Loss(first)[i]
			}
			each = append(each, sum/float64(len(severe)))
		}
		s.corrupted = append(s.corrupted, each)
	}
}

// averaged returns the mean of a loss for each example, over evaluations and the corruptions of the example.
func averaged(of []*task.Evaluation, key string, damaged *dataset.Damaged) []float64 {
	out := make([]float64, damaged.Examples)
	for _, e := range of {
		for j, v := range e.Loss(key) {
			out[j/damaged.Each] += v
		}
	}
	floats.Scale(1/float64(len(of)*damaged.Each), out)
	return out
}

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
