package compare

import (
	"math"

	"github.com/swagwrap/swagwrap/internal/baseline"
)

// Objection is a reason to recommend nothing. It is about the data or the networks, so it holds for every method.
type Objection struct {
	Kind Obstacle
	// Method is the method that shows it, or nil. Warnings are those of the checks that found it.
	Method   *Method
	Warnings []string
}

// Obstacle is the kind of an [Objection]. JSON has these words.
type Obstacle string

const (
	// SharedData says that the validation data has examples of the test data or of the training data.
	SharedData Obstacle = "shared data"
	// WrongInputs says that inputs are not like those of training.
	WrongInputs Obstacle = "wrong inputs"
	// WrongClasses says that the scores do not fit the labels.
	WrongClasses Obstacle = "wrong classes"
	// NothingLearnt says that no method is clearly better than the constant prediction.
	NothingLearnt Obstacle = "nothing learnt"
	// TooSure says that networks are worse than the constant prediction, and that their scores must be divided by a large number.
	TooSure Obstacle = "too sure"
	// NotDetermined says that the validation data does not determine what is fitted for a method, such as a temperature at its
	// bound. Without such data, halves of the test data may be too small for a fit, and other methods need none.
	NotDetermined Obstacle = "not determined"
)

// against returns the objections, the most serious first.
func (r *Result) against() (all []Objection) {
	if twice := r.BatchNorm.Twice; len(twice) > 0 {
		all = append(all, Objection{Kind: SharedData, Warnings: twice})
	}
	if wrong := r.BatchNorm.Wrong(); len(wrong) > 0 {
		all = append(all, Objection{Kind: WrongInputs, Warnings: wrong})
	}
	if m := r.contradicted(); m != nil {
		return append(all, Objection{Kind: WrongClasses, Method: m})
	}
	if j := (judge{r}); len(j.candidates()) > 0 && j.learnt(j.candidates()) == nil {
		all = append(all, Objection{Kind: NothingLearnt, Method: j.lowest(j.candidates())})
	}
	if m := r.tooSure(); m != nil && len(all) == 0 {
		all = append(all, Objection{Kind: TooSure, Method: m})
	}
	for _, m := range r.Methods {
		many := m.Scaling != nil && m.Scaling.Values() == nil // vector scaling needs more labels than a temperature
		if r.Validation != nil && !m.Sound() && m.Deploy != nil && !many {
			return append(all, Objection{Kind: NotDetermined, Method: m})
		}
	}
	return all
}

// mostTemperature is the largest temperature of a network that sees what it was trained on. Modern networks have 1 to 3 (Guo et al.
// 2017), and those that learnt single images by heart up to 6 or so.
const mostTemperature = 10

// tooSure returns the method with a temperature above that, if each network is worse than the constant prediction
// without its temperature. Such
// networks see inputs that they do not know, although a temperature hides it. It returns nil otherwise.
func (r *Result) tooSure() (sure *Method) {
	for _, pair := range [][2]string{{baseline.SGD, baseline.SGDTemp}, {baseline.SWA, baseline.SWATemp}} {
		plain, scaled := r.Method(pair[0]), r.Method(pair[1])
		if r.Constant == nil || plain == nil || scaled == nil || scaled.Scaling == nil {
			continue
		}
		if over := (judge{r}).between(plain, r.Constant); !(over.Low > 0 || math.IsInf(over.Mean, 1)) {
			return nil
		}
		for _, v := range scaled.Scaling.Widening() {
			if v < mostTemperature {
				return nil
			}
		}
		sure = scaled
	}
	return sure
}
