package detect

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/swagwrap/swagwrap/internal/word"
)

// A threshold decides between two classes: an example whose probability of class 1 is at or above it is taken as
// class 1, a positive. In the functions below, in holds the probabilities of class 1 for the examples of class 0, and
// out those for the examples of class 1.

// DefaultThreshold chooses the more probable class.
const DefaultThreshold = 0.5

// Decisions counts the decisions of a threshold.
type Decisions struct {
	TruePositives, FalsePositives, TrueNegatives, FalseNegatives int
}

// Decide counts the decisions of a threshold.
func Decide(in, out []float64, threshold float64) Decisions {
	above := func(scores []float64) (n int) {
		for _, p := range scores {
			if p >= threshold {
				n++
			}
		}
		return n
	}
	found, alarms := above(out), above(in)
	return Decisions{found, alarms, len(in) - alarms, len(out) - found}
}

// Add returns the sums of both counts.
func (d Decisions) Add(o Decisions) Decisions {
	return Decisions{d.TruePositives + o.TruePositives, d.FalsePositives + o.FalsePositives, d.TrueNegatives + o.TrueNegatives,
		d.FalseNegatives + o.FalseNegatives}
}

func ratio(part, whole int) float64 { return float64(part) / float64(whole) } // NaN if whole is 0

// Sensitivity, or recall, returns the share of class 1 that is detected; NaN if there is no class 1.
func (d Decisions) Sensitivity() float64 {
	return ratio(d.TruePositives, d.TruePositives+d.FalseNegatives)
}

// Specificity returns the share of class 0 that is not taken as class 1; NaN if there is no class 0.
func (d Decisions) Specificity() float64 {
	return ratio(d.TrueNegatives, d.TrueNegatives+d.FalsePositives)
}

// Precision returns the share of class 1 among the positives; NaN if there are no positives.
func (d Decisions) Precision() float64 {
	return ratio(d.TruePositives, d.TruePositives+d.FalsePositives)
}

// F1 returns the harmonic mean of precision and sensitivity, 2TP/(2TP+FP+FN). It is NaN if there is no class 1 and no
// positive.
func (d Decisions) F1() float64 {
	return ratio(2*d.TruePositives, 2*d.TruePositives+d.FalsePositives+d.FalseNegatives)
}

// Accuracy returns the share of correct decisions.
func (d Decisions) Accuracy() float64 {
	right := d.TruePositives + d.TrueNegatives
	return ratio(right, right+d.FalsePositives+d.FalseNegatives)
}

// Youden returns sensitivity + specificity − 1 (Youden 1950).
func (d Decisions) Youden() float64 { return d.Sensitivity() + d.Specificity() - 1 }

// An OperatingPoint is a threshold with its decisions.
type OperatingPoint struct {
	Threshold float64 // the lowest score that is taken as class 1
	Decisions
}

// OperatingPoints returns the points for all distinct scores in descending order. They are the points of the receiver
// operating characteristic (1 − specificity, sensitivity) without (0, 0), and of the precision–recall curve. It
// returns nil if a score is NaN, and panics if one side has no scores.
func OperatingPoints(in, out []float64) []OperatingPoint {
	var points []OperatingPoint
	ok := eachThreshold(in, out, func(score float64, _, after outcome) {
		points = append(points, OperatingPoint{score, Decisions{after.found, after.alarms, len(in) - after.alarms, len(out) - after.found}})
	})
	if !ok {
		return nil
	}
	return points
}

// A Criterion is a rule for choosing a threshold. The zero value is no criterion.
type Criterion struct {
	Name string  // as in Criteria, without the number
	Want float64 // for criteria with a number, above 0 and at most 1
}

// Names of criteria.
const (
	ByF1          = "f1"          // the highest F1
	ByYouden      = "youden"      // the highest sensitivity + specificity − 1
	ByPrecision   = "precision"   // the highest recall with at least that precision
	ByRecall      = "recall"      // the highest specificity with at least that recall
	BySpecificity = "specificity" // the highest recall with at least that specificity
	ByRisk        = "risk"        // decides from which confidence on to answer, and not between classes: see calibrate.FitAnswering
)

// Criteria lists the criteria in the form that [ParseCriterion] reads.
var Criteria = []string{ByF1, ByYouden, ByPrecision + "=P", ByRecall + "=R", BySpecificity + "=S", ByRisk + "=R"}

// ParseCriterion reads a criterion such as "f1", "precision=0.9" or "risk=1%". Sensitivity is another word for recall.
func ParseCriterion(s string) (Criterion, error) {
	name, number, with := strings.Cut(s, "=")
	if name == "sensitivity" {
		name = ByRecall
	}
	c := Criterion{Name: name}
	switch name {
	case ByF1, ByYouden:
		if with {
			return Criterion{}, fmt.Errorf("%q: %s takes no number", s, name)
		}
		return c, nil
	case ByPrecision, ByRecall, BySpecificity, ByRisk:
		var err error
		most, example := "at most 1", "0.9"
		if name == ByRisk {
			most, example = "below 1", "1%"
		}
		if c.Want, err = word.Share(number, 0, 1); err != nil || c.Want == 0 || name == ByRisk && c.Want == 1 {
			return Criterion{}, fmt.Errorf("%q: want %s with a number above 0 and %s, such as %s=%s", s, name, most, name, example)
		}
		return c, nil
	}
	return Criterion{}, &word.Unknown{Word: s, Want: Criteria}
}

// String returns the criterion in the form that [ParseCriterion] reads.
func (c Criterion) String() string {
	if c.Want == 0 {
		return c.Name
	}
	return fmt.Sprintf("%s=%g", c.Name, c.Want)
}

// of returns the value that the criterion maximises, and the value that must reach c.Want.
func (c Criterion) of(d Decisions) (value, reached float64) {
	switch c.Name {
	case ByF1:
		return d.F1(), 0
	case ByYouden:
		return d.Youden(), 0
	case ByPrecision:
		return d.Sensitivity(), d.Precision()
	case ByRecall:
		return d.Specificity(), d.Sensitivity()
	case BySpecificity:
		return d.Sensitivity(), d.Specificity()
	}
	panic("detect: unknown criterion")
}

// Choose returns the threshold that meets the criterion best, and its decisions. Of equally good thresholds it
// returns the highest. The threshold lies midway between two scores, so that rounding of scores changes nothing. If
// it must be below all scores, it is half of the lowest score. If that is 0, no threshold takes all examples as class
// 1.
//
// Choose returns an error if one of the classes has no examples, a score is not in [0, 1], or no threshold reaches
// c.Want.
func (c Criterion) Choose(in, out []float64) (OperatingPoint, error) {
	if len(in) == 0 || len(out) == 0 {
		return OperatingPoint{}, fmt.Errorf("a threshold by %v: want examples of both classes, there are %d of class 0 and %d of class 1",
			c, len(in), len(out))
	}
	if slices.ContainsFunc(slices.Concat(in, out), func(p float64) bool { return !(0 <= p && p <= 1) }) {
		return OperatingPoint{}, errors.New("a threshold: want probabilities from 0 to 1")
	}
	points := OperatingPoints(in, out)
	best, highest, nearest := -1, math.Inf(-1), 0.0
	for i, p := range points {
		if p.Threshold == 0 {
			break
		}
		value, reached := c.of(p.Decisions)
		nearest = max(nearest, reached)
		if reached >= c.Want && value > highest {
			best, highest = i, value
		}
	}
	if best < 0 {
		return OperatingPoint{}, fmt.Errorf("a threshold by %v: the highest %s that any has is %.4g", c, c.Name, nearest)
	}
	chosen := points[best]
	next := 0.0
	if best+1 < len(points) {
		next = points[best+1].Threshold
	}
	if middle := next + (chosen.Threshold-next)/2; middle > next {
		chosen.Threshold = middle
	}
	return chosen, nil
}
