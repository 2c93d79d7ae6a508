package infer

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/ort"
	"github.com/swagwrap/swagwrap/internal/setting"
	"github.com/swagwrap/swagwrap/onnxio"
	"github.com/swagwrap/swagwrap/weights"
)

// Data whose examples continue each other ([dataset.Stateful]) goes through the models in the order of windows. A batch
// has the same rows of each window. Each model has its own states for each batch. A [Scorer] keeps these, and not a
// session. So a few sessions serve many models.

// checkStateful sets s.stateful. It fails if windows continue each other and a network has no states.
func (s *Scorer) checkStateful() error {
	c, ok := s.data.(dataset.Stateful)
	if !ok {
		return nil
	}
	if s.stateful = c; s.settle != nil {
		return fmt.Errorf("windows that continue each other go through all members, and a stopping rule leaves some out")
	}
	most, together := 0, true // tokens behind states; all rows have equally many
	all := c.Source()         // every part of it gets batches of one size, as a run of all has
	for i := range all.Len() {
		past := all.Past(i)
		most, together = max(most, past), together && past == all.Past(i-i%all.Rows())
	}
	for _, part := range s.models.Parts() {
		switch {
		case part.states == nil && most > 0:
			return &onnxio.Error{
				Tensor: part.Output(),
				What:   "the network takes no states, so each window would begin with zeros, though it continues the one before",
				Hint: "a recurrent network: export it with its states as inputs and outputs\n" +
					"a transformer: export it with its cache of keys and values, or score windows that overlap, " +
					setting.Text.With(`"window=N stride=M"`) + "\n" +
					"if windows shall begin anew: " + setting.Text.With(`"reset=windows"`),
			}
		case part.states == nil || !part.Grows():
			continue
		case !together && part.Input.Shape[0] > 1:
			return &onnxio.Error{
				Tensor: part.states.pairs[0].In,
				What: fmt.Sprintf("batches of %d only, and the rows of a batch would have caches of different lengths, because "+
					"documents differ", part.Input.Shape[0]),
				Hint: "export with a free batch",
			}
		}
		bytes, err := part.states.bytes(c.Rows(), most+int(dataset.Fields(c)[0].Shape[0]), s.engine.Memory().Networks())
		if err != nil {
			return err
		}
		s.held += int64(part.Count) * bytes
		s.alone = s.alone || !together
	}
	if most := s.engine.Memory().Networks() / 2; s.held > most {
		return fmt.Errorf("states take %d MiB (models: %d, rows: %d), and half of the memory is %d MiB: give more (%s), a shorter "+
			"context or fewer rows (%s), or score windows that overlap (%s)",
			s.held>>20, s.count, c.Rows(), most>>20, setting.Memory, setting.Text.With("'context=N rows=N'"),
			setting.Text.With("'window=N stride=M'"))
	}
	return nil
}

// chains returns the number of batches of a window.
func (s *Scorer) chains(batch int) int { return ceil(s.stateful.Rows(), batch) }

// statefulPlan is newPlan for windows. Three sixteenths of the memory are for the sums of a chunk, and as much for what the
// garbage collector has not yet freed. The rest is for runs and sessions.
func (s *Scorer) statefulPlan(workers int, c cost) (plan, error) {
	rows, models := s.stateful.Rows(), 0
	parts := s.models.Parts()
	var batches []int
	for _, part := range parts {
		n, err := s.batchOf(part)
		if err != nil {
			return plan{}, err
		}
		batches, models = append(batches, n), models+part.Count
	}
	half := (s.engine.Memory().Networks() - s.held) / 2
	c.runBytes += 2 * s.held / int64(models*s.chains(batches[0])) // a run reads states, and makes them
	p := plan{workers: workers, resident: int64(models)*c.sessionBytes+int64(workers)*c.runBytes <= half}
	group := models
	if !p.resident { // each worker holds one model, while it opens the next
		p.workers = int(max(1, min(int64(workers), half/(c.runBytes+2*c.sessionBytes))))
		group, p.ahead = p.workers, 2
	} else if c.runBytes > 0 {
		p.workers = int(max(1, min(int64(workers), half/c.runBytes)))
	}
	windows := int(max(1, min(half*3/4/(int64(rows)*s.exampleBytes()), maxChunk)))
	if c.run > 0 {
		enough := float64(c.open) / openShare / float64(c.run) // examples
		if p.resident {
			enough = float64(chunkTime) / float64(c.run) * float64(p.workers) / float64(models)
		}
		windows = max(1, min(windows, int(math.Ceil(enough/float64(rows)))))
	}
	all := s.data.Len() / rows
	p.chunk = ceil(all, ceil(all, windows)) * rows // chunks of equal size
	p.divide(parts, batches, group)
	return p, nil
}

// runStateful sends the windows of a chunk through the models of a group. Runs of several models, and of several batches of
// a window, take place at the same time. Each takes the states that the run of the window before gives. An example's sums
// grow in the order of the models.
func (s *Scorer) runStateful(ctx context.Context, group *group, x *examples, c *Chunk) error {
	if err := s.proveStates(ctx, group.sessions[0]); err != nil {
		return err
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(s.plan.workers)
	all := s.stateful.Rows()
	for first := 0; first < x.n && ctx.Err() == nil; first += all {
		for chain := range s.chains(group.batch) {
			var rows []int
			for r := chain * group.batch; r < min(all, (chain+1)*group.batch); r++ {
				rows = append(rows, first+r)
			}
			b := &batch{s, x, rows, group.batch}
			load := sync.OnceValues(func() ([]ort.Tensor, error) {
				inputs, _, err := b.load(group.sessions[0].Session)
				return inputs, err
			})
			var before chan struct{}
			for k, m := range group.sessions {
				states := &s.states[(group.first+k)*all+chain]
				from, to := *states, make(chan []ort.Tensor, 1)
				*states = to
				after := make(chan struct{}, len(rows))
				turn := &turns{before, after}
				before = after
				g.Go(weights.Guarded(func() error {
					if err := b.carry(ctx, m, group.first+k, from, to, load, c, turn); err != nil {
						return fmt.Errorf("%s: %w", m.Name, err)
					}
					return nil
				}))
			}
		}
	}
	return g.Wait()
}

// turns lets models add the outcomes of each example of a batch in their order. nil stands for a model that is alone.
type turns struct {
	before <-chan struct{} // has a value for each example that the model before has added; nil for the first
	after  chan<- struct{}
}

func (t *turns) wait(ctx context.Context) (err error) {
	if t != nil && t.before != nil {
		_, _, err = receive(ctx, t.before)
	}
	return err
}

// carry runs model k from the states that its last run on these rows gives, and adds its outcomes.
func (b *batch) carry(ctx context.Context, m *loaded, k int, before <-chan []ort.Tensor, after chan<- []ort.Tensor,
	load func() ([]ort.Tensor, error), c *Chunk, turn *turns) error {
	from, _, err := receive(ctx, before)
	if err != nil {
		return err
	}
	inputs, err := load()
	if err != nil {
		return err
	}
	var fresh []int
	for i, row := range b.rows {
		if b.stateful.Past(b.in.first+row) == 0 {
			fresh = append(fresh, i)
		}
	}
	if len(fresh) == len(b.rows) {
		from = nil
	} else if len(fresh) > 0 && from != nil {
		from = m.Session.states.reset(from, fresh)
	}
	out, next, err := m.RunFrom(ctx, inputs, from)
	if err != nil {
		return err
	}
	after <- next
	if b.in.replay {
		return nil
	}
	rows := int(inputs[0].Shape[0])
	all, err := m.together(out, rows)
	if err != nil {
		return err
	}
	t, layout, scores, err := b.judge(m, all, rows)
	if err != nil {
		return err
	}
	return b.add(ctx, m, k, t, layout, scores, c, turn)
}

// proveStates checks by runs what [states] says of a graph, once. A row must not change the scores and the states of other
// rows. Two windows, with the states passed on, must have the scores of one long window.
func (s *Scorer) proveStates(ctx context.Context, m *loaded) error {
	if m.Session.states == nil {
		return nil
	}
	m.Graph.proven.Do(func() { m.Graph.wrong = s.prove(ctx, m) })
	return m.Graph.wrong
}

// named helps a graph whose axes have no names.
const named = "export with names of axes, and the same name for the batch of the inputs, the states and the scores: dynamic_axes, or " +

	"dynamic_shapes"

func (s *Scorer) prove(ctx context.Context, m *loaded) error {
	const few = 3
	rows := cmp.Or(m.FixedBatch(), few)
	var whole []int // windows that are not shorter than others, so that no half is only padding
	for i := range s.data.Len() {
		if n := dataset.Length(s.data, 0, i); n < 0 || n == int(dataset.Fields(s.data)[0].Shape[0]) {
			whole = append(whole, i)
		}
	}
	idx := make([]int, rows)
	for r := range idx {
		idx[r] = whole[r*max(1, len(whole)/rows)%len(whole)]
	}
	values, err := dataset.ReadBatch(s.data, s.size.Make(rows), idx)
	if err != nil {
		return err
	}
	inputs, err := m.feed(s.data, nil, rows, nil, values)
	if err != nil {
		return err
	}
	run := func(from []ort.Tensor, axis int, idx []int) (scores ort.Tensor, states []ort.Tensor, err error) {
		var own []ort.Tensor
		for _, t := range inputs {
			own = append(own, picked(t, axis, idx))
		}
		out, states, err := m.RunFrom(ctx, own, from)
		if err != nil {
			return scores, nil, err
		}
		return out[0], states, nil
	}
	want, ends, err := run(nil, 0, indices(0, rows))
	if err != nil {
		return err
	}
	tolerance := 1e-3 // of the largest value; another order of sums differs by less
	if p := s.engine.how.Provider; p != p.Exact() {
		tolerance = 0.1
	}
	differ := func(got, want ort.Tensor) error { return differ(got, want, tolerance) }
	if rows > 1 { // row 0 gets the inputs of row 1
		order := append([]int{1}, indices(1, rows)...)
		got, states, err := run(nil, 0, order)
		if err == nil {
			err = differ(got, picked(want, 0, order))
		}
		if err != nil {
			return &onnxio.Error{
				Tensor: m.Output(),
				What:   "the scores of a row change with the other rows of its batch",
				Err:    err,
				Hint:   named,
			}
		}
		for i, p := range m.States() {
			if err := differ(states[i], picked(ends[i], p.Axis, order)); err != nil {
				return &onnxio.Error{
					Tensor: p.In,
					What:   fmt.Sprintf("axis %d of the state is not the batch: a row changes the states of others", p.Axis),
					Err:    err,
					Hint:   named,
				}
			}
		}
	}
	long := s.timeOf(m, inputs)
	if half := long / 2; half > 0 {
		_, from, err := run(nil, 1, indices(0, half))
		var got ort.Tensor
		if err == nil {
			got, _, err = run(from, 1, indices(half, long))
		}
		switch m.Axis() {
		case -1:
			want = picked(want, 1, indices(half, long))
		case 1:
			want = picked(want, 2, indices(half, long))
		}
		if err == nil {
			err = differ(got, want)
		}
		if err != nil {
			var pairs []string
			for _, p := range m.States() {
				pairs = append(pairs, p.In+"="+p.Out)
			}
			return &onnxio.Error{Tensor: m.Output(), Err: err,
				What: fmt.Sprintf("two halves of a window, with states carried from the first to the second (%s), have other scores "+
					"than the whole window", strings.Join(pairs, ", ")),
				Hint: "a wrong pair gives this, and a network that looks ahead: " +
					setting.Fit.With(setting.State.With("IN=OUT,IN=OUT")) + " names the pairs"}
		}
	}
	return nil
}

// timeOf returns the length of windows if all inputs are free along it and share it, or 0.
func (s *Scorer) timeOf(m *loaded, inputs []ort.Tensor) (long int) {
	for i, t := range inputs {
		if len(t.Shape) < 2 || m.Session.inputs[i].Shape[1] >= 0 || i > 0 && t.Shape[1] != int64(long) {
			return 0
		}
		long = int(t.Shape[1])
	}
	return long
}

// differ returns an error if two tensors differ by more than a share of their largest value.
func differ(got, want ort.Tensor, tolerance float64) error {
	a, err := Float32s(got)
	if err != nil {
		return err
	}
	b, err := Float32s(want)
	if err != nil {
		return err
	}
	if !slices.Equal(got.Shape, want.Shape) {
		return fmt.Errorf("shape %v, want %v", got.Shape, want.Shape)
	}
	largest := 0.0
	for _, v := range b {
		largest = max(largest, math.Abs(float64(v)))
	}
	for i, v := range a {
		if !(math.Abs(float64(v)-float64(b[i])) <= tolerance*largest) {
			return fmt.Errorf("%v in place of %v", v, b[i])
		}
	}
	return nil
}
