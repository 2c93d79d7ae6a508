package ensemble

import (
	"fmt"
	"math"
	"strings"
	"sync"

	"github.com/swagwrap/swagwrap/calibrate"
)

// Columns says what rows hold beside the prediction and its uncertainty.
type Columns struct {
	Top           int  `json:"top"`           // so many classes, the most probable first
	Probabilities bool `json:"probabilities"` // of all classes
	Members       bool `json:"members"`       // each member's probabilities
}

// A Row is the prediction for one example. Entropies are in nats.
type Row struct {
	Index int    // of the example
	Error string // why there is nothing else, or empty

	Prediction int     // the most probable class, the first of equals
	Confidence float64 // its probability
	// PredictiveEntropy is that of the average, after the temperature or vector
	// scaling where the ensemble has one. The other two are of the members as they are: the mean of
	// their entropies, and how much of the average's entropy is their disagreement.
	PredictiveEntropy, ExpectedEntropy, MutualInformation float64

	// Loss is −log p of the example's label and Square Σ (p_c − 1[c is the label])²;
	// NaN where there is no label.
	Loss, Square float64

	Top           []Ranked
	Probabilities []float64 // nil unless asked for
	Members       []float32 // S×classes, likewise

	probabilities []float64
}

// Ranked is a class and its probability.
type Ranked struct {
	Class       int
	Probability float64
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

// Row returns row i of the chunk, 0 … Len−1, in r, whose memory is used again.
func (c *Chunk) Row(i int, r *Row) {
	s := c.scorer
	*r = Row{Index: c.First + i, Top: r.Top[:0], probabilities: r.probabilities}
	if err := c.errs[i]; err != nil {
		r.Error = oneLine(err)
		r.Prediction = -1
		return
	}
	label := -1
	if s.labels != nil {
		label = s.labels[r.Index]
	}
	r.describe(&c.sums, i, s.calibration, label)
	if s.columns.Probabilities {
		r.Probabilities = r.probabilities
	}
	r.rank(s.columns.Top)
	if s.columns.Members {
		size := s.count * s.classes
		r.Members = c.members[i*size:][:size]
	}
}

// describe fills in the prediction for example i of sums.
func (r *Row) describe(sums *Sums, i int, cal calibration, label int) {
	classes := sums.Classes
	p := zeros(r.probabilities, classes)
	for c := range p {
		p[c] = sums.Prob[i*classes+c] / sums.Weight
	}
	expected := []float64{sums.Entropy[i] / sums.Weight}
	r.ExpectedEntropy = expected[0]
	r.MutualInformation = calibrate.MutualInformation(nil, p, classes, expected)[0]
	cal.apply(p)
	r.probabilities = p
	r.PredictiveEntropy = calibrate.Entropy(p)
	for c, v := range p {
		if v > p[r.Prediction] {
			r.Prediction = c
		}
	}
	r.Confidence = p[r.Prediction]
	r.Loss, r.Square = math.NaN(), math.NaN()
	if label >= 0 {
		r.Loss, r.Square = -math.Log(p[label]), 0
		for c, v := range p {
			if c == label {
				v--
			}
			r.Square += float64(v * v)
		}
	}
}

// rank lists the n most probable classes, of equals the first.
func (r *Row) rank(n int) {
	p := r.probabilities
	for c, v := range p {
		if len(r.Top) == n && v <= r.Top[n-1].Probability {
			continue
		}
		if len(r.Top) < n {
			r.Top = append(r.Top, Ranked{})
		}
		at := len(r.Top) - 1
		for ; at > 0 && r.Top[at-1].Probability < v; at-- {
			r.Top[at] = r.Top[at-1]
		}
		r.Top[at] = Ranked{c, v}
	}
}

// oneLine is an error's text without line ends.
func oneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }
