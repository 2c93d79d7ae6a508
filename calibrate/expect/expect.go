// Package expect estimates the accuracy on data without labels, from what an ensemble's predictions of labelled validation data
// looked like. [New] keeps what is needed of those, [Sums] adds up predictions of other data, and [Reference.Estimate] compares them.
//
// The estimate is the mean of two rules. The first is the share of examples whose confidence is above the threshold that leaves as many
// validation examples below it as are predicted wrong (average thresholded confidence; Garg et al. 2022, arXiv:2201.04234). The second
// is the error on validation data, times the ratio of the disagreement of the members: mutual information here and there (after
// Jiang et al. 2022, arXiv:2106.13799).
//
// # Invariants
//
// Sums of parts of the data, merged, are the sums of all. No rule sees everything: where classes are predicted in other shares than on
// validation data, or the estimated accuracy fell far, there is a bound and no number.
package expect

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"sort"
)

// Reference is what is kept of predictions of validation data.
type Reference struct {
	Data     string `json:"data"` // a name for messages
	Examples int    `json:"examples"`
	Wrong    int    `json:"wrong"`
	// Threshold is the confidence below which as many examples lie as are predicted wrong.
	Threshold float64 `json:"threshold"`
	// Disagreement is the mean over examples of the mutual information of prediction and member, in nats.
	Disagreement float64 `json:"disagreement"`
	Predicted    []int   `json:"predicted"` // examples by predicted class
	// Strata has three rising confidences, which cut examples into four groups with about as many wrong predictions each.
	Strata []float64 `json:"strata"`
	// StratumExamples and StratumWrong are numbers of examples by stratum.
	StratumExamples []int `json:"stratum_examples"`
	StratumWrong    []int `json:"stratum_wrong"`
}

// FewWrong is the smallest number of wrong and of right predictions that a [Reference] needs.
const FewWrong = 10

const strata = 4

// ErrFew is the error of validation data that say too little.
var ErrFew = fmt.Errorf("want at least %d wrong predictions, %d right ones, and members that disagree", FewWrong, FewWrong)

// New returns what to keep of n examples: the confidence, the mutual information, the predicted class of each, and whether it is right.
// It returns [ErrFew] if they say too little.
func New(data string, confidence, disagreement []float64, predicted []int, right []bool, classes int) (*Reference, error) {
	n := len(confidence)
	r := &Reference{Data: data, Examples: n, Predicted: make([]int, classes), StratumExamples: make([]int, strata), StratumWrong: make([]int, strata)}
	var wrong []float64
	for i, ok := range right {
		if confidence[i] != confidence[i] || disagreement[i] != disagreement[i] {
			return nil, fmt.Errorf("example %d: confidence %v, mutual information %v", i, confidence[i], disagreement[i])
		}
		if !ok {
			wrong = append(wrong, confidence[i])
		}
		r.Disagreement += max(0, disagreement[i]) / float64(n)
		r.Predicted[predicted[i]]++
	}
	if r.Wrong = len(wrong); r.Wrong < FewWrong || n-r.Wrong < FewWrong || !(r.Disagreement > 0) {
		return nil, ErrFew
	}
	sorted := slices.Sorted(slices.Values(confidence))
	r.Threshold = between(sorted, r.Wrong)
	slices.Sort(wrong)
	for k := 1; k < strata; k++ {
		r.Strata = append(r.Strata, between(wrong, k*len(wrong)/strata))
	}
	for i, ok := range right {
		h := r.stratum(confidence[i])
		r.StratumExamples[h]++
		if !ok {
			r.StratumWrong[h]++
		}
	}
	return r, nil
}

// between returns the number in the middle of elements k−1 and k of a sorted list: rounding in a file of predictions does not carry a
// value across it.
func between(sorted []float64, k int) float64 { return (sorted[k-1] + sorted[k]) / 2 }

// stratum returns the group of an example, 0 for the least confident.
func (r *Reference) stratum(confidence float64) int { return sort.SearchFloat64s(r.Strata, confidence) }

// Accuracy returns that on validation data.
func (r *Reference) Accuracy() float64 { return 1 - r.errorRate() }

func (r *Reference) errorRate() float64 { return float64(r.Wrong) / float64(r.Examples) }

// Sound returns an error if the content of a file is invalid.
func (r *Reference) Sound() error {
	total := func(counts []int) (sum int) {
		for _, c := range counts {
			if c < 0 || c > r.Examples {
				return -1
			}
			sum += c
		}
		return sum
	}
	within := func(v float64) bool { return v >= 0 && v <= 1 }
	switch {
	case r.Examples < 1 || r.Examples > 1e12 || r.Wrong < FewWrong || r.Examples-r.Wrong < FewWrong:
		return fmt.Errorf("%d of %d examples wrong: %w", r.Wrong, r.Examples, ErrFew)
	case !within(r.Threshold) || !(r.Disagreement > 0) || r.Disagreement > 1e3:
		return fmt.Errorf("threshold %v, disagreement %v, want numbers of 0 to 1, and above 0", r.Threshold, r.Disagreement)
	case len(r.Strata) != strata-1 || !slices.IsSorted(r.Strata) || !within(r.Strata[0]) || !within(r.Strata[strata-2]):
		return errors.New("want three rising strata")
	case len(r.StratumExamples) != strata || len(r.StratumWrong) != strata || total(r.StratumExamples) != r.Examples || total(r.StratumWrong) != r.Wrong:
		return errors.New("want the examples of four strata")
	case len(r.Predicted) < 2 || total(r.Predicted) != r.Examples:
		return errors.New("want the examples by predicted class")
	}
	for h, wrong := range r.StratumWrong {
		if wrong > r.StratumExamples[h] {
			return fmt.Errorf("stratum %d: %d of %d examples wrong", h, wrong, r.StratumExamples[h])
		}
	}
	return nil
}

// Sums adds up predictions. The zero value has none.
type Sums struct {
	Examples     int     `json:"examples"`
	Above        int     `json:"above"`        // confidences above the threshold
	Disagreement float64 `json:"disagreement"` // sum over examples
	Predicted    []int   `json:"predicted"`
	// Strata has the examples by stratum, Labelled those with a label, and Right those whose label is predicted.
	Strata   [strata]int `json:"strata"`
	Labelled [strata]int `json:"labelled"`
	Right    [strata]int `json:"right"`
}

// Known says what is known of the class of an example.
type Known int

// What is known of an example.
const (
	Unlabelled Known = iota
	Wrong
	Right
)

// Add adds an example.
func (s *Sums) Add(r *Reference, confidence, disagreement float64, predicted int, known Known) {
	if s.Predicted == nil {
		s.Predicted = make([]int, len(r.Predicted))
	}
	s.Examples++
	if confidence > r.Threshold {
		s.Above++
	}
	s.Disagreement += max(0, disagreement)
	if predicted >= 0 && predicted < len(s.Predicted) {
		s.Predicted[predicted]++
	}
	h := r.stratum(confidence)
	s.Strata[h]++
	if known != Unlabelled {
		s.Labelled[h]++
	}
	if known == Right {
		s.Right[h]++
	}
}

// Merge adds the examples of another part of the data.
func (s *Sums) Merge(o *Sums) {
	if s.Predicted == nil {
		s.Predicted = make([]int, len(o.Predicted))
	}
	for c, n := range o.Predicted {
		s.Predicted[c] += n
	}
	s.Examples, s.Above, s.Disagreement = s.Examples+o.Examples, s.Above+o.Above, s.Disagreement+o.Disagreement
	for h := range strata {
		s.Strata[h], s.Labelled[h], s.Right[h] = s.Strata[h]+o.Strata[h], s.Labelled[h]+o.Labelled[h], s.Right[h]+o.Right[h]
	}
}

// labelled returns the number of labels.
func (s *Sums) labelled() (n int) {
	for _, l := range s.Labelled {
		n += l
	}
	return n
}

// Why is the reason why there is only a bound.
type Why string

// The reasons for a bound.
const (
	// Large is an estimated drop of [MaxDrop] or more: the rules err by too much there.
	Large Why = "large drop"
	// Shares are predicted classes in other shares. Either the true classes are so, or the network confuses them, and no rule tells.
	Shares Why = "predicted classes"
)

// Estimate is an accuracy to expect. With a bound, only High counts.
type Estimate struct {
	Accuracy   float64 `json:"accuracy"` // NaN is never stored: it is 0 with a bound
	Low        float64 `json:"low"`      // 95 %
	High       float64 `json:"high"`
	Bound      Why     `json:"bound,omitempty"`
	Validation float64 `json:"validation"` // the accuracy on validation data
	Examples   int     `json:"examples"`
	// Confidence and Disagreement are the estimates of the two rules, and Moved the share of predicted classes that chance does not explain.
	Confidence   float64 `json:"by_confidence"`
	Disagreement float64 `json:"by_disagreement"`
	Moved        float64 `json:"moved"`
	// Labels has what labels say; nil without any.
	Labels *Labels `json:"labels,omitempty"`
}

const (
	// MaxDrop is the estimated drop from which there is only a bound.
	MaxDrop = 0.15
	// MaxMoved is the share of moved classes from which there is only a bound.
	MaxMoved = 0.15
	// Credited is the part of a large estimated drop that the bound counts on, at most up to MaxDrop.
	Credited = 0.6
	z        = 1.959963984540054 // 97.5 % of the normal distribution
)

// band is how far the rules err, apart from chance: a part that always counts, and parts of the estimated drop, of the difference of
// the two rules, and of the share of classes that moved. fixtures/expect/README.md says on which networks it was chosen.
type band struct{ always, drop, apart, moved float64 }

var (
	below = band{0.02, 0.8, 0.6, 0.5}
	above = band{0.02, 0.3, 0.25, 0}
)

func (b band) width(drop, apart, moved float64) float64 {
	return b.always + b.drop*max(0, drop) + b.apart*apart + b.moved*moved
}

// Estimate returns the accuracy to expect. units is the number of independent examples, at most s.Examples. There must be an example.
func (r *Reference) Estimate(s *Sums, units int) Estimate {
	n := float64(s.Examples)
	e := Estimate{Validation: r.Accuracy(), Examples: s.Examples, Confidence: float64(s.Above) / n, Moved: r.moved(s, units)}
	e.Disagreement = min(1, max(0, 1-r.errorRate()*s.Disagreement/n/r.Disagreement))
	e.Accuracy = (e.Confidence + e.Disagreement) / 2
	drop, apart := e.Validation-e.Accuracy, math.Abs(e.Confidence-e.Disagreement)
	edge := max(0.02, min(0.5, 2/float64(units))) // no variance of 0, nor of few examples near it
	at := min(1-edge, max(edge, e.Accuracy))
	chance := z * math.Sqrt(at*(1-at)/float64(units)+e.Validation*(1-e.Validation)/float64(r.Examples))
	e.Low = max(0, e.Accuracy-math.Hypot(below.width(drop, apart, e.Moved), chance))
	e.High = min(1, e.Accuracy+math.Hypot(above.width(drop, apart, e.Moved), chance))
	switch {
	case e.Moved >= MaxMoved:
		e.Bound = Shares
	case drop >= MaxDrop:
		e.Bound, e.High = Large, min(1, e.Validation-min(MaxDrop, Credited*drop))
	}
	if e.Bound != "" {
		e.Accuracy, e.Low = 0, 0
	}
	if s.labelled() > 0 {
		e.Labels = r.labels(s, e)
	}
	return e
}

// moved returns the total variation of the predicted classes, less twice what chance makes of it on average.
func (r *Reference) moved(s *Sums, units int) float64 {
	n, m := float64(r.Examples), float64(s.Examples)
	each, d := 1/n+1/float64(units), 0.0
	for c, was := range r.Predicted {
		p, q := float64(was)/n, float64(s.Predicted[c])/m
		both := float64(was+s.Predicted[c]) / (n + m)
		d += math.Abs(p-q)/2 - math.Sqrt(both*(1-both)*each)
	}
	return max(0, d)
}
