// Package expect estimates how good predictions of data without labels are. It compares them with predictions of labelled validation
// data. [New] keeps what is needed of those, [Tally] adds up predictions of other data, and [Validation.Estimate] compares them.
//
// A figure is the accuracy, or the root mean squared error. Each has a loss: 1 for a wrong prediction, or the squared error. Two signs of
// an example grow with its loss. Each gives an estimate: the loss on validation data, times the ratio of the mean sign here and there. The
// estimate is the mean of both, on a scale of the [Figure].
//
// The first sign of an accuracy is a confidence below a threshold, below which as many validation predictions lie as are wrong (average
// thresholded confidence; Garg et al. 2022, arXiv:2201.04234). The second is the mutual information of prediction and member (after
// Jiang et al. 2022, arXiv:2106.13799). The signs of a root mean squared error are the predicted variance, and its part that comes from
// the differences of members.
//
// An example has one prediction or several, such as those of a picture's pixels. Examples are the unit of chance, not predictions.
//
// # Invariants
//
// No sign sees everything. Where predictions are distributed otherwise than on validation data, or the estimate is much worse, there is a
// bound and no number.
package expect

import (
	"errors"
	"fmt"
	"math"
	"slices"
)

// Example has the signs of an example, and the loss as far as it is known.
type Example struct {
	Size  float64    // number of predictions
	Signs [2]float64 // means over the predictions
	// Predicted counts the predictions by class, or of numbers by range.
	Predicted []float64
	Known     float64 // number of predictions whose target is known
	Loss      float64 // their mean loss
}

// Seen is an example with its parts: labels that do not exclude each other, or several numbers.
type Seen struct {
	// Uncertainty orders examples into strata, and Kind sorts those of a stratum.
	Uncertainty, Kind float64
	All               *Example // nil for numbers
	Parts             []Example
}

// Labelled reports whether something is known.
func (s *Seen) Labelled() bool {
	known := func(e Example) bool { return e.Known > 0 }
	return s.All != nil && known(*s.All) || slices.ContainsFunc(s.Parts, known)
}

// Limits are what predictions are held against.
type Limits struct {
	// Threshold is the confidence below which as many predictions lie as are wrong. It is 0 for numbers.
	Threshold float64 `json:"threshold,omitempty"`
	// Ranges has the numbers that divide predicted numbers into groups of the same size.
	Ranges []float64 `json:"ranges,omitempty"`
}

// Reference has the means and sums of predictions of validation data.
type Reference struct {
	Limits
	Figure   Figure  `json:"figure"`
	Examples int     `json:"examples"`
	Size     float64 `json:"size"` // predictions
	Loss     float64 `json:"loss"` // their mean
	// Spread is the variance of an example's mean loss, as far as it counts in the mean over all predictions.
	Spread    float64    `json:"spread"`
	Signs     [2]float64 `json:"signs"`     // means over predictions
	Predicted []float64  `json:"predicted"` // predictions by class or range
	// Dispersion has, for each class, the variance of an example's share of it, as a multiple of that of a single prediction. It is
	// missing if examples have one prediction.
	Dispersion []float64 `json:"apart,omitempty"`
	// Strata has the sums of four groups of examples, which are cut at [Validation.Cuts].
	Strata []Stratum `json:"strata"`
}

// Stratum has the sums of a group of examples of like uncertainty.
type Stratum struct {
	Examples int     `json:"examples"`
	Size     float64 `json:"size"`
	Labelled int     `json:"labelled"` // examples with a known prediction
	// Known adds up the known predictions of an example, and Loss the losses of these. Others are sums of products of both.
	Known      float64 `json:"known"`
	Loss       float64 `json:"loss"`
	KnownKnown float64 `json:"known_known"`
	KnownLoss  float64 `json:"known_loss"`
	LossLoss   float64 `json:"loss_loss"`
}

func (s *Stratum) add(e *Example) {
	s.Examples++
	s.Size += e.Size
	if e.Known > 0 {
		loss := float64(e.Known * e.Loss)
		s.Labelled++
		s.Known, s.Loss = s.Known+e.Known, s.Loss+loss
		s.KnownKnown, s.KnownLoss, s.LossLoss = s.KnownKnown+float64(e.Known*e.Known), s.KnownLoss+float64(e.Known*loss),
			s.LossLoss+float64(loss*loss)
	}
}

func (s *Stratum) merge(o Stratum) {
	s.Examples, s.Size, s.Labelled = s.Examples+o.Examples, s.Size+o.Size, s.Labelled+o.Labelled
	s.Known, s.Loss = s.Known+o.Known, s.Loss+o.Loss
	s.KnownKnown, s.KnownLoss, s.LossLoss = s.KnownKnown+o.KnownKnown, s.KnownLoss+o.KnownLoss, s.LossLoss+o.LossLoss
}

// residuals returns Σ(loss − mean·known)² over the labelled examples.
func (s *Stratum) residuals(mean float64) float64 {
	return s.LossLoss - 2*mean*s.KnownLoss + mean*mean*s.KnownKnown
}

// FewWrong is the smallest number of wrong and of right predictions that a [Reference] of an accuracy needs, and FewExamples that of
// examples of any.
const FewWrong, FewExamples = 10, 20

const strata = 4

// ErrFew is the error of validation data that say too little.
var ErrFew = fmt.Errorf("want at least %d wrong predictions, %d right ones, and members that disagree; of numbers %d examples", FewWrong,
	FewWrong, FewExamples)

// builder makes a [Reference] of examples that are added one at a time.
type builder struct {
	Reference
	all     Stratum
	squares []float64 // Σ count², by class
	bad     error
}

func newBuilder(figure Figure, l Limits) *builder {
	return &builder{Reference: Reference{Limits: l, Figure: figure, Strata: make([]Stratum, strata)}}
}

// add adds an example of a stratum. Examples without a known prediction do not count.
func (b *builder) add(h int, e *Example) {
	if e.Known == 0 {
		return
	}
	if v := e.Signs[0] + e.Signs[1] + e.Loss; v-v != 0 && b.bad == nil {
		b.bad = fmt.Errorf("%w: example %d has signs %v and loss %v", ErrFew, b.Examples, e.Signs, e.Loss)
	}
	b.Examples++
	b.all.add(e)
	b.Strata[h].add(e)
	for k, v := range e.Signs {
		b.Signs[k] += float64(e.Size * max(0, v))
	}
	if b.Predicted == nil {
		b.Predicted, b.squares = make([]float64, len(e.Predicted)), make([]float64, len(e.Predicted))
	}
	for c, n := range e.Predicted {
		b.Predicted[c] += n
		b.squares[c] += float64(n * n)
	}
}

// reference returns the reference. It returns [ErrFew] if the examples say too little.
func (b *builder) reference() (*Reference, error) {
	if b.bad != nil {
		return nil, b.bad
	}
	r := &b.Reference
	if r.Examples == 0 {
		return nil, ErrFew
	}
	n := float64(r.Examples)
	known := b.all.Known / n
	r.Size, r.Loss = b.all.Size, b.all.Loss/b.all.Known
	r.Spread = max(0, b.all.residuals(r.Loss)) / n / (known * known)
	for k := range r.Signs {
		r.Signs[k] /= r.Size
	}
	if r.Size > n {
		r.Dispersion = make([]float64, len(b.squares))
		for c, q := range b.squares {
			p, mean := r.Predicted[c]/r.Size, r.Size/n
			r.Dispersion[c] = 1
			if v := p * (1 - p); v > 0 {
				r.Dispersion[c] = min(1, max(0, q/n/(mean*mean)-p*p)/v)
			}
		}
	}
	if r.Sound() != nil {
		return nil, ErrFew
	}
	return r, nil
}

// Threshold returns the confidence below which so many predictions lie. It needs one more confidence.
func Threshold(confidences []float64, wrong int) float64 {
	return between(slices.Sorted(slices.Values(confidences)), wrong)
}

// between returns the number in the middle of elements k−1 and k of a sorted list: rounding in a file of predictions does not carry a
// value across it.
func between(sorted []float64, k int) float64 { return (sorted[k-1] + sorted[k]) / 2 }

// Value returns the figure on validation data.
func (r *Reference) Value() float64 { s := scales[r.Figure]; return s.figure(s.value(r.Loss)) }

// Sound returns an error if the content of a file is invalid.
func (r *Reference) Sound() error {
	s, ok := scales[r.Figure]
	if !ok {
		return fmt.Errorf("figure %q, want %s or %s", r.Figure, Accuracy, RMSE)
	}
	finite := func(list ...float64) bool {
		return !slices.ContainsFunc(list, func(v float64) bool { return !(v >= 0 && v < 1e300) })
	}
	n := float64(r.Examples)
	if r.Examples < 1 || r.Examples > 1e12 || !finite(r.Size, r.Loss, r.Spread, r.Threshold, r.Signs[0], r.Signs[1]) ||
		!finite(r.Predicted...) || !finite(r.Dispersion...) || r.Size < n {
		return errors.New("want numbers of 0 or more")
	}
	if err := s.sound(r); err != nil {
		return err
	}
	if !(r.Signs[1] > 0) || r.Threshold > 1 {
		return fmt.Errorf("signs %v, threshold %v: %w", r.Signs, r.Threshold, ErrFew)
	}
	predicted := 0.0
	for _, v := range r.Predicted {
		predicted += v
	}
	if len(r.Predicted) < 2 || math.Abs(predicted-r.Size) > 1e-6*r.Size || r.Dispersion != nil && len(r.Dispersion) != len(r.Predicted) {
		return errors.New("want the predictions by class")
	}
	if len(r.Strata) != strata {
		return errors.New("want four strata")
	}
	var all Stratum
	for _, h := range r.Strata {
		if h.Examples < 0 || h.Labelled != h.Examples || !finite(h.Size, h.Known, h.Loss, h.KnownKnown, h.KnownLoss, h.LossLoss) ||
			s.most*h.Known < h.Loss*(1-1e-9) {
			return fmt.Errorf("stratum %+v", h)
		}
		all.merge(h)
	}
	if all.Examples != r.Examples || math.Abs(all.Size-r.Size) > 1e-6*r.Size || math.Abs(all.Loss-r.Loss*all.Known) > 1e-6*all.Loss {
		return errors.New("want the examples of four strata")
	}
	return nil
}
