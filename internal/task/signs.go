package task

import (
	"math"
	"slices"

	"github.com/swagwrap/swagwrap/calibrate/expect"
)

// Sighted is a task whose predictions without labels show how good they are: see package expect.
type Sighted interface {
	Task
	// Signs returns what reads rows with these columns, or nil if they lack something.
	Signs(columns []Column) Signs
}

// Rows calls f with each of some rows in turn, and with the class of its example, −1 for none.
type Rows func(f func(row []float64, label int))

// Signs reads from rows what package expect compares.
type Signs interface {
	// Figure is what can be estimated, and Fits reports whether validation data had as many classes and parts.
	Figure() expect.Figure
	Fits(v *expect.Validation) bool
	// Limits chooses limits by labelled rows: those of all predictions, and those of the parts.
	Limits(rows Rows) (all expect.Limits, parts []expect.Limits)
	// Read reads a row, by such limits. What it returns is valid until the next call.
	Read(row []float64, label int, all expect.Limits, parts []expect.Limits) *expect.Seen
}

// SignsOf returns what reads the signs of rows with these columns. It is nil for a task without signs.
func SignsOf(t Task, columns []Column) Signs {
	if s, ok := t.(Sighted); ok {
		return s.Signs(columns)
	}
	return nil
}

// NoSigns says why a task has no signs, or returns "" for one that has.
func NoSigns(t Task) string {
	switch {
	case SignsOf(t, t.Columns(RowOptions{Signs: 1})) != nil:
		return ""
	case t.About().Name == NextToken:
		return "the labels of a text are known: each is the next token"
	}
	return "no accuracy or error to expect is known for " + t.About().Size
}

// ReadSigns reads a row by the limits of validation data.
func ReadSigns(s Signs, v *expect.Validation, row []float64, label int) *expect.Seen {
	all, parts := expect.Limits{}, make([]expect.Limits, len(v.Parts))
	if v.All != nil {
		all = v.All.Limits
	}
	for k, r := range v.Parts {
		if r != nil {
			parts[k] = r.Limits
		}
	}
	return s.Read(row, label, all, parts)
}

// Fits reports whether validation data had as many classes and parts as an example has.
func Fits(v *expect.Validation, s *expect.Seen) bool {
	if (v.All == nil) != (s.All == nil) || len(v.Parts) != len(s.Parts) || v.All != nil && len(v.All.Predicted) != len(s.All.Predicted) {
		return false
	}
	for k, r := range v.Parts {
		if r != nil && len(r.Predicted) != len(s.Parts[k].Predicted) {
			return false
		}
	}
	return true
}

// places returns where the values of the columns with these names begin in a row, or nil if one is missing.
func places(columns []Column, names ...string) []int {
	out, at := slices.Repeat([]int{-1}, len(names)), 0
	for _, c := range columns {
		if k := slices.Index(names, c.Name); k >= 0 {
			out[k] = at
		}
		at += c.Len()
	}
	if slices.Contains(out, -1) {
		return nil
	}
	return out
}

// judged has the confidences of predictions, and the number of wrong ones.
type judged struct {
	confidences []float64
	wrong       int
}

func (j *judged) add(confidence float64, wrong bool) {
	j.confidences = append(j.confidences, confidence)
	if wrong {
		j.wrong++
	}
}

// limits returns the confidence below which as many predictions lie as are wrong.
func (j *judged) limits() (l expect.Limits) {
	if j.wrong > 0 && j.wrong < len(j.confidences) {
		l.Threshold = expect.Threshold(j.confidences, j.wrong)
	}
	return l
}

// below is the first sign of an accuracy, of a prediction.
func below(l expect.Limits, confidence float64) float64 {
	if confidence > l.Threshold {
		return 0
	}
	return 1
}

func shareIf(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

// signsOfClasses are those of one predicted class.
type signsOfClasses struct {
	at   []int
	seen expect.Seen
}

// Signs implements [Sighted].
func (t classes) Signs(columns []Column) Signs {
	at := places(columns, "prediction", "confidence", "mutual_information")
	if at == nil {
		return nil
	}
	return &signsOfClasses{at, expect.Seen{All: &expect.Example{Size: 1, Predicted: make([]float64, t.count)}}}
}

func (s *signsOfClasses) Figure() expect.Figure { return expect.Accuracy }

func (s *signsOfClasses) Fits(v *expect.Validation) bool { return Fits(v, &s.seen) }

func (s *signsOfClasses) Limits(rows Rows) (expect.Limits, []expect.Limits) {
	var j judged
	rows(func(row []float64, label int) {
		if label >= 0 {
			j.add(row[s.at[1]], int(row[s.at[0]]) != label)
		}
	})
	return j.limits(), nil
}

func (s *signsOfClasses) Read(row []float64, label int, l expect.Limits, _ []expect.Limits) *expect.Seen {
	class, e := row[s.at[0]], s.seen.All
	s.seen.Uncertainty, s.seen.Kind = -row[s.at[1]], class
	e.Signs = [2]float64{below(l, row[s.at[1]]), row[s.at[2]]}
	clear(e.Predicted)
	if class >= 0 && int(class) < len(e.Predicted) {
		e.Predicted[int(class)] = 1
	}
	e.Known, e.Loss = shareIf(label >= 0), shareIf(label >= 0 && int(class) != label)
	return &s.seen
}

// signsOfLabels are those of independent labels. Each is predicted to be there or not, at a probability of one half.
type signsOfLabels struct {
	n, target, has, lacks, mutual int
	seen                          expect.Seen
}

// Signs implements [Sighted].
func (t labels) Signs(columns []Column) Signs {
	at := places(columns, "labels", "probabilities", "complements", "mutual_informations")
	if at == nil {
		return nil
	}
	s := &signsOfLabels{t.Count, at[0], at[1], at[2], at[3], expect.Seen{
		All:   &expect.Example{Size: float64(t.Count), Predicted: make([]float64, 2)},
		Parts: make([]expect.Example, t.Count),
	}}
	for k := range s.seen.Parts {
		s.seen.Parts[k] = expect.Example{Size: 1, Predicted: make([]float64, 2)}
	}
	return s
}

func (s *signsOfLabels) Figure() expect.Figure { return expect.Accuracy }

func (s *signsOfLabels) Fits(v *expect.Validation) bool { return Fits(v, &s.seen) }

// of returns the prediction of label k. there says whether the label is predicted, known whether its target is known, and wrong
// whether the two differ.
func (s *signsOfLabels) of(row []float64, k int) (confidence float64, there, known, wrong bool) {
	p, q, target := row[s.has+k], row[s.lacks+k], row[s.target+k]
	there, known = p >= 0.5, target >= 0
	return max(p, q), there, known, known && there != (target > 0)
}

func (s *signsOfLabels) Limits(rows Rows) (expect.Limits, []expect.Limits) {
	var all judged
	each, parts := make([]judged, s.n), make([]expect.Limits, s.n)
	rows(func(row []float64, _ int) {
		for k := range each {
			if confidence, _, known, wrong := s.of(row, k); known {
				all.add(confidence, wrong)
				each[k].add(confidence, wrong)
			}
		}
	})
	for k := range each {
		parts[k] = each[k].limits()
	}
	return all.limits(), parts
}

func (s *signsOfLabels) Read(row []float64, _ int, l expect.Limits, parts []expect.Limits) *expect.Seen {
	e, n := s.seen.All, float64(s.n)
	e.Signs, e.Known, e.Loss, s.seen.Uncertainty, s.seen.Kind = [2]float64{}, 0, 0, 0, 0
	clear(e.Predicted)
	for k := range s.n {
		confidence, there, known, wrong := s.of(row, k)
		mutual, one := row[s.mutual+k], &s.seen.Parts[k]
		one.Signs = [2]float64{below(parts[k], confidence), mutual}
		one.Predicted[0], one.Predicted[1] = shareIf(!there), shareIf(there)
		one.Known, one.Loss = shareIf(known), shareIf(wrong)
		e.Signs[0], e.Signs[1] = e.Signs[0]+below(l, confidence)/n, e.Signs[1]+mutual/n
		e.Predicted[0], e.Predicted[1] = e.Predicted[0]+one.Predicted[0], e.Predicted[1]+one.Predicted[1]
		e.Known, e.Loss = e.Known+one.Known, e.Loss+one.Loss
		s.seen.Uncertainty -= confidence / n
		s.seen.Kind += one.Predicted[1] * float64(k+1) // examples with the same labels lie together
	}
	if e.Known > 0 {
		e.Loss /= e.Known
	}
	return &s.seen
}

// signsOfNumbers are those of a regression, by target.
type signsOfNumbers struct {
	n, target, mean, std, epistemic int
	seen                            expect.Seen
}

// ranges is the number of ranges of predicted numbers.
const ranges = 10

// Signs implements [Sighted].
func (t regressionTask) Signs(columns []Column) Signs {
	at := places(columns, "target", "mean", "std", "epistemic_std")
	if at == nil {
		return nil
	}
	s := &signsOfNumbers{t.targets, at[0], at[1], at[2], at[3], expect.Seen{Parts: make([]expect.Example, t.targets)}}
	for k := range s.seen.Parts {
		s.seen.Parts[k] = expect.Example{Size: 1, Predicted: make([]float64, ranges)}
	}
	return s
}

func (s *signsOfNumbers) Figure() expect.Figure { return expect.RMSE }

func (s *signsOfNumbers) Fits(v *expect.Validation) bool {
	return Fits(v, &s.seen) && !slices.ContainsFunc(v.Parts, func(r *expect.Reference) bool { return len(r.Ranges) != ranges-1 })
}

func (s *signsOfNumbers) Limits(rows Rows) (all expect.Limits, parts []expect.Limits) {
	means := make([][]float64, s.n)
	rows(func(row []float64, _ int) {
		for k := range means {
			means[k] = append(means[k], row[s.mean+k])
		}
	})
	for _, list := range means {
		slices.Sort(list)
		var l expect.Limits
		for k := 1; k < ranges; k++ {
			l.Ranges = append(l.Ranges, list[k*len(list)/ranges])
		}
		parts = append(parts, l)
	}
	return all, parts
}

func (s *signsOfNumbers) Read(row []float64, _ int, _ expect.Limits, parts []expect.Limits) *expect.Seen {
	s.seen.Uncertainty, s.seen.Kind = 0, row[s.mean]
	for k := range s.seen.Parts {
		e, mean, std, epistemic := &s.seen.Parts[k], row[s.mean+k], row[s.std+k], row[s.epistemic+k]
		e.Signs = [2]float64{std * std, epistemic * epistemic}
		clear(e.Predicted)
		at, _ := slices.BinarySearch(parts[k].Ranges, mean)
		e.Predicted[at] = 1
		e.Known, e.Loss = 0, 0
		if off := row[s.target+k] - mean; off == off {
			e.Known, e.Loss = 1, off*off
		}
		s.seen.Uncertainty += math.Log(max(std, math.SmallestNonzeroFloat64)) // the same for any units
	}
	return &s.seen
}
