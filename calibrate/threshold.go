package calibrate

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// One of two classes is told by a threshold: an example whose probability of class 1 is
// at or above it is taken for class 1, a positive. In the functions below in are the
// probabilities of class 1 of the examples of class 0, and out those of class 1.

// DefaultThreshold takes an example for the class that is the more probable one.
const DefaultThreshold = 0.5

// Decisions count what a threshold decides.
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

// Add counts the decisions of both.
func (d Decisions) Add(o Decisions) Decisions {
	return Decisions{d.TruePositives + o.TruePositives, d.FalsePositives + o.FalsePositives, d.TrueNegatives + o.TrueNegatives, d.FalseNegatives + o.FalseNegatives}
}

func ratio(part, whole int) float64 { return float64(part) / float64(whole) } // NaN of none

// Sensitivity, or recall, is the share of class 1 that is found; NaN without any.
func (d Decisions) Sensitivity() float64 {
	return ratio(d.TruePositives, d.TruePositives+d.FalseNegatives)
}

// Specificity is the share of class 0 that is not taken for class 1; NaN without any.
func (d Decisions) Specificity() float64 {
	return ratio(d.TrueNegatives, d.TrueNegatives+d.FalsePositives)
}

// Precision is the share of class 1 among what is taken for it; NaN where nothing is.
func (d Decisions) Precision() float64 {
	return ratio(d.TruePositives, d.TruePositives+d.FalsePositives)
}

// F1 is the harmonic mean of precision and sensitivity, 2TP/(2TP+FP+FN); NaN where there
// is no class 1 and nothing is taken for it.
func (d Decisions) F1() float64 {
	return ratio(2*d.TruePositives, 2*d.TruePositives+d.FalsePositives+d.FalseNegatives)
}

// Accuracy is the share of right decisions.
func (d Decisions) Accuracy() float64 {
	right := d.TruePositives + d.TrueNegatives
	return ratio(right, right+d.FalsePositives+d.FalseNegatives)
}

// Youden is sensitivity + specificity − 1 (Youden 1950).
func (d Decisions) Youden() float64 { return d.Sensitivity() + d.Specificity() - 1 }

// An OperatingPoint is what can be had of scores by one threshold.
type OperatingPoint struct {
	Threshold float64 // the lowest score that is taken for class 1
	Decisions
}

// OperatingPoints returns those of all distinct scores, in descending order: the points of
// the receiver operating characteristic (1 − specificity, sensitivity), but for (0, 0), and
// of the precision–recall curve. They are nil with a NaN among the scores; without any score
// on one side OperatingPoints panics.
func OperatingPoints(in, out []float64) []OperatingPoint {
	scores := slices.Concat(in, out)
	slices.SortFunc(scores, func(a, b float64) int { return cmp.Compare(b, a) })
	scores = slices.Compact(scores)
	var points []OperatingPoint
	ok := eachThreshold(in, out, func(_, after outcome) {
		points = append(points, OperatingPoint{scores[len(points)], Decisions{after.found, after.alarms, len(in) - after.alarms, len(out) - after.found}})
	})
	if !ok {
		return nil
	}
	return points
}

// A Criterion chooses a threshold. Its zero value is none.
type Criterion struct {
	Name string  // one of Criteria
	Want float64 // of those that take a number, above 0 and at most 1
}

// Names of [Criterion].
const (
	ByF1          = "f1"          // the highest F1
	ByYouden      = "youden"      // the highest sensitivity + specificity − 1
	ByPrecision   = "precision"   // of those with that precision or more, the highest recall
	ByRecall      = "recall"      // of those with that recall or more, the highest specificity
	BySpecificity = "specificity" // of those with that specificity or more, the highest recall
)

// Criteria lists them as [ParseCriterion] takes them.
var Criteria = []string{ByF1, ByYouden, ByPrecision + "=P", ByRecall + "=R", BySpecificity + "=S"}

// ParseCriterion reads "f1" or "precision=0.9". Sensitivity is another word for recall.
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
	case ByPrecision, ByRecall, BySpecificity:
		var err error
		if c.Want, err = strconv.ParseFloat(number, 64); err != nil || !(c.Want > 0 && c.Want <= 1) {
			return Criterion{}, fmt.Errorf("%q: want %s with a number above 0 and at most 1, such as %s=0.9", s, name, name)
		}
		return c, nil
	}
	return Criterion{}, fmt.Errorf("%q: want one of %s", s, strings.Join(Criteria, ", "))
}

// String is what [ParseCriterion] reads.
func (c Criterion) String() string {
	if c.Want == 0 {
		return c.Name
	}
	return fmt.Sprintf("%s=%g", c.Name, c.Want)
}

// of are what is to be the highest, and what must be reached, by a point.
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
	panic("calibrate: unknown criterion")
}

// Choose returns the threshold that the criterion asks for, and what it decides; of equals
// the highest. It stands in the middle between the scores that it tells apart, so that
// rounding of scores changes nothing, and below all of them at half of the lowest. Where that
// is 0 no threshold takes all examples for class 1.
//
// It is an error if one of the classes has no examples, a score is not in [0, 1], or no
// threshold reaches what is wanted.
func (c Criterion) Choose(in, out []float64) (OperatingPoint, error) {
	if len(in) == 0 || len(out) == 0 {
		return OperatingPoint{}, fmt.Errorf("a threshold by %v: want examples of both classes, there are %d of class 0 and %d of class 1", c, len(in), len(out))
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
