package infer

import (
	"github.com/swagwrap/swagwrap/internal/target"
	"github.com/swagwrap/swagwrap/internal/task"
)

// Sums holds the sums over members that an average needs. Its memory does not grow with their number.
type Sums struct {
	Task    task.Task
	Members int
	Weight  float64   // Σ w over members
	Outcome []float64 // Σ w·outcome over members, n×Width
	Entropy []float64 // Σ w·entropy over members, n
	// Evidence holds Σ w·log Σ exp z and Σ w·max z over members, 2n, for the logits z. It is nil for a task that is not
	// [task.Evident], and without [Run.Predict] or [Options].Evidence.
	Evidence []float64

	first string // name of the first member, for errors
}

// Init makes room for n examples, unless it was called before. first names the first model.
func (s *Sums) Init(first string, n int, t task.Task) {
	if s.Task == nil {
		s.first, s.Task, s.Outcome, s.Entropy = first, t, make([]float64, n*t.About().Width), make([]float64, n)
		if evident(t) != nil {
			s.Evidence = make([]float64, 2*n)
		}
	}
}

// evident returns the task if it is [task.Evident], or nil.
func evident(t task.Task) task.Evident {
	if e, ok := t.(task.Evident); ok && e.Evident() {
		return e
	}
	return nil
}

// Add adds one member's outcome for example i and its entropy, with weight w.
func (s *Sums) Add(i int, outcome []float64, entropy, w float64) {
	row := s.Outcome[i*len(outcome):][:len(outcome)]
	for c, v := range outcome {
		row[c] += float64(w * v)
	}
	s.Entropy[i] += float64(w * entropy)
}

// addRows adds the sums of o to the examples starting at first. It does not add the weight.
func (s *Sums) addRows(first int, o *Sums) {
	at := first * s.Task.About().Width
	for i, v := range o.Outcome {
		s.Outcome[at+i] += v
	}
	for i, v := range o.Entropy {
		s.Entropy[first+i] += v
	}
	for i, v := range o.Evidence {
		s.Evidence[2*first+i] += v
	}
}

// Scatter adds the sums of o to the given examples of n. It adds neither members nor their weight.
func (s *Sums) Scatter(o *Sums, examples []int, n int) {
	s.Init(o.first, n, o.Task)
	width := s.Task.About().Width
	for k, i := range examples {
		s.Add(i, o.Outcome[k*width:][:width], o.Entropy[k], 1)
		if s.Evidence != nil && o.Evidence != nil {
			s.Evidence[2*i] += o.Evidence[2*k]
			s.Evidence[2*i+1] += o.Evidence[2*k+1]
		}
	}
}

// Merge adds the members of o, if there are any.
func (s *Sums) Merge(o *Sums) {
	if o.Task == nil {
		return
	}
	s.Init(o.first, len(o.Entropy), o.Task)
	s.addRows(0, o)
	if o.Evidence == nil {
		s.Evidence = nil // draws of scores have no logits of networks
	}
	s.Members += o.Members
	s.Weight += o.Weight
}

// addWeighted adds one member whose outcomes have weight 1. The bits are those of the same member with weight w.
func (s *Sums) addWeighted(o *Sums, w float64) {
	for i, v := range o.Outcome {
		s.Outcome[i] += float64(w * v)
	}
	for i, v := range o.Entropy {
		s.Entropy[i] += float64(w * v)
	}
	for i, v := range o.Evidence {
		s.Evidence[i] += float64(w * v)
	}
	s.Members++
	s.Weight += w
}

// Average returns the average over members for example i, in dst of Width numbers.
func (s *Sums) Average(dst []float64, i int) task.Average {
	for c := range dst {
		dst[c] = s.Outcome[i*len(dst)+c] / s.Weight
	}
	a := task.Average{Outcome: dst, Entropy: s.Entropy[i] / s.Weight}
	if s.Evidence != nil {
		a.Evidence = divided(s.Evidence[2*i:][:2], s.Weight)
	}
	return a
}

// Mean returns the average outcomes Σ w·outcome / Σ w, n×Width.
func (s *Sums) Mean() []float64 { return divided(s.Outcome, s.Weight) }

// ExpectedEntropy returns the average of the members' entropies Σ w·H(p) / Σ w
// for each example, in nats.
func (s *Sums) ExpectedEntropy() []float64 { return divided(s.Entropy, s.Weight) }

// MeanEvidence returns the averages of Evidence, or nil.
func (s *Sums) MeanEvidence() []float64 {
	if s.Evidence == nil {
		return nil
	}
	return divided(s.Evidence, s.Weight)
}

// Evaluate scores the average outcomes against the targets of the examples.
func (s *Sums) Evaluate(targets target.Target, opts task.EvaluateOptions) (*task.Evaluation, error) {
	e, outcome := task.NewEvaluator(s.Task, opts), make([]float64, s.Task.About().Width)
	for i := range s.Entropy {
		if err := e.Add(s.Average(outcome, i).Outcome, targets.At(i)); err != nil {
			return nil, err
		}
	}
	return e.Evaluation(), nil
}

func divided(sum []float64, weight float64) []float64 {
	out := make([]float64, len(sum))
	for i, v := range sum {
		out[i] = v / weight
	}
	return out
}
