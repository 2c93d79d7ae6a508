package printed

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sort"

	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/reference"
	"github.com/swagwrap/swagwrap/internal/setting"
	"github.com/swagwrap/swagwrap/internal/target"
	"github.com/swagwrap/swagwrap/internal/task"
	"github.com/swagwrap/swagwrap/weights"
)

// A search looks for what makes all numbers agree.
type search struct {
	*Check
	base *figures
	last infer.Model
}

// causes are tried in this order. The first ones are arithmetic. Each of the others runs networks over the data.
var causes = []func(*search, context.Context) (*Cause, error){
	(*search).classes, (*search).arithmetic, (*search).weights, (*search).trainingMode, (*search).half,
}

// cause returns the first cause with which all numbers agree, or nil.
func (s *search) cause(ctx context.Context) (*Cause, error) {
	_, counted := s.counted(s.base)
	tries := causes
	if !counted {
		tries = tries[1:2] // no other change makes the numbers of examples equal
	}
	for _, try := range tries {
		if found, err := try(s, ctx); found != nil || err != nil {
			return found, err
		}
	}
	switch {
	case !counted:
		return &Cause{fmt.Sprintf("other examples: your evaluation counted %d, and here are %d with a label", s.Examples, s.base.examples),
			[]string{"give the examples that your evaluation read, or evaluate these"}}, nil
	case s.impossible() != nil:
		x := s.impossible()
		return &Cause{fmt.Sprintf("other examples, or a mean of batches: no number of right ones among %d gives %s %s", s.base.examples,
			x.Name, x.typed()), []string{"say how many examples your evaluation read: n=…"}}, nil
	}
	return nil, nil
}

// impossible returns an accuracy that so many examples cannot have.
func (s *search) impossible() *Number {
	n := float64(s.base.examples)
	for i := range s.List {
		x := &s.List[i]
		counts := s.base.positions == s.base.examples && s.base.right != s.base.right
		if !counts || !x.metric.is(counted) {
			continue
		}
		if k := math.Round(x.value * n); math.Abs(k/n-x.value) > x.half+1e-6 { // float32 has seven digits
			return x
		}
	}
	return nil
}

// classes tries another order of the classes: that in which each class of the labels is the one that the network predicts for it.
func (s *search) classes(ctx context.Context) (*Cause, error) {
	const most = 2048
	k := task.OnePosition(s.task).About().Classes
	if k < 2 || k > most || task.TraitsOf(s.task.About().Name).Text {
		return nil, nil
	}
	c := &confusion{classes: k, counts: make([]int, k*k)}
	if err := s.again(ctx, s.last, c); err != nil {
		return nil, err
	}
	order := c.order()
	at := 0
	for at < k && order[at] == at {
		at++
	}
	if at == k {
		return nil, nil
	}
	p := &plainly{of: s.Check, label: func(l target.Target) target.Target {
		l.Classes = slices.Clone(l.Classes)
		for i, class := range l.Classes {
			if class >= 0 {
				l.Classes[i] = order[class]
			}
		}
		return l
	}}
	if err := s.again(ctx, s.last, p); err != nil {
		return nil, err
	}
	if s.distance(p.readings(), s.base) > 1 {
		return nil, nil
	}
	return &Cause{
		Words: fmt.Sprintf("other order of classes: the examples with the label %s are class %d of the network", s.label(at), order[at]),
		Hints: []string{"number the labels as in training, or " + setting.ClassNames.With("FILE") + " of fit gives the names in the " +
			"network's order"},
	}, nil
}

func (s *search) label(class int) string {
	if names := s.Data.ClassNames(); class < len(names) {
		return fmt.Sprintf("%d (%s)", class, names[class])
	}
	return fmt.Sprint(class)
}

// confusion counts predictions by label.
type confusion struct {
	classes int
	counts  []int // label × prediction
}

func (c *confusion) add(t task.Task, outcome []float64, label target.Target) error {
	return task.EachKnown(t, outcome, label, func(_ int, row []float64, one target.Target) error {
		best := 0
		for i, p := range row[:c.classes] {
			if p > row[best] {
				best = i
			}
		}
		c.counts[one.Classes[0]*c.classes+best]++
		return nil
	})
}

// order returns the class of the network for each class of the labels. Pairs with the most examples come first.
func (c *confusion) order() []int {
	pairs := make([]int, 0, len(c.counts))
	for i, n := range c.counts {
		if n > 0 {
			pairs = append(pairs, i)
		}
	}
	sort.SliceStable(pairs, func(a, b int) bool { return c.counts[pairs[a]] > c.counts[pairs[b]] })
	order, taken := slices.Repeat([]int{-1}, c.classes), make([]bool, c.classes)
	for _, p := range pairs {
		if l, to := p/c.classes, p%c.classes; order[l] < 0 && !taken[to] {
			order[l], taken[to] = to, true
		}
	}
	for l := range order { // classes without examples keep their places, if these are free
		if order[l] < 0 && !taken[l] {
			order[l], taken[l] = l, true
		}
	}
	for l := range order {
		if order[l] < 0 {
			order[l] = slices.Index(taken, false)
			taken[order[l]] = true
		}
	}
	return order
}

// sizes are usual batch sizes.
var sizes = []int{32, 64, 128, 16, 256, 8, 512, 100, 10, 20, 50, 200, 1000, 1024, 24, 48, 96, 192, 384, 40, 80, 160, 320, 25, 250, 500, 300,
	400, 2048, 4096, 4, 2}

// smoothings are usual values of label smoothing.
var smoothings = []float64{0.1, 0.05, 0.2, 0.01, 0.02, 0.15, 0.25, 0.3, 0.4, 0.5}

// arithmetic tries what follows from the outcomes of the last checkpoint: fewer examples, means over batches, smoothed labels.
func (s *search) arithmetic(ctx context.Context) (*Cause, error) {
	n := s.base.examples
	var all []trial
	var words []string
	var hints []string
	try := func(c trial, hint, format string, args ...any) {
		all, words, hints = append(all, c), append(words, fmt.Sprintf(format, args...)), append(hints, hint)
	}
	const same = "give the same examples to both"
	if s.Examples > 0 && s.Examples < n {
		try(&plainly{of: s.Check, first: s.Examples}, same, "other examples: these are the numbers of the first %d of %d", s.Examples, n)
	} else if s.Examples == 0 {
		tried := map[int]bool{n: true, 0: true}
		for _, size := range sizes[:8] {
			if first := n - n%size; !tried[first] {
				tried[first] = true
				try(&plainly{of: s.Check, first: first}, "drop_last=False reads all examples", "other examples: these are the numbers of "+
					"the first %d of %d, as a loader with batches of %d and drop_last reads them", first, n, size)
			}
		}
	}
	if _, counted := s.counted(s.base); counted {
		for _, size := range sizes {
			if size < n {
				try(&batches{of: s.Check, size: size}, "weigh each batch by its examples, or add up over examples",
					"mean over batches instead of examples: over batches of %d, of which the last has %d", size, (n-1)%size+1)
			}
		}
		for _, e := range smoothings {
			try(&plainly{of: s.Check, smoothing: e}, "evaluate with the loss without label smoothing",
				"label smoothing of %g in the loss", e)
		}
	}
	var counters []counter
	for _, c := range all {
		counters = append(counters, c)
	}
	if err := s.again(ctx, s.last, counters...); err != nil {
		return nil, err
	}
	var found *Cause
	var others []string // of other kinds, which few digits do not distinguish
	nearest, at := 1.0, -1
	for i, c := range all {
		switch d := s.distance(c.readings(), s.base); {
		case d > 1:
		case at < 0 || d < nearest:
			if at >= 0 && hints[at] != hints[i] {
				others = append(others, words[at])
			}
			found, nearest, at = &Cause{words[i], []string{hints[i]}}, d, i
		case hints[at] != hints[i] && len(others) == 0:
			others = append(others, words[i])
		}
	}
	if len(others) > 0 {
		found.Hints = append(found.Hints, "as well: "+others[len(others)-1]+". More digits distinguish them")
	}
	return found, nil
}

// batches makes means over batches.
type batches struct {
	of    *Check
	size  int
	batch *plainly
	count int
	sums  [][]reading // by number
}

func (b *batches) add(t task.Task, outcome []float64, label target.Target) error {
	if b.batch == nil {
		b.batch = &plainly{of: b.of}
	}
	err := b.batch.add(t, outcome, label)
	if b.batch.examples == b.size {
		b.end()
	}
	return err
}

func (b *batches) end() {
	all := b.batch.readings()
	b.batch = nil
	b.count++
	if b.count == 1 {
		b.sums = all
		return
	}
	for i, sums := range b.sums {
		for k := range sums {
			if k < len(all[i]) {
				sums[k].value += all[i][k].value
			} else { // such as of a batch without one of two classes
				sums[k].value = math.NaN()
			}
		}
	}
}

func (b *batches) readings() [][]reading {
	if b.batch != nil {
		b.end()
	}
	for _, sums := range b.sums {
		for k := range sums {
			sums[k].value /= float64(b.count)
		}
	}
	return b.sums
}

// gives returns what a network gives, and whether all numbers agree with it.
func (s *search) gives(ctx context.Context, run infer.Run, m infer.Model) (equal bool, all [][]reading, err error) {
	p := &plainly{of: s.Check}
	if err := s.pass(ctx, run, m, false, p); err != nil {
		return false, nil, err
	}
	all = p.readings()
	return s.distance(all, s.base) <= 1, all, nil
}

// mostOthers bounds the passes over the data for other weights.
const mostOthers = 32

func (s *search) weights(ctx context.Context) (*Cause, error) {
	for i, o := range s.Others {
		if i == mostOthers {
			break
		}
		m, err := o.Open(ctx)
		equal := false
		if err == nil {
			equal, _, err = s.gives(ctx, s.Run, m)
		}
		if ctx.Err() != nil {
			return nil, err
		}
		if equal {
			return &Cause{"these are the numbers of " + o.Words, []string{"give the numbers of the last checkpoint alone"}}, nil
		}
	}
	return nil, nil
}

// trainingMode runs the last checkpoint with the batch-norm statistics of each batch, in batches of usual sizes.
func (s *search) trainingMode(ctx context.Context) (*Cause, error) {
	if s.Network.Layers()+len(s.Network.Kept()) == 0 || s.Network.FixedBatch() {
		return nil, nil
	}
	p := s.Network.Posterior
	t, err := reference.Training(s.Network.Skeleton(), p.Layout)
	if err != nil {
		return nil, nil //nolint:nilerr // such as of another operator set
	}
	m, err := s.Network.Other(t, "last checkpoint in training mode", p.Last(), weights.Slice(p.Statistics))
	if err != nil {
		return nil, nil
	}
	for _, size := range sizes[:8] {
		how := s.Run.Options()
		how.BatchSize = size
		equal, _, err := s.gives(ctx, s.Run.On(infer.NewEngine(s.Run.Runtime(), how)), m)
		if ctx.Err() != nil {
			return nil, err
		}
		if equal {
			return &Cause{fmt.Sprintf("training mode: batch norm used the statistics of each batch of %d", size),
				[]string{"evaluate in evaluation mode: model.eval() in PyTorch, training=False in Keras and Flax"}}, nil
		}
	}
	return nil, nil
}

// half rounds the weights to the types of half precision. They explain a difference that is not much larger than what this changes.
func (s *search) half(ctx context.Context) (*Cause, error) {
	const times = 2
	p := s.Network.Posterior
	for _, kind := range []struct {
		name string
		bits int
	}{{"bfloat16", 8}, {"float16", 11}} {
		rounded := make([]float32, p.Len())
		if err := p.Last().ReadAt(rounded, 0); err != nil {
			return nil, err
		}
		for i, v := range rounded {
			rounded[i] = float32(reference.Round(float64(v), kind.bits))
		}
		m, err := s.Network.Model("last checkpoint in "+kind.name, weights.Slice(rounded), weights.Slice(p.Statistics))
		if err != nil {
			return nil, err
		}
		_, all, err := s.gives(ctx, s.Run, m)
		if ctx.Err() != nil || err != nil {
			return nil, ctx.Err()
		}
		explains := true
		for i := range s.List {
			x := &s.List[i]
			ours := x.metric.of(s.base)
			changed := math.Abs(all[i][0].value - ours[0].value)
			_, distance := agrees(x, ours, s.base.slack(x)+times*changed)
			explains = explains && distance <= 1
		}
		if explains {
			return &Cause{fmt.Sprintf("half precision: weights in %s change these numbers by as much", kind.name),
				[]string{"evaluate in float32, without autocast"}}, nil
		}
	}
	return nil, nil
}
