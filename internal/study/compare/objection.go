package compare

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
	// NothingLearnt says that no method is clearly better than the floor.
	NothingLearnt Obstacle = "nothing learnt"
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
	for _, m := range r.Methods {
		many := m.Scaling != nil && m.Scaling.Values() == nil // vector scaling needs more labels than a temperature
		if r.Validation != nil && !m.Sound() && m.Deploy != nil && !many {
			return append(all, Objection{Kind: NotDetermined, Method: m})
		}
	}
	return all
}
