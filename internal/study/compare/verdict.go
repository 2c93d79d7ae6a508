package compare

import (
	"math"

	"gonum.org/v1/gonum/floats"

	"github.com/swagwrap/swagwrap/calibrate/chance"
	"github.com/swagwrap/swagwrap/internal/baseline"
	"github.com/swagwrap/swagwrap/internal/task"
)

const (
	significant = 0.05
)

// Verdict holds the decisions of a comparison.
type Verdict struct {
	// Advice says which method to deploy, unless there is an objection against every method. Terminal, page, JSON and the commands
	// to run next are all made from these two.
	Advice
	Against []Objection
	// Base is the baseline of differences. Candidate is the ensemble that is compared with it, or nil.
	Base, Candidate *Method
	// RunsBase is the baseline of differences over runs of training, or nil without EachRun.
	RunsBase *Method
	// Plain is the baseline without its temperature, if it is so much better on the test data that chance hardly explains it, or
	// nil. Then perhaps the validation data, which the temperature is fitted on, is of another kind. It changes no choice.
	Plain *Method
	// Unranked says why nothing is ranked. It is Ranked if the methods are.
	Unranked Unranked
	// Contradicted is the method of that reason. Errors is the largest number of errors of a method for the reasons that count
	// them.
	Contradicted *Method
	Errors       int
}

// Unranked is the reason why nothing is ranked.
type Unranked string

const (
	Ranked       Unranked = ""
	Contradicted Unranked = "the scores do not fit the labels"
	FewCount     Unranked = "fewer than two methods count"
	AllCorrect   Unranked = "every method is always correct"
	TooFewErrors Unranked = "no method makes enough errors"
)

// Verdict returns the decisions. A difference is claimed only where Holm's procedure allows it: see [Result.Told].
func (r *Result) Verdict() Verdict {
	v := Verdict{Base: r.base(), Candidate: r.candidate()}
	v.Plain = r.betterPlain(v.Base)
	v.Unranked, v.Errors = r.unranked(v.Base)
	v.Contradicted = r.contradicted()
	v.Against = r.against()
	if v.Against == nil && r.unjudged() == Ranked {
		v.Advice = judge{r}.advice()
	}
	if r.OfRuns != nil {
		v.RunsBase = r.runsBase()
	}
	return v
}

// candidate returns the ensemble that is compared with the baseline: SWAG with a temperature like the baseline, or the most
// similar method if that is missing. It has the scale that validation data chose.
func (r *Result) candidate() *Method {
	if m := r.Method(baseline.SWAGTuned); r.TunedScale && m != nil && m.Sound() {
		return m
	}
	for _, key := range []string{baseline.SWAGTemp, baseline.SWAG, baseline.SWAGDiag, baseline.MultiSWAG} {
		if m := r.Method(key); m != nil && m != r.base() && m.Sound() {
			return m
		}
	}
	return nil
}

// betterPlain returns the baseline without its temperature, if it is better on the test data by more than chance, or nil.
func (r *Result) betterPlain(base *Method) *Method {
	plain, scaled := map[string]string{baseline.SGDTemp: baseline.SGD, baseline.SWATemp: baseline.SWA}[base.Key]
	if m := r.Method(plain); scaled && m != nil && r.Validation != nil {
		if d, ok := m.Differences[r.Loss().Key]; ok && r.unlike(d, base.fits(0)) {
			return m
		}
	}
	return nil
}

// unlike reports whether a method is worse than without its fitted number by more than chance makes it. d is the difference of
// the method without the number, and fits is the variance that the fit adds to it.
//
// The cost of a number that is not needed is ½·h·v·χ² if validation and test data are of one kind. χ² has one degree of freedom,
// and fits is ½(h·v)²: see [chance.NewRefit]. The choice of the test data adds a normal error. Each has the
// quantile of 0.999. TestUnlike has the rate of false alarms.
func (r *Result) unlike(d Difference, fits float64) bool {
	const chiSquared, normal = 10.828, 3.090
	return -d.Mean > chiSquared*math.Sqrt(fits/2)+normal*math.Sqrt(max(0, d.Standard*d.Standard-fits))
}

// contradicted returns the method whose scores do not fit the labels that its temperature is fitted on, or nil.
func (r *Result) contradicted() *Method {
	for _, m := range r.Methods {
		if (m.Key == baseline.SWATemp || m.Key == baseline.SGDTemp) && m.Scaling.Contradicted() {
			return m
		}
	}
	return nil
}

// unjudged returns the reason why nothing is known about any method, or Ranked.
func (r *Result) unjudged() Unranked {
	if r.contradicted() != nil {
		return Contradicted
	}
	counted := 0
	for _, m := range r.Methods {
		if m.Sound() {
			counted++
		}
	}
	switch {
	case counted == len(r.Methods), counted > 1, counted == 1 && r.Single():
		return Ranked
	}
	return FewCount
}

// unranked returns the reason why nothing is ranked against the baseline, and the largest number of errors.
func (r *Result) unranked(base *Method) (why Unranked, errors int) {
	if why := r.unjudged(); why != Ranked {
		return why, 0
	}
	for _, m := range r.Methods {
		if m.StaleBN || !m.Sound() {
			continue
		}
		if r.Enough(m, base) {
			return Ranked, 0
		}
		errors = max(errors, r.wrong(m))
	}
	if errors == 0 {
		return AllCorrect, 0
	}
	return TooFewErrors, errors
}

// wrong returns the number of a method's errors, or −1 for a task without errors.
func (r *Result) wrong(m *Method) int {
	if !r.CountsErrors() {
		return -1
	}
	return int(math.Round(floats.Sum(m.Loss(ErrorLoss))))
}

// CountsErrors reports whether the task has a loss that counts wrong examples.
func (r *Result) CountsErrors() bool {
	return !task.LossesOfUnits(r.Task) && r.Methods[0].Loss(ErrorLoss) != nil
}

// Enough reports whether there are enough errors to rank two methods.
func (r *Result) Enough(a, b *Method) bool {
	return !r.CountsErrors() || max(r.wrong(a), r.wrong(b)) >= chance.FewErrors
}

// Held returns an interval of the first loss, without its ends if the methods make too few errors for it to hold.
func (r *Result) Held(a, b *Method, i chance.Interval) chance.Interval {
	if !r.Enough(a, b) {
		i.Low, i.High = math.NaN(), math.NaN()
	}
	return i
}

// Told returns 1 if a method is significantly worse than the baseline in a loss, −1 if it is better, and 0 otherwise.
func (r *Result) Told(m *Method, loss string) int {
	base := r.base()
	d, ok := m.Differences[loss]
	if !ok || m.StaleBN || !m.Sound() || !base.Sound() || !r.Enough(m, base) {
		return 0
	}
	return d.Sign()
}
