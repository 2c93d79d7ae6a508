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
	// NotDetermined says that the data do not determine what is fitted for a method, such as a temperature at its bound.
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
	if list := r.candidates(); len(list) > 0 && r.learnt(list) == nil {
		all = append(all, Objection{Kind: NothingLearnt, Method: r.lowest(list)})
	}
	for _, m := range r.Methods {
		if many := m.Scaling != nil && m.Scaling.Values() == nil; !m.Sound() && m.Deploy != nil && !many { // vector scaling needs more than a temperature
			return append(all, Objection{Kind: NotDetermined, Method: m})
		}
	}
	return all
}

// advice chooses among the candidates that have learnt something. Without any it is empty.
func (r *Result) advice() Advice {
	if list := r.learnt(r.candidates()); len(list) > 0 {
		return r.choose(list)
	}
	return Advice{}
}
