package ensemble

// Sums is what a Bayesian model average needs of its members.
type Sums struct {
	Classes int
	Members int
	Weight  float64   // Σ w over members
	Prob    []float64 // Σ w·p over members, n×Classes
	Entropy []float64 // Σ w·H(p) over members, n

	first string // the name of the first, for errors
}

func (s *Sums) init(first string, n, classes int) {
	if s.Prob == nil {
		s.first, s.Classes, s.Prob, s.Entropy = first, classes, make([]float64, n*classes), make([]float64, n)
	}
}

// add adds one member's probabilities for example i and their entropy, with
// weight w.
func (s *Sums) add(i int, p []float64, entropy, w float64) {
	row := s.Prob[i*s.Classes:][:s.Classes]
	for c, v := range p {
		row[c] += float64(w * v)
	}
	s.Entropy[i] += float64(w * entropy)
}

// addRows adds what o holds of the examples from the given one on; not its
// weight.
func (s *Sums) addRows(first int, o *Sums) {
	for i, v := range o.Prob {
		s.Prob[first*s.Classes+i] += v
	}
	for i, v := range o.Entropy {
		s.Entropy[first+i] += v
	}
}

// merge adds the members of o.
func (s *Sums) merge(o *Sums) {
	s.init(o.first, len(o.Entropy), o.Classes)
	s.addRows(0, o)
	s.Members += o.Members
	s.Weight += o.Weight
}

// Mean returns the average probabilities Σ w·p / Σ w, n×Classes.
func (s *Sums) Mean() []float64 { return divided(s.Prob, s.Weight) }

// ExpectedEntropy returns the average of the members' entropies Σ w·H(p) / Σ w
// for each example, in nats.
func (s *Sums) ExpectedEntropy() []float64 { return divided(s.Entropy, s.Weight) }

func divided(sum []float64, weight float64) []float64 {
	out := make([]float64, len(sum))
	for i, v := range sum {
		out[i] = v / weight
	}
	return out
}
