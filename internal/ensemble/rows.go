package ensemble

import (
	"fmt"
	"iter"
	"strings"
	"sync"

	"github.com/swagwrap/swagwrap/internal/predictions"
	"github.com/swagwrap/swagwrap/internal/task"
)

// Columns says what rows hold beside the prediction and its uncertainty.
type Columns struct {
	Top           int  `json:"top"`           // so many classes, the most probable first
	Probabilities bool `json:"probabilities"` // of all classes
	Members       bool `json:"members"`       // each member's probabilities
}

// A Chunk is what the models say of some examples in a row.
type Chunk struct {
	First, Len int // examples

	scorer *Scorer
	errs   []error

	mu      sync.Mutex // guards the making of what follows
	sums    Sums
	members []float32 // Len×S×classes, if they are kept
}

// newChunk returns c, or a new Chunk, made ready for the results of x.
func (s *Scorer) newChunk(c *Chunk, x *examples) *Chunk {
	if c == nil {
		c = &Chunk{scorer: s}
	}
	c.First, c.Len, c.errs = x.first, x.n, x.errs
	c.sums = Sums{Prob: c.sums.Prob[:0], Entropy: c.sums.Entropy[:0]}
	return c
}

// resultBytes is the memory of a Chunk for one example.
func (s *Scorer) resultBytes() int64 {
	n := int64(8*s.classes + 8)
	if s.columns.Members {
		n += 4 * int64(s.count*s.classes)
	}
	return n
}

// make makes room, once the number of classes is known.
func (c *Chunk) make(classes int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.sums.Entropy) == c.Len {
		return
	}
	c.sums.Classes = classes
	c.sums.Prob, c.sums.Entropy = zeros(c.sums.Prob, c.Len*classes), zeros(c.sums.Entropy, c.Len)
	if c.scorer.columns.Members {
		c.members = zeros(c.members, c.Len*c.scorer.count*classes)
	}
}

// zeros returns n zeros, in the memory of buffer if that is enough.
func zeros[T float32 | float64](buffer []T, n int) []T {
	if cap(buffer) < n {
		return make([]T, n)
	}
	clear(buffer[:n])
	return buffer[:n]
}

// add adds what a model says of the examples from the given one on. k is its
// number.
func (c *Chunk) add(from, k int, m *loaded, o *outcome) {
	n := len(o.entropies)
	classes := len(o.probabilities) / n
	c.make(classes)
	for i := range n {
		row := from + i
		if o.errs != nil && o.errs[i] != nil && c.errs[row] == nil {
			c.errs[row] = fmt.Errorf("%s: %w", m.name, o.errs[i])
		}
		if c.errs[row] != nil {
			continue
		}
		p := o.probabilities[i*classes:][:classes]
		c.sums.add(row, p, o.entropies[i], m.weight)
		if c.scorer.columns.Members {
			kept := c.members[(row*c.scorer.count+k)*classes:][:classes]
			for class, v := range p {
				kept[class] = float32(v)
			}
		}
	}
}

// count notes that the models of a group have been added.
func (c *Chunk) count(g *group) {
	for _, m := range g.sessions {
		c.sums.Members++
		c.sums.Weight += m.weight
	}
}

// want says the same as Columns for a task.
func (s *Scorer) want() task.Want {
	w := task.Want{Top: s.columns.Top, Outcomes: s.columns.Probabilities}
	if s.columns.Members {
		w.Members = s.count
	}
	return w
}

// Task says what the scores are.
func (s *Scorer) Task() task.Task { return s.task }

// Schema returns what the rows hold, of which files show the given number of
// ranked classes. A ranking of one repeats what is there, and is not shown.
func (s *Scorer) Schema(top int) *predictions.Schema {
	columns := s.task.Columns(s.want())
	for i := range columns {
		if c := &columns[i]; c.Kind == task.Ranked {
			c.Hidden, c.Shown = c.Hidden || min(top, c.Shape[0]) < 2, top
		}
	}
	return &predictions.Schema{Columns: columns, ClassNames: s.names, Labels: s.labels != nil, Errors: s.skip, Width: s.task.Width()}
}

// Rows goes through the rows of the chunk, which share memory.
func (c *Chunk) Rows() iter.Seq[*predictions.Row] {
	return func(yield func(*predictions.Row) bool) {
		var row predictions.Row
		for i := range c.Len {
			if c.row(i, &row); !yield(&row) {
				return
			}
		}
	}
}

// row makes row i of the chunk, in the memory of r.
func (c *Chunk) row(i int, r *predictions.Row) {
	s := c.scorer
	at := c.First + i
	*r = predictions.Row{Index: at, Path: s.data.Name(at), Label: -1, Values: r.Values[:0]}
	if s.labels != nil {
		r.Label = s.labels[at]
	}
	if err := c.errs[i]; err != nil {
		r.Error = strings.Join(strings.Fields(err.Error()), " ") // in one line
		return
	}
	average := c.sums.average(i, s.calibration)
	if s.columns.Members {
		size := s.count * s.classes
		average.Members = c.members[i*size:][:size]
	}
	r.Values = s.task.Values(r.Values, s.want(), average, r.Label)
}

// average is what the members say of example i.
func (s *Sums) average(i int, cal calibration) task.Average {
	return task.Average{
		Outcome: divided(s.Prob[i*s.Classes:][:s.Classes], s.Weight),
		Entropy: s.Entropy[i] / s.Weight, Calibrate: cal.apply,
	}
}
