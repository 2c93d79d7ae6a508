package infer

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/swagwrap/swagwrap/internal/tally"
	"github.com/swagwrap/swagwrap/internal/task"
)

// Settling leaves out models of an example once the others would hardly change its average.
//
// Every run has the same number of examples, and lists are filled up to a power of two. So a row depends only on its
// example and the models if the place in a batch does not matter to the network. NewScorer returns a [PlaceError] if it
// does.
type Settling struct {
	// Checks are the numbers of models after which an example is checked, ascending and multiples of Unit. All are less
	// than the number of models.
	Checks []int
	// Unit is the number of consecutive models that are drawn together: 2 for antithetic pairs, otherwise 1.
	Unit int
	// Weights, if not nil, has the weights that the average at each check gives to the models so far. The sum of each list is 1.
	// Without Weights models have their own. The average over all models always has their own.
	Weights [][]float64
	// Settled reports whether an example is settled at a check, which is an index of Checks. variance is the variance of each
	// number of the average of equal models about the average over all models. Both slices are valid only during the call. The
	// calls come from one goroutine.
	Settled func(check int, average task.Average, variance []float64) bool
}

// next returns the first check after so many models, or a number beyond all models.
func (s *Settling) next(ran int) int {
	i, found := slices.BinarySearch(s.Checks, ran)
	if found {
		i++
	}
	if i == len(s.Checks) {
		return math.MaxInt
	}
	return s.Checks[i]
}

// spread holds the sums from which the variance of an average follows. A unit is one model, or the average of an
// antithetic pair. Units are treated as draws from all units, without replacement.
type spread struct {
	squares []float64 // Σ w·x² over units, n×Width
	first   []float64 // the first outcome of a pair, n×Width; nil if a unit is one model
	weight  []float64 // Σ w over models, n
	weight2 []float64 // Σ w² over units, n
	weights [][]float64
	early   []float64 // the averages with these weights, each with the average entropy: n×checks×(Width+1)
}

func (s *spread) make(n, width, unit int, weights [][]float64) {
	s.squares, s.weight, s.weight2 = zeros(s.squares, n*width), zeros(s.weight, n), zeros(s.weight2, n)
	s.weights, s.early = weights, zeros(s.early, n*len(weights)*(width+1))
	if unit > 1 {
		s.first = zeros(s.first, n*width)
	}
}

// add adds the outcome of model k for an example.
func (s *spread) add(row, k int, outcome []float64, entropy, w float64) {
	for check, weights := range s.weights {
		if k < len(weights) && weights[k] != 0 {
			sum := s.early[(row*len(s.weights)+check)*(len(outcome)+1):]
			for c, v := range outcome {
				sum[c] += float64(weights[k] * v)
			}
			sum[len(outcome)] += float64(weights[k] * entropy)
		}
	}
	at := row * len(outcome)
	s.weight[row] += w
	if s.first != nil {
		first := s.first[at:][:len(outcome)]
		if k%2 == 0 {
			copy(first, outcome)
			return
		}
		w *= 2
		for c, v := range outcome {
			v = (v + first[c]) / 2
			s.squares[at+c] += float64(w * v * v)
		}
	} else {
		for c, v := range outcome {
			s.squares[at+c] += float64(w * v * v)
		}
	}
	s.weight2[row] += w * w
}

// variance stores the variance of each number of an average about the average over all units. ran and all count units.
func (s *spread) variance(dst []float64, row, ran, all int, average []float64) {
	w := s.weight[row]
	factor := s.weight2[row] / (w * w) * float64(ran) / float64(ran-1) * (1 - float64(ran)/float64(all))
	for c, mean := range average {
		v := s.squares[row*len(average)+c]/w - mean*mean
		if v <= varianceRounding*mean*mean { // all outcomes are equal
			v = 0
		}
		dst[c] = v * factor
	}
}

// average copies the average at a check to dst, of Width numbers.
func (s *spread) average(dst []float64, row, check int) task.Average {
	sum := s.early[(row*len(s.weights)+check)*(len(dst)+1):]
	copy(dst, sum)
	return task.Average{Outcome: dst, Entropy: sum[len(dst)]}
}

// varianceRounding bounds the rounding of Σx²/n − mean², as a multiple of mean².
const varianceRounding = 1e-14

// Running averages the models of one example as a run with [Settling] does.
type Running struct {
	sums   Sums
	spread spread
	settle *Settling
	ran    int
}

// NewRunning returns a Running of no models.
func NewRunning(t task.Task, s *Settling) *Running {
	r := &Running{settle: s}
	r.sums.Init("", 1, t)
	r.spread.make(1, t.About().Width, s.Unit, s.Weights)
	return r
}

// Add adds the outcome of the next model.
func (r *Running) Add(outcome []float64, entropy, weight float64) {
	r.sums.Add(0, outcome, entropy, weight)
	r.sums.Weight += weight
	r.spread.add(0, r.ran, outcome, entropy, weight)
	r.ran++
}

// Average returns the average so far, and the variance of its numbers about the average over all models.
func (r *Running) Average(all int) (a task.Average, variance []float64) {
	n := len(r.sums.Outcome)
	a, variance = r.sums.Average(make([]float64, n), 0), make([]float64, n)
	if r.ran < all {
		r.spread.variance(variance, 0, r.ran/r.settle.Unit, all/r.settle.Unit, a.Outcome)
	}
	if check, found := slices.BinarySearch(r.settle.Checks, r.ran); found && r.settle.Weights != nil {
		a = r.spread.average(a.Outcome, 0, check)
	}
	return a, variance
}

// Average returns the average over the models that example i went through, in dst of Width numbers.
func (c *Chunk) Average(dst []float64, i int) task.Average {
	if c.Ran == nil {
		return c.Sums.Average(dst, i)
	}
	if check, found := slices.BinarySearch(c.scorer.settle.Checks, c.Ran[i]); found && c.spread.weights != nil {
		return c.spread.average(dst, i, check)
	}
	return c.plain(dst, i)
}

// plain returns the average in which the models that example i went through have their own weights.
func (c *Chunk) plain(dst []float64, i int) task.Average {
	one := Sums{Outcome: c.Outcome[i*len(dst):][:len(dst)], Entropy: c.Entropy[i : i+1], Weight: c.spread.weight[i]}
	return one.Average(dst, 0)
}

// openRows appends the examples of a chunk that go through models. With [Settling], those that could not be read are
// left out, and lists of the same length come together.
func (s *Scorer) openRows(open []int, x *examples) []int {
	for i := range x.n {
		if s.settle == nil || x.errs[i] == nil {
			open = append(open, i)
		}
	}
	if x.lengths != nil {
		slices.SortStableFunc(open, func(a, b int) int { return slices.Compare(x.lengths[a], x.lengths[b]) })
	}
	return open
}

// settle closes the examples that are settled after so many models, and those without usable scores. It reports the
// runs that these save as done.
func (c *Chunk) settle(ran int) {
	s := c.scorer
	check, found := slices.BinarySearch(s.settle.Checks, ran)
	if !found {
		return
	}
	width := s.width()
	outcome, variance := make([]float64, width), make([]float64, width)
	c.open = slices.DeleteFunc(c.open, func(row int) bool {
		if c.Errs[row] != nil {
			return true
		}
		c.spread.variance(variance, row, ran/s.settle.Unit, s.count/s.settle.Unit, c.plain(outcome, row).Outcome)
		if !s.settle.Settled(check, c.Average(outcome, row), variance) {
			return false
		}
		s.report(s.count - ran)
		return true
	})
}

// SettledBatchSize is the largest batch of a run with [Settling], unless the user requests another one. Larger batches are
// hardly faster, and more of the last batch is filled with zeros.
const SettledBatchSize = 32

// preset returns the largest batch that is used without a request.
func (s *Scorer) preset() int {
	if s.settle != nil {
		return SettledBatchSize
	}
	return DefaultBatchSize
}

// placedExamples is how many examples are tried at every place of a batch.
const placedExamples = 4

// A PlaceError says that scores of an example depend on its place in a batch or on the other examples.
type PlaceError struct {
	Name      string // of the example
	BatchSize int
}

func (e *PlaceError) Error() string {
	return fmt.Sprintf("%s: the scores depend, if only in the last bits, on the place in a batch of %d. Settled examples change that "+
		"place", e.Name, e.BatchSize)
}

// placesMeasure reports whether [trial.checkPlaces] measures what a run takes. Lists may be shorter in the first batch, and
// sessions that compile keep what they computed.
func placesMeasure(s *Scorer) bool {
	return s.settle != nil && s.stateful == nil && !Ragged(s.data) && !s.engine.how.Provider.Compiles()
}

// checkPlaces fails if the scores of some of the first examples depend, in any bit, on their place in a batch. It
// compares a batch of different examples with batches of copies of one.
func (t *trial) checkPlaces(ctx context.Context, s *Scorer) error {
	plan, measures := tally.For(ctx, tally.Plan), placesMeasure(s)
	ctx = tally.For(ctx, tally.Check("places in a batch"))
	x := &examples{}
	if err := s.read(ctx, x, 0, min(t.group.batch, s.data.Len())); err != nil {
		return err
	}
	run := func(rows []int) (scores []float32, size int, err error) {
		b := batch{s, x, rows, t.group.batch}
		inputs, values, err := b.load(t.model.Session)
		defer s.spare.giveBack(values)
		if err != nil {
			return nil, 0, err
		}
		var layout Layout
		predict := func() error {
			out, err := t.model.scores(ctx, inputs)
			if err == nil {
				err = s.looking.at(t.model.Graph, b.firstScores(t.model, out, int(inputs[0].Shape[0])))
			}
			if err == nil {
				_, layout, scores, err = s.judge(t.model, out, int(inputs[0].Shape[0]))
			}
			return err
		}
		if measures {
			err = t.timed(s, predict)
		} else {
			err = predict()
		}
		return slices.Clone(scores), layout.Size(), err
	}
	batches := slices.Collect(x.batches(s.openRows(nil, x), t.group.batch))
	if len(batches) == 0 { // no example could be read
		err := s.looking.at(t.model.Graph, nil)
		if err == nil && measures {
			err = t.measure(plan, s)
		}
		return err
	}
	rows := batches[0]
	mixed, size, err := run(rows)
	if err != nil {
		return fmt.Errorf("%s: %w", t.model.Name, err)
	}
	sameBits := func(a, b float32) bool { return math.Float32bits(a) == math.Float32bits(b) }
	for i := range min(placedExamples, len(rows)) {
		copies, _, err := run(slices.Repeat(rows[i:i+1], t.group.batch))
		if err != nil {
			return fmt.Errorf("%s: %w", t.model.Name, err)
		}
		for one := range slices.Chunk(copies, size) {
			if !slices.EqualFunc(one, mixed[i*size:][:size], sameBits) {
				return &PlaceError{s.data.Name(rows[i]), t.group.batch}
			}
		}
	}
	return nil
}
