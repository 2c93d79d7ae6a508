package infer

import (
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/task"
	"github.com/swagwrap/swagwrap/weights"
)

// A Chunk is the result of models for consecutive examples.
type Chunk struct {
	First, Len int     // examples
	Errs       []error // why an example has no result, or nil
	Sums               // over the models, a row for each example
	// Members holds each model's outcome for each example, Len×S×Width, for S models. Nil unless they are kept.
	Members []float32
	// Entropies holds the entropy of each model's outcome, Len×S, along with Members.
	Entropies []float64
	// Ran is the number of models that each example went through. Nil means all.
	Ran []int

	scorer *Scorer
	in     *examples
	own    [][]bool // the positions that are each example's own; nil for all
	open   []int    // examples that still go through models
	spread spread
	mu     sync.Mutex // guards the first call of make
}

// newChunk returns c, or a new Chunk, ready for the results of x.
func (s *Scorer) newChunk(c *Chunk, x *examples) *Chunk {
	if c == nil {
		c = &Chunk{scorer: s}
	}
	c.First, c.Len, c.Errs, c.in = x.first, x.n, x.errs, x
	c.Sums = Sums{Outcome: c.Outcome[:0], Entropy: c.Entropy[:0]}
	c.open = s.openRows(c.open[:0], x)
	return c
}

// resultBytes returns the memory of a Chunk for one example.
func (s *Scorer) resultBytes() int64 {
	n := int64(8*s.width() + 8)
	if s.keep {
		n += int64(s.count * (4*s.width() + 8))
	}
	if s.settle != nil {
		n += int64(8 * (s.settle.Unit*s.width() + len(s.settle.Weights)*(s.width()+1)))
	}
	return n
}

// make allocates the results, once the task is known.
func (c *Chunk) make() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.Task != nil {
		return
	}
	c.Task = c.scorer.task
	if c.scorer.evidence && evident(c.Task) != nil {
		c.Evidence = make([]float64, 2*c.Len)
	}
	c.Outcome, c.Entropy = zeros(c.Outcome, c.Len*c.scorer.width()), zeros(c.Entropy, c.Len)
	c.findOwn()
	if c.scorer.keep {
		c.Members, c.Entropies = zeros(c.Members, c.Len*c.scorer.count*c.scorer.width()), zeros(c.Entropies, c.Len*c.scorer.count)
	}
	if c.scorer.settle != nil {
		c.spread.make(c.Len, c.scorer.width(), c.scorer.settle.Unit, c.scorer.settle.Weights)
		c.Ran = zeros(c.Ran, c.Len)
	}
}

// zeros returns n zeros, in the memory of buffer if it is large enough.
func zeros[T int | float32 | float64](buffer []T, n int) []T {
	if cap(buffer) < n {
		return make([]T, n)
	}
	clear(buffer[:n])
	return buffer[:n]
}

// add adds the outcome of model number k for an example.
func (c *Chunk) add(row, k int, outcome []float64, entropy, weight float64) {
	c.Add(row, outcome, entropy, weight)
	if c.scorer.settle != nil {
		c.Ran[row] = k + 1
		c.spread.add(row, k, outcome, entropy, weight)
	}
	if c.scorer.keep {
		kept := c.Members[(row*c.scorer.count+k)*len(outcome):][:len(outcome)]
		for j, v := range outcome {
			kept[j] = float32(v)
		}
		c.Entropies[row*c.scorer.count+k] = entropy
	}
}

// findOwn finds the positions that only fill up their example, and marks them in the outcomes.
func (c *Chunk) findOwn() {
	t := c.Task
	if c.own = nil; !task.Large(t) || task.SpecOf(t).Sides[1] > 0 { // pictures are not filled up
		return
	}
	c.own = make([][]bool, c.Len)
	width := t.About().Width
	for row := range c.own {
		if c.Errs[row] != nil {
			continue
		}
		var v dataset.Values
		if c.in.bytes == nil {
			v = c.in.values.Rows(c.scorer.size, row, row+1)
		}
		c.own[row] = dataset.Own(c.scorer.data, v, c.First+row, task.Positions(t))
		for p, own := range c.own[row] {
			if !own {
				task.Pad(t, c.Outcome[row*width:][:width], p)
			}
		}
	}
}

// each calls f with the positions among the first n that are the example's own. It returns their number.
func (c *Chunk) each(row, n int, f func(p int)) (count int) {
	for p := range n {
		if c.own != nil && c.own[row] != nil && !c.own[row][p] {
			continue
		}
		f(p)
		count++
	}
	return count
}

// ownScores returns the scores of the positions that are the example's own, and their number.
func (c *Chunk) ownScores(t task.Task, row int, scores []float32, positions int) (own []float32, count int) {
	spec := task.SpecOf(t)
	if c.own == nil || c.own[row] == nil {
		return scores, positions
	}
	if spec.Axis != 1 {
		count = c.each(row, positions, func(p int) { own = append(own, scores[p*spec.Count:][:spec.Count]...) })
		return own, count
	}
	for k := range spec.Count {
		count = c.each(row, positions, func(p int) { own = append(own, scores[k*positions+p]) })
	}
	return own, count
}

// addScores adds the scores of model number k for an example. A large outcome is added in place, since it may take as much as
// all other memory. For others, one is memory for an outcome.
func (c *Chunk) addScores(t task.Task, row, k int, scores []float32, weight float64, one []float64) error {
	if task.Large(t) {
		return c.addPositions(t, row, scores, weight)
	}
	entropy, err := t.Outcome(one, scores)
	if err == nil {
		c.add(row, k, one, entropy, weight)
	}
	return err
}

// addPositions adds the scores of a model for an example with several positions. All cores share large examples.
func (c *Chunk) addPositions(t task.Task, row int, scores []float32, weight float64) error {
	const block = 1 << 14 // positions; the sums do not depend on it, except for the last bits of the mean entropy
	width, n := t.About().Width, len(scores)/task.SpecOf(t).Count
	own := n
	if c.own != nil && c.own[row] != nil {
		own = c.each(row, n, func(int) {})
	}
	sum, entropies := c.Outcome[row*width:][:width], make([]float64, ceil(n, block))
	var g errgroup.Group
	g.SetLimit(c.scorer.plan.workers)
	for k := range entropies {
		g.Go(weights.Guarded(func() (err error) {
			entropies[k], err = task.AddPositions(t, sum, scores, weight, k*block, min((k+1)*block, n))
			return err
		}))
	}
	err := g.Wait()
	for _, v := range entropies {
		c.Entropy[row] += float64(weight * v / float64(own))
	}
	return err
}
