package ensemble

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"

	"github.com/swagwrap/swagwrap/calibrate"
	"github.com/swagwrap/swagwrap/internal/task"
)

// Stopping says when the average over the first members of an example is as good as the average over all members. The
// example is then settled: it skips the other members. Package settling chooses the rule on validation data.
//
// To stop as soon as members agree favours examples whose first members agree by chance. Their averages are too
// certain, and the stages correct that. Members that stop early in ensembles of other networks: Inoue, "Adaptive
// ensemble prediction for deep neural networks" (AISTATS 2019), and Xia and Bouganis (arXiv 2303.08010).
type Stopping struct {
	// Tolerance is the largest expected increase of the NLL of a settled example, in nats.
	Tolerance float64 `json:"tolerance"`
	// Errors is the least distance of the prediction of a settled example from another one, in standard errors.
	Errors float64 `json:"standard_errors"`
	// Order lists the members in the order in which they run: the first ones resemble all.
	Order []int `json:"order"`
	// Checks are the numbers of members after which examples are checked. Stages has the correction for each.
	Checks []int        `json:"checks"`
	Stages []task.Stage `json:"stages"`
	// Weights are the weights of the members that ran, in their order, at each check. Their sum is 1. Rules of older versions have
	// none: members then have those of the ensemble.
	Weights [][]float64 `json:"weights,omitempty"`
	// Expected says at each check how large the increase of the NLL is. Without it, the increase is that of [task.Settling].
	Expected []Expectation `json:"expected,omitempty"`
	// Guarantee is what the rule was chosen for, and Cost is what it costs on the validation data.
	Guarantee StoppingGuarantee `json:"promise"`
	Cost      StoppingCost      `json:"cost"`
}

// Expectation predicts the increase of the NLL of an example that stops, in nats: exp(Level + Spread·log s + Doubt·log d), where s is
// the increase by the spread of the members, [task.Settling].Unsettled, and d the [task.Doubt] of their average. The
// spread of the first few members is itself uncertain.
type Expectation struct {
	Level  float64 `json:"level"`
	Spread float64 `json:"spread"`
	Doubt  float64 `json:"doubt"`
}

// Logarithm is log(x + 1e-9), for the numbers of an [Expectation].
func Logarithm(x float64) float64 { return math.Log(x + 1e-9) }

// Increase returns the expected increase of the NLL.
func (e *Expectation) Increase(spread, doubt float64) float64 {
	return math.Exp(e.Level + float64(e.Spread*Logarithm(spread)) + float64(e.Doubt*Logarithm(doubt)))
}

// Settled reports whether an example needs no more members at a check. The numbers are those of [task.Settling]
// and [task.Doubt].
func (s *Stopping) Settled(check int, nats, doubt, errors float64) bool {
	if s.Expected != nil {
		nats = s.Expected[check].Increase(nats, doubt)
	}
	return nats <= s.Tolerance && errors >= s.Errors
}

// StoppingGuarantee bounds the effect of stopping.
type StoppingGuarantee struct {
	// NLL bounds the divergence from the prediction of all members, in nats, with a confidence of 95 %. The divergence is the
	// expected increase of the mean NLL: the increase if all members are right about their probabilities.
	NLL float64 `json:"nll"`
	// Decisions is the smallest expected share of equal decisions.
	Decisions float64 `json:"decisions"`
}

// StoppingCost is the effect of a rule on validation data. The examples have corrections that were fitted without them.
type StoppingCost struct {
	Data     string  `json:"data"`
	Examples int     `json:"examples"`
	Members  float64 `json:"members"` // mean number of members that ran
	// Divergence is the mean divergence from the prediction of all members, in nats, and DivergenceMost its one-sided 95 %
	// bound. Rules of older versions have none, which is 0.
	Divergence     float64 `json:"divergence,omitempty"`
	DivergenceMost float64 `json:"divergence_most,omitempty"`
	// Labelled reports that NLL is the increase of the mean NLL of the labels, in nats. NLLMost is its one-sided 95 % bound; 0 in
	// rules of older versions.
	Labelled bool    `json:"labelled"`
	NLL      float64 `json:"nll"`
	NLLMost  float64 `json:"nll_most,omitempty"`
	Changed  int     `json:"changed"` // number of decisions that change; −1 for a task that makes none
}

// LeastMembers is the smallest number of members of a settled example.
const LeastMembers = 4

// StoppingChecks returns the numbers of members after which examples are checked: each is a fifth larger than the one
// before, and a multiple of unit. The last is at most nine tenths of all members. A later stop would save little.
func StoppingChecks(members, unit int) (checks []int) {
	for n := float64(LeastMembers); ; n = max(n+1, n*1.2) {
		k := (int(math.Round(n)) + unit - 1) / unit * unit
		if 10*k > 9*members {
			return checks
		}
		if !slices.Contains(checks, k) {
			checks = append(checks, k)
		}
	}
}

// Unit is the number of members that are drawn together: 2 for antithetic pairs, otherwise 1. Of an odd number of antithetic
// members the last one is alone.
func (e *Ensemble) Unit() int {
	if e.Sampling.Antithetic {
		return 2
	}
	return 1
}

// check refuses rules that no validation data give. The file may come from anywhere.
func (s *Stopping) check(members, unit int) error {
	switch {
	case !(s.Tolerance > 0) || !(s.Errors >= 0):
		return fmt.Errorf("tolerance %v and %v standard errors, want positive numbers", s.Tolerance, s.Errors)
	case len(s.Checks) == 0 || len(s.Stages) != len(s.Checks) ||
		s.Weights != nil && len(s.Weights) != len(s.Checks) || s.Expected != nil && len(s.Expected) != len(s.Checks):
		return fmt.Errorf("%d checks with %d stages, %d weights and %d expectations, want as many of each", len(s.Checks), len(s.Stages),
			len(s.Weights), len(s.Expected))
	}
	for k, check := range s.Checks {
		if check < 2*unit || check >= members || check%unit != 0 || k > 0 && check <= s.Checks[k-1] {
			return fmt.Errorf("checks after %v of %d members, want some of them, in order, and pairs together", s.Checks, members)
		}
		if s.Weights == nil {
			continue
		}
		if w := s.Weights[k]; len(w) != check || !(floats.Min(w) >= 0) || !(math.Abs(floats.Sum(w)-1) < 1e-6) {
			return fmt.Errorf("weights %v of %d members, want one for each, and 1 as their sum", w, check)
		}
	}
	for _, e := range s.Expected {
		if !(math.Abs(e.Level)+math.Abs(e.Spread)+math.Abs(e.Doubt) < 1e6) {
			return fmt.Errorf("expectation %v, want numbers of at most 1e6", e)
		}
	}
	order := slices.Sorted(slices.Values(s.Order))
	for k, member := range order {
		if member != k || s.Order[k]%unit != k%unit || s.Order[k]/unit != s.Order[k/unit*unit]/unit {
			return fmt.Errorf("order %v, want each of %d members once, and pairs together", s.Order, members)
		}
	}
	if len(order) != members {
		return fmt.Errorf("an order of %d members, want %d", len(order), members)
	}
	for _, stage := range s.Stages {
		t := stage.Temperature
		if !(t >= calibrate.MinTemperature && t <= calibrate.MaxTemperature) ||
			!(stage.Offset >= 0 && stage.Slope >= 0 && stage.Offset+stage.Slope < math.MaxFloat32) {
			return fmt.Errorf("stage with temperature %v, offset %v and slope %v, want positive numbers", t, stage.Offset, stage.Slope)
		}
	}
	return nil
}

// stage returns the correction for an average over ran members.
func (s *Stopping) stage(ran int) task.Stage {
	i, _ := slices.BinarySearch(s.Checks, ran)
	return s.Stages[i]
}

// usualThreshold is the threshold of a [task.Decided] without another one.
const usualThreshold = 0.5

// RawThreshold returns the threshold on the uncalibrated probability of class 1 that gives the decisions of a threshold
// on the calibrated one. Calibrations of two classes do not change the order of examples.
func (e *Ensemble) RawThreshold(t task.Task, threshold float64) float64 {
	if _, ok := t.(task.Decided); !ok || e.Calibration == nil {
		return threshold
	}
	low, high, p := 0.0, 1.0, make([]float64, 2)
	for range 60 {
		raw := (low + high) / 2
		p[0], p[1] = 1-raw, raw
		if e.Calibrated(t, p); p[1] < cmp.Or(threshold, usualThreshold) {
			low = raw
		} else {
			high = raw
		}
	}
	return high
}

// StoppingChecks returns the checks of the ensemble's stopping rules.
func (e *Ensemble) StoppingChecks() []int { return StoppingChecks(e.Members(), e.Unit()) }
