package moments

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"sort"
)

// Predicted is what a file keeps of an ensemble's predictions of validation data: the distributions of confidence, entropies
// and other numbers, and how often each class was predicted.
type Predicted struct {
	Data     string    `json:"data"` // a name for messages
	Examples int       `json:"examples"`
	Numbers  []Numbers `json:"numbers"`
	Classes  []int     `json:"classes,omitempty"` // examples by predicted class
}

// Numbers is the distribution of a number over examples. Counts has one element more than Edges: examples whose number is at most
// the edge, except for rounding, and those above all edges. Examples whose number is NaN have none.
type Numbers struct {
	Name   string    `json:"name"`
	Edges  []float64 `json:"edges"` // rising; quantiles 1/64, 2/64 …
	Counts []int     `json:"counts"`
}

const (
	predictedQuantiles = 64
	// FalseAlarms is the highest probability that predictions like those of validation data are reported as different.
	FalseAlarms = 1e-3
	// MinDistance is the distance that is reported at least. A smaller one is not, however many examples show it: it means
	// that fewer than 5 % of the examples would have to change.
	MinDistance = 0.05
)

// NewPredicted returns the distributions of numbers by name and example, and of the predicted classes; these are nil for a
// task without classes. It returns nil for fewer than two examples.
func NewPredicted(data string, names []string, numbers [][]float64, predicted []int, classes int) *Predicted {
	p := &Predicted{Data: data}
	for k, name := range names {
		sorted := slices.DeleteFunc(slices.Clone(numbers[k]), math.IsNaN)
		slices.Sort(sorted)
		if len(sorted) < 2 {
			continue
		}
		n := Numbers{Name: name}
		for q := 1; q < predictedQuantiles; q++ {
			if e := sorted[q*(len(sorted)-1)/predictedQuantiles]; !math.IsInf(e, 0) {
				n.Edges = append(n.Edges, e)
			}
		}
		step := n.rounding()
		n.Edges = slices.CompactFunc(n.Edges, func(a, b float64) bool { return math.Abs(b-a) <= 2*step })
		if n.Edges == nil {
			continue
		}
		n.Counts = make([]int, len(n.Edges)+1)
		for _, v := range sorted {
			n.Counts[n.bin(v)]++
		}
		p.Examples = max(p.Examples, len(sorted))
		p.Numbers = append(p.Numbers, n)
	}
	if classes > 0 {
		p.Classes = make([]int, classes)
		for _, c := range predicted {
			p.Classes[c]++
		}
	}
	if p.Examples < 2 || len(p.Numbers) == 0 {
		return nil
	}
	return p
}

// bin returns the index of the count that a number belongs to.
func (n Numbers) bin(v float64) int { return sort.SearchFloat64s(n.Edges, v-n.rounding()) }

// rounding is how much a number may differ by how it was saved: an entropy may be 0 in a table, and 1e-12 otherwise.
func (n Numbers) rounding() float64 {
	if len(n.Edges) == 0 {
		return 0
	}
	return 1e-6 * max(math.Abs(n.Edges[0]), math.Abs(n.Edges[len(n.Edges)-1]))
}

// Sound returns an error if the content of a file is invalid.
func (p *Predicted) Sound() error {
	if p == nil {
		return errors.New("no predictions")
	}
	total := func(counts []int) (sum int) {
		for _, c := range counts {
			if c < 0 || c > p.Examples {
				return -1
			}
			sum += c
		}
		return sum
	}
	for _, n := range p.Numbers {
		if t := total(n.Counts); len(n.Edges) == 0 || len(n.Counts) != len(n.Edges)+1 || !slices.IsSorted(n.Edges) || t < 2 ||
			t > p.Examples {
			return fmt.Errorf("%q: want %d counts of up to %d examples, and rising edges", n.Name, len(n.Edges)+1, p.Examples)
		}
	}
	if t := total(p.Classes); p.Classes != nil && (t < 2 || t > p.Examples) || p.Examples < 2 || len(p.Numbers) == 0 {
		return fmt.Errorf("predictions of %d examples, want as many classes, and numbers", p.Examples)
	}
	return nil
}

// Shares returns how often each class was predicted, or nil for a task without classes.
func (p *Predicted) Shares() (shares []float64) {
	for _, n := range p.Classes {
		shares = append(shares, float64(n)/float64(p.Examples))
	}
	return shares
}

// Empty returns the same distributions without examples.
func (p *Predicted) Empty() *Predicted {
	out := &Predicted{Classes: make([]int, len(p.Classes))}
	for _, n := range p.Numbers {
		out.Numbers = append(out.Numbers, Numbers{n.Name, n.Edges, make([]int, len(n.Counts))})
	}
	return out
}

// Add adds an example with its numbers in their order, and its predicted class. The class is −1 for a task without classes.
func (p *Predicted) Add(numbers []float64, class int) {
	p.Examples++
	for k, v := range numbers {
		if n := p.Numbers[k]; v == v {
			n.Counts[n.bin(v)]++
		}
	}
	if class >= 0 && class < len(p.Classes) {
		p.Classes[class]++
	}
}

// Distance is the distance of a distribution to that of validation data.
type Distance struct {
	Name string `json:"name"` // "prediction" for the predicted classes
	// Distance is Kolmogorov's of numbers, the largest difference of the distribution functions; and the total variation of classes.
	Distance float64 `json:"distance"`
	Chance   float64 `json:"chance"` // the part that chance may explain
	Off      bool    `json:"off"`    // the distance exceeds Chance and [MinDistance]
	// Was and Is are medians; of classes the shares of Class, the one whose share changed most.
	Was   float64 `json:"was"`
	Is    float64 `json:"is"`
	Class int     `json:"class,omitempty"`
	// Bound is "at most" or "above" if the median Is lies outside all edges, so that only this is known of it.
	Bound string `json:"bound,omitempty"`
}

// Compare compares the distributions of other data with those of validation data. If data are alike, it finds one that
// is off with a probability of at most [FalseAlarms]. units is the number of independent examples, at most Examples.
//
// With n and m independent examples and level α for each of the tests (Bonferroni), chance explains for numbers
//
//	√(½·ln(2/α)·(1/n + 1/m))
//
// (Massart 1990; for two samples Wei and Dudley 2012). The grid of edges only lowers the distance. For classes it
// explains the mean of the distance, at most ½·Σ√(p(1−p)(1/n + 1/m)), and √(½·ln(1/α)·(1/n + 1/m)) (McDiarmid 1989).
// Both hold for any distribution and any number of examples.
func (p *Predicted) Compare(is *Predicted, units int) (all []Distance) {
	tests := float64(len(p.Numbers))
	if p.Classes != nil {
		tests++
	}
	level := FalseAlarms / tests
	add := func(d Distance) {
		d.Off = d.Distance > max(d.Chance, MinDistance)
		all = append(all, d)
	}
	for k, was := range p.Numbers {
		now := is.Numbers[k]
		a, b := cumulative(was.Counts), cumulative(now.Counts)
		if now.total() == 0 {
			continue
		}
		d := Distance{Name: was.Name}
		d.Was, _ = was.median()
		d.Is, d.Bound = now.median()
		for i := range a {
			d.Distance = max(d.Distance, math.Abs(a[i]-b[i]))
		}
		d.Chance = math.Sqrt(math.Log(2/level) / 2 * (1/float64(was.total()) + 1/float64(min(now.total(), units))))
		add(d)
	}
	if p.Classes == nil {
		return all
	}
	n, m := 0, 0
	for c := range p.Classes {
		n, m = n+p.Classes[c], m+is.Classes[c]
	}
	if m == 0 {
		return all
	}
	d, most, each := Distance{Name: "prediction"}, -1.0, 1/float64(n)+1/float64(min(m, units))
	for c := range p.Classes {
		was, now := float64(p.Classes[c])/float64(n), float64(is.Classes[c])/float64(m)
		both := float64(p.Classes[c]+is.Classes[c]) / float64(n+m)
		d.Distance += math.Abs(was-now) / 2
		d.Chance += math.Sqrt(both*(1-both)*each) / 2
		if off := math.Abs(was - now); off > most {
			most, d.Class, d.Was, d.Is = off, c, was, now
		}
	}
	d.Chance += math.Sqrt(math.Log(1/level) / 2 * each)
	add(d)
	return all
}

func (n Numbers) total() (sum int) {
	for _, c := range n.Counts {
		sum += c
	}
	return sum
}

// median returns the first edge that half of the examples do not exceed. bound is "at most" if that is the first edge. If half
// of the examples exceed the last edge, median returns that edge and "above".
func (n Numbers) median() (edge float64, bound string) {
	for k, share := range cumulative(n.Counts) {
		switch {
		case share < 0.5 || k >= len(n.Edges):
		case k == 0:
			return n.Edges[0], "at most"
		default:
			return n.Edges[k], ""
		}
	}
	if len(n.Edges) == 0 {
		return math.NaN(), ""
	}
	return n.Edges[len(n.Edges)-1], "above"
}

// cumulative returns the shares up to each bin.
func cumulative(counts []int) []float64 {
	all, sum := 0, 0
	for _, c := range counts {
		all += c
	}
	out := make([]float64, len(counts))
	for i, c := range counts {
		sum += c
		out[i] = float64(sum) / float64(max(all, 1))
	}
	return out
}
