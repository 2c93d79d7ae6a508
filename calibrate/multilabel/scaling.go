package multilabel

import (
	"errors"
	"fmt"
	"math"

	"github.com/swagwrap/swagwrap/calibrate"
)

const badScaling = "labels: number of logits is not a multiple of the labels scaled"

// Scaler is a way to repair probabilities by a fit to labelled examples. Its value is its name in flags and files.
type Scaler string

const (
	ByTemperature  Scaler = "temperature"  // one T for all labels: p = σ(z/T)
	ByTemperatures Scaler = "temperatures" // one T for each label
	ByPlatt        Scaler = "platt"        // a and b for each label: p = σ(a·z + b)
)

// Scaling is the result of fitting a [Scaler]: p = σ(A·z + B) for each label. For a temperature T, A is 1/T.
type Scaling struct {
	A, B []float64 // one value for each label

	// NLLBefore and NLLAfter are the mean NLLs over the known labels of the fitting set without and with the scaling,
	// in nats. NLLAfter is never the larger.
	NLLBefore, NLLAfter float64

	// AtBound lists the labels whose temperature is [calibrate.MinTemperature] or [calibrate.MaxTemperature], which
	// only shows the direction. With ByTemperature it lists all or none. With ByPlatt it lists the labels that a
	// threshold separates without a mistake, so that only the ridge bounds A.
	AtBound []int
	// Kept lists degenerate labels, from which nothing can be learnt: A is 1 and B is 0. With ByTemperature they are
	// scaled with the others, and Kept is empty.
	Kept []int

	// Undetermined is the reason why the rows do not determine the scaling, or "": see [calibrate.Temperature]. The reason
	// of a scaler for each label names the first such label. Degenerate labels are none of them, unless all labels are
	// degenerate.
	Undetermined string

	// Warnings are reasons not to take the scaling at face value.
	Warnings []error
}

// Fit fits to log-odds z, n×labels in row-major order, given the target, which has the same shape and order. For
// probabilities pass [LogOdds].
//
// Temperatures minimise the mean NLL of the known labels, by [calibrate.FitTemperature] for the two classes with
// logits 0 and z. Platt's a and b minimise, for each label,
//
//	mean NLL of σ(a·z + b) + ½ PlattRidge ((a−1)² + b²)
//
// Fit warns if degenerate labels are kept, or if an a is negative, which reverses the order of the examples.
//
// It is an error if there is no row, if no label is known, or if a target is not 0, 1 or [Unknown]. A logit must not
// be NaN. It must not be infinite if it is wrong, or if Platt's a would then make it wrong. The error names the first
// bad row and label, or the label. Fit panics if the shapes disagree or the scaler is unknown.
func (m Scaler) Fit(logits []float64, labels int, targets []int) (*Scaling, error) {
	if labels < 1 || len(targets)%labels != 0 || len(logits) != len(targets) {
		panic(badShape)
	}
	if len(targets) == 0 {
		return nil, errors.New("no rows to fit on")
	}
	data, err := gather(logits, labels, targets)
	if err != nil {
		return nil, err
	}
	s := identity(labels)
	for _, l := range data {
		s.NLLBefore += l.loss(1, 0)
	}
	switch m {
	case ByTemperature:
		var all known
		for _, l := range data {
			all.logits, all.targets = append(all.logits, l.logits...), append(all.targets, l.targets...)
		}
		t := all.temperature()
		s.Undetermined = t.Undetermined()
		for label := range data {
			s.A[label] = 1 / t.T
			if t.AtBound {
				s.AtBound = append(s.AtBound, label)
			}
		}
	case ByTemperatures, ByPlatt:
		for label, l := range data {
			atBound, why := false, calibrate.TooFew(len(l.targets))
			switch {
			case l.degenerate():
				s.Kept, why = append(s.Kept, label), ""
			case m == ByTemperatures:
				t := l.temperature()
				s.A[label], atBound, why = 1/t.T, t.AtBound, t.Undetermined()
			default:
				if s.A[label], s.B[label], atBound, err = l.platt(); err != nil {
					return nil, fmt.Errorf("label %d: %w", label, err)
				}
				if atBound && why == "" {
					why = fmt.Sprintf("a threshold separates all %d rows without a mistake, so that nothing bounds its scale but the "+
						"ridge", len(l.targets))
				}
			}
			if atBound {
				s.AtBound = append(s.AtBound, label)
			}
			if why != "" && s.Undetermined == "" {
				s.Undetermined = fmt.Sprintf("label %d: %s", label, why)
			}
		}
		if len(s.Kept) == labels {
			s.Undetermined = "each label has one value only"
		}
	default:
		panic("labels: unknown scaler")
	}
	count := 0
	for label, l := range data {
		s.NLLAfter += l.loss(s.A[label], s.B[label])
		count += len(l.targets)
	}
	s.NLLBefore, s.NLLAfter = s.NLLBefore/float64(count), s.NLLAfter/float64(count)
	if s.NLLAfter > s.NLLBefore { // the two losses differ by rounding
		same := identity(labels)
		s.A, s.B, s.NLLAfter = same.A, same.B, s.NLLBefore
	}
	s.warn()
	return s, nil
}

func identity(labels int) *Scaling {
	s := &Scaling{A: make([]float64, labels), B: make([]float64, labels)}
	for label := range s.A {
		s.A[label] = 1
	}
	return s
}

func (s *Scaling) warn() {
	add := func(labels []int, format string) {
		if len(labels) > 0 {
			s.Warnings = append(s.Warnings, fmt.Errorf(format, len(labels), len(s.A), labels[0]))
		}
	}
	add(s.Kept, "%d of %d labels have one value only, and are left as they are: the first is %d")
	var turned []int
	for label, a := range s.A {
		if a < 0 {
			turned = append(turned, label)
		}
	}
	add(turned, "%d of %d labels are turned round, the more probable being the less so: the first is %d")
}

// LogOdds returns A·z + B for log-odds z, n×labels in row-major order. Infinite values stay infinite. LogOdds
// panics if the number of logits is not a multiple of the labels.
func (s *Scaling) LogOdds(logits []float64) []float64 {
	labels := len(s.A)
	if labels == 0 || len(s.B) != labels || len(logits)%labels != 0 {
		panic(badScaling)
	}
	out := make([]float64, len(logits))
	for k, z := range logits {
		out[k] = s.A[k%labels]*z + s.B[k%labels]
	}
	return out
}

// Apply returns σ(A·z + B), with the same rules as LogOdds.
func (s *Scaling) Apply(logits []float64) []float64 { return Sigmoid(s.LogOdds(logits)) }

// known holds the log-odds and the target of one label, for the examples where the target is known.
type known struct {
	logits  []float64
	targets []int
}

func gather(logits []float64, labels int, targets []int) ([]known, error) {
	data, found := make([]known, labels), false
	for k, y := range targets {
		if err := checkTarget(k%labels, y); err != nil {
			return nil, fmt.Errorf("row %d: %w", k/labels, err)
		}
		z := logits[k]
		switch {
		case math.IsNaN(z):
			return nil, fmt.Errorf("row %d: label %d: logit %v, want a number", k/labels, k%labels, z)
		case y == Unknown:
			continue
		case math.IsInf(z, 1-2*y): // +Inf for an absent label, −Inf for a present one
			return nil, fmt.Errorf("row %d: label %d: its value %w", k/labels, k%labels, calibrate.ErrExcluded)
		}
		found = true
		l := &data[k%labels]
		l.logits, l.targets = append(l.logits, z), append(l.targets, y)
	}
	if !found {
		return nil, errors.New("nothing is known of any label")
	}
	return data, nil
}

func (l known) degenerate() bool {
	for _, y := range l.targets {
		if y != l.targets[0] {
			return false
		}
	}
	return true
}

// loss returns the sum of the NLLs of σ(a·z + b).
func (l known) loss(a, b float64) (sum float64) {
	for i, z := range l.logits {
		sum += loss(float64(2*l.targets[i]-1) * (a*z + b))
	}
	return sum
}

// temperature returns the best T. The larger of the two logits is 0, so that an infinite one rules out the other.
func (l known) temperature() calibrate.Temperature {
	pairs := make([]float64, 0, 2*len(l.logits))
	for _, z := range l.logits {
		pairs = append(pairs, min(0, -z), min(0, z))
	}
	t, err := calibrate.FitTemperature(pairs, 2, l.targets)
	if err != nil {
		panic("labels: " + err.Error()) // gather has refused bad data already
	}
	return t
}
